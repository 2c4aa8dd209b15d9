/* SPDX-License-Identifier: BSD-3-Clause */
/* Problems as documents: failures of QPs, dropped packets, and why one QP failed or waits. */
#include <stdio.h>
#include <time.h>
#include "config/ctl_parts.h"
#include "core.h"
#include "diagnose/diagnose.h"
#include "row.h"
#include "session/failures.h"
#include "show/show.h"
#include "verbs/objects.h"

/* --- errors ------------------------------------------------------------------------------- */

/* "2026-11-22 09:30:12.123" in rocid's time zone. */
static const char *date(uint64_t time_ms, char text[32])
{
	time_t t = (time_t)(time_ms / 1000);
	struct tm tm;
	size_t n;

	localtime_r(&t, &tm);
	n = strftime(text, 32, "%F %T", &tm);
	snprintf(text + n, 32 - n, ".%03u", (unsigned)(time_ms % 1000));
	return text;
}

/* at->index: the number of the previous entry, + 1; 0 at first. Entries come in descending order.
 * One that changes meanwhile gets a number of at->row or above, so it is not listed twice. */
static bool next_error(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	const struct failure *e;
	uint64_t times;
	char when[32];

	if (!at->index)
		diagnose_all(ctl);
	do {
		e = failure_before(ctl, at->index ? at->index - 1 : UINT32_MAX);
		if (!e)
			return false;
		if (!at->index)
			at->row = e->id + 1;
		at->index = e->id + 1;
		times = failure_times(ctl, e, at->row);
	} while (!times);
	row_begin(&row);
	put_text(&row, "time", date(e->time_ms, when));
	put_text(&row, "what", e->drop ? "dropped" : e->stalled ? "stalled" : "failed");
	put_int(&row, "qpn", e->qpn);
	put_int(&row, "session", e->session);
	put_text(&row, "program", e->program);
	put_text(&row, "cause", e->cause);
	put_text(&row, "rule", e->rule);
	put_int(&row, "times", times);
	put_text(&row, "why", e->text);
	*element = row_end(&row);
	return true;
}

/* --- drops -------------------------------------------------------------------------------- */

/* at->index: the reason. */
static bool next_drop(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct core_counters sum;

	show_count(ctl, &sum);
	while (++at->index < DROP_MAX) {
		enum drop why = (enum drop)at->index;

		if (!sum.drop[why])
			continue;
		row_begin(&row);
		put_text(&row, "reason", drop_name(why));
		put_int(&row, "packets", sum.drop[why]);
		put_text(&row, "rule", drop_rule(why));
		put_text(&row, "means", drop_means(why));
		*element = row_end(&row);
		return true;
	}
	return false;
}

/* --- one QP ------------------------------------------------------------------------------- */

/* The sentence that the program gets, too; if the QP has not failed, what it waits for. */
static json_t *qp_why(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	const struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct failure *e;
	char hint[ABI_WHY_MAX], when[32];

	if (!o)
		return json_null();
	e = failure_of_qp(ctl, o);
	if (e) {
		row_begin(&row);
		put_text(&row, "failed", date(e->time_ms, when));
		put_text(&row, "cause", e->cause);
		put_text(&row, "rule", e->rule);
		put_text(&row, "why", e->text);
		return row_end(&row);
	}
	diagnose_hint(ctl, o, hint);
	row_begin(&row);
	put_text(&row, "failed", "no");
	put_text(&row, "why", hint);
	return row_end(&row);
}

const struct document_section show_errors = {.name = "errors", .next = next_error};
const struct document_section show_drops = {.name = "drops", .next = next_drop};
const struct document_section show_qp_why = {.name = "why", .object = qp_why};
