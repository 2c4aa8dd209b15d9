/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "wheel.h"

#define LEVEL_BITS 8
#define SLOT_MASK  (WHEEL_SLOTS - 1u)
#define TOP_SHIFT  (LEVEL_BITS * (WHEEL_LEVELS - 1))
/* Ticks that can be distinguished: one slot less than a turn of the top level, because a timer must
 * never go into the current slot of the top level. */
#define HORIZON ((uint64_t)SLOT_MASK << TOP_SHIFT)

static void slot_mark(struct wheel *w, unsigned level, unsigned idx)
{
	w->occupied[level][idx / 64] |= 1ull << (idx % 64);
}

static void slot_unmark(struct wheel *w, unsigned level, unsigned idx)
{
	w->occupied[level][idx / 64] &= ~(1ull << (idx % 64));
}

void wheel_init(struct wheel *w, unsigned shift, uint64_t now)
{
	memset(w, 0, sizeof(*w));
	w->shift = shift;
	w->tick = now >> shift;
	w->soonest = UINT64_MAX;
	list_init(&w->expired);
	list_init(&w->moving);
	for (unsigned l = 0; l < WHEEL_LEVELS; l++)
		for (unsigned i = 0; i < WHEEL_SLOTS; i++)
			list_init(&w->slots[l][i]);
}

void wheel_timer_init(struct wheel_timer *t)
{
	list_init(&t->node);
	t->due = 0;
	t->slot = 0;
}

bool wheel_armed(const struct wheel_timer *t)
{
	return !list_empty(&t->node);
}

/* The level is that of the highest bit group in which `due` differs from the wheel's tick, so a
 * slot of level l never holds timers of two different turns of that level. A timer beyond the
 * horizon waits there and is placed again when the wheel reaches it. */
static void wheel_place(struct wheel *w, struct wheel_timer *t)
{
	uint64_t due = t->due;
	unsigned level = 0;
	unsigned idx;

	if (due <= w->tick) {
		w->soonest = 0;
		list_push(&w->expired, &t->node);
		return;
	}
	if (due - w->tick > HORIZON)
		due = w->tick + HORIZON;
	while (level < WHEEL_LEVELS - 1 && (due ^ w->tick) >> (LEVEL_BITS * (level + 1)))
		level++;
	due = due >> (LEVEL_BITS * level) << (LEVEL_BITS * level);
	if (due < w->soonest)
		w->soonest = due;
	idx = (due >> (LEVEL_BITS * level)) & SLOT_MASK;
	t->slot = (uint16_t)(level * WHEEL_SLOTS + idx);
	list_push(&w->slots[level][idx], &t->node);
	slot_mark(w, level, idx);
}

void wheel_cancel(struct wheel *w, struct wheel_timer *t)
{
	unsigned level = t->slot / WHEEL_SLOTS;
	unsigned idx = t->slot % WHEEL_SLOTS;

	if (!wheel_armed(t))
		return;
	list_del(&t->node);
	if (list_empty(&w->slots[level][idx]))
		slot_unmark(w, level, idx);
}

void wheel_arm(struct wheel *w, struct wheel_timer *t, uint64_t when)
{
	wheel_cancel(w, t);
	/* Rounds up, never early; without an addition first, which would wrap for WHEEL_NEVER. */
	t->due = (when >> w->shift) + !!(when & ((1u << w->shift) - 1));
	wheel_place(w, t);
}

/* First occupied slot of a level at or after `from`, or WHEEL_SLOTS. */
static unsigned slot_next(const struct wheel *w, unsigned level, unsigned from)
{
	for (unsigned word = from / 64; word < WHEEL_SLOTS / 64; word++) {
		uint64_t bits = w->occupied[level][word];

		if (word == from / 64)
			bits &= ~0ull << (from % 64);
		if (bits)
			return word * 64 + (unsigned)__builtin_ctzll(bits);
	}
	return WHEEL_SLOTS;
}

/* The tick at which the next occupied slot begins, over all levels. Slots of lower levels are
 * within the current slot of the higher ones, so the lowest occupied level decides. */
static uint64_t wheel_next_tick(const struct wheel *w)
{
	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		unsigned shift = LEVEL_BITS * level;
		unsigned here = (w->tick >> shift) & SLOT_MASK;
		unsigned idx = slot_next(w, level, here);
		uint64_t turn = w->tick >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS);

		if (idx == WHEEL_SLOTS && level == WHEEL_LEVELS - 1) {
			/* The top level has none above it: earlier slots are in its next turn.
			 */
			idx = slot_next(w, level, 0);
			turn += 1ull << (shift + LEVEL_BITS);
		}
		if (idx < WHEEL_SLOTS)
			return turn | (uint64_t)idx << shift;
	}
	return UINT64_MAX;
}

/* Takes the timers out of all slots that begin at the new tick, to be placed again. All are taken
 * out before the first is placed, because it may return to the same slot. */
static void wheel_cascade(struct wheel *w)
{
	for (int level = WHEEL_LEVELS - 1; level >= 0; level--) {
		unsigned idx = (w->tick >> (LEVEL_BITS * level)) & SLOT_MASK;

		list_splice(&w->moving, &w->slots[level][idx]);
		slot_unmark(w, (unsigned)level, idx);
	}
}

/* @return whether no timer is left to move. */
static bool wheel_move(struct wheel *w, unsigned *moves)
{
	struct list *n;

	for (; *moves && (n = list_pop(&w->moving)); --*moves)
		wheel_place(w, container_of(n, struct wheel_timer, node));
	return list_empty(&w->moving);
}

struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now, unsigned *moves)
{
	uint64_t target = now >> w->shift;
	struct list *n;

	if (wheel_pass(w, now))
		return NULL;
	while (wheel_move(w, moves) && list_empty(&w->expired) && w->tick < target) {
		uint64_t next = wheel_next_tick(w);

		w->tick = next < target ? next : target;
		wheel_cascade(w);
	}
	n = list_pop(&w->expired);
	if (!n && list_empty(&w->moving))
		w->soonest = wheel_next_tick(w);
	return n ? container_of(n, struct wheel_timer, node) : NULL;
}

uint64_t wheel_deadline(const struct wheel *w)
{
	uint64_t tick;

	if (!list_empty(&w->expired) || !list_empty(&w->moving))
		return w->tick << w->shift;
	tick = wheel_next_tick(w);
	return tick > WHEEL_NEVER >> w->shift ? WHEEL_NEVER : tick << w->shift;
}
