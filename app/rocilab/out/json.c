/* SPDX-License-Identifier: BSD-3-Clause */
/* run.json: the inputs and results of a run. */
#include <errno.h>
#include <math.h>
#include <jansson.h>
#include "cc.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "metric.h"
#include "network.h"
#include "out.h"
#include "report.h"
#include "scenario.h"
#include "switch.h"

/* A value that is not finite is none. */
static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *whole(uint64_t v)
{
	return json_integer((json_int_t)v);
}

/* --- parameters --------------------------------------------------------------------------- */

static json_t *impair_of(const struct scenario *s)
{
	static const char *const name[FRAME_KINDS] = {
		[FRAME_CNP] = "cnp", [FRAME_ACK] = "ack", [FRAME_DATA] = "data"};
	json_t *o = json_object();

	for (unsigned i = 0; i < FRAME_KINDS; i++) {
		const struct impair_line *f = &s->impair[i];

		json_object_set_new(o, name[i],
			json_pack("{s:f, s:f, s:f, s:I}", "loss", f->loss, "duplicate",
				f->duplicate, "late", f->late, "delay_ns", (json_int_t)f->delay));
	}
	return o;
}

static json_t *cc_of(const struct cc_config *cc)
{
	json_t *o = json_pack("{s:s, s:s}", "algorithm", cc->ops->name, "profile",
		cc->ops->profiles[cc->profile]);

	for (unsigned i = 0; i < cc->ops->nparams; i++)
		json_object_set_new(o, cc->ops->params[i].name, number(cc->value[i]));
	return o;
}

static json_t *switch_of(const struct scenario *s)
{
	return json_pack("{s:s, s:I, s:I, s:f, s:I, s:I, s:f, s:I, s:I, s:I}", "mark",
		s->aqm.ingress ? "ingress" : "egress", "kmin", (json_int_t)s->aqm.kmin, "kmax",
		(json_int_t)s->aqm.kmax, "pmax", s->aqm.pmax, "buffer", (json_int_t)s->aqm.limit,
		"shared", (json_int_t)s->memory.size, "alpha", s->memory.alpha, "xoff",
		(json_int_t)s->memory.pfc.xoff, "xon", (json_int_t)s->memory.pfc.xon, "headroom",
		(json_int_t)s->memory.pfc.headroom);
}

static json_t *host_of(const struct scenario *s)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i}", "mtu", (json_int_t)s->mtu, "window",
		(json_int_t)s->window, "timeout", (json_int_t)s->timeout, "retry",
		(json_int_t)s->retries, "burst", (json_int_t)s->quantum, "ip", s->ip6 ? 6 : 4);
}

static json_t *cables_of(const struct network *n)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < n->links; i++) {
		const struct net_link *k = &n->link[i];

		json_array_append_new(all, json_pack("[i, i, I, I]", (int)k->a, (int)k->b,
						   (json_int_t)k->rate, (json_int_t)k->delay));
	}
	return all;
}

static json_t *parameters(const struct scenario *s)
{
	json_t *o = json_pack(
		"{s:i, s:i}", "hosts", (int)s->net.hosts, "switches", (int)s->net.switches);

	json_object_set_new(o, "cables", cables_of(&s->net));
	json_object_set_new(o, "switch", switch_of(s));
	json_object_set_new(o, "host", host_of(s));
	json_object_set_new(o, "cc", s->control ? cc_of(&s->cc) : json_null());
	json_object_set_new(o, "impair", impair_of(s));
	json_object_set_new(
		o, "measure_ns", json_pack("[I, I]", (json_int_t)s->from, (json_int_t)s->to));
	return o;
}

/* --- results ------------------------------------------------------------------------------ */

static json_t *metrics_of(const struct lab *l, enum metric_of of, uint32_t index)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < metric_count; i++) {
		const struct metric *m = &metrics[i];
		const struct expectation e = {.metric = m, .index = index};

		if (m->of == of || (of == OF_ALL && m->of == OF_ANY_FLOW))
			json_object_set_new(o, m->name, number(m->value(l, &e)));
	}
	return o;
}

/* Where a port leads. */
static json_t *peer_of(const struct lab *l, uint32_t sw, uint32_t port)
{
	const struct network *n = &l->s->net;
	uint32_t peer = net_peer(n, sw, port);

	return peer < n->hosts ? json_sprintf("host %u", peer)
			       : json_sprintf("sw%u", peer - n->hosts);
}

static json_t *ports_of(const struct lab *l)
{
	json_t *all = json_array();

	for (uint32_t sw = 0; sw < l->s->net.switches; sw++)
		for (uint32_t i = l->first[sw]; i < l->first[sw + 1]; i++) {
			json_t *o;

			if (!l->port[i].count.frames)
				continue;
			o = metrics_of(l, OF_PORT, i);
			json_object_set_new(
				o, "port", json_sprintf("sw%u.%u", sw, i - l->first[sw]));
			json_object_set_new(o, "to", peer_of(l, sw, i - l->first[sw]));
			json_object_set_new(o, "marked", whole(l->port[i].count.marked));
			json_object_set_new(o, "dropped", whole(l->port[i].count.dropped));
			json_object_set_new(o, "pauses", whole(l->port[i].ingress.pauses));
			json_array_append_new(all, o);
		}
	return all;
}

static json_t *flows_of(const struct lab *l)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < l->flows; i++) {
		const struct lab_flow *f = &l->flow[i];
		const struct expectation e = {.metric = metric_find("goodput"), .index = i};
		json_t *o = json_pack("{s:i, s:i, s:i, s:I, s:I, s:i}", "flow", (int)i, "from",
			(int)(f->from - l->host), "to", (int)(f->to - l->host), "size",
			(json_int_t)f->line->size, "messages", (json_int_t)f->messages, "failed",
			(int)f->failed);

		json_object_set_new(o, "goodput", number(e.metric->value(l, &e)));
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *expectations_of(const struct lab *l)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < l->s->expects; i++) {
		const struct expectation *e = &l->s->expect[i];
		double got = report_value(l, e);
		json_t *o = json_pack("{s:s, s:b}", "text", e->text, "met", metric_met(e, got));

		char shown[32];

		json_object_set_new(o, "got", number(got));
		json_object_set_new(o, "shown",
			json_string(text_of(got, e->metric->unit, shown, sizeof(shown))));
		json_array_append_new(all, o);
	}
	return all;
}

int out_json(const struct lab *l, const char *folder)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:I}", "rocilab", ROCINANTE_VERSION, "scenario",
		l->s->name, "title", l->s->title, "seed", (json_int_t)l->s->seed);
	char path[OUT_PATH];
	int bad;

	json_object_set_new(o, "parameters", parameters(l->s));
	json_object_set_new(o, "results", metrics_of(l, OF_ALL, METRIC_ALL));
	json_object_set_new(o, "ports", ports_of(l));
	json_object_set_new(o, "flows", flows_of(l));
	json_object_set_new(o, "expectations", expectations_of(l));
	bad = json_dump_file(
		o, out_path(path, folder, "run.json"), JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(o);
	return bad ? -EIO : 0;
}
