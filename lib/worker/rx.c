/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_prefetch.h>
#include "burst.h"
#include "core.h"
#include "drop.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "ioam.h"
#include "opcode.h"
#include "telemetry.h"
#include "worker_impl.h"

/* Frames of the inbox per round, before ports and applications have their turn. */
#define INBOX_ROUND (4 * BURST)

/* The packets of one burst, compact, and the buffers they lie in. */
struct rx_burst {
	bool captured; /* read once: a packet that a capture sees must be whole */
	unsigned parsed;
	unsigned spent;
	struct pkt pkt[BURST];
	struct rte_mbuf *m[BURST]; /* of pkt[i] */
	struct rte_mbuf *free[BURST];
	uint16_t verdict[BURST];
	const struct expect *expect[BURST]; /* of the frames as they arrived */
};

static void prefetch(struct rte_mbuf *m)
{
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);

	rte_prefetch0(data);
	rte_prefetch0(data + CACHE_LINE);
}

/* A local packet that names its payload. */
static NOINLINE void find_payload(struct worker *w, struct pkt *p, struct rte_mbuf *m, bool whole)
{
	p->queue = PKT_LOCAL;
	if (core_named(&w->core, p, whole))
		m->port = origin(p->port, PKT_LOCAL);
}

/* @param whole  somebody looks at the frame */
static NOINLINE enum drop parse(struct worker *w, struct pkt *p, struct rte_mbuf *m, bool whole)
{
	enum drop why;

	/* A device or driver may strip the VLAN tag (ETH-07), as may the kernel.
	 */
	if (unlikely(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) && rte_vlan_insert(&m))
		return DROP_FRAME_TOO_LONG;
	/* memif and vhost chain buffers; the parser and the ICRC need the frame in one piece. */
	if (unlikely(m->nb_segs > 1) && rte_pktmbuf_linearize(m))
		return DROP_FRAME_TOO_LONG;
	p->port = (uint8_t)m->port;
	p->queue = (uint8_t)(m->port >> 8);
	p->source_qp = m->hash.usr; /* of local frames: see loop_back() */
	why = frame_parse(p, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m));
	if (unlikely(p->queue == PKT_LOCAL_NAMED) && !why)
		find_payload(w, p, m, whole);
	return why;
}

/* A frame that frame_parse() has refused because of what follows IPv6: a Fast CNP, if the port
 * accepts them. @return false: it is not ours. */
static NOINLINE bool fast_cnp(struct worker *w, struct rte_mbuf *m)
{
	struct pkt pkt = {.port = (uint8_t)m->port, .queue = (uint8_t)(m->port >> 8)};
	uint64_t now = clock_at(&w->clock, rte_rdtsc());
	uint32_t others;
	enum drop why = core_fast_cnp(&w->core, &pkt, rte_pktmbuf_mtod(m, uint8_t *),
		rte_pktmbuf_data_len(m), now, &others);
	const uint16_t verdict = why;

	if (why == DROP_IP_NEXT_HEADER)
		return false;
	if (unlikely(captured(w)) && pkt.op)
		capture_received(w, &m, &pkt, &verdict, 1, now);
	for (; others; others &= others - 1)
		handoff_copy(w, (uint32_t)__builtin_ctz(others), m, origin(pkt.port, PKT_COPY));
	return true;
}

/* A copy of a multicast packet for each other worker that has QPs of its group (MC-04). */
static NOINLINE void spread(struct worker *w, const struct pkt *pkt, struct rte_mbuf *m)
{
	uint32_t workers = core_group_workers(&w->core, pkt);

	while (workers) {
		uint32_t to = (uint32_t)__builtin_ctz(workers);

		handoff_copy(w, to, m, origin(pkt->port, PKT_COPY));
		workers &= workers - 1;
	}
}

/* A frame that went to a multicast group. */
static NOINLINE void group_frame(
	struct worker *w, const struct pkt *pkt, struct rte_mbuf *m, uint16_t verdict)
{
	if (verdict & VERDICT_SPREAD)
		spread(w, pkt, m);
	if (verdict & VERDICT_HELD)
		w->held[verdict_place(verdict)] = m;
	else
		rte_pktmbuf_free(m);
}

/* When an inbox is half full, the rest is reserved for useful frames: broken ones are dropped, and
 * so are CNPs, which the peer repeats as long as there is congestion. So no flood of them costs
 * another QP its packets (CNP-11). */
static enum drop refuse_when_half_full(const struct worker *w, const struct pkt *pkt)
{
	if (!pkt->named && !icrc_check(w->core.cfg.icrc, pkt))
		return DROP_ICRC;
	return pkt->op->kind == KIND_CNP ? DROP_HANDOFF_FULL : DROP_NONE;
}

/* A frame for another worker, which alone may read the QP. @return false when it goes no further.
 */
static bool pass_on(struct worker *w, uint32_t owner, const struct pkt *pkt, struct rte_mbuf *m)
{
	w->stats.handoffs++;
	if (unlikely(handoff_half_full(w, INBOX_HANDED, owner))) {
		enum drop why = refuse_when_half_full(w, pkt);

		if (why) {
			core_count_drop(&w->core, why);
			capture_lost(w, m, why);
			return false;
		}
	}
	handoff_add(w, INBOX_HANDED, owner, m);
	return true;
}

/* Gives the parsed packets to the core, in order of arrival, and their buffers back. */
static void process(struct worker *w, struct rx_burst *b)
{
	/* A time-out or an RNR delay that starts now must not start before the packet arrived, but
	 * this thread may have been paused since the round began (REQ-22, REQ-29). */
	uint64_t now = clock_at(&w->clock, rte_rdtsc());

	core_rx(&w->core, b->pkt, b->parsed, now, b->verdict);
	if (unlikely(b->captured))
		capture_received(w, b->m, b->pkt, b->verdict, b->parsed, now);
	for (unsigned i = 0; i < b->parsed; i++) {
		if (likely(b->verdict[i] < VERDICT_HANDOFF)) {
			b->free[b->spent++] = b->m[i];
			continue;
		}
		if (b->verdict[i] & (VERDICT_SPREAD | VERDICT_HELD)) {
			group_frame(w, &b->pkt[i], b->m[i], b->verdict[i]);
			continue;
		}
		if (!pass_on(w, b->verdict[i] - VERDICT_HANDOFF, &b->pkt[i], b->m[i]))
			b->free[b->spent++] = b->m[i];
	}
	b->parsed = 0;
}

/* The same of a frame that still carries its telemetry. */
static enum drop refuse_telemetry(const struct worker *w, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	size_t len = rte_pktmbuf_data_len(m);

	if (!ioam_check(w->core.cfg.icrc, frame, len))
		return DROP_ICRC;
	return ioam_bth(frame, len)[BTH_OPCODE] == OPCODE_CNP ? DROP_HANDOFF_FULL : DROP_NONE;
}

/* The frame @p m with telemetry, for another worker, goes there as it is. */
static void pass_telemetry(struct worker *w, uint32_t owner, struct rte_mbuf *m)
{
	enum drop why = DROP_NONE;

	w->stats.handoffs++;
	if (unlikely(handoff_half_full(w, INBOX_HANDED, owner)))
		why = refuse_telemetry(w, m);
	if (!why) {
		handoff_add(w, INBOX_HANDED, owner, m);
		return;
	}
	core_count_drop(&w->core, why);
	capture_lost(w, m, why);
	rte_pktmbuf_free(m);
}

/* Removes the telemetry from the frame @p m, which then passes through the core on its own, or
 * goes to the worker of QP1, which its number does not show.
 *  @return false when it goes no further. */
static bool receive_telemetry(struct worker *w, struct rte_mbuf *m)
{
	uint64_t now = clock_at(&w->clock, rte_rdtsc());
	enum drop why = DROP_ICRC;
	struct ioam trace;
	struct pkt pkt;
	uint16_t verdict;

	if (ioam_pop(w->core.cfg.icrc, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m),
		    &trace)) {
		rte_pktmbuf_adj(m, IOAM_LEN);
		why = parse(w, &pkt, m, false);
	}
	if (why) {
		core_count_drop(&w->core, why);
		capture_lost(w, m, why);
		return false;
	}
	core_telemetry_rx(&w->core, &pkt, &trace, now, &verdict);
	if (unlikely(captured(w)))
		capture_received(w, &m, &pkt, &verdict, 1, now);
	return verdict >= VERDICT_HANDOFF && !(verdict & (VERDICT_SPREAD | VERDICT_HELD)) &&
	       pass_on(w, verdict - VERDICT_HANDOFF, &pkt, m);
}

/* Handles a frame that carries telemetry, if its port accepts any, after those of @p b that came
 * before it: an ACK must not overtake READ responses (REQ-38).
 *  @return false: it carries none. */
static NOINLINE bool telemetry(struct worker *w, struct rx_burst *b, struct rte_mbuf *m)
{
	uint32_t qpn = 0;
	uint32_t owner;

	if (core_telemetry_port(&w->core, (uint8_t)m->port))
		qpn = ioam_dest_qp(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m));
	if (!qpn)
		return false;
	process(w, b);
	owner = core_owner(&w->core, qpn);
	if (owner != w->index) {
		pass_telemetry(w, owner, m);
		return true;
	}
	if (!receive_telemetry(w, m))
		rte_pktmbuf_free(m);
	return true;
}

/* A frame that a device or driver has split or changed is put together first. */
static ALWAYS_INLINE bool is_plain(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && !(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED);
}

/* Fetches the frames, then the QPs that they seem to be for: with thousands of either no cache
 * holds them. */
static ALWAYS_INLINE void expect_burst(
	struct worker *w, struct rx_burst *b, struct rte_mbuf **m, unsigned n)
{
	const bool expects = core_expects(&w->core);
	const struct expect *e = NULL;

	for (unsigned i = 0; i < n; i++)
		prefetch(m[i]);
	for (unsigned i = 0; i < n; i++) {
		e = expects && likely(is_plain(m[i]))
			    ? core_expect(&w->core, rte_pktmbuf_mtod(m[i], uint8_t *),
				      rte_pktmbuf_data_len(m[i]), e)
			    : NULL;
		b->expect[i] = e;
	}
}

static ALWAYS_INLINE bool is_expected(
	const struct worker *w, struct pkt *p, const struct rte_mbuf *m, const struct expect *e)
{
	p->port = (uint8_t)m->port;
	p->queue = (uint8_t)(m->port >> 8);
	return likely(e) && core_expected(&w->core, p, rte_pktmbuf_mtod(m, uint8_t *),
				    rte_pktmbuf_data_len(m), e);
}

static void parse_burst(struct worker *w, struct rx_burst *b, struct rte_mbuf **m, unsigned n)
{
	b->captured = captured(w);
	b->parsed = 0;
	b->spent = 0;
	expect_burst(w, b, m, n);
	for (unsigned i = 0; i < n; i++) {
		struct pkt *p = &b->pkt[b->parsed];
		enum drop why;

		if (likely(is_expected(w, p, m[i], b->expect[i]))) {
			b->m[b->parsed++] = m[i];
			continue;
		}
		why = parse(w, p, m[i], b->captured);
		if (why == DROP_NONE) {
			b->m[b->parsed++] = m[i];
		} else if (why == DROP_IP_NEXT_HEADER && fast_cnp(w, m[i])) {
			b->free[b->spent++] = m[i];
		} else if (why == DROP_IP_NEXT_HEADER && telemetry(w, b, m[i])) {
			continue;
		} else if (!exception_take(w, m[i])) {
			core_count_drop(&w->core, why);
			capture_lost(w, m[i], why);
			b->free[b->spent++] = m[i];
		}
	}
}

static void note_time(struct worker *w)
{
	w->burst_at = clock_at(&w->clock, rte_rdtsc());
}

static void receive(struct worker *w, struct rte_mbuf **m, unsigned n)
{
	struct rx_burst b;

	parse_burst(w, &b, m, n);
	process(w, &b);
	handoff_flush(w); /* in order of arrival */
	tx_restock(w, b.free, b.spent);
	if (n > BURST / 2) /* smaller ones need not be watched */
		note_time(w);
}

/* Multicast datagrams that were received before, for more of their members. */
static NOINLINE void rx_groups(struct worker *w)
{
	uint8_t done[GROUP_COPIES];
	uint32_t n = core_groups(&w->core, done, w->now);

	for (uint32_t i = 0; i < n; i++) {
		rte_pktmbuf_free(w->held[done[i]]);
		w->held[done[i]] = NULL;
	}
	note_time(w);
}

/* Takes several bursts, because all workers fill the inbox; stops after the first that makes the
 * round late. */
static unsigned rx_inbox(struct worker *w, bool *drained)
{
	struct rte_mbuf *m[BURST];
	unsigned received = 0;
	unsigned n = 1;

	while (received < INBOX_ROUND && !(received && worker_is_late(w)) &&
		(n = inbox_take(&w->inbox, m))) {
		receive(w, m, n);
		received += n;
	}
	if (n)
		*drained = false;
	return received;
}

/* Frames that a disabled port receives must not wait there until it is enabled again. They count as
 * received: a flood of them keeps the worker awake, and delays no timer for ever. */
static NOINLINE unsigned discard(
	struct worker *w, const struct worker_port *p, struct rte_mbuf **m, bool *drained)
{
	unsigned n = burst_rx(p, m);

	rte_pktmbuf_free_bulk(m, n);
	w->stats.port_down += n;
	if (n == BURST)
		*drained = false;
	return n;
}

/* A burst of port @p i.  @return how many frames. */
static unsigned rx_port(struct worker *w, uint32_t i, bool *drained)
{
	const struct worker_port *p = &w->port[i];
	uint8_t shut = atomic_load_explicit(&p->shut, memory_order_acquire);
	struct rte_mbuf *m[BURST];
	unsigned n;

	if (unlikely(shut))
		return p->rx && !(shut & SHUT_CLOSED) ? discard(w, p, m, drained) : 0;
	if (!p->rx)
		return 0;
	n = burst_rx(p, m);
	/* Drivers store their own number there, or none, as net_ring does. */
	for (unsigned k = 0; k < n; k++)
		m[k]->port = origin(i, p->spreads ? w->index : PKT_NO_QUEUE);
	if (n)
		receive(w, m, n);
	if (n == BURST)
		*drained = false;
	return n;
}

/* Receives from source @p i: group members that wait, the ports, the inbox. */
static ALWAYS_INLINE unsigned rx_source(struct worker *w, uint32_t i, bool *drained)
{
	if (i == 0) {
		if (unlikely(core_groups_wait(&w->core)))
			rx_groups(w);
		else
			core_groups_rest(&w->core);
		return 0;
	}
	return i <= w->nports ? rx_port(w, i - 1, drained) : rx_inbox(w, drained);
}

unsigned rx_poll(struct worker *w, bool *drained)
{
	uint32_t sources = w->nports + 2;
	unsigned received = 0;
	uint32_t i = w->first_source;

	*drained = true;
	for (uint32_t left = sources; left; left--) {
		received += rx_source(w, i, drained);
		i = i + 1 < sources ? i + 1 : 0;
		if (unlikely(worker_is_late(w)) && left > 1) { /* the next round begins there */
			*drained = false;
			break;
		}
	}
	w->first_source = i;
	return received;
}
