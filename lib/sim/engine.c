/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"

/* Children per heap node: with four, the heap is half as deep as with two, and siblings share a
 * cache line or two. */
#define CHILDREN 4u

void engine_init(
	struct sim_engine *e, struct sim_due *heap, uint32_t *place, uint32_t room, uint64_t now)
{
	*e = (struct sim_engine){.now = now, .heap = heap, .place = place, .room = room, .ids = 1};
}

static bool before(const struct sim_due *a, const struct sim_due *b)
{
	/* One comparison without a branch, which would be unpredictable. */
	return ((unsigned __int128)a->at << 64 | a->order) <
	       ((unsigned __int128)b->at << 64 | b->order);
}

static void put(struct sim_engine *e, uint32_t i, struct sim_due d)
{
	e->heap[i] = d;
	e->place[d.id] = i;
}

static void up(struct sim_engine *e, uint32_t i, struct sim_due d)
{
	while (i && before(&d, &e->heap[(i - 1) / CHILDREN])) {
		put(e, i, e->heap[(i - 1) / CHILDREN]);
		i = (i - 1) / CHILDREN;
	}
	put(e, i, d);
}

static void down(struct sim_engine *e, uint32_t i, struct sim_due d)
{
	for (;;) {
		uint32_t first = CHILDREN * i + 1;
		uint32_t end = first + CHILDREN < e->used ? first + CHILDREN : e->used;
		uint32_t least = first;

		if (first >= e->used)
			break;
		for (uint32_t c = first + 1; c < end; c++)
			if (before(&e->heap[c], &e->heap[least]))
				least = c;
		if (!before(&e->heap[least], &d))
			break;
		put(e, i, e->heap[least]);
		i = least;
	}
	put(e, i, d);
}

static void settle(struct sim_engine *e, uint32_t i, struct sim_due d)
{
	if (i && before(&d, &e->heap[(i - 1) / CHILDREN]))
		up(e, i, d);
	else
		down(e, i, d);
}

static void take(struct sim_engine *e, uint32_t i)
{
	struct sim_due last = e->heap[--e->used];

	e->heap[i].ev->due = SIM_NEVER;
	if (i != e->used)
		settle(e, i, last);
}

void engine_at(struct sim_engine *e, struct sim_event *ev, uint64_t due)
{
	struct sim_due d = {.at = due, .ev = ev};

	if (ev->due == due)
		return;
	if (due == SIM_NEVER) {
		take(e, e->place[ev->id]);
		return;
	}
	d.order = e->order++;
	if (!ev->id)
		ev->id = e->ids++;
	d.id = ev->id;
	if (ev->due == SIM_NEVER)
		up(e, e->used++, d);
	else
		settle(e, e->place[ev->id], d);
	ev->due = due;
}

void engine_run(struct sim_engine *e, uint64_t until)
{
	while (e->used && e->heap[0].at <= until) {
		struct sim_event *ev = e->heap[0].ev;

		if (e->heap[0].at > e->now)
			e->now = e->heap[0].at;
		take(e, 0);
		e->fired++;
		ev->fire(ev, e->now);
	}
	if (until != SIM_NEVER && e->now < until)
		e->now = until;
}
