/* SPDX-License-Identifier: BSD-3-Clause */
/* run.json: the inputs and results of a run. */
#include <errno.h>
#include <jansson.h>
#include "cc.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "metric.h"
#include "network.h"
#include "out.h"
#include "report.h"
#include "row.h"
#include "scenario.h"
#include "switch.h"

static json_t *whole_numbers(const uint64_t value[], unsigned n)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(all, json_integer((json_int_t)value[i]));
	return all;
}

/* --- parameters --------------------------------------------------------------------------- */

static json_t *impair_line(const struct impair_line *i)
{
	struct row r;

	row_begin(&r);
	put_real(&r, "loss", i->loss);
	put_real(&r, "duplicate", i->duplicate);
	put_real(&r, "late", i->late);
	put_int(&r, "delay_ns", (int64_t)i->delay);
	return row_end(&r);
}

static json_t *impair_of(const struct scenario *s)
{
	struct row r;

	row_begin(&r);
	put_json(&r, "cnp", impair_line(&s->impair[FRAME_CNP]));
	put_json(&r, "ack", impair_line(&s->impair[FRAME_ACK]));
	put_json(&r, "data", impair_line(&s->impair[FRAME_DATA]));
	return row_end(&r);
}

static json_t *cc_of(const struct cc_config *cc)
{
	struct row r;

	row_begin(&r);
	put_text(&r, "algorithm", cc->ops->name);
	put_text(&r, "profile", cc->ops->profiles[cc->profile]);
	for (unsigned i = 0; i < cc->ops->nparams; i++)
		put_real(&r, cc->ops->params[i].name, cc->value[i]);
	return row_end(&r);
}

static json_t *switch_of(const struct scenario *s)
{
	struct row r;

	row_begin(&r);
	put_text(&r, "mark", s->aqm.ingress ? "ingress" : "egress");
	put_int(&r, "kmin", (int64_t)s->aqm.kmin);
	put_int(&r, "kmax", (int64_t)s->aqm.kmax);
	put_real(&r, "pmax", s->aqm.pmax);
	put_int(&r, "buffer", (int64_t)s->aqm.limit);
	put_int(&r, "shared", (int64_t)s->memory.size);
	put_real(&r, "alpha", s->memory.alpha);
	put_int(&r, "xoff", (int64_t)s->memory.pfc.xoff);
	put_int(&r, "xon", (int64_t)s->memory.pfc.xon);
	put_int(&r, "headroom", (int64_t)s->memory.pfc.headroom);
	return row_end(&r);
}

static json_t *host_of(const struct scenario *s)
{
	struct row r;

	row_begin(&r);
	put_int(&r, "mtu", (int64_t)s->mtu);
	put_int(&r, "window", (int64_t)s->window);
	put_int(&r, "timeout", (int64_t)s->timeout);
	put_int(&r, "retry", (int64_t)s->retries);
	put_int(&r, "burst", (int64_t)s->quantum);
	put_int(&r, "ip", s->ip6 ? 6 : 4);
	return row_end(&r);
}

/* [one end, the other, bit/s, ns] of each. */
static json_t *cables_of(const struct network *n)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < n->links; i++) {
		const struct net_link *k = &n->link[i];

		json_array_append_new(
			all, whole_numbers((const uint64_t[]){k->a, k->b, k->rate, k->delay}, 4));
	}
	return all;
}

static json_t *parameters(const struct scenario *s)
{
	struct row r;

	row_begin(&r);
	put_int(&r, "hosts", s->net.hosts);
	put_int(&r, "switches", s->net.switches);
	put_json(&r, "cables", cables_of(&s->net));
	put_json(&r, "switch", switch_of(s));
	put_json(&r, "host", host_of(s));
	put_json(&r, "cc", s->control ? cc_of(&s->cc) : json_null());
	put_json(&r, "impair", impair_of(s));
	put_json(&r, "measure_ns", whole_numbers((const uint64_t[]){s->from, s->to}, 2));
	return row_end(&r);
}

/* --- results ------------------------------------------------------------------------------ */

static void put_metrics(struct row *r, const struct lab *l, enum metric_of of, uint32_t index)
{
	for (unsigned i = 0; i < metric_count; i++) {
		const struct metric *m = &metrics[i];
		const struct expectation e = {.metric = m, .index = index};

		if (m->of == of || (of == OF_ALL && m->of == OF_ANY_FLOW))
			put_real(r, m->name, m->value(l, &e));
	}
}

static json_t *results_of(const struct lab *l)
{
	struct row r;

	row_begin(&r);
	put_metrics(&r, l, OF_ALL, METRIC_ALL);
	return row_end(&r);
}

/* Where a port leads. */
static json_t *peer_of(const struct lab *l, uint32_t sw, uint32_t port)
{
	const struct network *n = &l->s->net;
	uint32_t peer = net_peer(n, sw, port);

	return peer < n->hosts ? json_sprintf("host %u", peer)
			       : json_sprintf("sw%u", peer - n->hosts);
}

/* Port @p index of switch @p sw. */
static json_t *port_of(const struct lab *l, uint32_t sw, uint32_t index)
{
	const struct switch_port *p = &l->port[l->first[sw] + index];
	struct row r;

	row_begin(&r);
	put_metrics(&r, l, OF_PORT, l->first[sw] + index);
	put_json(&r, "port", json_sprintf("sw%u.%u", sw, index));
	put_json(&r, "to", peer_of(l, sw, index));
	put_int(&r, "marked", (int64_t)p->count.marked);
	put_int(&r, "dropped", (int64_t)p->count.dropped);
	put_int(&r, "pauses", (int64_t)p->ingress.pauses);
	return row_end(&r);
}

static json_t *ports_of(const struct lab *l)
{
	json_t *all = json_array();

	for (uint32_t sw = 0; sw < l->s->net.switches; sw++)
		for (uint32_t i = 0; i < l->first[sw + 1] - l->first[sw]; i++)
			if (l->port[l->first[sw] + i].count.frames)
				json_array_append_new(all, port_of(l, sw, i));
	return all;
}

static json_t *flow_of(const struct lab *l, unsigned i)
{
	const struct lab_flow *f = &l->flow[i];
	const struct expectation e = {.metric = metric_find("goodput"), .index = i};
	struct row r;

	row_begin(&r);
	put_int(&r, "flow", i);
	put_int(&r, "from", f->from - l->host);
	put_int(&r, "to", f->to - l->host);
	put_int(&r, "size", (int64_t)f->line->size);
	put_int(&r, "messages", (int64_t)f->messages);
	put_int(&r, "failed", (int64_t)f->failed);
	put_real(&r, "goodput", e.metric->value(l, &e));
	return row_end(&r);
}

static json_t *flows_of(const struct lab *l)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < l->flows; i++)
		json_array_append_new(all, flow_of(l, i));
	return all;
}

static json_t *expectation_of(const struct lab *l, const struct expectation *e)
{
	double got = report_value(l, e);
	char shown[32];
	struct row r;

	row_begin(&r);
	put_text(&r, "text", e->text);
	put_bool(&r, "met", metric_met(e, got));
	put_real(&r, "got", got);
	put_text(&r, "shown", text_of(got, e->metric->unit, shown, sizeof(shown)));
	return row_end(&r);
}

static json_t *expectations_of(const struct lab *l)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < l->s->expects; i++)
		json_array_append_new(all, expectation_of(l, &l->s->expect[i]));
	return all;
}

static json_t *run_of(const struct lab *l)
{
	struct row r;

	row_begin(&r);
	put_text(&r, "rocilab", ROCINANTE_VERSION);
	put_text(&r, "scenario", l->s->name);
	put_text(&r, "title", l->s->title);
	put_int(&r, "seed", (int64_t)l->s->seed);
	put_json(&r, "parameters", parameters(l->s));
	put_json(&r, "results", results_of(l));
	put_json(&r, "ports", ports_of(l));
	put_json(&r, "flows", flows_of(l));
	put_json(&r, "expectations", expectations_of(l));
	return row_end(&r);
}

int out_json(const struct lab *l, const char *folder)
{
	json_t *o = run_of(l);
	char path[OUT_PATH];
	int bad;

	if (!o)
		return -ENOMEM;
	bad = json_dump_file(
		o, out_path(path, folder, "run.json"), JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(o);
	return bad ? -EIO : 0;
}
