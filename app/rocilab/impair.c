/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair.h"
#include "bits.h"
#include "lab.h"
#include "opcode.h"
#include "switch.h"

static enum frame_kind kind_of(const struct sim_buffer *b)
{
	int code = switch_opcode(b->bytes, b->len);

	if (code == OPCODE_CNP)
		return FRAME_CNP;
	return switch_class_of(code) == CLASS_CONTROL ? FRAME_ACK : FRAME_DATA;
}

/* Draws a random number only if there is a chance. */
static bool happens(struct lab *l, double part)
{
	return part > 0 && random_part(random_next(&l->luck)) < part;
}

/* When the first of the held frames is due. All frames of a kind are held equally long. */
static void arm(struct lab_impair *i)
{
	uint64_t first = SIM_NEVER;

	for (unsigned k = 0; k < FRAME_KINDS; k++)
		if (i->held[k].head && i->held[k].head->due < first)
			first = i->held[k].head->due;
	engine_at(&i->lab->engine, &i->due, first);
}

static void release(struct sim_event *ev, uint64_t now)
{
	struct lab_impair *i = container_of(ev, struct lab_impair, due);

	for (unsigned k = 0; k < FRAME_KINDS; k++)
		while (i->held[k].head && i->held[k].head->due <= now)
			i->to->receive(i->to, fifo_pop(&i->held[k]), now);
	arm(i);
}

static void receive(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	struct lab_impair *i = container_of(to, struct lab_impair, in);
	enum frame_kind kind = kind_of(b);
	const struct impair_line *f = &i->lab->s->impair[kind];
	struct sim_buffer *copy;

	if (happens(i->lab, f->loss)) {
		pool_put(&i->lab->pool, b);
		return;
	}
	copy = happens(i->lab, f->duplicate) ? pool_copy(&i->lab->pool, b) : NULL;
	if (copy)
		i->to->receive(i->to, copy, now);
	if (!f->delay || !happens(i->lab, f->late)) {
		i->to->receive(i->to, b, now);
		return;
	}
	b->due = now + f->delay;
	fifo_push(&i->held[kind], b);
	arm(i);
}

bool impair_any(const struct scenario *s)
{
	for (unsigned k = 0; k < FRAME_KINDS; k++)
		if (s->impair[k].loss > 0 || s->impair[k].duplicate > 0 || s->impair[k].delay)
			return true;
	return false;
}

struct sim_sink *impair_plug(struct lab_impair *i, struct lab *lab, struct sim_sink *to)
{
	*i = (struct lab_impair){.in.receive = receive, .to = to, .lab = lab};
	engine_event(&i->due, release);
	return &i->in;
}
