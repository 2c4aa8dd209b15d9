/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast path from a frame to a packet: most come from the peer of the QP that they name. */
#include "core.h"
#include "expect.h"
#include "qp_impl.h"
#include "qp_table.h"

/* Another QP may have the slot: the number is compared by frame_expected(). */
const struct expect *core_expect(
	const struct core *c, const uint8_t *frame, size_t len, const struct expect *last)
{
	const struct qp *qp;

	if (unlikely(len < EXPECT_MIN || !expect_may(frame)))
		return NULL;
	qp = atomic_load_explicit(
		&c->cfg.qps->slot[QPN_SLOT(expect_qpn(frame))], memory_order_acquire);
	if (unlikely(!qp))
		return NULL;
	if (&qp->expect != last)
		qp_prefetch_rx(qp, expect_opcode(frame));
	return &qp->expect;
}

bool core_expected(const struct core *c, struct pkt *p, const uint8_t *frame, size_t len,
	const struct expect *e)
{
	const struct qp *qp = container_of(e, const struct qp, expect);

	/* SEC-03: packets of this daemon are identified by their source QP. Another worker may be
	 * changing what its QP expects. */
	if (unlikely(!pkt_is_from_wire(p->queue) || qp_owner(qp) != c->cfg.worker))
		return false;
	return frame_expected(p, frame, len, e);
}
