/* SPDX-License-Identifier: BSD-3-Clause */
/* The reaction point. A CNP must pass the checks that any packet of its QP passes, and touches
 * nothing but the rate (CNP-11). */
#include "rp.h"
#include "pacing.h"

/* --- may it? ---------------------------------------------------------------------------- */

static enum drop check(const struct core *c, const struct qp *qp, const struct pkt *pkt)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];
	/* A responder sends READ responses before RTS. */
	const unsigned sending =
		1u << ABI_QPS_RTR | 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD | 1u << ABI_QPS_SQE;

	if (!atomic_load_explicit(&port->rcm, memory_order_relaxed))
		return DROP_CNP_IGNORED; /* CNP-14 */
	if (pkt->net == NET_ROCEV1 || qp->type == ABI_QPT_GSI)
		return DROP_QP_TYPE; /* neither is subject to congestion management */
	return sending >> qp->state & 1 ? DROP_NONE : DROP_QP_STATE;
}

static enum drop check_pkey(const struct qp *qp, const struct pkt *pkt)
{
	return pkey_match(pkt->pkey, qp->pkey) ? DROP_NONE : DROP_PKEY; /* VAL-09 */
}

static enum drop check_source(const struct qp *qp, const struct pkt *pkt, enum drop address)
{
	if (qp->opc != OPC_UD && address)
		return address; /* CNP-16 */
	if (qp->opc == OPC_UD && pkt->port + 1 != qp->attr.port)
		return DROP_QPN_UNKNOWN; /* VAL-03: that port has no such QP */
	return DROP_NONE;
}

/* --- what it means ------------------------------------------------------------------------ */

/* FCN-13: a switch and the peer may both tell of one packet, in any order. Within the interval of
 * the peer's CNPs a notice of the other kind is taken for the same event. */
static bool is_told(struct core *c, struct qp *qp, unsigned port, enum cc_notice kind, uint64_t now)
{
	if (now < qp->notice.until && qp->notice.kind != kind)
		return true;
	qp->notice.kind = (uint8_t)kind;
	qp->notice.until = now + atomic_load_explicit(&c->cfg.ports->port[port].cnp_interval,
					 memory_order_relaxed);
	return false;
}

/* Every notice of congestion that @p qp accepts comes by here. */
static void notice(struct core *c, struct qp *qp, unsigned port, enum cc_notice kind, uint64_t now)
{
	if (is_told(c, qp, port, kind, now))
		c->count.rp_cnp_repeated++;
	else
		pacing_cnp(c, qp, kind, now);
}

enum drop rp_cnp(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum drop address, uint64_t now)
{
	enum drop why = check(c, qp, pkt) ?: check_source(qp, pkt, address) ?: check_pkey(qp, pkt);

	if (why) {
		c->count.rp_cnp_ignored++;
		return why;
	}
	c->count.rp_cnp_handled++;
	notice(c, qp, pkt->port, CC_CNP_PLAIN, now);
	return DROP_NONE;
}

enum drop rp_fast_cnp(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	enum drop why = check(c, qp, pkt) ?: check_pkey(qp, pkt);

	if (why) {
		c->count.rp_fast_cnp_ignored++;
		return why;
	}
	c->count.rp_fast_cnp_handled++;
	notice(c, qp, pkt->port, CC_CNP_FAST, now);
	return DROP_NONE;
}

void rp_reset(struct qp *qp)
{
	memset(&qp->notice, 0, sizeof(qp->notice));
}
