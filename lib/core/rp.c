/* SPDX-License-Identifier: BSD-3-Clause */
/* The reaction point. A CNP must pass the checks that any packet of its QP passes, and touches
 * nothing but the rate (CNP-11). */
#include "rp.h"
#include "core.h"
#include "headers.h"
#include "opcode.h"
#include "pacing.h"
#include "pkt.h"
#include "qp.h"

/* --- who has sent lately? ----------------------------------------------------------------- */

/* A CNP refers to recently sent packets: within some RTTs and pauses of the peer, not seconds. No
 * time is kept per packet. Instead, a core numbers its core_tx() calls, a QP has the number of its
 * last one, and each round that of its first. A packet counts as recent for one to three rounds. */
#define ROUND_NS 10000000u

void rp_init(struct core *c, uint64_t now)
{
	c->lately_until = now + ROUND_NS;
}

void rp_round(struct core *c, uint64_t now)
{
	uint32_t next = c->tx_call + 1;
	bool idle = now - c->lately_until >= ROUND_NS; /* no call since then */

	c->lately = idle ? next : c->lately_next;
	c->lately_next = next;
	c->lately_round += idle ? 2 : 1;
	c->lately_until = now + ROUND_NS;
	c->telemetry = atomic_load_explicit(&c->cfg.ports->telemetry, memory_order_relaxed);
}

/* Call numbers wrap around, so this compares distances back from the latest call. */
static bool has_sent(struct core *c, const struct qp *qp, uint64_t now)
{
	if (now >= c->lately_until)
		rp_round(c, now);
	return c->tx_call - qp->tx_call < c->tx_call + 1 - c->lately ||
	       qp->req.sent != qp->comp.acked; /* the CNP may have waited for the same as the ACK */
}

static uint64_t bit_of(const uint8_t *addr, uint8_t net)
{
	uint64_t high = 0, low = 0;
	uint32_t v4;

	if (net == NET_IPV4) {
		memcpy(&v4, addr, sizeof(v4));
		low = v4;
	} else {
		memcpy(&high, addr, sizeof(high));
		memcpy(&low, addr + sizeof(high), sizeof(low));
	}
	return 1ull << ((high ^ low * 0x9E3779B97F4A7C15u) * 0x9E3779B97F4A7C15u >> 58);
}

static void age(const struct core *c, struct qp *qp)
{
	uint32_t rounds = c->lately_round - qp->sent_to.round;

	if (likely(!rounds))
		return;
	qp->sent_to.before = rounds == 1 ? qp->sent_to.now : 0;
	qp->sent_to.now = 0;
	qp->sent_to.round = c->lately_round;
}

void rp_sent_to(const struct core *c, struct qp *qp, const struct path *path)
{
	const uint8_t *l3 = path->hdr + path->l3_off;

	age(c, qp);
	qp->sent_to.now |= bit_of(l3 + (path->net == NET_IPV4 ? IP4_DST : IP6_DST), path->net);
}

static bool has_sent_to(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	const uint8_t *source = pkt->l3 + (pkt->net == NET_IPV4 ? IP4_SRC : IP6_SRC);

	if (now >= c->lately_until)
		rp_round(c, now);
	age(c, qp);
	return (qp->sent_to.now | qp->sent_to.before) & bit_of(source, pkt->net);
}

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
		return DROP_CNP_UNMANAGED;
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

/* A QP that sends nothing causes no congestion. */
static enum drop check_lately(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	if (qp->opc == OPC_UD)
		return has_sent_to(c, qp, pkt, now) ? DROP_NONE : DROP_CNP_STRANGER;
	return has_sent(c, qp, now) ? DROP_NONE : DROP_CNP_IDLE;
}

/* --- what it means ------------------------------------------------------------------------ */

/* FCN-13: a switch and the peer may both report one packet, in either order. Within the interval
 * of the peer's CNPs, a notice of the other kind counts as the same event. */
static bool is_reported(
	struct core *c, struct qp *qp, unsigned port, enum cc_notice kind, uint64_t now)
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
	if (is_reported(c, qp, port, kind, now))
		c->count.rp_cnp_repeated++;
	else
		pacing_cnp(c, qp, kind, now);
}

enum drop rp_cnp(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum drop address, uint64_t now)
{
	enum drop why = check(c, qp, pkt) ?: check_source(qp, pkt, address) ?: check_pkey(qp, pkt);

	why = why ?: check_lately(c, qp, pkt, now);
	if (why) {
		c->count.rp_cnp_ignored++;
		return why;
	}
	c->count.rp_cnp_handled++;
	notice(c, qp, pkt->port, CC_CNP_PLAIN, now);
	return DROP_NONE;
}

enum drop rp_fast_cnp(
	struct core *c, struct qp *qp, const struct pkt *pkt, bool detour, uint64_t now)
{
	enum drop why = check(c, qp, pkt) ?: check_pkey(qp, pkt) ?: check_lately(c, qp, pkt, now);

	if (why) {
		c->count.rp_fast_cnp_ignored++;
		return why;
	}
	c->count.rp_fast_cnp_handled++;
	notice(c, qp, pkt->port, CC_CNP_FAST, now);
	if (detour)
		pacing_detour(c, qp, now); /* FCN-15 */
	return DROP_NONE;
}

/* Runs between two core_tx() calls, so it may take the next call number. */
void rp_take(struct core *c, struct qp *qp)
{
	qp->tx_call = ++c->tx_call;
	qp->sent_to.round = c->lately_round;
}

void rp_restart(struct core *c, struct qp *qp)
{
	memset(&qp->notice, 0, sizeof(qp->notice));
	memset(&qp->sent_to, 0, sizeof(qp->sent_to));
	rp_take(c, qp);
}
