/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between two QPs of one core. The headers are built and parsed as those of a frame are,
 * so that they pass the same checks and the receiver reads the same network header; the payload
 * goes from memory to memory. A datagram to a group or to QP1, or one that would be dropped, is
 * left to a frame, and so are those after it until one of their frames has arrived: none overtakes
 * another.
 */
#include "direct.h"
#include "abi_wqe.h"
#include "classify.h"
#include "completer.h"
#include "core.h"
#include "frame.h"
#include "headers.h"
#include "pkt.h"
#include "qp.h"
#include "qp_impl.h"
#include "qp_table.h"
#include "txd.h"
#include "ud.h"
#include "wqe.h"

bool direct_datagram(struct core *c, struct qp *qp, struct send_wqe *w, uint64_t now)
{
	uint8_t frame[FRAME_MAX]; /* only its headers are written, and read */
	struct txd t = {.frame = frame};
	struct pkt pkt = {.queue = PKT_LOCAL, .source_qp = qp->qpn};
	struct qp *peer = qp_lookup(c, w->ud.dest_qpn);

	if (!peer || peer->type != ABI_QPT_UD || qp->type != ABI_QPT_UD ||
		qp->local_sent != qp->local_arrived ||
		ud_egress(c, qp) != EGRESS_LOCAL(c->cfg.worker) || !ud_draft(c, qp, w, &t))
		return false;
	pkt.port = t.port;
	if (frame_parse(&pkt, frame, t.hdr_len + ((t.payload_len + 3u) & ~3u) + ICRC_LEN) ||
		classify_local(c, peer, &pkt) || !ud_deliver(c, peer, &pkt, &t, now))
		return false;
	c->count.direct_messages++;
	c->count.direct_bytes += t.payload_len;
	return true;
}
