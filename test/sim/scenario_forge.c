/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "flow.h"
#include "icrc.h"
#include "packet.h"
#include "scenario_forge.h"

static const uint8_t listed[16] = {0xFD, 5, [15] = 1}, other[16] = {0xFD, 6, [15] = 1};

void forge_accept(struct forge_end *end, struct pair *p, int side)
{
	struct sim_host *host = p->end[side].host;
	struct switch_list *l = &end->switches;

	*l = (struct switch_list){.type = {FAST_CNP_TYPE_PLAIN, FAST_CNP_TYPE_TRACE}, .n = 1};
	memcpy(l->entry[0].addr, listed, sizeof(listed));
	l->entry[0].prefix = 128;
	bucket_init(&l->entry[0].bucket, 1000, 2);
	bucket_init(&l->all, 1000, 2);
	atomic_store(&host->ports.port[0].switches, l);
	if (core_flow(&end->flow, p->end[side].qp->qp))
		flow_add(&host->flows, &end->flow);
}

/* As if from the wire: no end has sent it, and the tests of what ends send do not see it. */
static void give(struct pair *p, int side, const uint8_t *frame, size_t len)
{
	struct sim_link *link = &p->end[!side].link;
	struct link_tap tap = link->tap;
	struct link_pick pick = link->pick;

	link->tap.see = NULL;
	link->pick.fate = NULL;
	link_send(link, frame, len, p->fabric.now);
	link->tap = tap;
	link->pick = pick;
}

void forge_cnp(struct pair *p, int side, enum forged_cnp what)
{
	const struct sim_host *me = p->end[side].host, *peer = p->end[!side].host;
	enum host_gid gid = what == CNP_ROCEV1 ? HOST_GID_ROCEV1 : p->spec.gid;
	struct path_spec s = host_path(peer, me, 0, gid);
	struct gid_entry from = *s.sgid;
	uint8_t frame[256], *bth;
	struct path path;
	size_t len;

	from.gid[15] ^= what == CNP_ADDRESS ? 0x40 : 0;
	s.sgid = &from;
	path_init(&path, &s);
	bth = path_write(&path, frame, BTH_HLEN + CNP_RESERVED + ICRC_LEN, 0);
	memset(bth, 0, BTH_HLEN + CNP_RESERVED);
	bth[BTH_OPCODE] = OPCODE_CNP;
	put_be16(bth + BTH_PKEY, what == CNP_PKEY ? 0x8123 : 0xFFFF);
	put_be32(bth + BTH_RESV8A, p->end[side].qp->qp->qpn ^ (what == CNP_QPN ? 0x800000 : 0));
	len = (size_t)(bth - frame) + BTH_HLEN + CNP_RESERVED;
	icrc_store(frame + len,
		icrc_header(icrc_best(), frame + path.l3_off, path.net, len - path.l3_off));
	frame[len] ^= what == CNP_ICRC;
	give(p, side, frame, len + ICRC_LEN);
}

void forge_fast_cnp(struct pair *p, int side, unsigned what)
{
	static const uint8_t trace[FAST_CNP_TRACE_MIN] = {0, 1};
	const struct path_spec way =
		host_path(p->end[side].host, p->end[!side].host, 0, HOST_GID_IPV6);
	const struct abi_qp_attr *attr = &p->end[side].qp->qp->attr;
	struct fast_cnp_spec s = {.smac = {2, 0, 0, 0, 0, 0x63},
		.dest_qpn = attr->dest_qpn ^ (what & FAST_OF_NO_QP ? 0x800000 : 0),
		.pkey = 0xFFFF,
		.hop_limit = 64,
		.type = what & FAST_WITH_TRACE ? FAST_CNP_TYPE_TRACE : FAST_CNP_TYPE_PLAIN,
		.trace = what & FAST_WITH_TRACE ? trace : NULL,
		.trace_len = sizeof(trace)};
	static uint8_t frame[FAST_MAX];

	memcpy(s.dmac, way.sgid->mac, sizeof(s.dmac));
	memcpy(s.source, what & FAST_NOT_LISTED ? other : listed, sizeof(s.source));
	memcpy(s.dest, way.sgid->gid, sizeof(s.dest));
	memcpy(s.dip, way.dgid, sizeof(s.dip));
	give(p, side, frame, fast_write(frame, &s, (enum fast_fault)(what & 0xFF)));
}
