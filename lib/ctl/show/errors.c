/* SPDX-License-Identifier: BSD-3-Clause */
/* What went wrong, as documents: failures of QPs, dropped packets, and all about one QP. */
#include <stdio.h>
#include <time.h>
#include "config/parts.h"
#include "core.h"
#include "diagnose/diagnose.h"
#include "session/failures.h"
#include "show/show.h"
#include "verbs/objects.h"

/* --- errors ------------------------------------------------------------------------------- */

/* "2026-11-22 09:30:12.123", where rocid is. */
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

/* at->index: below which number entries are to come, + 1; 0 at first. What changes meanwhile has a
 * higher one then, at->row or above: it is not told twice. */
static bool next_error(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
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
	*element = json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:I, s:s}", "time",
		date(e->time_ms, when), "what",
		e->drop	     ? "dropped"
		: e->stalled ? "stalled"
			     : "failed",
		"qpn", (json_int_t)e->qpn, "session", (json_int_t)e->session, "program", e->program,
		"cause", e->cause, "rule", e->rule, "times", (json_int_t)times, "why", e->text);
	return true;
}

/* --- drops -------------------------------------------------------------------------------- */

/* at->index: the reason. */
static bool next_drop(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct core_counters sum;

	show_count(ctl, &sum);
	while (++at->index < DROP_MAX) {
		enum drop why = (enum drop)at->index;

		if (!sum.drop[why])
			continue;
		*element = json_pack("{s:s, s:I, s:s, s:s}", "reason", drop_name(why), "packets",
			(json_int_t)sum.drop[why], "rule", drop_rule(why), "means",
			drop_means(why));
		return true;
	}
	return false;
}

/* --- one QP ------------------------------------------------------------------------------- */

/* The sentence that the program gets as well; of one that has not failed, what it waits for. */
static json_t *qp_why(struct ctl *ctl, const struct argument arg[])
{
	const struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct failure *e;
	char hint[ABI_WHY_MAX], when[32];

	if (!o)
		return json_null();
	e = failure_of_qp(ctl, o);
	if (e)
		return json_pack("{s:s, s:s, s:s, s:s}", "failed", date(e->time_ms, when), "cause",
			e->cause, "rule", e->rule, "why", e->text);
	diagnose_hint(ctl, o, hint);
	return json_pack("{s:s, s:s}", "failed", "no", "why", hint);
}

const struct document_section show_errors = {.name = "errors", .next = next_error};
const struct document_section show_drops = {.name = "drops", .next = next_drop};
const struct document_section show_qp_why = {.name = "why", .object = qp_why};
