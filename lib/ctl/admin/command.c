/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "admin/captures.h"
#include "admin/command.h"
#include "admin/complete.h"
#include "admin/form.h"
#include "admin/inject_qp.h"
#include "admin/migrate.h"
#include "admin/set.h"
#include "admin/set_qp.h"
#include "admin/traces.h"
#include "bits.h"
#include "refuse.h"
#include "row.h"
#include "show/show.h"

static const struct admin_command *row_at(unsigned i);

#define SHOW(...) ((const struct document_section *const[]){__VA_ARGS__, NULL})

/* Lists the next command that begins with LINE, or of all commands. */
static bool next_command(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	const struct admin_command *c = row_at(at->index++);

	if (!c)
		return false;
	row_begin(&row);
	put_text(&row, "command", c->form);
	put_text(&row, "does", c->help);
	*element = row_end(&row);
	return true;
}

static bool is_asked_for(const struct argument arg[], const json_t *element)
{
	return admin_form_begins(
		json_string_value(json_object_get(element, "command")), arg[0].word);
}

static const struct document_section show_commands = {
	.name = "commands", .next = next_command, .keep = is_asked_for};

static bool next_argument(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	return complete_argument(row_at, arg, at, element);
}

static const struct document_section show_arguments = {.name = "arguments", .next = next_argument};

static bool next_completion(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	return complete_next(row_at, ctl, arg, at, element);
}

static const struct document_section show_completions = {
	.name = "completions", .next = next_completion, .keep = complete_keep};

/* If you add a command, add it to doc/man/rocictl.1, too. For the syntax of forms see admin/form.h.
 */
static const struct admin_command table[] = {
	{"help LINE", "list the commands, or those that begin with LINE", NULL,
		SHOW(&show_commands, &show_arguments)},
	{"version", "version, process, uptime", NULL, SHOW(&show_version)},
	{"show totals", "the number of objects of each kind", NULL, SHOW(&show_totals)},
	{"show limits", "the limits of each application and each user", NULL, SHOW(&show_limits)},
	{"show sessions ...", "applications, their identities and their numbers of objects", NULL,
		SHOW(&show_sessions)},
	{"show session SESSION", "an application and its objects", NULL,
		SHOW(&show_session, &show_session_pds, &show_session_mrs, &show_session_cqs,
			&show_session_srqs, &show_session_qps)},
	{"show pds ...", "protection domains", NULL, SHOW(&show_pds)},
	{"show mrs ...", "memory regions", NULL, SHOW(&show_mrs)},
	{"show mws ...", "memory windows", NULL, SHOW(&show_mws)},
	{"show mr KEY", "a memory region", NULL, SHOW(&show_mr)},
	{"show cqs ...", "completion queues", NULL, SHOW(&show_cqs)},
	{"show srqs ...", "shared receive queues", NULL, SHOW(&show_srqs)},
	{"show cq SESSION CQ", "a completion queue", NULL, SHOW(&show_cq, &show_cq_lanes)},
	{"show qps ...", "queue pairs", NULL, SHOW(&show_qps)},
	{"show qp QPN", "a queue pair: its path, what it sends and receives, and why it failed",
		NULL,
		SHOW(&show_qp, &show_qp_why, &show_qp_path, &show_qp_requester, &show_qp_rate,
			&show_qp_responder, &show_qp_faults)},
	{"show traffic ...", "queue pairs: progress in PSNs, rate limits, CNPs; see `rocictl top`",
		NULL, SHOW(&show_traffic)},
	{"show ports ...", "ports, their netdevs and MTUs", NULL, SHOW(&show_ports)},
	{"show port PORT", "a port: its device, GIDs, P_Keys, priorities, steering", NULL,
		SHOW(&show_port, &show_device, &show_link, &show_port_gids, &show_port_pkeys,
			&show_port_priorities, &show_port_flows)},
	{"show gids ...", "GID tables", NULL, SHOW(&show_gids)},
	{"show pkeys ...", "P_Key tables", NULL, SHOW(&show_pkeys)},
	{"show priorities ...", "the 802.1p priorities of packets", NULL, SHOW(&show_priorities)},
	{"show cc ...", "congestion control of the ports, and the queue pairs that are limited",
		NULL, SHOW(&show_congestion, &show_limited)},
	{"show flows ...", "the rules that steer packets to the workers' queues", NULL,
		SHOW(&show_flows)},
	{"show ipoib ...",
		"netdevs of IP over InfiniBand: queue pairs, neighbours, groups, what was dropped",
		NULL, SHOW(&show_ipoib)},
	{"show cm", "the communication manager: totals of connections, messages, refusals", NULL,
		SHOW(&show_cm, &show_cm_messages)},
	{"show cm listeners ...", "programs that listen for connections", NULL,
		SHOW(&show_cm_listeners)},
	{"show cm connections ...", "connections of programs, and their states", NULL,
		SHOW(&show_cm_connections)},
	{"show workers ...", "workers", NULL, SHOW(&show_workers)},
	{"show counters", "the transport's counters, summed over all workers", NULL,
		SHOW(&show_counters)},
	{"show hw_counters", "the same under the kernel's names; never reset", NULL,
		SHOW(&show_hw_counters)},
	{"show port_counters ...", "the ports' traffic, under the kernel's names", NULL,
		SHOW(&show_port_counters)},
	{"metrics", "all values for monitoring; rocictl prints them as OpenMetrics", NULL,
		SHOW(&show_metrics)},
	{"show drops ...", "dropped packets by reason, with its meaning", NULL, SHOW(&show_drops)},
	{"show errors ...", "why QPs failed and packets were dropped, the latest first", NULL,
		SHOW(&show_errors)},
	{"show all", "all of these", NULL,
		SHOW(&show_version, &show_totals, &show_limits, &show_ports, &show_gids,
			&show_pkeys, &show_priorities, &show_congestion, &show_flows, &show_ipoib,
			&show_workers, &show_sessions, &show_pds, &show_mrs, &show_mws, &show_cqs,
			&show_srqs, &show_qps, &show_cm_listeners, &show_cm_connections,
			&show_counters, &show_drops, &show_errors)},
	{"set window PACKETS", "packets in flight per queue pair, for those created from now on",
		admin_set_window, NULL},
	{"set qp QPN window PACKETS", "packets in flight of a queue pair", admin_set_qp_window,
		NULL},
	{"set qp QPN rate RATE",
		"maximum rate of a queue pair, counting preamble and inter-frame gap",
		admin_set_qp_rate, NULL},
	{"set qp QPN cc CHOICE", "congestion control of a queue pair, in place of its port's",
		admin_set_qp_cc, NULL},
	{"set qp QPN sport SPORT",
		"UDP source port of a queue pair; 0: derived from its flow label",
		admin_set_qp_sport, NULL},
	{"set qp QPN flow-label LABEL", "its flow label; 0: derived from the QPNs",
		admin_set_qp_flow_label, NULL},
	{"set qp QPN traffic-class TCLASS", "its traffic class: DSCP * 4",
		admin_set_qp_traffic_class, NULL},
	{"set qp QPN hop-limit HOPS", "its hop limit or TTL; 0: 64 with RoCEv2",
		admin_set_qp_hop_limit, NULL},
	{"set qp QPN sl SL", "its service level", admin_set_qp_sl, NULL},
	{"set idle IDLE", "what idle workers do: poll or yield", admin_set_idle, NULL},
	{"set migrate ON|OFF", "whether QPs follow their packets to other workers",
		admin_set_migrate, NULL},
	{"set limit LIMIT VALUE", "set a limit of each application or each user", admin_set_limit,
		NULL},
	{"set port PORT STATE", "take a port out of use or put it back; programs receive an event",
		admin_set_port, NULL},
	{"set port PORT impair IMPAIRMENT",
		"impair the packets that the port receives (its emulated link)", admin_set_impair,
		NULL},
	{"set port PORT pkey INDEX PKEY",
		"set an entry of the port's P_Key table, effective at once for its queue pairs",
		admin_set_port_pkey, NULL},
	{"set port PORT priority PRIORITIES",
		"802.1p priorities of queue pairs and address handles created from now on",
		admin_set_port_priority, NULL},
	{"set port PORT cc CC",
		"congestion control, effective at once; ECN-capable datagrams for address handles "
		"created from now on",
		admin_set_port_cc, NULL},
	{"show captures", "running captures of frames", NULL, SHOW(&show_captures)},
	{"capture LINE",
		"send frames as pcapng: [qp QPN] [port PORT] [drops] [in|out] [count COUNT] "
		"[snap BYTES]; rocictl needs a FILE first, or - for its output",
		admin_capture, NULL},
	{"show traces", "running traces of queue pairs", NULL, SHOW(&show_traces)},
	{"trace qp QPN off", "end the trace of a queue pair", admin_trace_off, NULL},
	{"trace qp QPN LINE",
		"report the events of a queue pair: [cc [csv]] [count COUNT] [json]; cc: its rate "
		"alone",
		admin_trace, NULL},
	{"show faults ...", "injected faults, and how often they occurred", NULL,
		SHOW(&show_faults)},
	{"inject qp QPN FAULT LINE",
		"inject a fault into packets of a queue pair: [tx|rx] [PACKETS] [psn=FIRST-LAST] "
		"[nth=N] "
		"[every=N] [count=N|all] [probability=P seed=N], and the fault's own keys",
		admin_inject, SHOW(&show_qp_faults)},
	{"inject clear", "end all faults", admin_inject_clear, NULL},
	{"inject clear qp QPN", "end the faults of a queue pair", admin_inject_clear_qp, NULL},
	{"inject clear qp QPN fault COUNT", "end one of them, by its id", admin_inject_clear_one,
		NULL},
	{"migrate qp QPN to WORKER", "move a queue pair to another worker", admin_migrate, NULL},
	{"reset counters", "restart \"show counters\" at 0", admin_reset_counters, NULL},
	{"reset drops", "restart \"show drops\" at 0", admin_reset_drops, NULL},
	{"kill qp QPN", "move a queue pair to ERR: its work requests are flushed", admin_kill_qp,
		NULL},
	{"kill session SESSION", "end an application's session", admin_kill_session, NULL},
	{"complete LINE", "completions of the last word of a line, for programs", NULL,
		SHOW(&show_completions)},
};

static const struct admin_command *row_at(unsigned i)
{
	return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

/* --- one command ------------------------------------------------------------------------ */

static const struct admin_command *find(
	const struct admin_words *w, struct admin_word arg[], unsigned *pairs)
{
	for (unsigned i = 0; i < ARRAY_SIZE(table); i++)
		if (admin_form_fits(table[i].form, w, arg, pairs))
			return &table[i];
	return NULL;
}

/* Terminates a word of the document's line. */
static const char *end_word(const struct admin_word *w)
{
	w->at[w->len] = '\0';
	return w->at;
}

/* @return 0 or a negative errno with a sentence. */
static int parse_args(struct ctl *ctl, const char *form, const struct admin_word word[],
	struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct admin_word name;
	enum admin_part part;
	unsigned i = 0;
	int err = 0;

	while (!err && (part = admin_form_next(&form, &name)) != ADMIN_END) {
		if (part != ADMIN_ARG && part != ADMIN_LINE)
			continue;
		arg[i].word = end_word(&word[i]);
		err = admin_arg_parse(ctl, admin_arg_kind(name.at, name.len), arg, i, why);
		i++;
	}
	return err;
}

/* An empty list accepts any column, because its columns are unknown. */
static int check_column(struct ctl *ctl, const struct document_section *s,
	const struct argument arg[], const char *column, char why[ABI_SENTENCE_MAX])
{
	struct document_cursor at = {0};
	char list[ABI_SENTENCE_MAX] = "";
	json_t *row = NULL;
	const char *name;
	json_t *value;
	size_t len = 0;
	int err = 0;

	if (!s->next(ctl, arg, &at, &row) || !row)
		return 0;
	if (!json_object_get(row, column))
		err = -EINVAL;
	json_object_foreach(row, name, value)
	{
		if (len < sizeof(list))
			len += (size_t)snprintf(
				list + len, sizeof(list) - len, "%s%s", len ? ", " : "", name);
	}
	json_decref(row);
	return err ? refuse(why, err, "%s have no %.32s; they have %.160s", s->name, column, list)
		   : 0;
}

static int parse_pairs(struct document *d, const struct document_section *s,
	const struct admin_words *w, unsigned first, char why[ABI_SENTENCE_MAX])
{
	int err = 0;

	d->pairs = 0;
	if ((w->n - first) % 2)
		return refuse(why, -EINVAL, "%.32s needs a value, as in \"state err\"",
			end_word(&w->word[w->n - 1]));
	for (unsigned i = first; i < w->n && !err; i += 2) {
		struct document_pair *pair = &d->pair[d->pairs++];

		pair->member = end_word(&w->word[i]);
		pair->value = end_word(&w->word[i + 1]);
		err = check_column(d->ctl, s, d->arg, pair->member, why);
	}
	return err;
}

static int add_member(struct text *text, const char *name, const char *value)
{
	struct row r;
	int err;

	row_begin(&r);
	put_text(&r, name, value);
	err = text_add_json(text, row_end(&r));
	return err ? err : text_add(text, "\n", 1);
}

/* JSON needs UTF-8, and terminals must not receive control codes. */
static void take_line(struct document *d, const char *line)
{
	snprintf(d->line, sizeof(d->line), "%s", line);
	for (char *p = d->line; *p; p++)
		if (!isprint((unsigned char)*p) && *p != '\t' && *p != '\r')
			*p = '?';
}

static int refuse_line(const struct admin_words *w, char why[ABI_SENTENCE_MAX])
{
	const char *first = w->n ? end_word(&w->word[0]) : "";
	const char *second = w->n > 1 ? end_word(&w->word[1]) : "";
	bool begun = false;

	for (unsigned i = 0; i < ARRAY_SIZE(table); i++)
		begun |= *first && admin_form_begins(table[i].form, first);
	return refuse(why, -EINVAL,
		"unknown command \"%.64s%s%.64s%s\": \"help%s%.64s\" lists the commands", first,
		*second ? " " : "", second, w->n > 2 ? " ..." : "", begun ? " " : "",
		begun ? first : "");
}

/* @return 0 and the executed command, or a negative errno with a sentence. */
static int execute(struct document *d, const struct admin_command **out, char why[ABI_SENTENCE_MAX])
{
	struct admin_word arg[ADMIN_WORDS];
	const struct admin_command *c;
	struct admin_words w;
	unsigned pairs;
	int err;

	admin_words(&w, d->line);
	c = w.n ? find(&w, arg, &pairs) : NULL;
	if (!c)
		return refuse_line(&w, why);
	*out = c;
	err = parse_args(d->ctl, c->form, arg, d->arg, why);
	if (!err)
		err = parse_pairs(d, c->show ? c->show[0] : NULL, &w, pairs, why);
	return !err && c->run ? c->run(d->ctl, d->arg, why) : err;
}

int admin_execute(struct ctl *ctl, const char *line, struct document *d, struct text *text)
{
	const struct admin_command *c = NULL;
	char typed[sizeof(d->line)];
	char why[ABI_SENTENCE_MAX];

	d->ctl = ctl;
	take_line(d, line);
	strcpy(typed, d->line); /* before execute() splits it */
	if (execute(d, &c, why))
		return add_member(text, "error", why);
	if (!c->show)
		return add_member(text, "done", typed);
	document_begin(d, ctl, c->show);
	return 0;
}
