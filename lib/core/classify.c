/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which QP is a packet for, and may it touch state? The second part of inbound validation, after
 * frame_parse(): QPN, hand-off, destination MAC, DGID, ICRC, then QP type, state, address and P_Key
 * (VAL-01). Of a packet that core_expected() accepted only ICRC and state are left to check. A
 * packet that fails is dropped silently and counted.
 */
#include "classify.h"
#include "completer.h"
#include "drop_log.h"
#include "frame.h"
#include "from_peer.h"
#include "icrc.h"
#include "mcast.h"
#include "mr.h"
#include "multicast.h"
#include "inject.h"
#include "np.h"
#include "path_match.h"
#include "qp_impl.h"
#include "qp_table.h"
#include "responder.h"
#include "rp.h"
#include "trace.h"
#include "uc.h"
#include "ud.h"
#include "wqe.h"
#include "xrc.h"

/* Packets between the prefetch of a target and its use: memory latency is some 100 ns. */
#define AHEAD 4u

struct qp *qp_lookup(const struct core *c, uint32_t qpn)
{
	struct qp *qp =
		atomic_load_explicit(&c->cfg.qps->slot[QPN_SLOT(qpn)], memory_order_acquire);

	return qp && qp->qpn == qpn ? qp : NULL; /* VAL-03: another QP may have the slot now */
}

uint32_t core_owner(const struct core *c, uint32_t qpn)
{
	const struct qp *qp = qp_lookup(c, qpn);

	return qp ? qp_owner(qp) : c->cfg.worker;
}

/* Packets that this daemon sends to itself have one of its GIDs as their source. Nobody else may
 * use one: as Linux does, a frame with such a source that arrives by a port is refused (RFC 1812
 * 5.3.7). A copy was checked by the worker that received the packet. */
static bool is_from_outside(const struct pkt *pkt)
{
	return pkt->queue != PKT_LOCAL && pkt->queue != PKT_COPY;
}

/* ETH-10: the destination MAC is the one that the group's GID maps to, or a unicast address of ours
 * that the sender knew. A group has no VLAN of its own, so those of its port's GIDs are valid. */
static enum drop check_group(const struct core *c, const struct pkt *pkt,
	const struct gid_table *gids, const uint8_t mgid[16])
{
	uint8_t mac[6];

	mcast_mac(mac, mgid);
	if ((pkt->dmac[0] & 1) && memcmp(pkt->dmac + ETH_DST, mac, sizeof(mac)) != 0)
		return DROP_DMAC;
	if (pkt->vid && (!gids || !gid_has_vlan(gids, pkt->vid)))
		return DROP_DGID;						   /* ETH-07 */
	return mcast_find(c->cfg.mcasts, mgid, pkt->port) ? DROP_NONE : DROP_DGID; /* VAL-11 */
}

/* The source of a packet that does not come from its QP's peer. */
static enum drop check_sgid(
	const struct pkt *pkt, const struct gid_table *gids, const uint8_t sgid[16])
{
	if (gid_is_multicast(sgid))
		return DROP_SGID; /* VAL-15 */
	if (is_from_outside(pkt) && gids && gid_is_own(gids, sgid, pkt->vid))
		return DROP_MARTIAN;
	return DROP_NONE;
}

/* Addresses and QPN of a packet that does not come from its QP's peer: finds the exact reason. A
 * multicast packet has no QP, but needs a group. */
static enum drop check_stranger(const struct core *c, const struct pkt *pkt, const struct qp *qp)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];
	const struct gid_table *gids = atomic_load_explicit(&port->gids, memory_order_acquire);
	uint8_t sgid[16], dgid[16];
	bool multicast;
	enum drop why;

	frame_gids(pkt, sgid, dgid);
	multicast = gid_is_multicast(dgid);
	why = check_sgid(pkt, gids, sgid);
	if (why)
		return why;
	if (gid_is_local_only(dgid))
		return DROP_DGID; /* VAL-15 */
	if (multicast != (pkt->dest_qp == QPN_MULTICAST))
		return DROP_QPN_MCAST; /* VAL-17 */
	if (multicast && (pkt->op->code & OPC_CLASS_MASK) != OPC_UD)
		return DROP_QPN_MCAST; /* VAL-17 */
	if (multicast)
		return check_group(c, pkt, gids, dgid);
	if (!gids || gid_find(gids, dgid, pkt->net, pkt->vid) < 0)
		return DROP_DGID; /* VAL-11 */
	if (pkt->dest_qp == QPN_SMI)
		return DROP_QP0; /* VAL-02, CA17-33 */
	if (qp)
		return DROP_NONE;
	return pkt->dest_qp == QPN_GSI ? DROP_NO_GSI : DROP_QPN_UNKNOWN; /* VAL-03 */
}

/* A datagram may come from any address (UD-14) and by any protocol (VAL-14), but to the QP's
 * port. */
static NOINLINE enum drop check_datagram(const struct qp *qp, const struct pkt *pkt)
{
	if (pkt->port + 1 != qp->attr.port)
		return DROP_QPN_UNKNOWN; /* VAL-03: that port has no such QP */
	if (qp->type != ABI_QPT_GSI && !pkey_match(pkt->pkey, qp->pkey))
		return DROP_PKEY; /* VAL-09; ud_rx() checks that of QP1 */
	return DROP_NONE;
}

/* Which of the two does not match. */
static NOINLINE enum drop not_from_peer(const struct qp *qp, const struct pkt *pkt)
{
	if (pkt->queue == PKT_LOCAL && path_matches(&qp->path, pkt))
		return DROP_QP_PEER;
	return DROP_QP_ADDRESS; /* VAL-12, VAL-13, SEC-03 */
}

/* It has a class of its own, to which no QP belongs. */
static bool is_cnp(const struct pkt *pkt)
{
	return pkt->op->kind == KIND_CNP;
}

/* RSP-47; an unreliable QP continues to receive in SQE, which RC is never in (VAL-06). */
static ALWAYS_INLINE bool state_takes(const struct qp *qp, const struct pkt *pkt)
{
	const unsigned receiving =
		1u << ABI_QPS_RTR | 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD | 1u << ABI_QPS_SQE;
	const unsigned sending = 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD;

	return (pkt->op->response ? sending : receiving) >> qp->state & 1;
}

/* After the ICRC: the checks that depend on the QP. */
static ALWAYS_INLINE enum drop check_qp(const struct qp *qp, const struct pkt *pkt, bool from_peer)
{
	/* Class, peer and P_Key are the expected ones. */
	if (likely(pkt->expected))
		return likely(state_takes(qp, pkt)) ? DROP_NONE : DROP_QP_STATE;
	if ((pkt->op->code & OPC_CLASS_MASK) != qp->opc)
		return is_cnp(pkt) ? DROP_CNP_IGNORED : DROP_QP_TYPE; /* VAL-04 */
	if (!state_takes(qp, pkt))
		return DROP_QP_STATE; /* VAL-06, VAL-07, QPS-17, QPS-18, QPS-20 */
	if (unlikely(qp->opc == OPC_UD))
		return check_datagram(qp, pkt);
	if (!from_peer)
		return not_from_peer(qp, pkt);
	if (!pkey_match(pkt->pkey, qp->pkey))
		return DROP_PKEY; /* VAL-08, VAL-09 */
	return DROP_NONE;
}

/* A VLAN netdev may have a MAC of its own. */
static bool is_vlan_mac(const struct port *port, const struct pkt *pkt)
{
	const struct gid_table *gids = atomic_load_explicit(&port->gids, memory_order_acquire);

	return gids && gid_has_mac(gids, pkt->vid, pkt->dmac);
}

/* ETH-10: a promiscuous netdev, vhost and memif deliver other stations' frames too. The port's
 * current address counts, not the one from when the QP's path was made. */
static ALWAYS_INLINE bool mac_is_ours(const struct core *c, const struct pkt *pkt)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];

	if (pkt->dmac[0] & 1)
		return pkt->dest_qp == QPN_MULTICAST;
	if (likely(mac_word(pkt->dmac) == atomic_load_explicit(&port->mac, memory_order_relaxed)))
		return true;
	return pkt->vid && is_vlan_mac(port, pkt);
}

enum drop classify_addresses(const struct core *c, const struct pkt *pkt)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];
	const struct gid_table *gids = atomic_load_explicit(&port->gids, memory_order_acquire);
	uint8_t sgid[16], dgid[16];
	enum drop why;

	if ((pkt->dmac[0] & 1) || !mac_is_ours(c, pkt))
		return DROP_DMAC;
	frame_gids(pkt, sgid, dgid);
	why = check_sgid(pkt, gids, sgid);
	if (why)
		return why;
	return gids && gid_find(gids, dgid, pkt->net, pkt->vid) >= 0 ? DROP_NONE : DROP_DGID;
}

enum drop classify_local(const struct core *c, const struct qp *qp, const struct pkt *pkt)
{
	enum drop why = mac_is_ours(c, pkt) ? check_stranger(c, pkt, qp) : DROP_DMAC;

	return why ? why : check_qp(qp, pkt, false);
}

/* Services other than RC, out of line.
 * @return whether RC's responder or completer handles @p pkt, as for XRC; not called here, because
 * a second caller would stop their inlining into rx_burst() */
static NOINLINE bool rx_service(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now, enum drop *why)
{
	*why = DROP_NONE;
	switch (qp->type) {
	case ABI_QPT_UC:
		*why = uc_rx(c, qp, pkt, now);
		return false;
	case ABI_QPT_XRC_SEND: /* XRC-02 */
		*why = pkt->op->response ? DROP_NONE : DROP_QP_TYPE;
		return pkt->op->response;
	case ABI_QPT_XRC_RECV:
		*why = pkt->op->response ? DROP_QP_TYPE : DROP_NONE;
		return !pkt->op->response && xrc_request(c, qp, pkt, now);
	case ABI_QPT_UD:
	case ABI_QPT_GSI:
		*why = ud_rx(c, qp, pkt, now);
		return false;
	default:
		*why = DROP_QP_TYPE;
		return false;
	}
}

/* ICRC-11, ICRC-12. A packet that names its payload has no ICRC. */
static ALWAYS_INLINE bool is_intact(const struct core *c, const struct pkt *pkt)
{
	return unlikely(pkt->named) || icrc_check(c->cfg.icrc, pkt);
}

/* @return why a packet that failed with @p why is dropped; rp.c may accept a CNP. */
static NOINLINE enum drop refused(struct core *c, struct qp *qp, const struct pkt *pkt,
	enum drop why, bool from_peer, uint64_t now)
{
	if (why == DROP_CNP_IGNORED)
		why = rp_cnp(c, qp, pkt, from_peer ? DROP_NONE : not_from_peer(qp, pkt), now);
	if (why == DROP_PKEY)
		count_bad_pkey(c, pkt->port);
	return why;
}

static ALWAYS_INLINE enum drop rx_one(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	enum drop why = likely(pkt->expected) || mac_is_ours(c, pkt) ? DROP_NONE : DROP_DMAC;
	bool from_peer = likely(pkt->expected) || qp_is_from_peer(qp, pkt);

	/* The address check of a connected QP covers all that the table would. */
	if (!why && unlikely(!from_peer))
		why = check_stranger(c, pkt, qp);
	/* VAL-01: neither the QP's state nor an architected counter is touched before the ICRC is
	 * good. */
	if (!why && unlikely(!is_intact(c, pkt)))
		why = DROP_ICRC;
	if (!why)
		why = check_qp(qp, pkt, from_peer);
	if (!why) { /* VAL-19: only a packet that passes all checks touches the QP */
		if (unlikely(np_is_marked(pkt)))
			np_marked(c, qp, pkt, now); /* CNP-01, CNP-09, CNP-15 */
		observe_queue(qp, pkt->queue);
		if (likely(qp->opc == OPC_RC) || rx_service(c, qp, pkt, now, &why))
			why = pkt->op->response ? completer_rx(c, qp, pkt, now)
						: responder_rx(c, qp, pkt, now);
	}
	return likely(!why) ? DROP_NONE : refused(c, qp, pkt, why, from_peer, now);
}

/* --- no QP of its own: multicast, QP1, and unclaimed packets ---------------------------- */

static NOINLINE struct qp *gsi_lookup(const struct core *c, const struct pkt *pkt)
{
	if (pkt->dest_qp != QPN_GSI)
		return NULL;
	return atomic_load_explicit(&c->cfg.qps->gsi[pkt->port], memory_order_acquire);
}

bool core_is_receiver(const struct core *c, const struct pkt *pkt, uint32_t qpn)
{
	const struct mcast_group *g =
		pkt->dest_qp == QPN_MULTICAST ? multicast_group(c, pkt) : NULL;
	const struct qp *gsi = gsi_lookup(c, pkt);

	for (uint32_t i = 0; g && i < g->n; i++)
		if (g->member[i].qp->qpn == qpn)
			return true;
	return pkt->dest_qp == qpn || (gsi && gsi->qpn == qpn);
}

/* The packet as a whole belongs to no QP, so no trace records it. */
enum drop classify_member(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum drop why, uint64_t now)
{
	bool traced = qp->traced;
	struct trace_step s;

	if (traced)
		trace_rx_begin(&s, c, qp, pkt, now);
	if (!why)
		why = check_qp(qp, pkt, false);
	if (!why) /* the classes of a multicast packet and of this QP are both UD */
		why = ud_rx(c, qp, pkt, now);
	if (why == DROP_PKEY)
		count_bad_pkey(c, pkt->port);
	if (why)
		drop_count(c, qp, pkt, why, now);
	if (traced)
		trace_rx_end(&s, c, qp, why, now);
	return why;
}

/* @return the verdict. */
static NOINLINE uint16_t rx_nobodys(struct core *c, const struct pkt *pkt, uint64_t now)
{
	enum drop why = mac_is_ours(c, pkt) ? DROP_NONE : DROP_DMAC;

	if (!why)
		why = check_stranger(c, pkt, NULL);
	if (!why && !icrc_check(c->cfg.icrc, pkt))
		why = DROP_ICRC;
	if (why) {
		drop_count(c, NULL, pkt, why, now);
		return why;
	}
	return multicast_rx(c, pkt, now);
}

/* --- bursts ----------------------------------------------------------------------------- */

/* Looks the QPs up first, so that their cache misses overlap. */
static void rx_lookup(struct core *c, const struct pkt pkts[], unsigned n, struct qp *qp[])
{
	for (unsigned i = 0; i < n; i++) {
		if (likely(pkts[i].expected)) { /* core_expect() has prefetched it */
			qp[i] = container_of(pkts[i].expected, struct qp, expect);
			continue;
		}
		qp[i] = qp_lookup(c, pkts[i].dest_qp);
		if (unlikely(!qp[i]))
			qp[i] = gsi_lookup(c, &pkts[i]);
		else if (!i || qp[i] != qp[i - 1])
			qp_prefetch_rx(qp[i], pkts[i].op);
	}
}

/* Prefetches what a packet needs besides its QP, a few packets before its turn: the request that it
 * answers, or the target of a WRITE, which may be in no cache. The access is checked like any
 * other, so that a peer cannot learn from our caches about memory that it may not access. */
static void prefetch_target(const struct core *c, const struct qp *qp, const struct pkt *pkt)
{
	uint8_t *ptr;

	if (qp && pkt->op->response && qp_owner(qp) == c->cfg.worker) /* comp is the owner's */
		__builtin_prefetch(qp_wqe(qp, qp->comp.head));
	if (!qp || !pkt->op->reth || !pkt->op->payload)
		return;
	if (mr_resolve(c->cfg.mrs, pkt->rkey, qp->pd, ABI_ACCESS_REMOTE_WRITE, pkt->va,
		    pkt->payload_len, &ptr) != MR_OK)
		return;
	__builtin_prefetch(ptr, 1);
	if (pkt->payload_len > CACHE_LINE)
		__builtin_prefetch(ptr + CACHE_LINE, 1);
}

/* Whether packets with this opcode go in runs. */
static ALWAYS_INLINE bool has_runs(const struct opcode *op)
{
	const uint32_t codes = 1u << OP_SEND_ONLY | 1u << OP_WRITE_ONLY | 1u << OP_READ_REQUEST |
			       1u << OP_READ_RESP_ONLY;

	return op->code < 32 && codes >> op->code & 1;
}

/* Whether the packets @p pkts may be a run. */
static ALWAYS_INLINE bool may_run(
	const struct core *c, struct qp *const qp[], const struct pkt pkts[], unsigned n)
{
	return n > 1 && pkts[0].op == pkts[1].op && has_runs(pkts[0].op) && qp[0] &&
	       qp[0] == qp[1] && c->fast_paths && qp_owner(qp[0]) == c->cfg.worker;
}

/* @return how many packets of @p pkts were received as a run. */
static ALWAYS_INLINE unsigned rx_run(
	struct core *c, struct qp *qp, const struct pkt pkts[], unsigned n, uint64_t now)
{
	return pkts->op->response ? completer_run_reads(c, qp, pkts, n, now)
				  : responder_run(c, qp, pkts, n, now);
}

static ALWAYS_INLINE void rx_burst(
	struct core *c, const struct pkt pkts[], unsigned n, uint64_t now, uint16_t verdict[])
{
	struct qp *qp[BURST];

	rx_lookup(c, pkts, n, qp);
	if (!may_run(c, qp, pkts, n) || pkts->op->response) /* a run fetches targets, but no WQEs */
		for (unsigned i = 0; i < n && i < AHEAD; i++)
			prefetch_target(c, qp[i], &pkts[i]);
	for (unsigned i = 0; i < n; i++) {
		unsigned owner;
		enum drop why;

		if (may_run(c, &qp[i], &pkts[i], n - i)) {
			unsigned run = rx_run(c, qp[i], &pkts[i], n - i, now);

			memset(&verdict[i], DROP_NONE, run * sizeof(verdict[0]));
			i += run;
			if (i == n)
				break;
		}
		if (i + AHEAD < n)
			prefetch_target(c, qp[i + AHEAD], &pkts[i + AHEAD]);
		if (unlikely(!qp[i])) {
			if (pkts[i].queue != PKT_COPY) /* the receiver counts it */
				count_received(c, &pkts[i]);
			verdict[i] = rx_nobodys(c, &pkts[i], now);
			continue;
		}
		owner = qp_owner(qp[i]);
		if (unlikely(owner != c->cfg.worker)) {
			verdict[i] = (uint16_t)(VERDICT_HANDOFF + owner);
			continue;
		}
		why = rx_one(c, qp[i], &pkts[i], now);
		count_received(c, &pkts[i]);
		if (unlikely(why))
			drop_count(c, qp[i], &pkts[i], why, now);
		verdict[i] = why;
	}
}

/* Calls core_rx() itself, because a second caller of its parts would stop their inlining. */
uint16_t classify_step(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t careful = c->careful;
	bool traced = qp && qp->traced;
	struct trace_step s;
	uint16_t verdict;

	c->careful = 0;
	if (traced)
		trace_rx_begin(&s, c, qp, pkt, now);
	core_rx(c, pkt, 1, now, &verdict);
	if (traced)
		trace_rx_end(&s, c, qp, verdict, now);
	c->careful = careful;
	return verdict;
}

/* One packet at a time, for QPs that are traced or have faults. */
static NOINLINE void rx_careful(
	struct core *c, const struct pkt pkts[], unsigned n, uint64_t now, uint16_t verdict[])
{
	for (unsigned i = 0; i < n; i++) {
		struct qp *qp = qp_lookup(c, pkts[i].dest_qp);
		uint8_t *fault = &c->rx_fault[i % BURST];

		*fault = 0;
		if (!qp)
			qp = gsi_lookup(c, &pkts[i]);
		if (qp && qp_owner(qp) != c->cfg.worker)
			qp = NULL;
		if (qp && qp->inject)
			verdict[i] = inject_rx(c, qp, &pkts[i], now, fault);
		else
			verdict[i] = classify_step(c, qp, &pkts[i], now);
	}
}

/* VAL-20: every packet is checked here, whether or not an application polls. */
void core_rx(struct core *c, const struct pkt pkts[], unsigned n, uint64_t now, uint16_t verdict[])
{
	c->clock = now;
	if (unlikely(c->careful)) {
		rx_careful(c, pkts, n, now, verdict);
		return;
	}
	for (unsigned done = 0; done < n; done += BURST)
		rx_burst(c, pkts + done, n - done < BURST ? n - done : BURST, now, verdict + done);
}
