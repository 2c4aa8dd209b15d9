/* SPDX-License-Identifier: BSD-3-Clause */
/* The reaction point. A CNP must pass the checks that any packet of its QP passes, and touches
 * nothing but the rate (CNP-11). */
#include "rp.h"
#include "pacing.h"

static enum drop check(
	const struct core *c, const struct qp *qp, const struct pkt *pkt, enum drop address)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];
	/* A responder sends READ responses before RTS. */
	const unsigned sending =
		1u << ABI_QPS_RTR | 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD | 1u << ABI_QPS_SQE;

	if (!atomic_load_explicit(&port->rcm, memory_order_relaxed))
		return DROP_CNP_IGNORED; /* CNP-14 */
	if (pkt->net == NET_ROCEV1 || qp->type == ABI_QPT_GSI)
		return DROP_QP_TYPE; /* neither is subject to congestion management */
	if (!(sending >> qp->state & 1))
		return DROP_QP_STATE;
	if (qp->opc != OPC_UD && address)
		return address; /* CNP-16 */
	if (qp->opc == OPC_UD && pkt->port + 1 != qp->attr.port)
		return DROP_QPN_UNKNOWN; /* VAL-03: that port has no such QP */
	return pkey_match(pkt->pkey, qp->pkey) ? DROP_NONE : DROP_PKEY; /* VAL-09 */
}

enum drop rp_cnp(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum drop address, uint64_t now)
{
	enum drop why = check(c, qp, pkt, address);

	if (why) {
		c->count.rp_cnp_ignored++;
		return why;
	}
	c->count.rp_cnp_handled++;
	pacing_cnp(c, qp, CC_CNP_PLAIN, now);
	return DROP_NONE;
}
