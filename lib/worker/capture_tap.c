/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers' side of captures: part of the poll loop, reached only while there is a capture. */
#include <rte_cycles.h>
#include "capture_impl.h"
#include "frame.h"
#include "qp.h"
#include "txd.h"
#include "worker_impl.h"

#define ALIGN8(n) (((n) + 7u) & ~7u)

_Static_assert((CAPTURE_RING & (CAPTURE_RING - 1)) == 0, "the ring's end is found by a mask");

/* The attributes of a frame that are recorded with its bytes. */
struct sight {
	uint64_t time;
	uint32_t qpn;		    /* its QP; CAPTURE_ANY: unknown */
	const struct pkt *received; /* NULL: it was sent, or does not parse */
	uint8_t port;
	bool local; /* between QPs of this daemon */
	bool out;
	uint8_t fault; /* that was injected: enum abi_fault_kind */
	enum drop why;
};

/* Room for a record of @p size bytes in one piece.  Returns NULL when the ring is full. */
static struct capture_record *reserve(struct capture_ring *r, uint32_t size, uint64_t *head)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	uint32_t at, end;

	*head = atomic_load_explicit(&r->head, memory_order_relaxed);
	at = *head & (CAPTURE_RING - 1);
	end = CAPTURE_RING - at;
	if (end < size) {
		if (*head + end + size - tail > CAPTURE_RING)
			return NULL;
		/* The reader skips a remainder that is too short for a record. */
		if (end >= sizeof(struct capture_record))
			*(struct capture_record *)&r->bytes[at] =
				(struct capture_record){.size = end};
		*head += end;
		at = 0;
	} else if (*head + size - tail > CAPTURE_RING) {
		return NULL;
	}
	return (struct capture_record *)&r->bytes[at];
}

static void copy(struct capture_ring *r, const struct sight *s, uint8_t interface,
	const struct rte_mbuf *m, uint32_t snap)
{
	uint32_t kept = RTE_MIN(m->data_len, snap);
	uint32_t size = ALIGN8((uint32_t)sizeof(struct capture_record) + kept);
	uint64_t lost = atomic_load_explicit(&r->lost[interface], memory_order_relaxed);
	uint64_t head;
	struct capture_record *e = reserve(r, size, &head);

	if (!e) {
		atomic_store_explicit(&r->lost[interface], lost + 1, memory_order_relaxed);
		return;
	}
	*e = (struct capture_record){
		.time = s->time,
		.size = size,
		.kept = (uint16_t)kept,
		.len = (uint16_t)RTE_MIN(m->pkt_len, UINT16_MAX),
		.interface = interface,
		.out = s->out,
		.why = (uint8_t)s->why,
		.fault = s->fault,
		.lost = (uint32_t)lost,
	};
	memcpy(e + 1, rte_pktmbuf_mtod(m, uint8_t *), kept);
	atomic_store_explicit(&r->head, head + size, memory_order_release);
}

/* A received packet may be for a QP whose number it does not carry (MC-04, QP1). */
static bool concerns(const struct worker *w, const struct sight *s, uint32_t qpn)
{
	return s->qpn == qpn || (s->received && core_is_receiver(&w->core, s->received, qpn));
}

static bool wanted(const struct worker *w, const struct capture_filter *f, const struct sight *s)
{
	if (!(s->out ? f->out : f->in) || (f->drops && !s->why))
		return false;
	if (f->qpn != CAPTURE_ANY && !concerns(w, s, f->qpn))
		return false;
	return f->port == CAPTURE_ANY || (f->port == s->port && !s->local);
}

static void see(struct worker *w, const struct rte_mbuf *m, const struct sight *s)
{
	uint8_t interface = (uint8_t)(s->local ? w->dp->nports : s->port);
	struct capture *c = atomic_load_explicit(&w->captures, memory_order_acquire);

	for (; c; c = atomic_load_explicit(&c->next, memory_order_acquire))
		if (wanted(w, &c->cfg.filter, s))
			copy(c->ring[w->index], s, interface, m, c->cfg.filter.snap);
}

void capture_received(struct worker *w, struct rte_mbuf *const m[], const struct pkt pkt[],
	const uint16_t verdict[], unsigned n, uint64_t now)
{
	for (unsigned i = 0; i < n; i++) {
		const struct sight s = {
			.time = now,
			.qpn = pkt[i].dest_qp,
			.received = &pkt[i],
			.port = pkt[i].port,
			.local = pkt[i].queue == PKT_LOCAL,
			.why = verdict[i] < VERDICT_HANDOFF ? (enum drop)verdict[i] : DROP_NONE,
			.fault = core_rx_fault(&w->core, i),
		};

		if (pkt[i].queue == PKT_COPY)
			continue; /* the worker that received it captured it */
		if (verdict[i] < VERDICT_HANDOFF || verdict[i] >= VERDICT_SPREAD)
			see(w, m[i], &s); /* otherwise its owner captures it */
	}
}

/* The header that names the QP may itself be wrong. A shared netdev delivers frames of all kinds:
 * capture only those that claim to be RoCE. */
void capture_lost(struct worker *w, struct rte_mbuf *m, enum drop why)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct sight s = {
		.qpn = CAPTURE_ANY,
		.port = (uint8_t)m->port,
		.local = is_local(m),
		.why = why,
	};
	struct pkt pkt;

	if (likely(!atomic_load_explicit(&w->captures, memory_order_relaxed)) ||
		!frame_is_roce(frame, rte_pktmbuf_data_len(m)))
		return;
	if (!frame_parse(&pkt, frame, rte_pktmbuf_data_len(m))) { /* an inbox was full */
		pkt.port = s.port;
		pkt.source_qp = m->hash.usr;
		if (m->port >> 8 == PKT_LOCAL_NAMED)
			core_named(&w->core, &pkt, true);
		s.qpn = pkt.dest_qp;
		s.received = &pkt;
	}
	s.time = clock_at(&w->clock, rte_rdtsc()); /* not before frames already captured */
	see(w, m, &s);
}

void capture_sent(struct worker *w, const struct txd *t, struct rte_mbuf *m, uint64_t now)
{
	const struct sight s = {
		.time = now,
		.qpn = t->qp->qpn,
		.port = t->port,
		.local = t->local,
		.out = true,
		.fault = t->sealed == TXD_OPEN ? 0 : t->fault,
		.why = t->sealed == TXD_LOST ? DROP_INJECTED : DROP_NONE,
	};

	see(w, m, &s);
}
