/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of IP over InfiniBand: what lib/ipoib makes of them where a QP has received them. */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "frame.h"
#include "golden.h"
#include "ipoib.h"
#include "nd.h"
#include "opcode.h"

#define MAC_AT	  6u
#define FRAME_PAY 14u

bool is_ipoib(const struct pkt *p)
{
	return p->qkey == IPOIB_QKEY && p->op->deth;
}

/* The packet of IP, which is passed on as it came; an ND message has other options. */
static bool same_packet(const struct pkt *p, const struct ipoib_frame *f)
{
	const uint8_t *ip = p->payload + IPOIB_HLEN;
	uint32_t len = p->payload_len - IPOIB_HLEN;
	uint16_t type = get_be16(p->payload);

	if (type == IPOIB_ARP || type == IPOIB_RARP || (type == IPOIB_IP6 && nd_is(ip, len)))
		return true;
	return f->len == FRAME_PAY + len && !memcmp(f->at + FRAME_PAY, ip, len);
}

/* The GID that it was sent to, or any for a group. */
static void own_gid(const struct pkt *p, uint8_t gid[16])
{
	uint8_t from[16];

	frame_gids(p, from, gid);
	if (gid[0] == 0xFF)
		memcpy(gid, from, 16);
}

bool ipoib_takes(struct golden *g, const struct pkt *p, const uint8_t *area)
{
	struct ipoib_config cfg = {.own.qpn = p->dest_qp,
		.pkey = p->pkey,
		.vid = p->vid,
		.scope = IPOIB_SCOPE,
		.mtu = IPOIB_MTU_MAX,
		.mac = {2, 0, 0, 0, 0, 1}};
	struct ipoib_rx rx = {.len = IPOIB_GRH_AREA + p->payload_len,
		.src_qp = p->src_qp,
		.vid = p->vid,
		.ip4 = p->net == NET_IPV4};
	uint8_t *copy = malloc(rx.len + 1);
	struct ipoib_frame f;
	struct ipoib *s;
	bool taken;

	own_gid(p, cfg.own.gid);
	s = ipoib_init(malloc(ipoib_size()), &cfg);
	memcpy(copy, area, rx.len);
	rx.area = copy;
	taken = ipoib_from_wire(s, &rx, 1, &f);
	if (taken && (!same_packet(p, &f) || !(f.at[MAC_AT] & 2) || f.at[MAC_AT] & 1))
		item_fail(g, "the kernel's frame is another");
	free(copy);
	free(s);
	return taken;
}
