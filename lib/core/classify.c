/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose is a packet, and may it touch state? The second part of inbound validation, after
 * frame_parse(): destination MAC, DGID, QPN, hand-off, ICRC, then QP type, state, address and P_Key
 * (VAL-01). Whatever fails is dropped silently and counted.
 */
#include "completer.h"
#include "qp.h"
#include "responder.h"

static struct qp *qp_lookup(const struct core *c, uint32_t qpn)
{
	struct qp *qp =
		atomic_load_explicit(&c->cfg.qps->slot[QPN_SLOT(qpn)], memory_order_acquire);

	return qp && qp->qpn == qpn ? qp : NULL; /* VAL-03: the slot may be another's now */
}

uint32_t core_owner(const struct core *c, uint32_t qpn)
{
	const struct qp *qp = qp_lookup(c, qpn);

	return qp ? qp_owner(qp) : c->cfg.worker;
}

static bool gid_is_multicast(const struct pkt *pkt, const uint8_t gid[16])
{
	return pkt->net == NET_IPV4 ? (gid[12] & 0xF0) == 0xE0 : gid[0] == 0xFF;
}

/* Addresses and QPN of a packet that does not come from its QP's peer: why exactly? */
static enum drop check_stranger(const struct core *c, const struct pkt *pkt, const struct qp *qp)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];
	const struct gid_table *gids = atomic_load_explicit(&port->gids, memory_order_acquire);
	uint8_t sgid[16], dgid[16];
	bool multicast;

	frame_gids(pkt, sgid, dgid);
	multicast = gid_is_multicast(pkt, dgid);
	if (gid_is_multicast(pkt, sgid))
		return DROP_SGID; /* VAL-15 */
	if (gid_is_local_only(dgid))
		return DROP_DGID; /* VAL-15 */
	if (multicast != (pkt->dest_qp == QPN_MULTICAST))
		return DROP_QPN_MCAST; /* VAL-17 */
	if (multicast && (pkt->op->code & OPC_CLASS_MASK) != OPC_UD)
		return DROP_QPN_MCAST; /* VAL-17 */
	if (!multicast && (!gids || gid_find(gids, dgid, pkt->net, pkt->vid) < 0))
		return DROP_DGID; /* VAL-11 */
	if (pkt->dest_qp == QPN_SMI)
		return DROP_QP0;		  /* VAL-02, CA17-33 */
	return qp ? DROP_NONE : DROP_QPN_UNKNOWN; /* VAL-03 */
}

/* After the ICRC: what a packet must be for this QP to look at it. */
static enum drop check_qp(const struct qp *qp, const struct pkt *pkt)
{
	/* RSP-47 */
	const unsigned receiving = 1u << ABI_QPS_RTR | 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD;
	const unsigned sending = 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD;

	if (pkt->op->kind == KIND_CNP)
		return DROP_CNP_IGNORED; /* CNP-14: congestion management is off */
	if ((pkt->op->code & OPC_CLASS_MASK) != OPC_RC)
		return DROP_QP_TYPE; /* VAL-04; all QPs are RC */
	if (!((pkt->op->response ? sending : receiving) >> qp->state & 1))
		return DROP_QP_STATE; /* VAL-06, VAL-07, QPS-17, QPS-18, QPS-20 */
	if (!path_matches(&qp->path, pkt))
		return DROP_QP_ADDRESS; /* VAL-12, VAL-13, SEC-03 */
	if (!pkey_match(pkt->pkey, qp->pkey))
		return DROP_PKEY; /* VAL-08, VAL-09 */
	return DROP_NONE;
}

/* Where do the peer's packets come in? Only valid ones are asked, so that nobody else has a say in
 * where the QP lives. */
static void observe_queue(struct qp *qp, uint8_t queue)
{
	if (likely(queue == PKT_NO_QUEUE))
		return;
	qp->queue_run = queue == qp->queue ? qp->queue_run + 1 : 1;
	qp->queue = queue;
}

/* A VLAN netdev may have a MAC of its own. */
static bool is_vlan_mac(const struct port *port, const struct pkt *pkt)
{
	const struct gid_table *gids = atomic_load_explicit(&port->gids, memory_order_acquire);

	return gids && gid_has_mac(gids, pkt->vid, pkt->dmac);
}

/* ETH-10: a promiscuous netdev, vhost and memif deliver other stations' frames too. The port's
 * present address counts, not the one that a QP's path was made with. */
static bool mac_is_ours(const struct core *c, const struct pkt *pkt)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];

	if (pkt->dmac[0] & 1)
		return pkt->dest_qp == QPN_MULTICAST;
	if (likely(mac_word(pkt->dmac) == atomic_load_explicit(&port->mac, memory_order_relaxed)))
		return true;
	return pkt->vid && is_vlan_mac(port, pkt);
}

/* VAL-10: this one is architected and stops at its end; drop[DROP_PKEY] counts on. */
static void count_bad_pkey(struct core *c, unsigned port)
{
	if (c->count.bad_pkey[port] < BAD_PKEY_MAX)
		c->count.bad_pkey[port]++;
}

static enum drop rx_one(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	enum drop why = mac_is_ours(c, pkt) ? DROP_NONE : DROP_DMAC;

	/* The address check of a connected QP says all that the table would. */
	if (!why && unlikely(!qp || !path_matches(&qp->path, pkt)))
		why = check_stranger(c, pkt, qp);
	/* VAL-01: nothing that the QP is, and nothing architected, before the ICRC is good. */
	if (!why && unlikely(!icrc_check(c->cfg.icrc, pkt)))
		why = DROP_ICRC; /* ICRC-11, ICRC-12 */
	if (!why)
		why = check_qp(qp, pkt);
	if (unlikely(why == DROP_PKEY))
		count_bad_pkey(c, pkt->port);
	if (!why) { /* VAL-19: only what passes all of this touches the QP */
		observe_queue(qp, pkt->queue);
		why = pkt->op->response ? completer_rx(c, qp, pkt, now)
					: responder_rx(c, qp, pkt, now);
	}
	return why;
}

/* Looks the QPs up first, so that their cache misses overlap. */
static void rx_lookup(struct core *c, const struct pkt pkts[], unsigned n, struct qp *qp[])
{
	for (unsigned i = 0; i < n; i++) {
		qp[i] = qp_lookup(c, pkts[i].dest_qp);
		if (!qp[i])
			continue;
		__builtin_prefetch(&qp[i]->state);
		__builtin_prefetch(&qp[i]->path);
		__builtin_prefetch(&qp[i]->resp);
		__builtin_prefetch(&qp[i]->comp);
	}
}

static void rx_burst(
	struct core *c, const struct pkt pkts[], unsigned n, uint64_t now, uint16_t verdict[])
{
	struct qp *qp[BURST];

	rx_lookup(c, pkts, n, qp);
	for (unsigned i = 0; i < n; i++) {
		unsigned owner = qp[i] ? qp_owner(qp[i]) : c->cfg.worker;
		enum drop why;

		if (unlikely(owner != c->cfg.worker)) {
			verdict[i] = (uint16_t)(VERDICT_HANDOFF + owner);
			continue;
		}
		why = rx_one(c, qp[i], &pkts[i], now);
		c->count.rx_packets++;
		c->count.rx_bytes += pkts[i].icrc_off + (uint64_t)ICRC_LEN;
		if (why)
			c->count.drop[why]++;
		verdict[i] = why;
	}
}

/* VAL-20: all that comes in is checked here, whether or not an application polls. */
void core_rx(struct core *c, const struct pkt pkts[], unsigned n, uint64_t now, uint16_t verdict[])
{
	for (unsigned done = 0; done < n; done += BURST)
		rx_burst(c, pkts + done, n - done < BURST ? n - done : BURST, now, verdict + done);
}
