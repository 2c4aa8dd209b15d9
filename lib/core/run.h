/* SPDX-License-Identifier: BSD-3-Clause */
/** @file run.h  Runs of received packets: responder_run.c and completer_run.c. */
#ifndef RUN_H
#define RUN_H

#include "from_peer.h"
#include "np.h"

/** @return whether @p pkt has the addresses of @p qp's peer (VAL-12, SEC-03), is for its port's MAC
 * (ETH-10) and has the QP's own P_Key (VAL-09), which must be one that matches itself. A frame to
 * the MAC of a VLAN netdev is left to classify.c. */
static ALWAYS_INLINE bool run_is_from_peer(
	const struct port_table *ports, const struct qp *qp, const struct pkt *pkt)
{
	const struct port *port = &ports->port[pkt->port];
	uint64_t mac = atomic_load_explicit(&port->mac, memory_order_relaxed);

	return mac_word(pkt->dmac) == mac && qp_is_from_peer(qp, pkt) && pkt->pkey == qp->pkey;
}

/** @return whether @p pkt belongs to a run of packets with opcode @p code from the peer of @p qp:
 * it is the one with PSN @p psn, and needs no more than what each of them needs. */
static ALWAYS_INLINE bool run_has(const struct port_table *ports, const struct qp *qp,
	const struct pkt *pkt, uint32_t psn, uint8_t code)
{
	if (pkt->op->code != code || pkt->psn != psn)
		return false;
	if (pkt->expected != &qp->expect &&
		(pkt->dest_qp != qp->qpn || !run_is_from_peer(ports, qp, pkt)))
		return false;
	return likely(!np_is_marked(pkt) && !pkt->named); /* CNP-01; its payload may be gone */
}

/** Prefetches where the @p len bytes of a payload are placed. From the third line on, the CPU's own
 * prefetcher fetches. */
static ALWAYS_INLINE void run_prefetch(const uint8_t *at, uint32_t len)
{
	__builtin_prefetch(at, 1);
	if (len > CACHE_LINE)
		__builtin_prefetch(at + CACHE_LINE, 1);
}

#endif
