/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of IP over InfiniBand: what lib/ipoib makes of them where a QP has received them. */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
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

bool ipoib_takes(struct golden *g, const struct pkt *p, const uint8_t *area)
{
	const struct ipoib_config cfg = {.own.qpn = p->dest_qp,
		.pkey = p->pkey,
		.scope = IPOIB_SCOPE,
		.mtu = IPOIB_MTU_MAX,
		.mac = {2, 0, 0, 0, 0, 1}};
	struct ipoib *s = ipoib_init(malloc(ipoib_size()), &cfg);
	uint32_t len = IPOIB_GRH_AREA + p->payload_len;
	uint8_t *copy = malloc(len + 1);
	struct ipoib_frame f;
	bool taken;

	memcpy(copy, area, len);
	taken = ipoib_from_wire(s, copy, len, p->src_qp, p->net == NET_IPV4, 1, &f);
	if (taken && (!same_packet(p, &f) || !(f.at[MAC_AT] & 2) || f.at[MAC_AT] & 1))
		item_fail(g, "the kernel's frame is another");
	free(copy);
	free(s);
	return taken;
}
