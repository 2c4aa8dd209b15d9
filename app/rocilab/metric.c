/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "metric.h"
#include "bits.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "meter.h"
#include "scenario.h"
#include "switch.h"

static double seconds(const struct lab *l)
{
	return (double)(l->s->to - l->s->from) / 1e9;
}

/* --- queues and ports ------------------------------------------------------------------- */

static double queue_mean(const struct lab *l, const struct expectation *e)
{
	return meter_mean(&l->port[e->index].meter);
}

static double queue_p50(const struct lab *l, const struct expectation *e)
{
	return meter_quantile(&l->port[e->index].meter, 0.5);
}

static double queue_p95(const struct lab *l, const struct expectation *e)
{
	return meter_quantile(&l->port[e->index].meter, 0.95);
}

static double queue_p99(const struct lab *l, const struct expectation *e)
{
	return meter_quantile(&l->port[e->index].meter, 0.99);
}

static double queue_max(const struct lab *l, const struct expectation *e)
{
	return (double)l->port[e->index].meter.most;
}

static double util_of(const struct lab *l, uint32_t sample, uint32_t port)
{
	return (double)l->util[(size_t)sample * l->ports + port];
}

static double util_mean(const struct lab *l, const struct expectation *e)
{
	double sum = 0;

	for (uint32_t i = 0; i < l->samples; i++)
		sum += util_of(l, i, e->index);
	return l->samples ? sum / l->samples : 0;
}

/* Least squares over the samples before the port is full. */
static double util_slope(const struct lab *l, const struct expectation *e)
{
	const double full = 0.95;
	double n = 0, x = 0, y = 0, xx = 0, xy = 0;

	for (uint32_t i = 0; i < l->samples && util_of(l, i, e->index) < full; i++) {
		double t = i * (LAB_SAMPLE / 1e9), u = util_of(l, i, e->index);

		n++;
		x += t;
		y += u;
		xx += t * t;
		xy += t * u;
	}
	return n > 1 ? (n * xy - x * y) / (n * xx - x * x) : 0;
}

/* --- flows ------------------------------------------------------------------------------ */

static double flow_rate(const struct lab *l, const struct lab_flow *f)
{
	return (double)(f->packets - f->before) * lab_payload(l, f) * 8 / seconds(l);
}

static double goodput(const struct lab *l, const struct expectation *e)
{
	double sum = 0;

	for (unsigned i = 0; i < l->flows; i++)
		if (e->index == METRIC_ALL || e->index == i)
			sum += flow_rate(l, &l->flow[i]);
	return sum;
}

/* The cables of all receivers, each once. */
static double receivers_rate(const struct lab *l)
{
	double sum = 0;

	for (uint32_t h = 0; h < l->hosts; h++)
		if (l->host[h].sinks)
			sum += (double)lab_rate(l, h);
	return sum;
}

/* Relative to the payload of full packets without pauses, on the cables of the receivers. */
static double goodput_share(const struct lab *l, const struct expectation *e)
{
	bool all = e->index == METRIC_ALL;
	const struct lab_flow *f = &l->flow[all ? 0 : e->index];
	unsigned headers = lab_headers(l);
	double full = lab_payload(l, f);
	double rate = all ? receivers_rate(l) : (double)lab_rate(l, (uint32_t)(f->to - l->host));

	return goodput(l, e) / (rate * full / (full + headers));
}

static double rate(const struct lab *l, const struct expectation *e)
{
	return flow_view(&l->flow[e->index], l->engine.now).rate;
}

static double target(const struct lab *l, const struct expectation *e)
{
	return flow_view(&l->flow[e->index], l->engine.now).target;
}

static double alpha(const struct lab *l, const struct expectation *e)
{
	return flow_view(&l->flow[e->index], l->engine.now).alpha;
}

/* Jain's index of @p n values with @p sum and sum of squares @p squares. */
static double jain_of(double sum, double squares, unsigned n)
{
	return squares > 0 ? sum * sum / (squares * n) : 1;
}

/* In each sample; the mean of all. */
static double jain_mean(const struct lab *l, const struct expectation *e)
{
	double total = 0;

	for (uint32_t i = 0; i < l->samples; i++) {
		double sum = 0, squares = 0;

		for (unsigned k = 0; k < l->flows; k++) {
			double v = (double)l->share[(size_t)i * l->flows + k];

			sum += v;
			squares += v * v;
		}
		total += jain_of(sum, squares, l->flows);
	}
	return l->samples ? total / l->samples : 1;
}

static double jain_all(const struct lab *l, const struct expectation *e)
{
	double sum = 0, squares = 0;

	for (unsigned k = 0; k < l->flows; k++) {
		double v = flow_rate(l, &l->flow[k]);

		sum += v;
		squares += v * v;
	}
	return jain_of(sum, squares, l->flows);
}

/* The slowest flow's rate divided by the fastest's, over the whole measurement. */
static double min_max(const struct lab *l, const struct expectation *e)
{
	double least = HUGE_VAL, most = 0;

	for (unsigned i = 0; i < l->flows; i++) {
		least = fmin(least, flow_rate(l, &l->flow[i]));
		most = fmax(most, flow_rate(l, &l->flow[i]));
	}
	return most > 0 ? least / most : 0;
}

static double cnps(const struct lab *l, const struct expectation *e)
{
	return (double)(l->end.cnps - l->begin.cnps) / l->flows / seconds(l);
}

static double drops(const struct lab *l, const struct expectation *e)
{
	return (double)(l->end.dropped - l->begin.dropped);
}

static double pauses(const struct lab *l, const struct expectation *e)
{
	return (double)(l->end.pauses - l->begin.pauses);
}

static double paused(const struct lab *l, const struct expectation *e)
{
	return (double)(l->end.paused_ns - l->begin.paused_ns);
}

static double retransmits(const struct lab *l, const struct expectation *e)
{
	return (double)(l->end.retransmits - l->begin.retransmits);
}

static double failed(const struct lab *l, const struct expectation *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->flows; i++)
		n += l->flow[i].failed != 0;
	return n;
}

/* When the last flow with a limited number of messages had completed all; never: infinite. */
static double done(const struct lab *l, const struct expectation *e)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < l->flows; i++) {
		const struct lab_flow *f = &l->flow[i];

		if (f->line->count && !f->done_at)
			return HUGE_VAL;
		if (f->done_at > last)
			last = f->done_at;
	}
	return last ? (double)(last - LAB_START) : HUGE_VAL;
}

static int rising(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double slowdown_at(const struct lab *l, double part)
{
	if (!l->slowdowns)
		return NAN;
	qsort(l->slowdown, l->slowdowns, sizeof(*l->slowdown), rising);
	return (double)l->slowdown[(size_t)(part * (double)(l->slowdowns - 1))];
}

static double slowdown_p50(const struct lab *l, const struct expectation *e)
{
	return slowdown_at(l, 0.5);
}

static double slowdown_p95(const struct lab *l, const struct expectation *e)
{
	return slowdown_at(l, 0.95);
}

static double slowdown_p99(const struct lab *l, const struct expectation *e)
{
	return slowdown_at(l, 0.99);
}

static double messages(const struct lab *l, const struct expectation *e)
{
	return (double)l->slowdowns;
}

/* --- the table -------------------------------------------------------------------------- */

const struct metric metrics[] = {
	{"queue.mean", OF_PORT, UNIT_BYTES, false, "bytes queued at the port, mean over time",
		queue_mean},
	{"queue.p50", OF_PORT, UNIT_BYTES, false, "median over time", queue_p50},
	{"queue.p95", OF_PORT, UNIT_BYTES, false, "95th percentile over time", queue_p95},
	{"queue.p99", OF_PORT, UNIT_BYTES, false, "99th percentile over time", queue_p99},
	{"queue.max", OF_PORT, UNIT_BYTES, false, "maximum", queue_max},
	{"util.mean", OF_PORT, UNIT_PART, false, "utilization of the port", util_mean},
	{"util.slope", OF_PORT, UNIT_SLOPE, false, "how fast it rises, up to 95 %", util_slope},
	{"goodput", OF_ANY_FLOW, UNIT_RATE, false, "payload received, of all flows or one",
		goodput},
	{"goodput.share", OF_ANY_FLOW, UNIT_PART, false,
		"the same, relative to full packets without pauses to all receivers, or to the "
		"flow's",
		goodput_share},
	{"rate", OF_FLOW, UNIT_RATE, true, "the rate that the algorithm allows, on the wire", rate},
	{"rate.target", OF_FLOW, UNIT_RATE, true, "the rate to which it returns", target},
	{"alpha", OF_FLOW, UNIT_NONE, true, "DCQCN's estimate of congestion", alpha},
	{"jain", OF_ALL, UNIT_NONE, false, "Jain's index of the flows' rates over 1 ms, mean",
		jain_mean},
	{"jain.all", OF_ALL, UNIT_NONE, false, "the same of their rates over the whole measurement",
		jain_all},
	{"minmax", OF_ALL, UNIT_NONE, false,
		"rate of the slowest flow divided by that of the fastest", min_max},
	{"cnps", OF_ALL, UNIT_NONE, false, "CNPs per flow and second", cnps},
	{"drops", OF_ALL, UNIT_NONE, false, "frames that did not fit into a queue", drops},
	{"pauses", OF_ALL, UNIT_NONE, false, "pauses that switches requested (PFC)", pauses},
	{"paused", OF_ALL, UNIT_TIME, false, "total duration of pauses, of all cables", paused},
	{"retransmits", OF_ALL, UNIT_NONE, false, "packets sent again", retransmits},
	{"messages", OF_ALL, UNIT_NONE, false, "messages that began and ended in the measurement",
		messages},
	{"slowdown.p50", OF_ALL, UNIT_NONE, false,
		"time that they took, relative to an empty network, median", slowdown_p50},
	{"slowdown.p95", OF_ALL, UNIT_NONE, false, "the same, 95th percentile", slowdown_p95},
	{"slowdown.p99", OF_ALL, UNIT_NONE, false, "the same, 99th percentile", slowdown_p99},
	{"failed", OF_ALL, UNIT_NONE, false, "flows with a failed message", failed},
	{"done", OF_ALL, UNIT_TIME, false, "when the last message was complete", done},
};
const unsigned metric_count = ARRAY_SIZE(metrics);

const struct metric *metric_find(const char *name)
{
	for (unsigned i = 0; i < metric_count; i++)
		if (!strcmp(metrics[i].name, name))
			return &metrics[i];
	return NULL;
}

bool metric_met(const struct expectation *e, double value)
{
	switch (e->sign) {
	case EXPECT_LEAST:
		return value >= e->value;
	case EXPECT_MOST:
		return value <= e->value;
	default:
		return fabs(value - e->value) <= e->tolerance;
	}
}
