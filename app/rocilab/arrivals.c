/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "arrivals.h"
#include "lab.h"
#include "lab_flow.h"
#include "list.h"

bool arrivals_push(struct arrivals *a, struct arrival one)
{
	if (a->came - a->gone == a->room) {
		uint32_t room = a->room ? 2 * a->room : 8;
		struct arrival *ring = calloc(room, sizeof(*ring));

		if (!ring)
			return false;
		for (uint64_t i = a->gone; i != a->came; i++)
			ring[i & (room - 1)] = *arrivals_at(a, i);
		free(a->ring);
		a->ring = ring;
		a->room = room;
	}
	a->ring[a->came++ & (a->room - 1)] = one;
	return true;
}

static uint64_t next_at(struct source *s, uint64_t now)
{
	uint64_t at = now + (uint64_t)(draw_exponential(&s->random) * s->gap_ns) + 1;

	return at > s->until ? SIM_NEVER : at;
}

static void come(struct sim_event *ev, uint64_t now)
{
	struct source *s = container_of(ev, struct source, next);
	struct lab_flow *f = s->flow[random_below(&s->random, s->flows)];
	struct arrival one = {.at = now, .size = sizes_draw(s->sizes, &s->random)};

	if (arrivals_push(&f->arrivals, one))
		flow_post(f, now);
	else
		s->lost++;
	engine_at(&s->lab->engine, &s->next, next_at(s, now));
}

void source_begin(struct source *s, uint64_t at)
{
	engine_event(&s->next, come);
	engine_at(&s->lab->engine, &s->next, next_at(s, at));
}
