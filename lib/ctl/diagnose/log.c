/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of failures: each is explained once, and the explanation is kept. */
#include <ctype.h>
#include <rte_cycles.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bits.h"
#include "cause.h"
#include "clock.h"
#include "config/ctl_parts.h"
#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"
#include "drop_log.h"
#include "qp.h"
#include "session/failures.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/fault.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* An entry of the current round, not numbered yet. */
#define NEW UINT32_MAX

void sentence_add(struct sentence *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->text + t->len, ABI_WHY_MAX - t->len, fmt, ap);
	va_end(ap);
	t->len += n > 0 ? (size_t)n : 0;
	if (t->len > ABI_WHY_MAX - 1)
		t->len = ABI_WHY_MAX - 1;
}

/* --- time ------------------------------------------------------------------------------- */

uint64_t worker_now_ns(const struct ctl *ctl)
{
	struct tsc_clock clock;

	clock_init(&clock, rte_get_tsc_hz(), ctl->dp->tsc);
	return clock_at(&clock, rte_rdtsc());
}

/* Converts @p ns of the workers' clocks. */
static uint64_t calendar_of(const struct ctl *ctl, uint64_t ns)
{
	uint64_t now = worker_now_ns(ctl);

	return loop_calendar_ms() - (now > ns ? (now - ns) / 1000000 : 0);
}

uint64_t diagnosis_age_ms(const struct diagnosis *c)
{
	uint64_t now = loop_calendar_ms();

	return now > c->time_ms ? now - c->time_ms : 0;
}

const char *time_text(uint64_t time_ms, char text[16])
{
	time_t t = (time_t)(time_ms / 1000);
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(text, 16, "%H:%M:%S", &tm);
	return text;
}

/* --- entries ---------------------------------------------------------------------------- */

static struct failure *find_entry(struct failure *first, uint32_t n, uint64_t key)
{
	for (uint32_t i = 0; i < n; i++)
		if (first[i].id && first[i].key == key)
			return &first[i];
	return NULL;
}

/* Empties @p e, for another failure. */
static struct failure *reuse(struct failure *e, uint64_t key)
{
	memset(e, 0, sizeof(*e));
	e->key = key;
	return e;
}

static struct failure *oldest_entry(struct failure *first, uint32_t n)
{
	struct failure *e = first;

	for (uint32_t i = 1; i < n; i++)
		if (first[i].id < e->id)
			e = &first[i];
	return e;
}

/* The entry of @p key, or the oldest one, emptied. */
static struct failure *take_entry(struct failure *first, uint32_t n, uint64_t key)
{
	struct failure *e = find_entry(first, n, key);

	if (e)
		return e;
	return reuse(oldest_entry(first, n), key);
}

static void keep_older(struct failure **oldest, struct failure *e)
{
	if (!*oldest || e->id < (*oldest)->id)
		*oldest = e;
}

/* The same for requests of @p uid, which programs can make up: at the user's limit, the user's
 * oldest one is replaced; at the limit for all users, their oldest one; never those of queue pairs.
 */
static struct failure *take_request(struct failures *w, uint64_t key, uid_t uid)
{
	struct failure *own = NULL, *any = NULL;
	uint32_t owns = 0, all = 0;

	for (uint32_t i = 0; i < FAILURES_MAX; i++) {
		struct failure *e = &w->error[i];

		if (!e->id || !e->request)
			continue;
		all++;
		keep_older(&any, e);
		if (e->uid != uid)
			continue;
		if (e->key == key)
			return e;
		owns++;
		keep_older(&own, e);
	}
	if (owns == FAILED_REQUESTS_MAX)
		return reuse(own, key);
	return reuse(all < REQUESTS_OF_ALL_MAX ? oldest_entry(w->error, FAILURES_MAX) : any, key);
}

static void set_owner(struct failure *e, const struct qp_obj *o)
{
	if (!o)
		return;
	e->session = o->session->number;
	memcpy(e->program, o->session->program, sizeof(e->program));
}

/* --- similar entries --------------------------------------------------------------------- */

#define FNV_START 14695981039346656037ull
#define FNV_PRIME 1099511628211ull

static uint64_t hash_more(uint64_t h, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * FNV_PRIME;
	return h;
}

/* A plain number, decimal or hexadecimal: a QPN, PSN or key, not an address or a time. */
static bool is_number(const char *word, size_t len)
{
	size_t i = len > 2 && word[0] == '0' && word[1] == 'x' ? 2 : 0;
	bool hex = i != 0;

	for (; i < len; i++)
		if (!(hex ? isxdigit((uint8_t)word[i]) : isdigit((uint8_t)word[i])))
			return false;
	return len > 0;
}

/* Letters, digits, and the separators within an address or a time. */
static size_t word_length(const char *text)
{
	size_t len = 0;

	while (isalnum((uint8_t)text[len]) ||
		((text[len] == '.' || text[len] == ':') && isalnum((uint8_t)text[len + 1])))
		len++;
	return len;
}

/* Many QPs of one program that fail for the same reason are reported once. Programs choose some of
 * the text: without the seed they cannot make it look like another's. */
static uint64_t alike(const struct failures *w, const struct failure *e)
{
	const uint32_t head[] = {e->session, (uint32_t)e->drop << 1 | e->stalled};
	uint64_t h = hash_more(FNV_START ^ w->seed, (const char *)head, sizeof(head));

	h = hash_more(h, e->cause, strlen(e->cause));
	for (const char *p = e->text; *p;) {
		size_t len = word_length(p);

		if (!len)
			h = hash_more(h, p++, 1);
		else if (!is_number(p, len))
			h = hash_more(h, p, len);
		p += len;
	}
	return h;
}

uint64_t failure_times(const struct ctl *ctl, const struct failure *e, uint32_t below)
{
	const struct failures *w = ctl->failures;
	const struct failure *all = e->drop ? w->drop : w->error;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < (e->drop ? FAILURE_DROPS_MAX : FAILURES_MAX); i++) {
		if (!all[i].id || all[i].id >= below || all[i].alike != e->alike)
			continue;
		if (all[i].id > e->id)
			return 0;
		sum += all[i].count;
	}
	return sum;
}

/* --- what happened ------------------------------------------------------------------------ */

static uint64_t error_key(const struct qp_obj *o, const struct cause_note *n)
{
	return (uint64_t)o->qpn << 40 ^ n->time;
}

/* Explains a QP's failure once: later the objects that explain it may no longer exist. */
static const struct failure *enter_error(
	struct ctl *ctl, const struct qp_obj *o, const struct cause_note *n)
{
	struct failures *w = ctl->failures;
	uint64_t key = error_key(o, n);
	struct failure *e = find_entry(w->error, FAILURES_MAX, key);
	struct diagnosis c = {
		.ctl = ctl,
		.o = o,
		.qp = o->qp,
		.n = n,
		.rule = cause_rule((enum cause)n->cause),
	};

	if (e)
		return e;
	e = take_entry(w->error, FAILURES_MAX, key);
	e->id = NEW;
	e->time_ns = n->time;
	e->time_ms = calendar_of(ctl, n->time);
	e->qpn = o->qpn;
	e->count = 1;
	e->cause = cause_name((enum cause)n->cause);
	e->stalled = n->cause == CAUSE_PEER_GAVE_UP;
	set_owner(e, o);
	c.time_ms = e->time_ms;
	c.t.text = e->text;
	diagnose_error(&c);
	if (fault_hits(o))
		sentence_add(&c.t,
			" (faults were injected into this QP on this side, %llu times: \"show "
			"faults\")",
			(unsigned long long)fault_hits(o));
	e->rule = c.rule;
	e->alike = alike(ctl->failures, e);
	return e;
}

static void enter_drop(struct ctl *ctl, const struct qp_obj *o, uint32_t worker, enum drop why,
	const struct drop_note *n)
{
	uint64_t key = (uint64_t)why << 48 | (uint64_t)worker << 32 | n->dest_qp;
	struct failure *e = take_entry(ctl->failures->drop, FAILURE_DROPS_MAX, key);
	struct sentence t = {.text = e->text};

	if (e->id && e->count == n->count)
		return;
	e->id = NEW;
	e->time_ns = n->time;
	e->time_ms = calendar_of(ctl, n->time);
	e->drop = true;
	e->qpn = n->dest_qp;
	e->count = n->count;
	e->cause = drop_name(why);
	e->rule = drop_rule(why);
	set_owner(e, o);
	diagnose_drop(&t, ctl, o, why, n);
	e->alike = alike(ctl->failures, e);
}

/* A program that retries again and again is reported once. */
static void enter_request(struct ctl *ctl, const struct failed_request *f)
{
	struct failure fresh = {.request = true,
		.uid = f->session->peer.uid,
		.qpn = f->qpn,
		.session = f->session->number,
		.cause = f->cause,
		.rule = f->rule};
	struct failure *e;

	memcpy(fresh.program, f->session->program, sizeof(fresh.program));
	snprintf(fresh.text, sizeof(fresh.text), "%s", f->text);
	fresh.alike = fresh.key = alike(ctl->failures, &fresh);
	e = take_request(ctl->failures, fresh.key, fresh.uid);
	fresh.count = e->count + 1;
	fresh.time_ms = loop_calendar_ms();
	*e = fresh;
	e->id = ++ctl->failures->next_id;
}

static struct failure *earliest_new(struct failure *first, uint32_t n, struct failure *best)
{
	for (uint32_t i = 0; i < n; i++)
		if (first[i].id == NEW && (!best || first[i].time_ns < best->time_ns))
			best = &first[i];
	return best;
}

/* Numbers new entries in the order in which the failures happened. */
static void number_new(struct failures *w)
{
	struct failure *e;

	while ((e = earliest_new(
			w->drop, FAILURE_DROPS_MAX, earliest_new(w->error, FAILURES_MAX, NULL))))
		e->id = ++w->next_id;
}

/* --- collecting ------------------------------------------------------------------------- */

static const struct cause_note *failure_of(const struct qp_obj *o)
{
	const struct cause_note *n = &o->qp->why.error;

	return atomic_load_explicit(&n->known, memory_order_acquire) ? n : NULL;
}

static const struct failure *of_qp(struct ctl *ctl, const struct qp_obj *o)
{
	const struct cause_note *n = failure_of(o);
	const struct failure *e = n ? enter_error(ctl, o, n) : NULL;

	number_new(ctl->failures);
	return e;
}

bool diagnose_stalled(struct ctl *ctl, const struct qp_obj *o, struct sentence *t)
{
	struct cause_note n;

	if (!qp_peer_gave_up(ctl, o, &n))
		return false;
	sentence_add(t, "%s", enter_error(ctl, o, &n)->text);
	number_new(ctl->failures);
	return true;
}

/** Failures of live QPs, the earliest first. */
struct live_failures {
	uint32_t n;
	const struct qp_obj *o[FAILURES_MAX];
};

static uint64_t failed_at(const struct qp_obj *o)
{
	return o->qp->why.error.time;
}

/* Otherwise failures in excess of the log's size would evict each other, and be explained again for
 * each query. */
static void keep_latest(struct live_failures *f, const struct qp_obj *o)
{
	uint32_t i;

	if (f->n == FAILURES_MAX) {
		if (failed_at(o) <= failed_at(f->o[0]))
			return;
		memmove(&f->o[0], &f->o[1], sizeof(f->o) - sizeof(f->o[0]));
		f->n--;
	}
	for (i = f->n++; i && failed_at(f->o[i - 1]) > failed_at(o); i--)
		f->o[i] = f->o[i - 1];
	f->o[i] = o;
}

static void find_errors(struct live_failures *f, struct session *s)
{
	const struct qp_obj *o;

	for (uint32_t i = 0; (o = handle_next(&s->qps, &i));) {
		const struct cause_note *n = failure_of(o);

		if (n && n->cause != CAUSE_COMMAND)
			keep_latest(f, o);
	}
}

/* Bounded, because thousands of QPs may be stalled for the same reason. */
static void collect_stalled(struct ctl *ctl)
{
	struct cause_note n;
	uint32_t stalled = 0;

	for (uint32_t i = 0; i < SESSION_MAX; i++) {
		const struct session *s = ctl->sessions->session[i];
		const struct qp_obj *o;

		for (uint32_t k = 0;
			s && stalled < FAILURES_AT_ONCE && (o = handle_next(&s->qps, &k));)
			if (!failure_of(o) && qp_peer_gave_up(ctl, o, &n)) {
				enter_error(ctl, o, &n);
				stalled++;
			}
	}
}

static void collect_errors(struct ctl *ctl)
{
	struct live_failures f = {0};

	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			find_errors(&f, ctl->sessions->session[i]);
	for (uint32_t i = 0; i < f.n; i++)
		enter_error(ctl, f.o[i], &f.o[i]->qp->why.error);
}

static void collect_drops(struct ctl *ctl, uint32_t worker, enum drop why)
{
	struct drop_note n;

	for (uint32_t slot = 0; slot < DROP_NOTES; slot++) {
		const struct qp_obj *o;

		if (!worker_drop_note(ctl->dp, worker, why, slot, &n))
			continue;
		o = find_qp(ctl, n.dest_qp);
		if (n.has_qp == (o != NULL) && drop_matters(ctl, o, why, &n, false))
			enter_drop(ctl, o, worker, why, &n);
	}
}

void diagnose_all(struct ctl *ctl)
{
	collect_errors(ctl);
	collect_stalled(ctl);
	for (uint32_t w = 0; w < ctl->dp->nworkers; w++)
		for (unsigned why = DROP_NONE + 1; why < DROP_MAX; why++)
			collect_drops(ctl, w, (enum drop)why);
	number_new(ctl->failures);
}

static const struct failure *below_in(
	const struct failure *first, uint32_t n, uint32_t below, const struct failure *best)
{
	for (uint32_t i = 0; i < n; i++)
		if (first[i].id && first[i].id < below &&
			(first[i].drop || strcmp(first[i].cause, cause_name(CAUSE_COMMAND)) != 0) &&
			(!best || first[i].id > best->id))
			best = &first[i];
	return best;
}

const struct failure *failure_before(const struct ctl *ctl, uint32_t below)
{
	const struct failures *w = ctl->failures;

	return below_in(
		w->drop, FAILURE_DROPS_MAX, below, below_in(w->error, FAILURES_MAX, below, NULL));
}

/* --- objects that are destroyed ----------------------------------------------------------- */

static void keep_drops(struct ctl *ctl, const struct qp_obj *o)
{
	struct drop_note n;

	for (uint32_t w = 0; w < ctl->dp->nworkers; w++)
		for (unsigned why = DROP_NONE + 1; why < DROP_MAX; why++)
			if (worker_drop_note(ctl->dp, w, (enum drop)why, o->qpn % DROP_NOTES, &n) &&
				n.dest_qp == o->qpn && n.has_qp &&
				drop_matters(ctl, o, (enum drop)why, &n, true))
				enter_drop(ctl, o, w, (enum drop)why, &n);
}

/* Thousands of QPs that fail and end together have the same reason: explaining each, with its route
 * and neighbour, would take long and evict the entries of others. */
static bool has_recorded_enough(const struct qp_obj *o)
{
	return o->session->closing && o->session->recorded++ >= FAILURES_AT_ONCE;
}

/* Counts the others in the latest entry of that session and cause, so that the log shows how many
 * there were. */
static void count_more(struct ctl *ctl, const struct qp_obj *o, const struct cause_note *n)
{
	const char *cause = cause_name((enum cause)n->cause);
	struct failure *latest = NULL;

	for (uint32_t i = 0; i < FAILURES_MAX; i++) {
		struct failure *e = &ctl->failures->error[i];

		if (e->id && e->session == o->session->number && e->cause == cause &&
			(!latest || e->id > latest->id))
			latest = e;
	}
	if (latest && !find_entry(ctl->failures->error, FAILURES_MAX, error_key(o, n)))
		latest->count++;
}

static void keep(struct ctl *ctl, const struct qp_obj *o)
{
	const struct cause_note *n = failure_of(o);
	struct cause_note stalled;

	if (!n && qp_peer_gave_up(ctl, o, &stalled))
		n = &stalled;
	if (n && n->cause != CAUSE_COMMAND) {
		if (has_recorded_enough(o))
			count_more(ctl, o, n);
		else
			enter_error(ctl, o, n);
	}
	keep_drops(ctl, o);
	number_new(ctl->failures);
}

const struct failure_ops diagnose_ops = {.of_qp = of_qp, .keep = keep, .request = enter_request};
