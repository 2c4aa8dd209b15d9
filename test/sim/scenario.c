/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario [--list] [--trace] [NAME...]: runs all rows of scenario_*.c, or those that are named,
 * and prints how long each took in virtual time and how long it may take. --trace prints the
 * frames, --list the rows and the rules that they show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "scenario.h"
#include "abi_ctl.h"
#include "scenario_forge.h"
#include "scenario_trace.h"
#include "srq.h"

#define AREA	(4u << 20)
#define FOREVER UINT32_MAX

struct run {
	const struct scenario *row;
	struct pair pair;
	struct traffic traffic;
	struct trace trace;
	uint64_t start;
	unsigned work[ENDS];	 /* item of row->work that is being posted */
	uint32_t posted[ENDS];	 /* messages of it */
	unsigned events;	 /* done */
	uint64_t event_at[ENDS]; /* ns from the start until the first */
	uint32_t receives[ENDS]; /* that may still be posted */
	struct forge_end forge[ENDS];
};

static bool print_trace;

/* --- setting up ----------------------------------------------------------------------- */

static uint8_t value(uint32_t v, uint8_t otherwise)
{
	return v ? (uint8_t)(v - 1) : otherwise;
}

static void set_end(const struct scenario *row, struct pair_spec *s, int e)
{
	const struct scenario_end *end = &row->end[e];
	struct abi_qp_attr *a = &s->attr[e];

	s->qp[e].sq_depth = end->sq_depth ? end->sq_depth : s->qp[e].sq_depth;
	s->qp[e].rq_depth = end->rq_depth ? end->rq_depth : s->qp[e].rq_depth;
	s->qp[e].window = end->window;
	s->link[e].impair = end->impair;
	s->link[e].queue_ns = end->queue_ns;
	if (row->rate_bps)
		s->link[e].rate_bps = row->rate_bps;
	a->path_mtu = row->mtu ? row->mtu : a->path_mtu;
	a->sq_psn = end->sq_psn ? end->sq_psn - 1 : a->sq_psn;
	a->timeout = value(end->timeout, a->timeout);
	a->retry_cnt = value(end->retry_cnt, a->retry_cnt);
	a->rnr_retry = value(end->rnr_retry, a->rnr_retry);
	a->min_rnr_timer = value(end->rnr_timer, a->min_rnr_timer);
	a->access_flags &= ~end->refuse;
	if (end->rd_atomic)
		a->max_rd_atomic = (uint8_t)end->rd_atomic;
	if (row->end[!e].rd_atomic)
		a->max_dest_rd_atomic = (uint8_t)row->end[!e].rd_atomic;
	if (end->rd_accept)
		a->max_dest_rd_atomic = (uint8_t)end->rd_accept;
}

static uint32_t longest(const struct scenario *row)
{
	uint32_t len = 1;

	for (unsigned i = 0; i < SCENARIO_WORK; i++)
		if (row->work[i].len > len)
			len = row->work[i].len;
	return len;
}

/* Failures that the row wants, besides those that its mistakes explain. */
static void allow(struct run *r, int e)
{
	const uint32_t flush = TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR);
	uint8_t status = r->row->status[e];
	uint8_t recv = r->row->recv_status[e];

	if (r->row->end[e].refuse)
		traffic_refuse(&r->traffic, e, r->row->end[e].refuse);
	if (status)
		traffic_allow(&r->traffic, e, TRAFFIC_MAY(status) | flush, 0);
	if (recv)
		traffic_allow(&r->traffic, e, flush, TRAFFIC_MAY(recv) | flush);
}

/* XRC-04: what is named may be none of what the target may take from. */
static void misname(const struct scenario *row, struct srq *srq)
{
	switch (row->srq.named) {
	case NAMED_STRANGE:
		srq->xrcd = PAIR_XRCD + 1;
		break;
	case NAMED_PLAIN:
		srq->xrcd = 0;
		break;
	default:
		break;
	}
}

static void share(struct run *r)
{
	struct app_srq *srq = r->pair.end[B].srq;
	struct traffic_side *side = r->traffic.side;

	if (!srq)
		return;
	misname(r->row, &srq->srq);
	side[B].srq = srq;
	side[A].srqn = srq->srq.srqn + (r->row->srq.named == NAMED_UNKNOWN ? SRQ_MAX : 0);
}

static void begin(struct run *r, const struct scenario *row)
{
	struct traffic_spec spec = {.seed = 7, .area = AREA, .recv_len = longest(row)};
	struct pair_spec pair = pair_defaults();

	memset(r, 0, sizeof(*r));
	r->row = row;
	for (int e = A; e < ENDS; e++)
		set_end(row, &pair, e);
	pair.srq_depth = row->srq.depth;
	pair.xrc = row->srq.xrc;
	pair.gid = row->ipv6 ? HOST_GID_IPV6 : pair.gid;
	pair.cnp_interval = row->cnp_interval;
	pair_init(&r->pair, &pair);
	traffic_init(&r->traffic, r->pair.end[A].qp, r->pair.end[B].qp, &spec);
	share(r);
	trace_init(&r->trace, row, &r->pair);
	r->start = r->pair.fabric.now;
	for (int e = A; e < ENDS; e++) {
		allow(r, e);
		if (row->cnp_interval)
			forge_accept(&r->forge[e], &r->pair, e);
		if (!row->end[e].starved && !(row->srq.xrc && e == A))
			r->receives[e] = FOREVER;
	}
}

static void end(struct run *r)
{
	traffic_fini(&r->traffic);
	pair_fini(&r->pair);
}

/* --- what happens --------------------------------------------------------------------- */

static void modify(struct run *r, const struct scenario_event *ev, uint8_t state, uint32_t mask)
{
	struct abi_qp_attr a = {.qp_state = state, .en_sqd_async_notify = 1};

	assert_int_equal(app_modify(r->pair.end[ev->side].qp, ABI_QP_STATE | mask, &a, NULL,
				 r->pair.fabric.now),
		0);
}

static void happen(struct run *r, const struct scenario_event *ev)
{
	struct pair_end *end = &r->pair.end[ev->side];
	uint64_t now = r->pair.fabric.now;

	switch (ev->what) {
	case STOP_HOST:
		host_pause(end->host, now + ev->arg);
		break;
	case STOP_LINK:
		link_pause(&end->link, now + ev->arg);
		break;
	case CUT:
		link_set_impair(&end->link, &(struct link_impair){.loss = 1000000});
		break;
	case MEND:
		link_set_impair(&end->link, &r->row->end[ev->side].impair);
		break;
	case GIVE_RECEIVES:
		r->receives[ev->side] += (uint32_t)ev->arg;
		break;
	case TO_SQD:
		modify(r, ev, ABI_QPS_SQD, ABI_QP_EN_SQD_ASYNC_NOTIFY);
		break;
	case TO_RTS:
		modify(r, ev, ABI_QPS_RTS, 0);
		break;
	case TO_ERR:
		modify(r, ev, ABI_QPS_ERR, 0);
		break;
	case DEREGISTER:
		traffic_dereg(&r->traffic, ev->side, (enum traffic_region)ev->arg);
		break;
	case ARM_LIMIT:
		atomic_store(&end->srq->srq.limit, (uint32_t)ev->arg);
		break;
	case RESIZE_SRQ:
		app_srq_resize(end->srq, (uint32_t)ev->arg);
		break;
	case BREAK_SRQ:
		atomic_store(&end->srq->shared->producer, end->srq->posted + 1);
		r->receives[ev->side] = 0;
		break;
	case WITHDRAW_SRQ:
		app_srq_withdraw(&end->app, end->srq);
		r->receives[ev->side] = 0;
		break;
	case GHOST_ACK:
		trace_ghost_ack(&r->pair, ev->side, (uint32_t)ev->arg);
		break;
	case CNP:
		forge_cnp(&r->pair, ev->side, (enum forged_cnp)ev->arg);
		break;
	case FAST_CNP:
		forge_fast_cnp(&r->pair, ev->side, (unsigned)ev->arg);
		break;
	}
}

static const struct scenario_event *next_event(const struct run *r)
{
	const struct scenario_event *ev = &r->row->event[r->events];

	return r->events < SCENARIO_EVENTS && ev->what ? ev : NULL;
}

static bool post_one(struct run *r, int e, const struct scenario_work *w)
{
	bool quiet = (w->flags & UNSIGNALED) && r->posted[e] + 1 < w->count;
	struct traffic_wr wr = {
		.op = w->op,
		.len = w->len,
		.flags = (w->flags & ~UNSIGNALED) | (quiet ? 0 : ABI_WQE_SIGNALED),
		.mistake = w->mistake,
	};

	return traffic_post(&r->traffic, e, &wr);
}

static void post(struct run *r, int e)
{
	for (; r->work[e] < SCENARIO_WORK; r->work[e]++, r->posted[e] = 0) {
		const struct scenario_work *w = &r->row->work[r->work[e]];

		if (w->side != e)
			continue;
		for (; r->posted[e] < w->count; r->posted[e]++)
			if (!post_one(r, e, w))
				return;
	}
}

static void post_receives(struct run *r, int e)
{
	const struct traffic_side *me = &r->traffic.side[e];

	while (r->receives[e]) {
		bool bad = r->row->end[e].bad_recv == VAL(me->recv_posted);

		if (!traffic_post_recv(&r->traffic, e, 0, bad ? MISTAKE_RECV_LKEY : MISTAKE_NONE))
			return;
		if (r->receives[e] != FOREVER)
			r->receives[e]--;
	}
}

static bool all_posted(const struct run *r)
{
	return r->work[A] == SCENARIO_WORK && r->work[B] == SCENARIO_WORK;
}

static bool over(const struct run *r)
{
	for (int e = A; e < ENDS; e++)
		if (traffic_broken(&r->traffic, e) && r->row->status[e])
			return true;
	return all_posted(r) && traffic_idle(&r->traffic);
}

static const struct scenario_event *due_event(struct run *r)
{
	const struct scenario_event *ev;

	while ((ev = next_event(r)) && r->start + ev->at <= r->pair.fabric.now) {
		r->events++;
		happen(r, ev);
	}
	return ev;
}

static void step(struct run *r)
{
	const struct scenario_event *ev = due_event(r);
	/* twice as long as it may take: to tell how long it takes */
	uint64_t limit = r->start + 2 * r->row->most + MSEC;
	uint64_t until = ev ? r->start + ev->at : limit;

	for (int e = A; e < ENDS; e++) {
		if (!traffic_broken(&r->traffic, e))
			post(r, e);
		post_receives(r, e);
	}
	if ((!pair_step(&r->pair, until) && !ev) || r->pair.fabric.now > limit)
		fail_msg("%s is not over after %llu us", r->row->name,
			(unsigned long long)(limit - r->start) / USEC);
	for (int e = A; e < ENDS; e++)
		if (!r->event_at[e] && r->pair.end[e].app.events)
			r->event_at[e] = r->pair.fabric.now - r->start;
	traffic_take(&r->traffic, &r->pair);
}

/* --- how it ended --------------------------------------------------------------------- */

static void check_counters(const struct run *r)
{
	for (unsigned i = 0; i < SCENARIO_COUNTS && r->row->count[i].most; i++) {
		const struct scenario_count *c = &r->row->count[i];
		const struct core_counters *all = &r->pair.end[c->side].host->core.count;
		unsigned long long got, least = c->least, most = c->most - 1;

		got = ((const uint64_t *)all)[c->offset / sizeof(uint64_t)];
		if (got < least || got > most)
			fail_msg("%s of side %c is %llu, not in [%llu, %llu]", c->name,
				"AB"[c->side], got, least, most);
	}
}

static void must_happen(uint32_t millionths, uint64_t count)
{
	assert_true(!millionths || count);
}

/* An impairment that never happens shows nothing; a packet that is meant must be there. */
static void check_impair(const struct run *r, int e)
{
	const struct link_impair *f = &r->row->end[e].impair;
	const struct link_counters *n = &r->pair.end[e].link.count;

	must_happen(f->loss, n->lost);
	must_happen(f->duplicate, n->duplicated);
	must_happen(f->reorder, n->reordered);
	must_happen(f->corrupt, n->corrupted);
	must_happen(f->truncate, n->truncated);
	must_happen(f->pause, n->paused);
	for (unsigned i = 0; i < SCENARIO_PICKS; i++) {
		const struct scenario_pick *pick = &r->row->pick[i];

		if (pick->fate && pick->from == e)
			assert_true(r->trace.end[e].seen[i] > pick->nth);
	}
}

/* The receives of a QP whose send fails are flushed. */
static uint8_t recv_status(const struct scenario *row, int e)
{
	if (row->recv_status[e])
		return row->recv_status[e];
	if ((row->srq.depth && e == B) || row->srq.xrc) /* SRQ-07: they are for others */
		return 0;
	return row->status[e] && !row->end[e].starved ? ABI_WC_WR_FLUSH_ERR : 0;
}

static void check_end(const struct run *r, int e)
{
	const struct traffic_side *side = &r->traffic.side[e];
	const struct app *app = &r->pair.end[e].app;
	uint32_t event = r->row->event_of[e];

	assert_int_equal(side->failed, r->row->status[e]);
	assert_int_equal(side->recv_failed, recv_status(r->row, e));
	assert_int_equal(app->events, !!event + (unsigned)__builtin_popcount(r->row->also[e]));
	if (event)
		assert_int_equal(app_event_count(app, event), 1);
	for (uint32_t i = 0; i < 32; i++)
		if (r->row->also[e] >> i & 1)
			assert_int_equal(app_event_count(app, i), 1);
	assert_true(r->event_at[e] >= r->row->event_least[e]);
}

static void settle(struct run *r)
{
	uint64_t until = r->pair.fabric.now + SEC;

	while (pair_step(&r->pair, until))
		traffic_take(&r->traffic, &r->pair);
	traffic_take(&r->traffic, &r->pair);
}

/* Both QPs go to ERR: each request that is left is flushed (QPS-20), and nothing else was written
 * than what may have arrived. */
static void wind_up(struct run *r)
{
	const uint32_t flush = TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR);

	for (int e = A; e < ENDS; e++) {
		traffic_allow(&r->traffic, e, flush, flush);
		assert_int_equal(
			app_to_state(r->pair.end[e].qp, ABI_QPS_ERR, r->pair.fabric.now), 0);
	}
	settle(r);
	for (int e = A; e < ENDS; e++) {
		assert_int_equal(r->traffic.side[e].done, r->traffic.side[e].posted);
		if (!r->traffic.side[e].srq) /* SRQ-07: those are for others */
			assert_int_equal(
				r->traffic.side[e].recv_done, r->traffic.side[e].recv_posted);
	}
	traffic_restart(&r->traffic, r->pair.end[A].qp, r->pair.end[B].qp);
}

static void scenario_run(void **state)
{
	static struct run r;
	const struct scenario *row = *state;
	uint64_t took;

	begin(&r, row);
	while (!over(&r))
		step(&r);
	took = r.pair.fabric.now - r.start;
	settle(&r); /* late frames, flushes, a timer that nobody should have left */
	if (print_trace)
		printf("%s", r.trace.text);
	printf("%-40s %12.3f ms of %12.3f\n", row->name, (double)took / 1e6,
		(double)row->most / 1e6);
	for (int e = A; e < ENDS; e++) {
		check_end(&r, e);
		check_impair(&r, e);
	}
	check_counters(&r);
	if (row->trace)
		assert_string_equal(r.trace.text, row->trace);
	assert_in_range(took, row->least, row->most);
	wind_up(&r);
	end(&r);
}

/* --- choosing ------------------------------------------------------------------------- */

static const struct scenario_table *const tables[] = {&scenario_loss, &scenario_reads,
	&scenario_timers, &scenario_impair, &scenario_errors, &scenario_shared, &scenario_cnp};

/* Without a name: all. */
static bool chosen(const char *name, int argc, char **argv)
{
	bool any = false;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-')
			continue;
		any = true;
		if (!strcmp(argv[i], name))
			return true;
	}
	return !any;
}

static unsigned all_rows(void)
{
	unsigned n = 0;

	for (unsigned t = 0; t < ARRAY_SIZE(tables); t++)
		n += tables[t]->rows;
	return n;
}

/* Prints a chosen row, or makes it a test. @return tests made */
static size_t take_row(const struct scenario *row, bool list, struct CMUnitTest *test)
{
	if (list) {
		printf("%-40s %s\n", row->name, row->rules);
		return 0;
	}
	*test = (struct CMUnitTest){.name = row->name,
		.test_func = scenario_run,
		.initial_state = (void *)(uintptr_t)row};
	return 1;
}

int main(int argc, char **argv)
{
	struct CMUnitTest *tests = calloc(all_rows(), sizeof(*tests));
	bool list = false;
	size_t n = 0;
	int rc;

	if (!tests)
		return 1;
	for (int i = 1; i < argc; i++) {
		list |= !strcmp(argv[i], "--list");
		print_trace |= !strcmp(argv[i], "--trace");
	}
	for (unsigned t = 0; t < ARRAY_SIZE(tables); t++)
		for (unsigned i = 0; i < tables[t]->rows; i++)
			if (chosen(tables[t]->row[i].name, argc, argv))
				n += take_row(&tables[t]->row[i], list, &tests[n]);
	if (!list && !n)
		fprintf(stderr, "scenario: no row of that name: --list names all\n");
	rc = list ? 0 : n ? _cmocka_run_group_tests("scenario", tests, n, NULL, NULL) : 2;
	free(tests);
	return rc;
}
