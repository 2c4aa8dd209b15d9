/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core.h"
#include "core_command.h"
#include "frame.h"
#include "inject.h"
#include "packet.h"
#include "pacing.h"
#include "requester.h"
#include "seq24.h"
#include "trace.h"
#include "txd.h"
#include "txd_bth.h"
#include "wqe.h"

/* --- the ring ------------------------------------------------------------------------- */

static struct trace_event *slot(struct trace *t)
{
	uint32_t tail = atomic_load_explicit(&t->tail, memory_order_acquire);

	if (t->next - tail == TRACE_EVENTS)
		return NULL;
	return &t->event[t->next++ % TRACE_EVENTS];
}

static struct trace_event *note(
	const struct core *c, const struct qp *qp, const struct trace_event *e, uint64_t now)
{
	struct trace *t = qp->trace;
	struct trace_event *to;

	if (t->rates && e->type != TRACE_RATE && e->type != TRACE_END)
		return NULL;
	to = slot(t);

	/* Lost events are reported where they are missing, before later ones. */
	if (to && t->lost) {
		*to = (struct trace_event){.type = TRACE_LOST,
			.id = t->lost,
			.time = now,
			.worker = (uint8_t)c->cfg.worker};
		t->lost = 0;
		to = slot(t);
	}
	if (!to) {
		t->lost++;
		return NULL;
	}
	*to = *e;
	to->time = now;
	to->worker = (uint8_t)c->cfg.worker;
	return to;
}

static void publish(const struct qp *qp)
{
	atomic_store_explicit(&qp->trace->head, qp->trace->next, memory_order_release);
}

unsigned trace_read(struct trace *t, struct trace_event out[], unsigned n)
{
	uint32_t head = atomic_load_explicit(&t->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&t->tail, memory_order_relaxed);
	unsigned got = 0;

	while (got < n && tail != head)
		out[got++] = t->event[tail++ % TRACE_EVENTS];
	atomic_store_explicit(&t->tail, tail, memory_order_release);
	return got;
}

/* --- on and off ----------------------------------------------------------------------- */

int trace_qp(struct core *c, struct qp *qp, struct trace *t)
{
	if (t && qp->trace)
		return -EBUSY;
	if (qp_owner(qp) != c->cfg.worker)
		return -EPERM;
	qp->trace = t;
	qp->traced = t;
	return 0;
}

void trace_gone(const struct core *c, struct qp *qp, uint64_t now)
{
	struct trace *t = qp->trace;

	note(c, qp, &(struct trace_event){.type = TRACE_END}, now);
	publish(qp);
	qp->trace = NULL;
	qp->traced = false;
	atomic_store_explicit(&t->ended, true, memory_order_release);
}

/* --- steps ---------------------------------------------------------------------------- */

void trace_begin(struct trace_step *s, const struct qp *qp, uint64_t now)
{
	qp->trace->step = now;
	qp->trace->taken = qp->rq.next;
	*s = (struct trace_step){
		.due = qp->comp.due,
		.fetched = qp->req.fetched,
		.psn = qp->req.psn,
		.psn_new = qp->req.psn_new,
		.retry_left = qp->comp.retry_left,
		.rnr_left = qp->comp.rnr_left,
		.window = qp->win.size,
		.state = qp->state,
		.rnr_wait = qp->comp.rnr_wait,
	};
}

static void note_fetches(
	const struct trace_step *s, const struct core *c, struct qp *qp, uint64_t now)
{
	for (uint32_t i = s->fetched; i != qp->req.fetched; i++) {
		const struct send_wqe *w = qp_wqe(qp, i);

		note(c, qp,
			&(struct trace_event){
				.type = TRACE_FETCH,
				.code = w->opcode,
				.id = w->wr_id,
				.value = w->length,
				.psn = w->first_psn,
				.other = w->last_psn,
				.flags = w->status ? TRACE_REFUSED : 0,
			},
			now);
	}
}

/* A packet takes one at most; a flush takes many, which their completions show. */
static void note_take(const struct core *c, const struct qp *qp, uint64_t now)
{
	const struct recv_wqe *w = &qp->resp.wqe;
	bool taken = qp->rq.next != qp->trace->taken;

	qp->trace->taken = qp->rq.next;
	if (taken && qp->state != ABI_QPS_ERR && qp->state != ABI_QPS_RESET)
		note(c, qp,
			&(struct trace_event){
				.type = TRACE_TAKE, .id = w->wr_id, .value = (uint32_t)w->length},
			now);
}

static void note_number(const struct core *c, const struct qp *qp, enum trace_type type,
	uint32_t before, uint32_t value, uint64_t now)
{
	if (before != value)
		note(c, qp,
			&(struct trace_event){
				.type = (uint8_t)type, .value = value, .other = before},
			now);
}

/* Restarting a timer that runs is not an event. */
static void note_timer(
	const struct trace_step *s, const struct core *c, struct qp *qp, uint64_t now)
{
	const struct qp_comp *k = &qp->comp;
	uint8_t kind = k->rnr_wait ? TRACE_RNR_TIMER : 0;
	uint8_t kind_before = s->rnr_wait ? TRACE_RNR_TIMER : 0;

	if (!s->due == !k->due && (kind == kind_before || !k->due))
		return;
	if (s->due)
		note(c, qp, &(struct trace_event){.type = TRACE_STOPPED, .flags = kind_before},
			now);
	if (k->due)
		note(c, qp,
			&(struct trace_event){
				.type = TRACE_ARMED, .flags = kind, .id = k->due - now},
			now);
}

static void note_state(
	const struct trace_step *s, const struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->state != s->state)
		note(c, qp,
			&(struct trace_event){
				.type = TRACE_STATE, .code = qp->state, .other = s->state},
			now);
}

void trace_timer_begin(struct trace_step *s, const struct core *c, struct qp *qp, uint64_t now)
{
	trace_begin(s, qp, now);
	if (!s->due || now < s->due)
		return; /* restarted since the wheel was set */
	s->due = 0;
	note(c, qp,
		&(struct trace_event){
			.type = TRACE_FIRED, .flags = s->rnr_wait ? TRACE_RNR_TIMER : 0},
		now);
}

static uint64_t kbps(double rate)
{
	return rate < 4e12 ? (uint64_t)(rate / 1e3) : UINT32_MAX;
}

/* Not of a QP that was never limited, unless rates are all that is asked for. */
static void note_rate(const struct core *c, struct qp *qp, uint64_t now)
{
	struct trace *t = qp->trace;
	struct core_limit l;

	if (!qp->limited && !t->rate && !t->rates)
		return;
	pacing_view(c, qp, &l);
	if (t->rate == l.rate && t->cnps == l.cnps)
		return;
	note(c, qp,
		&(struct trace_event){
			.type = TRACE_RATE,
			.id = kbps(l.rate) << 32 | kbps(l.target),
			.psn = (uint32_t)(l.alpha * 65535) << 16 |
			       (l.window < 0 || l.window >= 0xFFFF ? 0xFFFF : (uint32_t)l.window),
			.value = t->sent,
			.other = (uint32_t)l.cnps,
		},
		now);
	t->rate = l.rate;
	t->cnps = l.cnps;
	t->sent = 0;
}

void trace_end(struct trace_step *s, const struct core *c, struct qp *qp, uint64_t now)
{
	if (!qp->traced) /* the step ended the trace */
		return;
	note_take(c, qp, now);
	if (s->state > ABI_QPS_RTR && qp->state > ABI_QPS_RTR && seq24_lt(qp->req.psn, s->psn))
		note(c, qp,
			&(struct trace_event){
				.type = TRACE_GO_BACK, .psn = qp->req.psn, .other = s->psn},
			now);
	note_number(c, qp, TRACE_RETRIES, s->retry_left, qp->comp.retry_left, now);
	note_number(c, qp, TRACE_RNR, s->rnr_left, qp->comp.rnr_left, now);
	note_number(c, qp, TRACE_WINDOW, s->window, qp->win.size, now);
	note_timer(s, c, qp, now);
	note_state(s, c, qp, now);
	note_rate(c, qp, now);
	publish(qp);
}

/* --- packets -------------------------------------------------------------------------- */

void trace_rx_begin(struct trace_step *s, const struct core *c, struct qp *qp,
	const struct pkt *pkt, uint64_t now)
{
	struct trace_event e = {
		.type = TRACE_RECEIVE,
		.code = pkt->op->code,
		.psn = pkt->psn,
		.value = pkt->payload_len,
		.flags = pkt->ackreq ? TRACE_ACKREQ : 0,
	};

	trace_begin(s, qp, now);
	/* UD-04: a datagram's PSN has no meaning */
	if (qp->opc != OPC_UD && pkt->op->request && seq24_lt(pkt->psn, qp->resp.epsn))
		e.flags |= TRACE_AGAIN;
	if (pkt->op->aeth) {
		e.flags |= TRACE_AETH;
		e.id = pkt->syndrome;
		e.other = pkt->msn;
	}
	s->packet = note(c, qp, &e, now);
}

void trace_rx_end(
	struct trace_step *s, const struct core *c, struct qp *qp, uint16_t verdict, uint64_t now)
{
	if (s->packet)
		s->packet->id |= (uint64_t)verdict << TRACE_VERDICT_SHIFT;
	trace_end(s, c, qp, now);
}

/* Decoded from the header that was written. */
static void note_sent(const struct trace_step *s, const struct core *c, struct qp *qp,
	const struct txd *t, uint64_t now)
{
	const uint8_t *bth = txd_bth(t);
	const struct opcode *op = opcode_row(bth[BTH_OPCODE]);
	uint32_t word = get_be32(bth + BTH_ACKREQ);
	struct trace_event e = {
		.type = TRACE_SEND,
		.code = op->code,
		.psn = word & SEQ24_MASK,
		.value = t->payload_len,
		.flags = bth[BTH_ACKREQ] & BTH_A ? TRACE_ACKREQ : 0,
	};

	if (op->request && seq24_lt(e.psn, s->psn_new))
		e.flags |= TRACE_AGAIN;
	else
		qp->trace->sent += t->payload_len;
	if (op->aeth) {
		uint32_t aeth = get_be32(bth + BTH_HLEN);

		e.flags |= TRACE_AETH;
		e.id = aeth >> 24;
		e.other = aeth & SEQ24_MASK;
	}
	note(c, qp, &e, now);
}

void trace_tx_begin(struct trace_step *s, const struct qp *qp, uint64_t now)
{
	if (qp->traced)
		trace_begin(s, qp, now);
}

void trace_tx_end(struct trace_step *s, const struct core *c, struct qp *qp, const struct txd *out,
	unsigned n, uint64_t now)
{
	if (qp->traced)
		note_fetches(s, c, qp, now);
	for (unsigned i = 0; qp->traced && i < n; i++)
		note_sent(s, c, qp, &out[i], now);
	trace_end(s, c, qp, now);
}

void trace_cqe(const struct core *c, const struct qp *qp, uint64_t wr_id, uint8_t status,
	uint8_t opcode, uint32_t byte_len, uint64_t now)
{
	note_take(c, qp, now);
	note(c, qp,
		&(struct trace_event){
			.type = TRACE_COMPLETE,
			.code = status,
			.id = wr_id,
			.value = byte_len,
			.other = opcode,
		},
		now);
}

void trace_async(const struct core *c, const struct qp *qp, uint32_t type)
{
	note(c, qp, &(struct trace_event){.type = TRACE_ASYNC, .code = (uint8_t)type},
		qp->trace->step);
}

void trace_doorbell(const struct core *c, const struct qp *qp, uint64_t now)
{
	note(c, qp, &(struct trace_event){.type = TRACE_DOORBELL}, now);
	publish(qp);
}

void trace_move(const struct core *c, const struct qp *qp, uint16_t worker, uint64_t now)
{
	note(c, qp, &(struct trace_event){.type = TRACE_MOVE, .value = worker}, now);
	publish(qp);
}

void trace_inject(const struct core *c, const struct qp *qp, const struct pkt *pkt,
	const struct inject_rule *r, uint64_t now)
{
	note(c, qp,
		&(struct trace_event){
			.type = TRACE_INJECT,
			.code = r->fault.kind,
			.psn = pkt->psn,
			.value = r->id,
			.flags = r->fault.direction == ABI_FAULT_RX ? TRACE_IN : 0,
		},
		now);
	publish(qp);
}

void trace_released(const struct core *c, const struct qp *qp, const struct txd *t, uint64_t now)
{
	struct pkt pkt;

	if (frame_parse(&pkt, t->frame, t->frame_len))
		return; /* a fault has made it unreadable */
	note(c, qp, &(struct trace_event){.type = TRACE_RELEASED, .code = t->fault, .psn = pkt.psn},
		now);
	publish(qp);
}
