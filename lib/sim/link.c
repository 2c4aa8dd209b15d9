/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "ecn.h"
#include "link.h"
#include "random.h"

#define MILLIONTH 1e-6
#define COPY	  (1ull << 60) /* the copy of a duplicated frame makes its own choices */

/* Each call starts a new sequence of choices. */
void link_set_impair(struct sim_link *l, const struct link_impair *f)
{
	l->cfg.impair = *f;
	l->index = 0;
	l->impair = (struct impair){.seed = random_at(l->seed, l->count.frames),
		.rate =
			{
				[IMPAIR_LOSE] = f->loss * MILLIONTH,
				[IMPAIR_DUPLICATE] = f->duplicate * MILLIONTH,
				[IMPAIR_REORDER] = f->reorder * MILLIONTH,
				[IMPAIR_CORRUPT] = f->corrupt * MILLIONTH,
				[IMPAIR_TRUNCATE] = f->truncate * MILLIONTH,
				[IMPAIR_MARK] = f->mark * MILLIONTH,
				[IMPAIR_DELAY] = f->pause * MILLIONTH,
			},
		.mask = f->loss_mask};
}

void link_init(struct sim_link *l, struct sim_frame **frames, uint32_t room,
	const struct link_config *cfg, uint64_t seed)
{
	memset(l, 0, sizeof(*l));
	l->cfg = *cfg;
	l->seed = seed;
	l->frame = frames;
	l->room = room;
	link_set_impair(l, &cfg->impair);
}

void link_pause(struct sim_link *l, uint64_t until)
{
	l->resume_at = until;
}

uint32_t link_room(const struct sim_link *l)
{
	return (l->room - l->used) / 2;
}

/* --- heap ----------------------------------------------------------------------------- */

static bool before(const struct sim_frame *a, const struct sim_frame *b)
{
	return a->due < b->due || (a->due == b->due && a->seq < b->seq);
}

static void swap(struct sim_link *l, uint32_t a, uint32_t b)
{
	struct sim_frame *f = l->frame[a];

	l->frame[a] = l->frame[b];
	l->frame[b] = f;
}

static void heap_push(struct sim_link *l)
{
	uint32_t i = l->used++;

	for (; i && before(l->frame[i], l->frame[(i - 1) / 2]); i = (i - 1) / 2)
		swap(l, i, (i - 1) / 2);
}

static struct sim_frame *heap_pop(struct sim_link *l)
{
	uint32_t i = 0;

	swap(l, 0, --l->used);
	for (;;) {
		uint32_t least = i;

		for (uint32_t c = 2 * i + 1; c <= 2 * i + 2 && c < l->used; c++)
			if (before(l->frame[c], l->frame[least]))
				least = c;
		if (least == i)
			return l->frame[l->used];
		swap(l, i, least);
		i = least;
	}
}

/* --- impairments ---------------------------------------------------------------------- */

static uint64_t random_of(
	const struct sim_link *l, uint64_t number, enum impair_kind kind, uint64_t n)
{
	return impair_random(&l->impair, number, kind) % n;
}

static void damage(struct sim_link *l, struct sim_frame *f, unsigned fate, uint64_t number)
{
	if (fate & LINK_MARK)
		l->count.marked += ecn_mark(f->bytes, f->len);
	if (fate & LINK_CORRUPT) {
		impair_flip(f->bytes, f->len, impair_random(&l->impair, number, IMPAIR_CORRUPT));
		l->count.corrupted++;
	}
	if (fate & LINK_TRUNCATE) {
		f->len = (uint16_t)random_of(l, number, IMPAIR_TRUNCATE, f->len);
		l->count.truncated++;
	}
}

/* @return how late the frame is: with a plan always the same. */
static uint64_t lateness(const struct sim_link *l, unsigned planned, unsigned fate, uint64_t number)
{
	uint64_t most = l->cfg.impair.reorder_ns;

	if (planned & LINK_REORDER)
		return most;
	return fate & LINK_REORDER ? 1 + random_of(l, number, IMPAIR_REORDER, most + 1) : 0;
}

static void put(
	struct sim_link *l, const uint8_t *frame, size_t len, unsigned planned, uint64_t number)
{
	struct sim_frame *f = l->frame[l->used];
	unsigned wire = l->named ? LINK_CORRUPT | LINK_TRUNCATE : 0; /* it crosses no wire */
	unsigned fate = (planned | impair_choose(&l->impair, number)) & ~wire;
	uint64_t late = lateness(l, planned, fate, number);

	f->due = l->idle_at + l->cfg.delay_ns + late;
	l->count.reordered += late != 0;
	f->seq = l->seq++;
	f->len = (uint16_t)len;
	f->source_qp = l->source_qp;
	f->named = l->named;
	memcpy(f->bytes, frame, len);
	damage(l, f, fate, number);
	heap_push(l);
}

/* --- the two ends --------------------------------------------------------------------- */

/* @return when the next frame starts to leave. */
static uint64_t start_at(struct sim_link *l, uint64_t now, unsigned fate, uint64_t number)
{
	uint64_t start = l->idle_at > now ? l->idle_at : now;

	if (fate & LINK_STALL) {
		start += random_of(l, number, IMPAIR_DELAY, l->cfg.impair.pause_ns + 1);
		l->count.paused++;
	}
	return start < l->resume_at ? l->resume_at : start;
}

void link_send(struct sim_link *l, const uint8_t *frame, size_t len, uint64_t now)
{
	const uint64_t overhead = 24; /* preamble, FCS and gap */
	unsigned planned = l->pick.fate ? l->pick.fate(l->pick.arg, frame, len) : LINK_PASS;
	unsigned copy = planned & LINK_DUPLICATE ? planned & LINK_REORDER : LINK_PASS;
	uint64_t number = l->index++;
	unsigned fate = planned | impair_choose(&l->impair, number);

	if (l->tap.see)
		l->tap.see(l->tap.arg, frame, len, now);
	l->count.frames++;
	if (l->cfg.queue_ns && l->idle_at > now + l->cfg.queue_ns) {
		l->count.lost++;
		return;
	}
	l->idle_at = start_at(l, now, fate, number);
	if (l->cfg.rate_bps)
		l->idle_at += (len + overhead) * 8 * 1000000000ull / l->cfg.rate_bps;
	if (fate & LINK_LOSE) {
		l->count.lost++;
		return;
	}
	put(l, frame, len, planned & ~copy, number);
	if (fate & LINK_DUPLICATE) {
		put(l, frame, len, copy, number | COPY);
		l->count.duplicated++;
	}
}

uint64_t link_due(const struct sim_link *l)
{
	return l->used ? l->frame[0]->due : SIM_NEVER;
}

const struct sim_frame *link_receive(struct sim_link *l, uint64_t now)
{
	if (link_due(l) > now)
		return NULL;
	l->count.delivered++;
	return heap_pop(l);
}
