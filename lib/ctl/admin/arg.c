/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "admin/arg.h"
#include "bits.h"
#include "cc.h"
#include "config/ctl_parts.h"
#include "inject.h"
#include "net/net.h"
#include "number.h"
#include "refuse.h"
#include "session/handles.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "show/show.h"
#include "text/document.h"
#include "verbs/cq_obj.h"
#include "verbs/mr_obj.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* --- objects ---------------------------------------------------------------------------- */

static int parse_qpn(struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (parse_number(arg[i].word, UINT32_MAX, &arg[i].number) && find_qp(ctl, arg[i].number))
		return 0;
	return refuse(
		why, -ENOENT, "QP %.32s does not exist: \"show qps\" lists the QPs", arg[i].word);
}

static bool next_qpn(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	const struct qp_obj *o = show_next_qp(ctl, at);

	if (!o)
		return false;
	snprintf(value, ADMIN_VALUE_MAX, "%u", o->qpn);
	return true;
}

static int parse_key(struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	struct session *owner;

	if (parse_number(arg[i].word, UINT32_MAX, &arg[i].number) &&
		find_mr(ctl, arg[i].number, &owner))
		return 0;
	return refuse(why, -ENOENT,
		"no memory region has key %.32s: \"show mrs\" lists the regions", arg[i].word);
}

static bool next_key(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	const struct mr_obj *o = show_next_mr(ctl, at);

	if (!o)
		return false;
	snprintf(value, ADMIN_VALUE_MAX, "0x%x", o->mr.key);
	return true;
}

static int parse_session(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (parse_number(arg[i].word, UINT32_MAX, &arg[i].number) &&
		find_session(ctl, arg[i].number))
		return 0;
	return refuse(why, -ENOENT,
		"session %.32s does not exist: \"show sessions\" lists the sessions", arg[i].word);
}

static bool next_session(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	while (at->index < SESSION_MAX) {
		const struct session *s = ctl->sessions->session[at->index++];

		if (!s || s->own)
			continue;
		snprintf(value, ADMIN_VALUE_MAX, "%u", s->number);
		return true;
	}
	return false;
}

/* A CQ's handle, of the session in the argument before it. */
static int parse_cq(struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	const struct session *s = find_session(ctl, arg[i - 1].number);

	if (s && parse_number(arg[i].word, UINT32_MAX, &arg[i].number) &&
		handle_get(&s->cqs, (uint32_t)arg[i].number))
		return 0;
	return refuse(why, -ENOENT, "session %.32s has no CQ %.32s: \"show cqs\" lists the CQs",
		arg[i - 1].word, arg[i].word);
}

static bool next_cq(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	const struct session *s = find_session(ctl, arg[i - 1].number);
	const struct cq_obj *o = s ? handle_next(&s->cqs, &at->index) : NULL;

	if (!o)
		return false;
	snprintf(value, ADMIN_VALUE_MAX, "%u", o->cq.handle);
	return true;
}

/* --- ports and workers ----------------------------------------------------------------- */

static int parse_port(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (parse_number(arg[i].word, ctl->net->nports, &arg[i].number) && arg[i].number)
		return 0;
	return refuse(why, -EINVAL, "port %.32s does not exist: this rocid has 1 to %u",
		arg[i].word, ctl->net->nports);
}

static bool next_port(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	snprintf(value, ADMIN_VALUE_MAX, "%u", ++at->index);
	return at->index <= ctl->net->nports;
}

static int parse_worker(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (parse_number(arg[i].word, ctl->dp->nworkers - 1, &arg[i].number))
		return 0;
	return refuse(why, -EINVAL, "worker %.32s does not exist: this rocid has 0 to %u",
		arg[i].word, ctl->dp->nworkers - 1);
}

static bool next_worker(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	snprintf(value, ADMIN_VALUE_MAX, "%u", at->index++);
	return at->index <= ctl->dp->nworkers;
}

/* --- numbers and words ------------------------------------------------------------------ */

static int parse_count(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (parse_number(arg[i].word, UINT32_MAX, &arg[i].number))
		return 0;
	return refuse(why, -EINVAL, "%.32s is not a number from 0 to %u", arg[i].word, UINT32_MAX);
}

static int parse_packets(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (parse_number(arg[i].word, WINDOW_MAX, &arg[i].number) && arg[i].number)
		return 0;
	return refuse(why, -EINVAL, "%.32s is not a number of packets from 1 to %u", arg[i].word,
		WINDOW_MAX);
}

/* Accepts "off" as 0. */
static int parse_limit_rate(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (!strcmp(arg[i].word, "off") || parse_rate(arg[i].word, &arg[i].number))
		return 0;
	return refuse(why, -EINVAL,
		"%.32s is neither a rate from 1M to 1000G, such as 100M, nor off", arg[i].word);
}

/* Completes the only word. */
static bool next_limit_rate(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	snprintf(value, ADMIN_VALUE_MAX, "off");
	return !at->index++;
}

/* Completes the words with which congestion control begins: two, and the algorithms. */
static bool next_cc(const char *first, const char *second, struct document_cursor *at, char value[])
{
	uint32_t i = at->index++;
	const struct cc_ops *ops = i < 2 ? NULL : cc_algorithm(i - 2);

	if (i >= 2 && !ops)
		return false;
	snprintf(value, ADMIN_VALUE_MAX, "%s", ops ? ops->name : i ? second : first);
	return true;
}

static bool next_port_cc(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	return next_cc("off", "notify", at, value);
}

static bool next_qp_cc(struct ctl *ctl, const struct argument arg[], unsigned i,
	struct document_cursor *at, char value[ADMIN_VALUE_MAX])
{
	return next_cc("port", "off", at, value);
}

/* In the range of the ports that rocid derives from flow labels (UDP-10). */
static int parse_sport(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (parse_number(arg[i].word, UINT16_MAX, &arg[i].number) &&
		(!arg[i].number || arg[i].number >= SPORT_MIN))
		return 0;
	return refuse(why, -EINVAL, "%.32s is neither a UDP source port from %u to %u nor 0",
		arg[i].word, SPORT_MIN, UINT16_MAX);
}

/* A number up to the maximum of the packet's field. */
static int parse_up_to(struct argument *arg, uint64_t most, char why[ABI_SENTENCE_MAX])
{
	if (parse_number(arg->word, most, &arg->number))
		return 0;
	return refuse(why, -EINVAL, "%.32s is not a number from 0 to %" PRIu64, arg->word, most);
}

static int parse_label(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	return parse_up_to(&arg[i], 0xFFFFF, why);
}

static int parse_byte(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	return parse_up_to(&arg[i], UINT8_MAX, why);
}

static int parse_sl(struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	return parse_up_to(&arg[i], SL_COUNT - 1, why); /* ETH-06 */
}

static int parse_pkey_index(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	return parse_up_to(&arg[i], PKEY_MAX - 1, why);
}

static int parse_pkey(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	return parse_up_to(&arg[i], UINT16_MAX, why);
}

static int parse_limit_value(
	struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX])
{
	arg[i].number = UINT32_MAX;
	if (!strcmp(arg[i].word, "none"))
		return 0;
	return parse_count(ctl, arg, i, why);
}

static const char *const on_off[] = {"off", "on", NULL};
static const char *const port_states[] = {"down", "up", NULL};

/* The last row is any text. */
static const struct admin_arg_kind kinds[] = {
	{"QPN", "a queue pair's number", NULL, parse_qpn, next_qpn},
	{"KEY", "a memory region's key", NULL, parse_key, next_key},
	{"SESSION", "an application's session", NULL, parse_session, next_session},
	{"CQ", "handle of a completion queue of that session", NULL, parse_cq, next_cq},
	{"PORT", "a port, from 1", NULL, parse_port, next_port},
	{"STATE", "down takes a port out of use", port_states, NULL, NULL},
	{"WORKER", "a worker, from 0", NULL, parse_worker, next_worker},
	{"FAULT", "the fault that affects a packet", inject_names + 1, NULL, NULL},
	{"COUNT", "a number", NULL, parse_count, NULL},
	{"PACKETS", "packets in flight, 1 to 65536", NULL, parse_packets, NULL},
	{"RATE", "bits per second on the wire, such as 100M or 2.5G, or off", NULL,
		parse_limit_rate, next_limit_rate},
	{"SPORT", "a UDP source port, 49152 to 65535, or 0", NULL, parse_sport, NULL},
	{"LABEL", "a flow label, 0 to 1048575", NULL, parse_label, NULL},
	{"TCLASS", "a traffic class, 0 to 255", NULL, parse_byte, NULL},
	{"HOPS", "a hop limit, 0 to 255", NULL, parse_byte, NULL},
	{"SL", "a service level, 0 to 7", NULL, parse_sl, NULL},
	{"INDEX", "an index into the P_Key table, from 0", NULL, parse_pkey_index, NULL},
	{"PKEY", "a P_Key, with 0x8000 set for a full member; 0 clears the entry", NULL, parse_pkey,
		NULL},
	{"CC", "off, or notify or an algorithm such as dcqcn[,PARAMETER=VALUE...]", NULL, NULL,
		next_port_cc},
	{"CHOICE", "port: as its port; off; or an algorithm such as dcqcn[,PARAMETER=VALUE...]",
		NULL, NULL, next_qp_cc},
	{"PRIORITIES", "default, or slA[-B]=P,dscpA[-B]=P,tag=yes", NULL, NULL, NULL},
	{"LIMIT", "a limit that \"show limits\" lists", quota_limit_names, NULL, NULL},
	{"VALUE", "a number, or none", NULL, parse_limit_value, NULL},
	{"IDLE", "what an idle worker does", idle_names, NULL, NULL},
	{"ON|OFF", "on or off", on_off, NULL, NULL},
	{"IMPAIRMENT",
		"none, or loss=P,dup=P,reorder=P,corrupt=P,truncate=P,nth=N,mask=HEX,delay=50us,"
		"seed=N",
		NULL, NULL, NULL},
	{"", "text", NULL, NULL, NULL},
};

const struct admin_arg_kind *admin_arg_kind_at(unsigned i)
{
	return i < ARRAY_SIZE(kinds) - 1 ? &kinds[i] : NULL;
}

const struct admin_arg_kind *admin_arg_kind(const char *name, size_t len)
{
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(kinds) - 1; i++)
		if (strlen(kinds[i].name) == len && !memcmp(kinds[i].name, name, len))
			break;
	return &kinds[i];
}

static int parse_choice(
	const struct admin_arg_kind *kind, struct argument *arg, char why[ABI_SENTENCE_MAX])
{
	char list[ABI_SENTENCE_MAX] = "";
	size_t len = 0;

	for (unsigned i = 0; kind->choices[i]; i++) {
		if (!strcmp(kind->choices[i], arg->word)) {
			arg->number = i;
			return 0;
		}
		if (len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
				i ? ", " : "", kind->choices[i]);
	}
	return refuse(why, -EINVAL, "\"%.32s\" is not one of: %s", arg->word, list);
}

int admin_arg_parse(struct ctl *ctl, const struct admin_arg_kind *kind, struct argument arg[],
	unsigned i, char why[ABI_SENTENCE_MAX])
{
	if (kind->choices)
		return parse_choice(kind, &arg[i], why);
	arg[i].number = 0;
	return kind->parse ? kind->parse(ctl, arg, i, why) : 0;
}
