/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <rte_telemetry.h>
#include "admin/command.h"
#include "admin/telemetry.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "json_text.h"
#include "list.h"
#include "loop/loop.h"
#include "number.h"
#include "refuse.h"
#include "text/document.h"

/** A question of one of DPDK's threads; on that thread's stack, protected by the lock. */
struct question {
	struct list node;
	char line[ADMIN_LINE_MAX];
	struct document document;
	struct text text;
	bool begun;
	bool done;
	int result;
};

/* One per process, because DPDK passes no argument to handlers. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t answered; /* of the monotonic clock */
	struct list questions;	 /* oldest first */
	struct ctl *ctl;	 /* NULL: no daemon answers */
	struct watch watch;	 /* eventfd: there are questions */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .watch = {.fd = -1}};

/* A command, the administrators' command that it executes, and the part of the answer to return. */
static const struct endpoint {
	const char *command;
	const char *line;   /* %s: the parameter */
	const char *list;   /* of the answer; NULL: its first section, an object */
	const char *column; /* with `list`: the member to return of each element */
	bool all;	    /* all sections as objects; for a list, packets by `column` */
	const char *help;
} endpoint[] = {
	{"/roci/version", "version", NULL, NULL, false, "version, process, uptime"},
	{"/roci/totals", "show totals", NULL, NULL, false, "numbers of objects"},
	{"/roci/ports", "show ports", "ports", "port", false, "numbers of the ports"},
	{"/roci/port", "show port %s", NULL, NULL, true,
		"a port: state, MTU, device. Parameter: port"},
	{"/roci/gids", "show port %s", "gids", "gid", false,
		"valid GIDs of a port. Parameter: port"},
	{"/roci/counters", "show counters", NULL, NULL, false, "the transport's counters"},
	{"/roci/hw_counters", "show hw_counters", NULL, NULL, false,
		"counters under the names of hw_counters"},
	{"/roci/port_counters", "show port_counters port %s", NULL, NULL, false,
		"counters of a port. Parameter: port"},
	{"/roci/drops", "show drops", "drops", "reason", true, "packets dropped, by reason"},
	{"/roci/workers", "show workers", "workers", "worker", false, "numbers of the workers"},
	{"/roci/worker", "show workers worker %s", NULL, NULL, false,
		"a worker. Parameter: worker"},
	{"/roci/sessions", "show sessions", "sessions", "session", false,
		"numbers of the applications"},
	{"/roci/session", "show session %s", NULL, NULL, false,
		"an application. Parameter: session"},
	{"/roci/qps", "show qps", "qps", "qpn", false,
		"numbers of queue pairs, 512 at a time. Parameter: how many to skip"},
	{"/roci/qp", "show qp %s", NULL, NULL, true, "a queue pair. Parameter: QP number"},
};

/* --- the control thread ------------------------------------------------------------------ */

static void ring(void)
{
	uint64_t one = 1;

	if (write(state.watch.fd, &one, sizeof(one)) < 0)
		return; /* already signalled */
}

static void answer(struct question *q, int result)
{
	q->result = result;
	q->done = true;
	list_del(&q->node);
	pthread_cond_broadcast(&state.answered);
}

/* Generates one part of the oldest question's answer. */
static void work(struct question *q)
{
	int more;

	if (!q->begun) {
		q->begun = true;
		if (admin_execute(state.ctl, q->line, &q->document, &q->text)) {
			answer(q, -ENOMEM);
			return;
		}
		if (q->text.len) { /* a short answer, or an error */
			answer(q, 0);
			return;
		}
	}
	more = document_part(&q->document, &q->text);
	if (more <= 0)
		answer(q, more);
}

static void questions_ready(struct watch *w)
{
	uint64_t rung;

	if (read(w->fd, &rung, sizeof(rung)) < 0)
		return;
	pthread_mutex_lock(&state.lock);
	if (!list_empty(&state.questions))
		work(container_of(state.questions.next, struct question, node));
	if (!list_empty(&state.questions))
		ring();
	pthread_mutex_unlock(&state.lock);
}

/* --- DPDK's threads ---------------------------------------------------------------------- */

/* @return the answer, or NULL if there is none in time. */
static json_t *ask(const char *line)
{
	struct question *q = calloc(1, sizeof(*q));
	struct timespec until;
	json_t *root = NULL;
	int err = 0;

	if (!q)
		return NULL;
	snprintf(q->line, sizeof(q->line), "%s", line);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TELEMETRY_PATIENCE_MS / 1000;
	pthread_mutex_lock(&state.lock);
	if (state.ctl) {
		list_push(&state.questions, &q->node);
		ring();
		while (!q->done && !err)
			err = pthread_cond_timedwait(&state.answered, &state.lock, &until);
		if (!q->done)
			list_del(&q->node);
	}
	pthread_mutex_unlock(&state.lock);
	if (q->done && !q->result)
		root = json_loadb(q->text.bytes, q->text.len, 0, NULL);
	text_free(&q->text);
	free(q);
	return root;
}

static void add_value(struct rte_tel_data *d, const char *name, const json_t *value)
{
	char text[JSON_TEXT_MAX];

	if (json_is_integer(value) && json_integer_value(value) >= 0)
		rte_tel_data_add_dict_u64(d, name, (uint64_t)json_integer_value(value));
	else if (!json_is_object(value) && !json_is_array(value))
		rte_tel_data_add_dict_string(d, name, json_text(value, text));
}

static void add_object(struct rte_tel_data *d, json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		add_value(d, name, value);
	}
}

/* The object that a section is, or the first of its list. */
static json_t *object_of(json_t *section)
{
	return json_is_array(section) ? json_array_get(section, 0) : section;
}

/* Sections after the first become members of the first one's object. */
static void tell_objects(struct rte_tel_data *d, json_t *root, bool all)
{
	bool first = true;
	const char *name;
	json_t *section;

	rte_tel_data_start_dict(d);
	json_object_foreach(root, name, section)
	{
		struct rte_tel_data *inner;

		if (!json_is_object(object_of(section)))
			continue;
		if (first) {
			add_object(d, object_of(section));
		} else if (all && json_is_object(section) && (inner = rte_tel_data_alloc())) {
			rte_tel_data_start_dict(inner);
			add_object(inner, section);
			rte_tel_data_add_dict_container(d, name, inner, 0);
		}
		first = false;
	}
}

/* @param skip  number of elements to skip */
static void tell_column(struct rte_tel_data *d, const json_t *list, const char *column, size_t skip)
{
	bool text = json_is_string(json_object_get(json_array_get(list, 0), column));

	rte_tel_data_start_array(d, text ? RTE_TEL_STRING_VAL : RTE_TEL_U64_VAL);
	for (size_t i = skip; i < json_array_size(list) && i - skip < RTE_TEL_MAX_ARRAY_ENTRIES;
		i++) {
		const json_t *value = json_object_get(json_array_get(list, i), column);

		if (text)
			rte_tel_data_add_array_string(d, json_string_value(value));
		else
			rte_tel_data_add_array_u64(d, (uint64_t)json_integer_value(value));
	}
}

static void tell_packets(struct rte_tel_data *d, const json_t *list, const char *column)
{
	const json_t *element;
	size_t i;

	rte_tel_data_start_dict(d);
	json_array_foreach(list, i, element)
	{
		add_value(d, json_string_value(json_object_get(element, column)),
			json_object_get(element, "packets"));
	}
}

static int tell(const struct endpoint *e, const char *params, json_t *root, struct rte_tel_data *d)
{
	json_t *error = json_object_get(root, "error");
	/* A list is returned from the element whose number is the parameter. */
	uint64_t skip = 0;

	if (error) {
		rte_tel_data_start_dict(d);
		return rte_tel_data_add_dict_string(d, "error", json_string_value(error));
	}
	if (params && !strchr(e->line, '%') && !parse_in_base(params, 10, SIZE_MAX, &skip))
		skip = 0;
	if (!e->list)
		tell_objects(d, root, e->all);
	else if (e->all)
		tell_packets(d, json_object_get(root, e->list), e->column);
	else
		tell_column(d, json_object_get(root, e->list), e->column, skip);
	return 0;
}

static const struct endpoint *find(const char *command)
{
	for (unsigned i = 0; i < ARRAY_SIZE(endpoint); i++)
		if (!strcmp(endpoint[i].command, command))
			return &endpoint[i];
	return NULL;
}

/* The parameter is a word of a command line. */
static bool make_line(const struct endpoint *e, const char *params, char line[ADMIN_LINE_MAX])
{
	bool wanted = strchr(e->line, '%');

	if (wanted && (!params || !*params ||
			      strspn(params, "0123456789abcdefxABCDEF") != strlen(params) ||
			      strlen(params) > 20))
		return false;
	if (wanted)
		snprintf(line, ADMIN_LINE_MAX, "%.*s%s", (int)(strchr(e->line, '%') - e->line),
			e->line, params);
	else
		snprintf(line, ADMIN_LINE_MAX, "%s", e->line);
	return true;
}

static int handle(const char *command, const char *params, struct rte_tel_data *d)
{
	const struct endpoint *e = find(command);
	char line[ADMIN_LINE_MAX];
	json_t *root;
	int err;

	if (!e || !make_line(e, params, line)) {
		rte_tel_data_start_dict(d);
		return rte_tel_data_add_dict_string(
			d, "error", "a number is missing, as in /roci/port,1: see /help");
	}
	root = ask(line);
	if (!root)
		return -EAGAIN;
	err = tell(e, params, root, d);
	json_decref(root);
	return err;
}

/* --- life ---------------------------------------------------------------------------------- */

static void register_commands(void)
{
	static bool done;

	for (unsigned i = 0; i < ARRAY_SIZE(endpoint) && !done; i++)
		rte_telemetry_register_cmd(endpoint[i].command, handle, endpoint[i].help);
	done = true;
}

static void init_condition(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&state.answered, &attr);
	pthread_condattr_destroy(&attr);
	list_init(&state.questions);
}

int telemetry_open(struct ctl *ctl, char why[ABI_SENTENCE_MAX])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err;

	if (state.ctl) /* another daemon in this process, only in tests */
		return 0;
	pthread_once(&once, init_condition);
	state.watch = (struct watch){
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = questions_ready};
	err = state.watch.fd < 0 ? -errno : loop_watch(ctl->loop, &state.watch);
	if (err)
		return refuse(why, err,
			"rocid cannot serve telemetry (%s): raise its limit of open files (ulimit "
			"-n), or use --no-telemetry",
			strerror(-err));
	pthread_mutex_lock(&state.lock);
	state.ctl = ctl;
	pthread_mutex_unlock(&state.lock);
	register_commands();
	return 0;
}

void telemetry_close(struct ctl *ctl)
{
	pthread_mutex_lock(&state.lock);
	if (state.ctl == ctl) {
		state.ctl = NULL;
		while (!list_empty(&state.questions))
			answer(container_of(state.questions.next, struct question, node),
				-ESHUTDOWN);
		loop_unwatch(ctl->loop, &state.watch);
	}
	pthread_mutex_unlock(&state.lock);
}
