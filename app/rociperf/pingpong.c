/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency. The initiator sends a message and waits for the answer: the target's message, or the
 * data that a READ fetches, or the answer to a FLUSH. Only this is timed; all book-keeping happens
 * between two messages.
 *
 * A WRITE does not notify its target: the target polls the last byte of the message's slot, which
 * is written last (side_mark()).
 */
#include "side.h"
#include "ticks.h"
#include "verify.h"

/* Polls of memory alone: a failure is noticed after this number. */
#define LOOKS 256

static void send(struct side *s)
{
	side_post(s, &s->end.flow[0], 1, true);
}

/* @return whether the expected message has arrived. */
static bool look_at_memory(struct side *s)
{
	struct end *e = &s->end;
	struct flow *f = &e->flow[0];
	const volatile uint8_t *last = e->rx + cursor_rx(e, f, &f->taken) + e->shape.size - 1;

	if (*last != side_mark(&f->taken))
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* everything written before it */
	if (e->plan->value[PARAM_VERIFY])
		verify_arrived(e, f, e->shape.size, 1);
	cursor_next(&f->taken, e->shape.rx_slots);
	return true;
}

/* The same by completions; counts those of our own messages. */
static bool look_at_cq(struct side *s)
{
	struct roci_wc wc[POLL_MAX];
	bool arrived = false;
	int n = side_poll(s, wc);

	for (int i = 0; i < n; i++) {
		struct flow *f = side_flow(s, &wc[i]);

		if (wc[i].opcode & ROCI_WC_RECV) {
			side_received(s, f, &wc[i]);
			arrived = true;
		} else {
			side_completed(s, f, &wc[i]);
			arrived |= op_told(s->end.op);
		}
	}
	return arrived;
}

static bool look(struct side *s)
{
	if (!s->marks)
		return look_at_cq(s);
	if (s->fruitless++ % LOOKS == LOOKS - 1)
		look_at_cq(s);
	return look_at_memory(s);
}

/* While nothing is awaited there is time for the completions of earlier messages. */
static void make_room(struct side *s)
{
	if (s->marks && s->under_way >= s->end.shape.depth / 2)
		look_at_cq(s);
}

static bool initiate(struct side *s, uint64_t now)
{
	struct measure *m = &s->measure;

	if (!s->awaits) {
		if (m->phase >= PHASE_HOLD)
			return look_at_cq(s);
		make_room(s);
		if (s->under_way == s->end.shape.depth)
			return look_at_cq(s);
		s->awaits = true;
		s->sent_at = ticks();
		send(s);
		return true;
	}
	if (!look(s))
		return false;
	now = ticks();
	s->awaits = false;
	if (m->phase == PHASE_MEASURE)
		histogram_record(m->trip, now - s->sent_at);
	measure_count(m, 1, now);
	return true;
}

static bool answer(struct side *s)
{
	if (s->heard_drained)
		return look_at_cq(s);
	if (!look(s))
		return false;
	send(s);
	make_room(s);
	return true;
}

bool pingpong_step(struct side *s, uint64_t now)
{
	return s->end.initiates ? initiate(s, now) : answer(s);
}
