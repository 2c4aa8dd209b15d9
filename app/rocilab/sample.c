/* SPDX-License-Identifier: BSD-3-Clause */
/* The run: from event to event of the scenario, sampling flows and ports in between. */
#include <time.h>
#include "host.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "meter.h"
#include "metric.h"
#include "notify.h"
#include "scenario.h"
#include "switch.h"

static void count_ports(const struct lab *l, struct lab_counts *n)
{
	for (unsigned i = 0; i < l->ports; i++) {
		const struct switch_port *p = &l->port[i];

		n->marked += p->count.marked;
		n->dropped += p->count.dropped;
		n->pauses += p->ingress.pauses;
		n->paused_ns += p->ingress.paused_ns;
		n->paused_ns += p->ingress.paused ? l->engine.now - p->ingress.since : 0;
	}
}

static struct lab_counts counts(struct lab *l)
{
	struct lab_counts n = {0};

	for (unsigned i = 0; i < l->hosts; i++) {
		const struct core_counters *c = &l->host[i].host->core.count;

		n.cnps += c->np_cnp_sent;
		n.handled += c->rp_cnp_handled + c->rp_fast_cnp_handled;
		n.retransmits += c->retransmits;
		n.timeouts += c->local_ack_timeout_err;
	}
	count_ports(l, &n);
	for (unsigned i = 0; l->notify && i < l->s->net.switches; i++)
		n.cnps += l->notify[i].sent;
	for (unsigned i = 0; i < l->flows; i++) {
		flow_look(&l->flow[i]);
		n.packets += l->flow[i].packets;
	}
	return n;
}

static void measure_begin(struct lab *l)
{
	l->begin = counts(l);
	for (unsigned i = 0; i < l->flows; i++)
		l->flow[i].sampled = l->flow[i].before = l->flow[i].packets;
	for (unsigned i = 0; i < l->ports; i++) {
		meter_begin(
			&l->port[i].meter, l->port[i].queue[CLASS_DATA].aqm.bytes, l->engine.now);
		l->passed[i] = l->port[i].out.bytes;
	}
}

static void measure_end(struct lab *l)
{
	l->end = counts(l);
	for (unsigned i = 0; i < l->ports; i++)
		meter_change(
			&l->port[i].meter, l->port[i].queue[CLASS_DATA].aqm.bytes, l->engine.now);
}

static void sample(struct lab *l)
{
	float *share = &l->share[(size_t)l->samples * l->flows];
	float *util = &l->util[(size_t)l->samples * l->ports];

	for (unsigned i = 0; i < l->flows; i++) {
		struct lab_flow *f = &l->flow[i];

		flow_look(f);
		share[i] = (float)(f->packets - f->sampled);
		f->sampled = f->packets;
	}
	for (unsigned i = 0; i < l->ports; i++) {
		uint64_t bytes = l->port[i].out.bytes;

		util[i] = (float)((double)(bytes - l->passed[i]) * 8 /
				  ((double)l->port[i].out.cfg.rate_bps * LAB_SAMPLE / 1e9));
		l->passed[i] = bytes;
	}
	l->samples++;
}

/* --- what the scenario says ------------------------------------------------------------- */

static void happen(struct lab *l, const struct event_line *e)
{
	for (uint32_t i = e->first; i <= e->last; i++) {
		if (e->kind == EVENT_STOP)
			flow_stop(&l->flow[i], l->engine.now);
		else
			flow_cnp(&l->flow[i], l->engine.now);
	}
}

/* Everything due at time @p at: events first, then samples. */
static void pause_at(struct lab *l, uint64_t at)
{
	const struct scenario *s = l->s;

	for (unsigned i = 0; i < s->events; i++)
		if (s->event[i].at == at)
			happen(l, &s->event[i]);
	for (unsigned i = 0; i < s->expects; i++)
		if (s->expect[i].metric->moment && s->expect[i].at == at)
			l->looked[i] = s->expect[i].metric->value(l, &s->expect[i]);
	if (at == s->from)
		measure_begin(l);
	else if (at > s->from && (at - s->from) % LAB_SAMPLE == 0)
		sample(l);
	if (at == s->to)
		measure_end(l);
}

static void earlier(uint64_t *next, uint64_t at, uint64_t done)
{
	if (at >= done && at < *next)
		*next = at;
}

/* @return when to pause next, at @p done or later. */
static uint64_t next_pause(const struct scenario *s, uint64_t done)
{
	uint64_t next = s->to;

	for (unsigned i = 0; i < s->events; i++)
		earlier(&next, s->event[i].at, done);
	for (unsigned i = 0; i < s->expects; i++)
		if (s->expect[i].metric->moment)
			earlier(&next, s->expect[i].at, done);
	if (done <= s->from)
		earlier(&next, s->from, done);
	else
		earlier(&next,
			s->from + (done - s->from + LAB_SAMPLE - 1) / LAB_SAMPLE * LAB_SAMPLE,
			done);
	return next;
}

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void sample_run(struct lab *l)
{
	double cpu = cpu_now();
	uint64_t done = 0;

	while (done <= l->s->to) {
		uint64_t at = next_pause(l->s, done);

		engine_run(&l->engine, LAB_START + at);
		pause_at(l, at);
		if (l->progress)
			l->progress(l, at);
		done = at + 1;
	}
	l->cpu_s = cpu_now() - cpu;
}
