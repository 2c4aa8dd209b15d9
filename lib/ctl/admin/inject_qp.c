/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/inject_qp.h"
#include <errno.h>
#include "config/ctl_parts.h"
#include "inject.h"
#include "refuse.h"
#include "row.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "text/fault.h"
#include "verbs/fault.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

/* --- commands --------------------------------------------------------------------------- */

int admin_inject(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct abi_fault fault;
	uint32_t id;
	/* the argument's names begin after "none" */
	int err = fault_parse(&fault, (unsigned)arg[1].number + 1, arg[2].word, why);

	return err ? err : fault_arm(ctl, find_qp(ctl, arg[0].number), &fault, false, &id, why);
}

/* The next QP that has faults. */
static struct qp_obj *next_qp(struct ctl *ctl, struct document_cursor *at)
{
	for (; at->slot < SESSION_MAX; at->slot++, at->index = 0) {
		struct session *s = ctl->sessions->session[at->slot];
		struct qp_obj *o;

		while (s && s->ninjected && (o = handle_next(&s->qps, &at->index)))
			if (o->inject)
				return o;
	}
	return NULL;
}

int admin_inject_clear(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct document_cursor at = {0};
	struct qp_obj *o;
	int err = 0;

	(void)arg;
	while (!err && (o = next_qp(ctl, &at)))
		err = fault_clear(ctl, o, 0, why);
	return err;
}

int admin_inject_clear_qp(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	return fault_clear(ctl, find_qp(ctl, arg[0].number), 0, why);
}

int admin_inject_clear_one(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	if (!arg[1].number)
		return refuse(why, -ENOENT, "faults count from 1: \"show faults\" lists them");
	return fault_clear(ctl, find_qp(ctl, arg[0].number), (uint32_t)arg[1].number, why);
}

/* --- show ------------------------------------------------------------------------------- */

static json_int_t count_of(const uint64_t *counter)
{
	return (json_int_t)__atomic_load_n(counter, __ATOMIC_RELAXED);
}

static json_t *describe(const struct qp_obj *o, const struct inject_rule *r)
{
	struct row row;
	char what[FAULT_TEXT_MAX], where[FAULT_TEXT_MAX];

	row_begin(&row);
	put_int(&row, "qpn", o->qpn);
	put_int(&row, "id", r->id);
	put_text(&row, "fault", fault_what(&r->fault, what));
	put_text(&row, "packets", fault_where(&r->fault, where));
	put_int(&row, "matched", count_of(&r->matched));
	put_int(&row, "hits", count_of(&r->hits));
	put_int(&row, "missed", count_of(&r->missed));
	put_bool(&row, "armed", !inject_is_spent(r));
	return row_end(&row);
}

/* The fault of @p o with the lowest number above @p id: the order in which they were armed. */
static const struct inject_rule *next_of_qp(const struct qp_obj *o, uint32_t id)
{
	const struct inject_rule *next = NULL;

	for (unsigned i = 0; o && o->inject && i < INJECT_RULES; i++) {
		const struct inject_rule *r = &o->inject->rule[i];

		if (r->id > id && (!next || r->id < next->id))
			next = r;
	}
	return next;
}

/* at->number: the QP under way; at->row: its last fault. */
static bool next_fault(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	const struct inject_rule *r = NULL;
	const struct qp_obj *o;

	(void)arg;
	for (o = at->number ? find_qp(ctl, at->number) : NULL;
		!(r = next_of_qp(o, at->row)) && (o = next_qp(ctl, at));) {
		at->number = o->qpn;
		at->row = 0;
	}
	if (!r)
		return false;
	at->row = r->id;
	*element = describe(o, r);
	return true;
}

static bool next_qp_fault(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	const struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct inject_rule *r = next_of_qp(o, at->row);

	if (!r)
		return false;
	at->row = r->id;
	*element = describe(o, r);
	return true;
}

const struct document_section show_faults = {.name = "faults", .next = next_fault};
const struct document_section show_qp_faults = {.name = "faults", .next = next_qp_fault};
