/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and their objects as documents. The daemon's own parts are in show/daemon.c. */
#include <stdatomic.h>
#include "abi_names.h"
#include "config/config.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "mw.h"
#include "qp.h"
#include "row.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "show/show.h"
#include "srq.h"
#include "verbs/cq_obj.h"
#include "verbs/mr_obj.h"
#include "verbs/mw_obj.h"
#include "verbs/qp_obj.h"
#include "verbs/srq_obj.h"

/* --- lists over all sessions ------------------------------------------------------------ */

/* @return the session that the list has reached, or the next one; NULL at the end. A session that
 * has since taken the slot is new, and is not listed. */
static struct session *session_at(struct ctl *ctl, struct document_cursor *at)
{
	for (; at->slot < SESSION_MAX; at->slot++) {
		struct session *s = ctl->sessions->session[at->slot];

		if (s && !s->own && (!at->number || at->number == s->number)) {
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

/* @return the next object of its kind, of any session. */
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

/* How a program holds its threads' writes while memory is made registrable. */
static const char *const writers[] = {
	[ABI_WRITERS_UNKNOWN] = "",
	[ABI_WRITERS_UFFD_ROCID] = "userfaultfd by rocid",
	[ABI_WRITERS_UFFD] = "userfaultfd",
	[ABI_WRITERS_UFFD_USER] = "userfaultfd, user mode",
	[ABI_WRITERS_SIGNALS] = "signals",
};

static bool next_session(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct session *s = session_at(ctl, at);

	if (!s)
		return false;
	leave_session(at);
	row_begin(&row);
	put_int(&row, "session", s->number);
	put_int(&row, "pid", s->peer.pid);
	put_int(&row, "uid", s->peer.uid);
	put_int(&row, "gid", s->peer.gid);
	put_text(&row, "program", s->program);
	put_int(&row, "age_s", (loop_now_ms() - s->since_ms) / 1000);
	put_int(&row, "pds", s->pds.used);
	put_int(&row, "mrs", s->mrs.used);
	put_int(&row, "cqs", s->cqs.used);
	put_int(&row, "srqs", s->srqs.used);
	put_int(&row, "qps", s->qps.used);
	put_int(&row, "channels", s->channels.used);
	put_int(&row, "cm_ids", s->used[CTL_CM_IDS]);
	put_int(&row, "connections", s->used[CTL_CONNECTIONS]);
	put_int(&row, "queue_bytes", s->used[CTL_QUEUES]);
	put_int(&row, "mr_bytes", s->used[CTL_MEMORY]);
	put_text(&row, "writers", writers[s->writers]);
	*element = row_end(&row);
	return true;
}

static bool next_pd(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct session *s;
	struct pd *pd = object_at(ctl, at, pds_of, &s);

	if (!pd)
		return false;
	row_begin(&row);
	put_int(&row, "session", s->number);
	put_int(&row, "handle", pd->handle);
	put_int(&row, "pd", pd->number);
	put_int(&row, "users", pd->users);
	*element = row_end(&row);
	return true;
}

static bool next_mr(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct session *s;
	struct mr_obj *o = object_at(ctl, at, mrs_of, &s);

	if (!o)
		return false;
	row_begin(&row);
	put_int(&row, "session", s->number);
	put_int(&row, "handle", o->handle);
	put_int(&row, "pd", o->mr.pd);
	put_hex(&row, "key", o->mr.key, 1);
	put_hex(&row, "address", o->mr.iova, 1);
	put_int(&row, "length", o->mr.length);
	put_int(&row, "access", o->mr.access);
	*element = row_end(&row);
	return true;
}

/* Workers may be binding it: mw_view() returns a consistent view. */
static bool next_mw(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct session *s;
	struct mw_obj *o = object_at(ctl, at, mws_of, &s);
	struct mw_view v;
	bool bound;

	if (!o)
		return false;
	bound = mw_view(&o->mw, &v);
	row_begin(&row);
	put_int(&row, "session", s->number);
	put_int(&row, "handle", o->handle);
	put_int(&row, "pd", o->mw.pd);
	put_int(&row, "type", o->mw.type);
	put_hex(&row, "key", v.key, 1);
	put_bool(&row, "bound", bound);
	put_hex(&row, "address", bound ? v.iova : 0, 1);
	put_int(&row, "length", bound ? v.length : 0);
	put_int(&row, "access", bound ? v.access : 0);
	put_int(&row, "qpn", bound ? v.qpn : 0);
	*element = row_end(&row);
	return true;
}

static bool next_cq(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct session *s;
	struct cq_obj *o = object_at(ctl, at, cqs_of, &s);

	if (!o)
		return false;
	row_begin(&row);
	put_int(&row, "session", s->number);
	put_int(&row, "handle", o->cq.handle);
	put_int(&row, "depth", LOOK(o->cq.lane[0].depth));
	put_int(&row, "lanes", o->cq.lanes);
	put_int(&row, "users", o->users);
	put_bool(&row, "channel", o->channel != NULL);
	*element = row_end(&row);
	return true;
}

static bool next_srq(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct session *s;
	struct srq_obj *o = object_at(ctl, at, srqs_of, &s);

	if (!o)
		return false;
	row_begin(&row);
	put_int(&row, "session", s->number);
	put_int(&row, "handle", o->srq.handle);
	put_int(&row, "srqn", o->srq.srqn);
	put_int(&row, "pd", o->pd->number);
	put_int(&row, "depth", o->at->depth);
	put_int(&row, "waiting", srq_waiting(&o->srq, o->at->depth));
	put_int(&row, "taken", atomic_load(&o->srq.head));
	put_int(&row, "limit", atomic_load(&o->srq.limit));
	put_int(&row, "limit_events", atomic_load(&o->srq.limits));
	put_int(&row, "starved", atomic_load(&o->srq.starved));
	put_int(&row, "users", o->users);
	put_bool(&row, "failed", atomic_load(&o->srq.broken));
	*element = row_end(&row);
	return true;
}

static bool next_qp(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct session *s;
	struct qp_obj *o = object_at(ctl, at, qps_of, &s);
	const struct qp *qp;

	if (!o)
		return false;
	qp = o->qp;
	row_begin(&row);
	put_int(&row, "qpn", o->qpn);
	put_int(&row, "session", s->number);
	put_int(&row, "handle", o->handle);
	put_text(&row, "state", qp_state_name(LOOK(qp->state)));
	put_int(&row, "worker", o->worker);
	put_int(&row, "pd", o->pd ? o->pd->number : 0);
	put_int(&row, "send_cq", cq_handle(o->send_cq));
	put_int(&row, "recv_cq", cq_handle(o->recv_cq));
	put_int(&row, "peer_qpn", LOOK(qp->attr.dest_qpn));
	put_int(&row, "path_mtu", LOOK(qp->attr.path_mtu));
	put_int(&row, "sq_depth", qp->sq.depth);
	put_int(&row, "rq_depth", qp->rq.depth);
	put_int(&row, "bytes", o->bytes + o->rings.size);
	*element = row_end(&row);
	return true;
}

/* @return whether an element belongs to the session that is the first argument. */
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
