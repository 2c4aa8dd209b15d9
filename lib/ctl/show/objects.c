/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and their objects as documents. The daemon's own parts are in show/daemon.c. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include "config/config.h"
#include "config/parts.h"
#include "loop/loop.h"
#include "mw.h"
#include "qp.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "show/show.h"
#include "srq.h"
#include "text/sentence.h"
#include "verbs/cq_obj.h"
#include "verbs/mr_obj.h"
#include "verbs/mw_obj.h"
#include "verbs/qp_obj.h"
#include "verbs/srq_obj.h"

/* --- lists over all sessions ------------------------------------------------------------ */

/* The session that the list is at, or the next one; NULL at the end. Another one that has come
 * into the slot meanwhile is new: passed over. */
static struct session *session_at(struct ctl *ctl, struct document_cursor *at)
{
	for (; at->slot < SESSION_MAX; at->slot++) {
		struct session *s = ctl->sessions->session[at->slot];

		if (s && (!at->number || at->number == s->number)) {
			at->number = s->number;
			return s;
		}
		at->number = 0;
		at->index = 0;
	}
	return NULL;
}

static void leave_session(struct document_cursor *at)
{
	at->slot++;
	at->number = 0;
	at->index = 0;
}

typedef struct handles *(*table_of)(struct session *s);

/* The next object of its kind, of whatever session. */
static void *object_at(
	struct ctl *ctl, struct document_cursor *at, table_of table, struct session **owner)
{
	struct session *s;

	while ((s = session_at(ctl, at))) {
		void *o = handle_next(table(s), &at->index);

		*owner = s;
		if (o)
			return o;
		leave_session(at);
	}
	return NULL;
}

static struct handles *pds_of(struct session *s)
{
	return &s->pds;
}

static struct handles *mrs_of(struct session *s)
{
	return &s->mrs;
}

static struct handles *mws_of(struct session *s)
{
	return &s->mws;
}

static struct handles *cqs_of(struct session *s)
{
	return &s->cqs;
}

static struct handles *srqs_of(struct session *s)
{
	return &s->srqs;
}

static struct handles *qps_of(struct session *s)
{
	return &s->qps;
}

struct mr_obj *show_next_mr(struct ctl *ctl, struct document_cursor *at)
{
	struct session *owner;

	return object_at(ctl, at, mrs_of, &owner);
}

struct qp_obj *show_next_qp(struct ctl *ctl, struct document_cursor *at)
{
	struct session *owner;

	return object_at(ctl, at, qps_of, &owner);
}

/* --- sections --------------------------------------------------------------------------- */

static bool next_session(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct session *s = session_at(ctl, at);

	if (!s)
		return false;
	leave_session(at);
	*element = json_pack(
		"{s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "session",
		(json_int_t)s->number, "pid", (json_int_t)s->peer.pid, "uid",
		(json_int_t)s->peer.uid, "gid", (json_int_t)s->peer.gid, "program", s->program,
		"age_s", (json_int_t)((loop_now_ms() - s->since_ms) / 1000), "pds",
		(json_int_t)s->pds.used, "mrs", (json_int_t)s->mrs.used, "cqs",
		(json_int_t)s->cqs.used, "srqs", (json_int_t)s->srqs.used, "qps",
		(json_int_t)s->qps.used, "channels", (json_int_t)s->channels.used, "queue_bytes",
		(json_int_t)s->used[CTL_QUEUES], "mr_bytes", (json_int_t)s->used[CTL_MEMORY]);
	return true;
}

static bool next_pd(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct session *s;
	struct pd *pd = object_at(ctl, at, pds_of, &s);

	if (!pd)
		return false;
	*element = json_pack("{s:I, s:I, s:I, s:I}", "session", (json_int_t)s->number, "handle",
		(json_int_t)pd->handle, "pd", (json_int_t)pd->number, "users",
		(json_int_t)pd->users);
	return true;
}

static bool next_mr(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct session *s;
	struct mr_obj *o = object_at(ctl, at, mrs_of, &s);
	char key[12], address[20];

	if (!o)
		return false;
	snprintf(key, sizeof(key), "0x%x", o->mr.key);
	snprintf(address, sizeof(address), "0x%" PRIx64, o->mr.iova);
	*element = json_pack("{s:I, s:I, s:I, s:s, s:s, s:I, s:I}", "session",
		(json_int_t)s->number, "handle", (json_int_t)o->handle, "pd", (json_int_t)o->mr.pd,
		"key", key, "address", address, "length", (json_int_t)o->mr.length, "access",
		(json_int_t)o->mr.access);
	return true;
}

/* Workers may be binding it: a look at one moment. */
static bool next_mw(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct session *s;
	struct mw_obj *o = object_at(ctl, at, mws_of, &s);
	struct mw_view v;
	char key[12], address[20];
	bool bound;

	if (!o)
		return false;
	bound = mw_view(&o->mw, &v);
	snprintf(key, sizeof(key), "0x%x", v.key);
	snprintf(address, sizeof(address), "0x%" PRIx64, bound ? v.iova : 0);
	*element = json_pack("{s:I, s:I, s:I, s:I, s:s, s:b, s:s, s:I, s:I, s:I}", "session",
		(json_int_t)s->number, "handle", (json_int_t)o->handle, "pd", (json_int_t)o->mw.pd,
		"type", (json_int_t)o->mw.type, "key", key, "bound", bound, "address", address,
		"length", (json_int_t)(bound ? v.length : 0), "access",
		(json_int_t)(bound ? v.access : 0), "qpn", (json_int_t)(bound ? v.qpn : 0));
	return true;
}

static bool next_cq(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct session *s;
	struct cq_obj *o = object_at(ctl, at, cqs_of, &s);

	if (!o)
		return false;
	*element = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "session", (json_int_t)s->number,
		"handle", (json_int_t)o->cq.handle, "depth", (json_int_t)LOOK(o->cq.lane[0].depth),
		"lanes", (json_int_t)o->cq.lanes, "users", (json_int_t)o->users, "channel",
		o->channel != NULL);
	return true;
}

static bool next_srq(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct session *s;
	struct srq_obj *o = object_at(ctl, at, srqs_of, &s);

	if (!o)
		return false;
	*element = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
		"session", (json_int_t)s->number, "handle", (json_int_t)o->srq.handle, "srqn",
		(json_int_t)o->srq.srqn, "pd", (json_int_t)o->pd->number, "depth",
		(json_int_t)o->at->depth, "waiting", (json_int_t)srq_waiting(&o->srq, o->at->depth),
		"taken", (json_int_t)atomic_load(&o->srq.head), "limit",
		(json_int_t)atomic_load(&o->srq.limit), "limit_events",
		(json_int_t)atomic_load(&o->srq.limits), "starved",
		(json_int_t)atomic_load(&o->srq.starved), "users", (json_int_t)o->users, "failed",
		atomic_load(&o->srq.broken));
	return true;
}

static bool next_qp(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct session *s;
	struct qp_obj *o = object_at(ctl, at, qps_of, &s);
	const struct qp *qp;

	if (!o)
		return false;
	qp = o->qp;
	*element = json_pack("{s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"qpn", (json_int_t)o->qpn, "session", (json_int_t)s->number, "handle",
		(json_int_t)o->handle, "state", qp_state_name(LOOK(qp->state)), "worker",
		(json_int_t)o->worker, "pd", (json_int_t)o->pd->number, "send_cq",
		(json_int_t)cq_handle(o->send_cq), "recv_cq", (json_int_t)cq_handle(o->recv_cq),
		"peer_qpn", (json_int_t)LOOK(qp->attr.dest_qpn), "path_mtu",
		(json_int_t)LOOK(qp->attr.path_mtu), "sq_depth", (json_int_t)qp->sq.depth,
		"rq_depth", (json_int_t)qp->rq.depth, "bytes",
		(json_int_t)(o->bytes + o->rings.size));
	return true;
}

/* Whether an element belongs to the session that is the first argument. */
static bool is_of_session(const struct argument arg[], const json_t *element)
{
	return json_integer_value(json_object_get(element, "session")) == (json_int_t)arg[0].number;
}

const struct document_section show_sessions = {.name = "sessions", .next = next_session};
const struct document_section show_pds = {.name = "pds", .next = next_pd};
const struct document_section show_mrs = {.name = "mrs", .next = next_mr};
const struct document_section show_mws = {.name = "mws", .next = next_mw};
const struct document_section show_cqs = {.name = "cqs", .next = next_cq};
const struct document_section show_srqs = {.name = "srqs", .next = next_srq};
const struct document_section show_qps = {.name = "qps", .next = next_qp};

const struct document_section show_session = {
	.name = "session", .next = next_session, .keep = is_of_session};
const struct document_section show_session_pds = {
	.name = "pds", .next = next_pd, .keep = is_of_session};
const struct document_section show_session_mrs = {
	.name = "mrs", .next = next_mr, .keep = is_of_session};
const struct document_section show_session_cqs = {
	.name = "cqs", .next = next_cq, .keep = is_of_session};
const struct document_section show_session_srqs = {
	.name = "srqs", .next = next_srq, .keep = is_of_session};
const struct document_section show_session_qps = {
	.name = "qps", .next = next_qp, .keep = is_of_session};
