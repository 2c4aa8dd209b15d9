/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion that a switch and the peer tell a QP of, at any time: nothing that is judged changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "chaos.h"
#include "flow.h"
#include "frame.h"
#include "icrc.h"
#include "opcode.h"
#include "packet.h"
#include "switch_list.h"

static const uint8_t a_switch[16] = {0xFD, 5};

static void give_fast_cnp(struct chaos_world *w, struct sim_host *host, const struct qp_flow *flow)
{
	const struct path *path = &flow->qp->path;
	struct fast_cnp_spec s = {.vid = path->vid,
		.dest_qpn = flow->key.dest_qpn,
		.pkey = 0xFFFF,
		.type = FAST_CNP_TYPE_PLAIN};
	struct pkt pkt = {.port = 0, .queue = PKT_NO_QUEUE};
	uint8_t frame[FAST_CNP_FRAME_MAX];
	uint32_t others;
	size_t len;

	memcpy(s.dmac, path->hdr + ETH_SRC, sizeof(s.dmac));
	memcpy(s.source, a_switch, sizeof(s.source));
	memcpy(s.dest, flow->key.sgid, sizeof(s.dest));
	memcpy(s.dip, flow->key.dgid, sizeof(s.dip));
	len = fast_cnp_write(frame, &s, icrc_best());
	assert_int_equal(
		core_fast_cnp(&host->core, &pkt, frame, len, now_of(w), &others), DROP_NONE);
	assert_int_equal(others, 0);
}

/* From the peer. */
static void give_cnp(struct chaos_world *w, const struct chaos_conn *c, int e)
{
	struct sim_host *host = c->end[e].app->host;
	struct path_spec s = host_path(c->end[!e].app->host, host, 0, w->gid);
	struct pkt pkt = {.port = 0, .queue = PKT_NO_QUEUE};
	uint8_t frame[128] = {0}, *bth;
	struct path path;
	uint16_t verdict;
	size_t len;

	path_init(&path, &s);
	bth = path_write(&path, frame, BTH_HLEN + CNP_RESERVED + ICRC_LEN, 0);
	bth[BTH_OPCODE] = OPCODE_CNP;
	put_be16(bth + BTH_PKEY, 0xFFFF);
	put_be32(bth + BTH_RESV8A, c->end[e].qp->qp->qpn);
	memset(bth + BTH_ACKREQ, 0, 4 + CNP_RESERVED);
	len = (size_t)(bth - frame) + BTH_HLEN + CNP_RESERVED;
	icrc_store(frame + len,
		icrc_header(icrc_best(), frame + path.l3_off, path.net, len - path.l3_off));
	assert_int_equal(frame_parse(&pkt, frame, len + ICRC_LEN), DROP_NONE);
	core_rx(&host->core, &pkt, 1, now_of(w), &verdict);
}

void notice_any(struct chaos_world *w, struct chaos_conn *c, int e)
{
	struct chaos_end *end = &c->end[e];
	struct sim_host *host = end->app->host;
	struct switch_list switches = {.type = {FAST_CNP_TYPE_PLAIN, FAST_CNP_TYPE_TRACE},
		.n = 1,
		.detour = pick(w, 0, 3) != 0};
	struct qp_flow flow = {.qp = NULL};

	if (!core_flow(&flow, end->qp->qp) || end->app == c->end[!e].app)
		return;
	chaos_actions[ACT_NOTICE]++;
	memcpy(switches.entry[0].addr, a_switch, sizeof(a_switch));
	switches.entry[0].prefix = 128;
	bucket_init(&switches.entry[0].bucket, 1, 1);
	bucket_init(&switches.all, 1, 1);
	atomic_store(&host->ports.port[0].switches, &switches);
	flow_add(&host->flows, &flow);
	give_fast_cnp(w, host, &flow);
	give_cnp(w, c, e);
	flow_remove(&host->flows, &flow);
	atomic_store(&host->ports.port[0].switches, NULL);
}
