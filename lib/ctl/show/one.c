/* SPDX-License-Identifier: BSD-3-Clause */
/* One object in full. */
#include <stdatomic.h>
#include <stdio.h>
#include "abi_ctl.h"
#include "abi_names.h"
#include "abi_ring.h"
#include "bits.h"
#include "config/config.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "cq.h"
#include "path.h"
#include "qp.h"
#include "qp_table.h"
#include "row.h"
#include "session/handles.h"
#include "session/session.h"
#include "show/show.h"
#include "text/sentence.h"
#include "verbs/cq_obj.h"
#include "verbs/mr_obj.h"
#include "verbs/objects.h"
#include "verbs/qp_cc.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* A set of flags as words. */
struct flag {
	uint32_t bit;
	const char *name;
};

static json_t *flags(uint32_t value, const struct flag *flag, unsigned n)
{
	json_t *list = json_string("");
	char text[128];
	size_t len = 0;

	for (unsigned i = 0; i < n && len < sizeof(text); i++)
		if (value & flag[i].bit)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
				len ? ", " : "", flag[i].name);
	if (len)
		json_string_set(list, text);
	return list;
}

static json_t *access_flags(uint32_t access)
{
	static const struct flag flag[] = {
		{ABI_ACCESS_LOCAL_WRITE, "local write"},
		{ABI_ACCESS_REMOTE_WRITE, "remote write"},
		{ABI_ACCESS_REMOTE_READ, "remote read"},
		{ABI_ACCESS_REMOTE_ATOMIC, "remote atomic"},
		{ABI_ACCESS_MW_BIND, "window bind"},
		{ABI_ACCESS_ZERO_BASED, "zero based"},
	};

	return flags(access, flag, ARRAY_SIZE(flag));
}

/* --- a queue pair ----------------------------------------------------------------------- */

static json_t *qp(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	struct qp_obj *o = find_qp(ctl, arg[0].number);

	if (!o)
		return json_null();
	row_begin(&row);
	put_int(&row, "qpn", o->qpn);
	put_int(&row, "session", o->session->number);
	put_text(&row, "program", o->session->program);
	put_int(&row, "pid", o->session->peer.pid);
	put_int(&row, "handle", o->handle);
	put_text(&row, "type", qp_type_name(o->qp->type));
	put_text(&row, "state", qp_state_name(LOOK(o->qp->state)));
	put_int(&row, "worker", o->worker);
	put_int(&row, "home_worker", QPN_WORKER(o->qpn));
	put_bool(&row, "resolving", o->resolving);
	put_int(&row, "pd", o->pd ? o->pd->number : 0);
	put_int(&row, "send_cq", cq_handle(o->send_cq));
	put_int(&row, "recv_cq", cq_handle(o->recv_cq));
	put_json(&row, "access", access_flags(LOOK(o->qp->attr.access_flags)));
	put_bool(&row, "all_signaled", o->qp->sq_sig_all);
	put_int(&row, "bytes", o->bytes + o->rings.size);
	return row_end(&row);
}

/* 802.1p priority; null: its packets are untagged. */
static json_t *priority(const struct path *p)
{
	int tci = path_tci(p);

	return tci < 0 ? json_null() : json_integer(tci >> 13);
}

/* The path that the application set; from RTR on. */
static json_t *qp_path(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct gid_entry *sgid;
	const struct abi_qp_attr *a;
	const struct path *path;
	char local[GID_TEXT], remote[GID_TEXT];

	if (!o || !o->hold.gids)
		return json_null();
	a = &o->qp->attr;
	sgid = &o->hold.gids->table.entry[o->hold.index];
	path = &o->qp->path;
	row_begin(&row);
	put_int(&row, "port", LOOK(a->ah.port));
	put_int(&row, "gid_index", o->hold.index);
	put_text(&row, "gid", gid_text(sgid->gid, local));
	put_text(&row, "type", gid_type_name(sgid->net));
	put_int(&row, "vid", sgid->vid);
	put_text(&row, "peer_gid", gid_text(a->ah.dgid, remote));
	put_mac(&row, "peer_mac", a->ah.dmac);
	put_int(&row, "peer_qpn", LOOK(a->dest_qpn));
	put_bool(&row, "same_rocid", path->local);
	put_int(&row, "path_mtu", LOOK(a->path_mtu));
	put_int(&row, "traffic_class", LOOK(a->ah.traffic_class));
	put_int(&row, "hop_limit", LOOK(a->ah.hop_limit));
	put_int(&row, "sl", LOOK(a->ah.sl));
	put_int(&row, "flow_label", path_flow_label(path));
	put_int(&row, "sport", path_sport(path));
	put_json(&row, "priority", priority(path));
	put_hex(&row, "pkey", LOOK(o->qp->pkey), 4);
	put_int(&row, "pkey_index", LOOK(a->pkey_index));
	return row_end(&row);
}

/* 4.096 us * 2^code */
static json_t *ack_timeout(uint8_t code)
{
	return code ? json_real(4.096e-3 * (double)(1ull << (code & 31))) : json_null();
}

static json_t *qp_requester(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct qp *q;

	if (!o)
		return json_null();
	q = o->qp;
	row_begin(&row);
	put_int(&row, "depth", q->sq.depth);
	put_int(&row, "max_sge", q->sq.max_sge);
	put_int(&row, "max_inline", q->max_inline);
	put_int(&row, "posted", LOOK(q->req.fetched));
	put_int(&row, "outstanding", LOOK(q->req.fetched) - LOOK(q->comp.head));
	put_int(&row, "next_psn", LOOK(q->req.psn));
	put_int(&row, "unacked_psn", LOOK(q->comp.una));
	put_int(&row, "in_flight", LOOK(q->req.sent) - LOOK(q->comp.acked));
	put_int(&row, "window", LOOK(q->win.size));
	put_int(&row, "window_max", LOOK(q->win.max));
	put_int(&row, "max_rd_atomic", LOOK(q->attr.max_rd_atomic));
	put_json(&row, "timeout_ms", ack_timeout(LOOK(q->attr.timeout)));
	put_int(&row, "retries_left", LOOK(q->comp.retry_left));
	put_int(&row, "rnr_retries_left", LOOK(q->comp.rnr_left));
	put_bool(&row, "retrying", LOOK(q->comp.retrying));
	put_bool(&row, "rnr_wait", LOOK(q->comp.rnr_wait));
	return row_end(&row);
}

/* Converts bit/s to Mb/s; null: no limit */
static json_t *mbps(double rate)
{
	return rate > 0 ? json_real(rate / 1e6) : json_null();
}

static void put_limit(struct row *row, const struct qp_obj *o, const struct core_limit *l)
{
	char text[CONGESTION_TEXT];
	const char *own = qp_cc_text(o, text);

	put_json(row, "limit_mbps", mbps((double)l->asked));
	put_json(row, "own_limit_mbps", mbps((double)l->own));
	put_json(row, "algorithm", l->algorithm ? json_string(l->algorithm) : json_null());
	put_json(row, "own_cc", own ? json_string(own) : json_null());
	put_bool(row, "limited", l->limited);
	put_json(row, "rate_mbps", mbps(l->rate));
	put_json(row, "target_mbps", mbps(l->target));
	put_json(row, "alpha", json_real(l->alpha));
	put_json(row, "window", l->window < 0 ? json_null() : json_real(l->window));
	put_json(row, "rtt_us", l->rtt ? json_real((double)l->rtt / 1e3) : json_null());
	put_int(row, "cnps_handled", l->cnps);
	put_int(row, "limited_ms", l->limited_ns / 1000000);
}

/* Fast CNPs may come from any of the port's switches, other CNPs only from the peer. */
static const char *cnps_from(const struct qp_obj *o, const struct core_limit *l, char text[80])
{
	char gid[GID_TEXT];

	text[0] = '\0';
	if (l->by_switch)
		return strcpy(text, ", the last from a switch");
	if (o->dest)
		snprintf(text, 80, " from %s", gid_text(o->qp->attr.ah.dgid, gid));
	return text;
}

/* "held at 10 Mb/s for 3 s by 20000 CNPs per second from 192.0.2.7"; empty: nothing limits it. */
static void put_why(struct row *row, const struct qp_obj *o, const struct core_limit *l)
{
	double seconds = (double)l->limited_ns / 1e9;
	char from[80], text[160] = "";

	if (l->limited && l->asked && l->rate >= (double)l->asked)
		snprintf(text, sizeof(text), "held at %g Mb/s for %.3g s by an administrator",
			l->rate / 1e6, seconds);
	else if (l->limited && l->own && l->rate >= (double)l->own)
		snprintf(text, sizeof(text), "held at %g Mb/s for %.3g s by its program",
			l->rate / 1e6, seconds);
	else if (l->limited && !l->limited_cnps && l->algorithm)
		snprintf(text, sizeof(text), "held at %g Mb/s for %.3g s by %s", l->rate / 1e6,
			seconds, l->algorithm);
	else if (l->limited)
		snprintf(text, sizeof(text), "held at %g Mb/s for %.3g s by %.0f CNPs per second%s",
			l->rate / 1e6, seconds,
			(double)l->limited_cnps / (seconds > 1e-3 ? seconds : 1e-3),
			cnps_from(o, l, from));
	put_text(row, "why", text);
}

static bool query_rate(struct ctl *ctl, const struct qp_obj *o, struct core_limit *l)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_RATE, .qp = o->qp};
	int err = worker_call(ctl->dp->worker[o->worker], &cmd);

	*l = cmd.limit;
	return !err;
}

static json_t *qp_rate(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	struct core_limit l;
	struct qp_obj *o = find_qp(ctl, arg[0].number);

	if (!o || !query_rate(ctl, o, &l))
		return json_null();
	row_begin(&row);
	put_limit(&row, o, &l);
	put_why(&row, o, &l);
	return row_end(&row);
}

static bool next_limited(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct core_limit l;
	const struct qp_obj *o;
	struct row row;

	do
		o = show_next_qp(ctl, at);
	while (o && (!LOOK(o->qp->limited) || !query_rate(ctl, o, &l)));
	if (!o)
		return false;
	row_begin(&row);
	put_int(&row, "qpn", o->qpn);
	put_int(&row, "session", o->session->number);
	put_text(&row, "program", o->session->program);
	put_int(&row, "port", LOOK(o->qp->attr.port));
	put_limit(&row, o, &l);
	put_why(&row, o, &l);
	*element = row_end(&row);
	return true;
}

static json_t *qp_responder(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct qp *q;

	if (!o)
		return json_null();
	q = o->qp;
	row_begin(&row);
	put_int(&row, "depth", q->rq.depth);
	put_int(&row, "max_sge", q->rq.max_sge);
	put_int(&row, "taken", LOOK(q->rq.next));
	put_int(&row, "expected_psn", LOOK(q->resp.epsn));
	put_int(&row, "msn", LOOK(q->resp.msn));
	put_int(&row, "max_dest_rd_atomic", LOOK(q->attr.max_dest_rd_atomic));
	put_int(&row, "min_rnr_timer", LOOK(q->attr.min_rnr_timer));
	put_bool(&row, "nak_sent", LOOK(q->resp.nak_sent));
	return row_end(&row);
}

const struct document_section show_qp = {.name = "qp", .object = qp};
const struct document_section show_qp_path = {.name = "path", .object = qp_path};
const struct document_section show_qp_requester = {.name = "requester", .object = qp_requester};
const struct document_section show_limited = {.name = "limited qps", .next = next_limited};
const struct document_section show_qp_rate = {.name = "rate", .object = qp_rate};
const struct document_section show_qp_responder = {.name = "responder", .object = qp_responder};

/* --- a region, a CQ --------------------------------------------------------------------- */

static json_t *mr(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	struct session *s;
	struct mr_obj *o = find_mr(ctl, arg[0].number, &s);

	if (!o)
		return json_null();
	row_begin(&row);
	put_hex(&row, "key", o->mr.key, 1);
	put_int(&row, "session", s->number);
	put_text(&row, "program", s->program);
	put_int(&row, "pid", s->peer.pid);
	put_int(&row, "handle", o->handle);
	put_int(&row, "pd", o->mr.pd);
	put_hex(&row, "first", o->mr.iova, 1);
	if (o->mr.length)
		put_hex(&row, "last", o->mr.iova + o->mr.length - 1, 1);
	else
		put_text(&row, "last", "");
	put_int(&row, "length", o->mr.length);
	put_json(&row, "access", access_flags(o->mr.access));
	put_int(&row, "mapped", o->charged);
	return row_end(&row);
}

static json_t *cq(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	struct session *s = find_session(ctl, arg[0].number);
	struct cq_obj *o = s ? handle_get(&s->cqs, (uint32_t)arg[1].number) : NULL;
	uint32_t armed;

	if (!o)
		return json_null();
	armed = atomic_load_explicit(o->cq.arm, memory_order_relaxed) & ABI_CQ_ARM_MASK;
	row_begin(&row);
	put_int(&row, "session", s->number);
	put_text(&row, "program", s->program);
	put_int(&row, "pid", s->peer.pid);
	put_int(&row, "handle", o->cq.handle);
	put_int(&row, "depth", LOOK(o->cq.lane[0].depth));
	put_int(&row, "lanes", o->cq.lanes);
	put_int(&row, "users", o->users);
	put_bool(&row, "channel", o->channel != NULL);
	put_text(&row, "armed",
		armed == ABI_CQ_ARM_ANY		? "any"
		: armed == ABI_CQ_ARM_SOLICITED ? "solicited"
						: "no");
	return row_end(&row);
}

/* at->index: the lane. */
static bool next_lane(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct session *s = find_session(ctl, arg[0].number);
	struct cq_obj *o = s ? handle_get(&s->cqs, (uint32_t)arg[1].number) : NULL;
	const struct cq_lane *lane;
	uint32_t head, taken;

	if (!o || at->index == o->cq.lanes)
		return false;
	lane = &o->cq.lane[at->index];
	head = LOOK(lane->head);
	taken = LOOK(lane->seen);
	row_begin(&row);
	put_int(&row, "worker", at->index);
	put_int(&row, "completions", head);
	put_int(&row, "untaken_at_most", head - taken);
	put_bool(&row, "overflow", LOOK(lane->overflow));
	*element = row_end(&row);
	at->index++;
	return true;
}

const struct document_section show_mr = {.name = "mr", .object = mr};
const struct document_section show_cq = {.name = "cq", .object = cq};
const struct document_section show_cq_lanes = {.name = "lanes", .next = next_lane};

/* --- a port ----------------------------------------------------------------------------- */

static json_t *device(struct ctl *ctl, const struct argument arg[])
{
	const struct ctl_devices *d = ctl->devices;

	return d ? d->port(d->arg, (uint32_t)arg[0].number - 1) : json_null();
}

static json_t *emulated_link(struct ctl *ctl, const struct argument arg[])
{
	const struct ctl_devices *d = ctl->devices;

	return d ? d->link(d->arg, (uint32_t)arg[0].number - 1) : json_null();
}

const struct document_section show_device = {.name = "device", .object = device};
const struct document_section show_link = {.name = "link", .object = emulated_link};
