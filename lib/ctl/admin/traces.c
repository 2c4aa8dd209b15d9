/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP's worker writes the ring of a trace. The ring is freed after the worker has released it,
 * by command or because the QP was destroyed, possibly at the end of its session.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "admin/admin.h"
#include "admin/stream.h"
#include "admin/traces.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "list.h"
#include "loop/loop.h"
#include "loop/reaper.h"
#include "memory/alloc.h"
#include "number.h"
#include "refuse.h"
#include "row.h"
#include "session/session.h"
#include "session/sessions.h"
#include "trace.h"
#include "trace_text.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* Maximum number of events that one turn of the event loop formats per trace. */
#define TURN 256u
/* A delay that a user who watches does not notice. */
#define LOOK_MS 10

/* The time that a reader has to receive the rest after it requested the end. */
#define PATIENCE_MS 1000u

/* A trace, on ctl->admin->traces. */
struct tracing {
	struct list node;
	struct watch watch; /* the socket */
	struct ctl *ctl;
	struct trace *trace;
	uint32_t qpn;
	bool json;
	bool csv;
	uint64_t count;	     /* events still to be sent */
	uint64_t give_up_ms; /* when to end, after sending the events until now; 0: not ending */
	bool released;	     /* the worker has released the ring */
	uint64_t events;
	uint64_t base; /* time of the first event */
	struct trace_goodput goodput;
	size_t len;  /* of `text`, */
	size_t sent; /* this much of it was sent */
	char text[(TURN + 1) * (TRACE_LINE + 1)];
};

/* Without traces, workers skip the check. */
static void tell_workers(struct ctl *ctl, bool tracing)
{
	struct core_cmd cmd = {.type = CORE_CMD_TRACING, .tracing = tracing};

	for (uint32_t i = 0; i < ctl->dp->nworkers; i++)
		worker_call(ctl->dp->worker[i], &cmd);
}

static int attach(struct ctl *ctl, const struct qp_obj *o, struct trace *trace)
{
	struct core_cmd cmd = {.type = CORE_CMD_TRACE_QP, .qp = o->qp, .trace = trace};

	return worker_call(ctl->dp->worker[o->worker], &cmd);
}

/* --- the end ---------------------------------------------------------------------------- */

static void free_tracing(struct tracing *t)
{
	struct ctl *ctl = t->ctl;

	list_del(&t->node);
	loop_forget(ctl->loop, &t->watch);
	reap_fd(ctl->sessions->closer, OWNER_ROCID, t->watch.fd);
	free(t->trace);
	free(t);
	if (--ctl->admin->ntraces == 0)
		tell_workers(ctl, false);
}

static void begin_end(struct tracing *t)
{
	if (!t->give_up_ms)
		t->give_up_ms = loop_now_ms() + PATIENCE_MS;
}

/* A QP that is not found but not destroyed belongs to a session that is being closed. */
static void release(struct tracing *t)
{
	struct qp_obj *o;

	if (t->released)
		return;
	t->released = atomic_load_explicit(&t->trace->ended, memory_order_acquire);
	if (t->released)
		return;
	o = find_qp(t->ctl, t->qpn);
	t->released = o && !attach(t->ctl, o, NULL);
}

/* The reader has shut down or closed its end, or sent something unexpected. */
static void reader_ready(struct watch *w)
{
	struct tracing *t = container_of(w, struct tracing, watch);

	loop_forget(t->ctl->loop, w);
	begin_end(t);
}

/* --- output ----------------------------------------------------------------------------- */

static void format_one(struct tracing *t, const struct trace_event *e)
{
	char *line = t->text + t->len;

	if (t->csv && e->type != TRACE_RATE)
		return;
	t->len += t->csv    ? trace_csv(line, e, t->qpn, t->base, &t->goodput)
		  : t->json ? trace_json(line, e, t->base)
			    : trace_text(line, e, t->base);
	t->text[t->len++] = '\n';
}

static void format(struct tracing *t)
{
	struct trace_event event[TURN];
	unsigned n = trace_read(t->trace, event, t->count < TURN ? (unsigned)t->count : TURN);

	t->len = 0;
	t->sent = 0;
	if (n && t->csv && !t->events)
		t->len = (size_t)snprintf(t->text, sizeof(t->text), "%s", TRACE_CSV_HEAD);
	for (unsigned i = 0; i < n; i++) {
		if (!t->events++)
			t->base = t->goodput.since = event[i].time;
		format_one(t, &event[i]);
	}
	t->count -= n;
}

static void send_text(struct tracing *t)
{
	ssize_t n;

	if (t->sent == t->len)
		return;
	n = send(t->watch.fd, t->text + t->sent, t->len - t->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0) {
		t->sent += (size_t)n;
	} else if (errno != EAGAIN && errno != EINTR) { /* the reader is gone */
		t->sent = t->len;
		t->count = 0;
	}
}

/* @return whether there may be more at once; *empty: nothing is left to send. */
static bool turn(struct tracing *t, bool *empty)
{
	*empty = false;
	send_text(t);
	if (t->sent < t->len)
		return false;
	format(t);
	*empty = !t->len;
	send_text(t);
	return t->len;
}

/* @return whether there may be more at once. */
static bool poll_one(struct tracing *t)
{
	bool more, empty;

	if (!t->count || atomic_load_explicit(&t->trace->ended, memory_order_acquire))
		begin_end(t);
	if (t->give_up_ms)
		release(t);
	more = turn(t, &empty);
	if (!t->released || !(empty || loop_now_ms() >= t->give_up_ms))
		return more;
	free_tracing(t);
	return false;
}

int admin_traces_poll(struct ctl *ctl)
{
	bool more = false;
	struct list *next;

	for (struct list *l = ctl->admin->traces.next; l != &ctl->admin->traces; l = next) {
		next = l->next;
		more |= poll_one(container_of(l, struct tracing, node));
	}
	return !ctl->admin->ntraces ? -1 : more ? 0 : LOOK_MS;
}

void admin_traces_close(struct ctl *ctl)
{
	while (!list_empty(&ctl->admin->traces))
		free_tracing(container_of(ctl->admin->traces.next, struct tracing, node));
}

/* --- commands --------------------------------------------------------------------------- */

static struct tracing *find_tracing(const struct ctl *ctl, uint64_t qpn)
{
	for (struct list *l = ctl->admin->traces.next; l != &ctl->admin->traces; l = l->next) {
		struct tracing *t = container_of(l, struct tracing, node);

		if (t->qpn == qpn)
			return t;
	}
	return NULL;
}

static int take_words(struct tracing *t, const char *line, char why[ABI_SENTENCE_MAX])
{
	char text[ADMIN_LINE_MAX];
	char *word[ADMIN_WORDS + 1];
	int n;

	snprintf(text, sizeof(text), "%s", line);
	n = admin_stream_words(text, word, why);
	if (n < 0)
		return n;
	t->count = UINT64_MAX;
	for (int i = 0; i < n; i++) {
		if (!strcmp(word[i], "json"))
			t->json = true;
		else if (!strcmp(word[i], "cc"))
			t->trace->rates = true;
		else if (!strcmp(word[i], "csv"))
			t->csv = true;
		else if (strcmp(word[i], "count"))
			return refuse(why, -EINVAL,
				"\"%.32s\" is unknown: trace qp QPN accepts cc, csv, count COUNT, "
				"json and off",
				word[i]);
		else if (++i == n || !parse_number(word[i], UINT64_MAX, &t->count) || !t->count)
			return refuse(
				why, -EINVAL, "\"count\" needs a number of events, 1 or more");
	}
	if (t->csv && (t->json || !t->trace->rates))
		return refuse(why, -EINVAL,
			"csv is for rates: use trace qp QPN cc csv, or json instead of csv");
	return 0;
}

static int begin(struct tracing *t, char why[ABI_SENTENCE_MAX])
{
	struct ctl *ctl = t->ctl;
	int err = admin_stream_take(ctl, &t->watch.fd, why);

	if (err)
		return err;
	err = loop_watch(ctl->loop, &t->watch);
	if (!err && !ctl->admin->ntraces)
		tell_workers(ctl, true);
	if (!err)
		err = attach(ctl, find_qp(ctl, t->qpn), t->trace);
	if (err) {
		if (!ctl->admin->ntraces)
			tell_workers(ctl, false);
		loop_forget(ctl->loop, &t->watch);
		reap_fd(ctl->sessions->closer, OWNER_ROCID, t->watch.fd);
		return refuse(
			why, err, "QP %u cannot be traced (%s): try again", t->qpn, strerror(-err));
	}
	list_push(&ctl->admin->traces, &t->node);
	ctl->admin->ntraces++;
	return 0;
}

int admin_trace(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct tracing *t;
	int err;

	if (find_tracing(ctl, arg[0].number))
		return refuse(why, -EBUSY,
			"QP %.32s is already traced: \"trace qp %.32s off\" ends that", arg[0].word,
			arg[0].word);
	if (ctl->admin->ntraces == TRACES_MAX)
		return refuse(why, -EBUSY,
			"%u queue pairs are already traced: end one (\"show traces\" lists them)",
			TRACES_MAX);
	t = calloc(1, sizeof(*t));
	if (!t || !(t->trace = object_alloc(sizeof(*t->trace)))) {
		free(t);
		return refuse_memory(why);
	}
	t->ctl = ctl;
	t->qpn = (uint32_t)arg[0].number;
	t->watch.ready = reader_ready;
	err = take_words(t, arg[1].word, why);
	if (!err)
		err = begin(t, why);
	if (err) {
		free(t->trace);
		free(t);
	}
	return err;
}

int admin_trace_off(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct tracing *t = find_tracing(ctl, arg[0].number);

	if (!t)
		return refuse(why, -ENOENT,
			"QP %.32s is not traced: \"show traces\" lists the traced ones",
			arg[0].word);
	begin_end(t);
	return 0;
}

static bool next_trace(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	const struct list *l = list_at(&ctl->admin->traces, at->index++);
	const struct tracing *t;

	(void)arg;
	if (!l)
		return false;
	t = container_of(l, struct tracing, node);
	row_begin(&row);
	put_int(&row, "qpn", t->qpn);
	put_int(&row, "events", (int64_t)t->events);
	*element = row_end(&row);
	return true;
}

const struct document_section show_traces = {.name = "traces", .next = next_trace};
