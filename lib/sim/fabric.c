/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "fabric.h"
#include "engine.h"
#include "host.h"
#include "link.h"

void fabric_init(struct fabric *f, uint64_t now)
{
	memset(f, 0, sizeof(*f));
	f->now = now;
}

void fabric_add(struct fabric *f, struct sim_host *h)
{
	f->host[f->hosts++] = h;
}

void fabric_plug(struct fabric *f, struct sim_link *l, struct sim_host *from, unsigned from_port,
	struct sim_host *to, unsigned to_port)
{
	f->plug[f->plugs++] = (struct fabric_plug){l, to, to_port};
	if (from == to)
		from->loop = l;
	else
		from->out[from_port] = l;
}

/* A paused host does nothing. */
static uint64_t not_before(uint64_t due, const struct sim_host *h)
{
	return due < h->paused_until ? h->paused_until : due;
}

uint64_t fabric_next(const struct fabric *f)
{
	uint64_t next = SIM_NEVER;

	for (unsigned i = 0; i < f->plugs; i++) {
		uint64_t due = not_before(link_due(f->plug[i].link), f->plug[i].to);

		if (due < next)
			next = due;
	}
	for (unsigned i = 0; i < f->hosts; i++) {
		uint64_t due = not_before(host_deadline(f->host[i], f->now), f->host[i]);

		if (due < next)
			next = due;
	}
	return next < f->now ? f->now : next;
}

bool fabric_step(struct fabric *f, uint64_t until)
{
	uint64_t next = fabric_next(f);

	if (next > until) {
		f->now = until;
		return false;
	}
	f->now = next;
	for (unsigned i = 0; i < f->plugs; i++)
		if (f->plug[i].to->paused_until <= f->now)
			host_receive(f->plug[i].to, f->plug[i].link, f->plug[i].port, f->now);
	for (unsigned i = 0; i < f->hosts; i++)
		if (f->host[i]->paused_until <= f->now)
			host_turn(f->host[i], f->now);
	return true;
}
