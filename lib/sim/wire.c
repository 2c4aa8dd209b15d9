/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#define PS_PER_NS 1000u
#define PS_PER_S  1000000000000ull

static uint64_t whole_ns(uint64_t ps)
{
	return (ps + PS_PER_NS - 1) / PS_PER_NS;
}

/* Starts sending; the first bit leaves at @p start_ps. */
static void send(struct sim_wire *w, struct sim_buffer *b, uint64_t start_ps)
{
	uint64_t bytes = b->len + WIRE_OVERHEAD;

	if (w->see)
		w->see(w->see_arg, b, start_ps / PS_PER_NS);
	w->frames++;
	w->bytes += bytes;
	w->idle_ps = start_ps + bytes * 8 * PS_PER_S / w->cfg.rate_bps;
	b->due = whole_ns(w->idle_ps) + w->cfg.delay_ns;
	if (!w->way.head)
		engine_at(w->engine, &w->arrival, b->due);
	fifo_push(&w->way, b);
	if (!w->quiet)
		engine_at(w->engine, &w->idle, whole_ns(w->idle_ps));
}

static void fell_idle(struct sim_event *ev, uint64_t now)
{
	struct sim_wire *w = container_of(ev, struct sim_wire, idle);
	struct sim_buffer *b = w->pull(w, now);

	if (b)
		send(w, b, w->idle_ps); /* back to back */
}

static void arrived(struct sim_event *ev, uint64_t now)
{
	struct sim_wire *w = container_of(ev, struct sim_wire, arrival);
	struct sim_buffer *b = fifo_pop(&w->way);

	if (w->way.head)
		engine_at(w->engine, &w->arrival, w->way.head->due);
	w->to->receive(w->to, b, now);
}

void wire_init(struct sim_wire *w, struct sim_engine *e, const struct wire_config *cfg,
	struct sim_buffer *(*pull)(struct sim_wire *w, uint64_t now), struct sim_sink *to)
{
	memset(w, 0, sizeof(*w));
	w->engine = e;
	w->cfg = *cfg;
	w->pull = pull;
	w->to = to;
	engine_event(&w->idle, fell_idle);
	engine_event(&w->arrival, arrived);
}

void wire_kick(struct sim_wire *w, uint64_t now)
{
	uint64_t start = now * PS_PER_NS;
	struct sim_buffer *b;

	if (wire_busy(w))
		return;
	if (start < w->idle_ps) { /* the last frame of a quiet sender is still leaving */
		engine_at(w->engine, &w->idle, whole_ns(w->idle_ps));
		return;
	}
	b = w->pull(w, now);
	if (b)
		send(w, b, start > w->idle_ps ? start : w->idle_ps);
}
