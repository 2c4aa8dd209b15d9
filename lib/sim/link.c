/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "ecn.h"
#include "link.h"

#define MILLION 1000000u

void link_init(struct sim_link *l, struct sim_frame **frames, uint32_t room,
	const struct link_config *cfg, uint64_t seed)
{
	memset(l, 0, sizeof(*l));
	l->cfg = *cfg;
	l->random.state = seed | 1; /* not 0 */
	l->frame = frames;
	l->room = room;
}

void link_set_faults(struct sim_link *l, const struct link_faults *faults)
{
	l->cfg.faults = *faults;
	l->index = 0;
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

/* --- faults --------------------------------------------------------------------------- */

static bool happens(struct sim_link *l, uint32_t millionths)
{
	return millionths && random_below(&l->random, MILLION) < millionths;
}

static bool masked(struct sim_link *l)
{
	uint64_t i = l->index++;

	return i < 64 && (l->cfg.faults.loss_mask >> i & 1);
}

/* Decides the fate of the next frame, by plan and by chance. */
static unsigned fate_of(struct sim_link *l, const uint8_t *frame, size_t len)
{
	const struct link_faults *f = &l->cfg.faults;
	unsigned fate = l->pick.fate ? l->pick.fate(l->pick.arg, frame, len) : LINK_PASS;

	if (masked(l) || happens(l, f->loss))
		fate |= LINK_LOSE;
	return fate;
}

static void damage(struct sim_link *l, struct sim_frame *f, unsigned fate)
{
	if (happens(l, l->cfg.faults.mark))
		l->count.marked += ecn_mark(f->bytes, f->len);
	if ((fate & LINK_CORRUPT) || happens(l, l->cfg.faults.corrupt)) {
		uint64_t bit = random_below(&l->random, f->len * 8u);

		f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		l->count.corrupted++;
	}
	if ((fate & LINK_TRUNCATE) || happens(l, l->cfg.faults.truncate)) {
		f->len = (uint16_t)random_below(&l->random, f->len);
		l->count.truncated++;
	}
}

static void put(struct sim_link *l, const uint8_t *frame, size_t len, unsigned fate)
{
	struct sim_frame *f = l->frame[l->used];
	uint64_t reorder_ns = l->cfg.faults.reorder_ns;

	f->due = l->idle_at + l->cfg.delay_ns;
	if (fate & LINK_REORDER)
		f->due += reorder_ns;
	else if (happens(l, l->cfg.faults.reorder))
		f->due += 1 + random_below(&l->random, reorder_ns + 1);
	l->count.reordered += f->due != l->idle_at + l->cfg.delay_ns;
	f->seq = l->seq++;
	f->len = (uint16_t)len;
	f->source_qp = l->source_qp;
	memcpy(f->bytes, frame, len);
	damage(l, f, fate);
	heap_push(l);
}

/* --- the two ends --------------------------------------------------------------------- */

/* When the next frame starts to leave. */
static uint64_t start_at(struct sim_link *l, uint64_t now)
{
	uint64_t start = l->idle_at > now ? l->idle_at : now;

	if (happens(l, l->cfg.faults.pause)) {
		start += random_below(&l->random, l->cfg.faults.pause_ns + 1);
		l->count.paused++;
	}
	return start < l->resume_at ? l->resume_at : start;
}

void link_send(struct sim_link *l, const uint8_t *frame, size_t len, uint64_t now)
{
	const uint64_t overhead = 24; /* preamble, FCS and gap */
	unsigned fate = fate_of(l, frame, len);
	unsigned copy = fate & LINK_DUPLICATE ? fate & LINK_REORDER : LINK_PASS;

	if (l->tap.see)
		l->tap.see(l->tap.arg, frame, len, now);
	l->count.frames++;
	if (l->cfg.queue_ns && l->idle_at > now + l->cfg.queue_ns) {
		l->count.lost++;
		return;
	}
	l->idle_at = start_at(l, now);
	if (l->cfg.rate_bps)
		l->idle_at += (len + overhead) * 8 * 1000000000ull / l->cfg.rate_bps;
	if (fate & LINK_LOSE) {
		l->count.lost++;
		return;
	}
	put(l, frame, len, fate & ~copy);
	if ((fate & LINK_DUPLICATE) || happens(l, l->cfg.faults.duplicate)) {
		put(l, frame, len, copy);
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
