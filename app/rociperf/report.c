/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <err.h>
#include <jansson.h>
#include <string.h>
#include "report.h"
#include "end.h"
#include "side.h"
#include "ticks.h"

#define DIGITS 9 /* of numbers in JSON */

/* A duplicate made by the network does not replace a lost message. */
static void count_lost(struct row *r, const struct side *s)
{
	double awaited;

	r->sent = s->own[FIGURE_SENT] + s->peer[FIGURE_SENT];
	r->received = (double)(s->arrived + s->peer_arrived);
	awaited = r->sent * (double)plan_members(s->end.plan);
	r->lost = awaited > r->received ? awaited - r->received : 0;
}

struct row report_row(const struct side *s)
{
	struct row r = {.size = s->end.shape.size, .shape = s->end.shape};
	double rate;

	memcpy(r.figure, s->end.initiates ? s->own : s->peer, sizeof(r.figure));
	if (plan_counts_lost(s->end.plan))
		count_lost(&r, s);
	if (!s->end.plan->value[PARAM_BIDIRECTIONAL])
		return r;
	/* Rates add up, and each end has measured for a time of its own. */
	rate = s->own[FIGURE_ITERATIONS] / s->own[FIGURE_SECONDS] +
	       s->peer[FIGURE_ITERATIONS] / s->peer[FIGURE_SECONDS];
	r.figure[FIGURE_ITERATIONS] += s->peer[FIGURE_ITERATIONS];
	r.figure[FIGURE_SECONDS] = r.figure[FIGURE_ITERATIONS] / rate;
	r.figure[FIGURE_PEAK] += s->peer[FIGURE_PEAK];
	return r;
}

static double to_gbps(double messages_a_second, uint32_t size)
{
	return messages_a_second * 8 * size / 1e9;
}

double report_gbps(const struct row *r)
{
	return to_gbps(r->figure[FIGURE_ITERATIONS] / r->figure[FIGURE_SECONDS], r->size);
}

double report_mpps(const struct row *r)
{
	return r->figure[FIGURE_ITERATIONS] / r->figure[FIGURE_SECONDS] / 1e6;
}

static bool is_lat(const struct plan *plan)
{
	return plan_test(plan) == TEST_LAT;
}

static const char *gid_text(const union roci_gid *gid, char text[INET6_ADDRSTRLEN])
{
	return inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

/* --- text --------------------------------------------------------------------------------- */

static const char *const what[] = {
	[TEST_BW] = "bandwidth",
	[TEST_RATE] = "message rate",
	[TEST_LAT] = "latency",
};

void report_head(FILE *f, const struct side *s)
{
	const struct end *e = &s->end;
	const struct plan *p = e->plan;
	const struct shape shape = shape_of(p, plan_first_size(p));
	const unsigned qps = (unsigned)p->value[PARAM_QPS];
	char own[INET6_ADDRSTRLEN], peer[INET6_ADDRSTRLEN], group[GROUP_TEXT];

	fprintf(f, " %s %s, %s, %u QP%s%s%s, path MTU %u%s%s%s\n GID %s, peer %s", e->op->title,
		what[plan_test(p)], plan_service(p)->name, qps, qps > 1 ? "s" : "",
		plan_mcast(p) ? " in group " : "",
		plan_mcast(p) ? group_text(&e->group, group) : "", roci_mtu_bytes(e->mtu),
		p->value[PARAM_BIDIRECTIONAL] ? ", both ways" : "",
		p->value[PARAM_EVENTS] ? ", events" : "", p->value[PARAM_VERIFY] ? ", verify" : "",
		gid_text(&e->gid.gid, own), gid_text(&e->peer_gid, peer));
	if (is_lat(p))
		fprintf(f,
			"\n %s\n #bytes     #iterations    t_min[usec]    t_max[usec]  "
			"t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   "
			"99.9%% percentile[usec]   99.99%% percentile[usec]\n",
			e->op->fetches	 ? "usec: until the data arrives"
			: e->op->flushes ? "usec: until the FLUSH is answered"
					 : "usec: one way, half of a round trip");
	else
		fprintf(f,
			", depth %u, CQ moderation %u, post list %u\n"
			" Gb/sec: 1e9 bits of payload; Mpps: 1e6 messages\n"
			" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   "
			"MsgRate[Mpps]%s\n",
			shape.depth, shape.cq_mod, shape.list,
			plan_counts_lost(p) ? "  #sent          #lost" : "");
	fflush(f);
}

static void lat_line(FILE *f, const struct row *r)
{
	const double *v = r->figure;

	fprintf(f,
		" %-10u %-14.0f %-14.3f %-12.3f %-18.3f %-14.3f %-15.3f %-22.3f %-24.3f "
		"%.3f\n",
		r->size, v[FIGURE_ITERATIONS], v[FIGURE_MIN], v[FIGURE_MAX], v[FIGURE_TYPICAL],
		v[FIGURE_AVERAGE], v[FIGURE_STDEV], v[FIGURE_P99], v[FIGURE_P99_9],
		v[FIGURE_P99_99]);
}

static void bw_line(FILE *f, const struct plan *plan, const struct row *r)
{
	bool lost = plan_counts_lost(plan);

	fprintf(f, " %-10u %-14.0f %-18.2f %-20.2f %-*.6f", r->size, r->figure[FIGURE_ITERATIONS],
		to_gbps(r->figure[FIGURE_PEAK], r->size), report_gbps(r), lost ? 14 : 0,
		report_mpps(r));
	if (lost)
		fprintf(f, " %-14.0f %.0f", r->sent, r->lost);
	fputc('\n', f);
}

void report_line(FILE *f, const struct plan *plan, const struct row *r)
{
	if (is_lat(plan))
		lat_line(f, r);
	else
		bw_line(f, plan, r);
	fflush(f);
}

/* --- JSON --------------------------------------------------------------------------------- */

static void set(json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value))
		errx(1, "no memory for the JSON document");
}

static void append(json_t *list, json_t *value)
{
	if (json_array_append_new(list, value))
		errx(1, "no memory for the JSON document");
}

static json_t *json_group(const struct plan *p)
{
	const union roci_gid group = plan_group(p);
	char text[GROUP_TEXT];

	return plan_mcast(p) ? json_string(group_text(&group, text)) : json_null();
}

static json_t *parameters(const struct side *s)
{
	const struct plan *p = s->end.plan;
	json_t *o = json_object();

	for (unsigned i = PARAM_SIZE; i < PARAM_COUNT; i++) {
		const struct param_info *info = &param_info[i];
		uint64_t value = p->value[i];
		char name[32];

		snprintf(name, sizeof(name), "%s", info->name);
		for (char *c = name; *c; c++)
			if (*c == '-')
				*c = '_';
		if (info->unit == UNIT_NONE)
			set(o, name, json_boolean(value));
		else if (info->unit == UNIT_SERVICE)
			set(o, name, json_string(plan_services[value].name));
		else if (info->unit == UNIT_GROUP)
			set(o, name, json_group(p));
		else if (!value && info->min) /* chosen by rociperf */
			set(o, name, json_null());
		else if (info->unit == UNIT_SECONDS)
			set(o, name, json_real((double)value / 1e6));
		else
			set(o, name, json_integer((json_int_t)value));
	}
	set(o, "mtu", json_integer(roci_mtu_bytes(s->end.mtu)));
	return o;
}

static json_t *json_row(const struct plan *p, const struct row *r)
{
	static const struct {
		const char *name;
		enum figure figure;
	} lat[] = {
		{"t_min_usec", FIGURE_MIN},
		{"t_max_usec", FIGURE_MAX},
		{"t_typical_usec", FIGURE_TYPICAL},
		{"t_avg_usec", FIGURE_AVERAGE},
		{"t_stdev_usec", FIGURE_STDEV},
		{"p50_usec", FIGURE_TYPICAL},
		{"p90_usec", FIGURE_P90},
		{"p99_usec", FIGURE_P99},
		{"p99_9_usec", FIGURE_P99_9},
		{"p99_99_usec", FIGURE_P99_99},
	};
	json_t *o = json_object();

	set(o, "bytes", json_integer(r->size));
	set(o, "iterations", json_integer((json_int_t)(r->figure[FIGURE_ITERATIONS] + 0.5)));
	set(o, "seconds", json_real(r->figure[FIGURE_SECONDS]));
	if (is_lat(p)) {
		for (unsigned i = 0; i < sizeof(lat) / sizeof(lat[0]); i++)
			set(o, lat[i].name, json_real(r->figure[lat[i].figure]));
		return o;
	}
	set(o, "bw_peak_gbps", json_real(to_gbps(r->figure[FIGURE_PEAK], r->size)));
	set(o, "bw_average_gbps", json_real(report_gbps(r)));
	set(o, "msg_rate_mpps", json_real(report_mpps(r)));
	set(o, "tx_depth", json_integer(r->shape.depth));
	set(o, "cq_mod", json_integer(r->shape.cq_mod));
	set(o, "post_list", json_integer(r->shape.list));
	if (!plan_counts_lost(p))
		return o;
	set(o, "sent", json_integer((json_int_t)r->sent));
	set(o, "received", json_integer((json_int_t)r->received));
	set(o, "lost", json_integer((json_int_t)r->lost));
	return o;
}

/* [microseconds, messages] of each bucket that is not empty. */
static json_t *distribution(const struct end *e, const struct histogram *trip)
{
	double us = 1e6 / ticks_per_second() / (op_told(e->op) ? 1 : 2);
	json_t *list = json_array();

	for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
		json_t *bucket;

		if (!trip->count[b])
			continue;
		bucket = json_array();
		append(bucket, json_real(histogram_value(b) * us));
		append(bucket, json_integer((json_int_t)trip->count[b]));
		append(list, bucket);
	}
	return list;
}

void report_json(FILE *f, const struct side *s, const struct row row[], unsigned rows,
	const struct histogram *trip)
{
	const struct plan *p = s->end.plan;
	json_t *document = json_object(), *results = json_array();
	char gid[INET6_ADDRSTRLEN];

	set(document, "rociperf", json_string(ROCINANTE_VERSION));
	set(document, "operation", json_string(s->end.op->name));
	set(document, "test", json_string(plan_test_name(plan_test(p))));
	set(document, "gid", json_string(gid_text(&s->end.gid.gid, gid)));
	set(document, "peer_gid", json_string(gid_text(&s->end.peer_gid, gid)));
	set(document, "parameters", parameters(s));
	for (unsigned i = 0; i < rows; i++)
		append(results, json_row(p, &row[i]));
	set(document, "results", results);
	if (trip)
		set(document, "distribution", distribution(&s->end, trip));
	if (json_dumpf(document, f, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) ||
		fputc('\n', f) < 0)
		err(1, "cannot write the JSON document");
	json_decref(document);
}
