/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario [--list] [--trace] [NAME...]: runs the rows of scenario_rows.c, or those that are named,
 * and prints how long each took in virtual time and how long it may take. --trace prints the
 * frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "scenario.h"
#include "scenario_trace.h"
#include "seq24.h"

#define LIMIT (600 * SEC)
#define AREA  (4u << 20)

struct run {
	const struct scenario *row;
	struct pair pair;
	struct traffic traffic;
	struct trace trace;
	uint64_t start;
	unsigned work[ENDS];	 /* item of row->work that is being posted */
	uint32_t posted[ENDS];	 /* messages of it */
	unsigned events;	 /* done */
	uint64_t drained[ENDS];	 /* when SQ_DRAINED came */
	uint32_t receives[ENDS]; /* that may still be posted */
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
	s->link[e].faults = end->faults;
	s->link[e].queue_ns = end->queue_ns;
	if (row->rate_bps)
		s->link[e].rate_bps = row->rate_bps;
	a->path_mtu = row->mtu ? row->mtu : a->path_mtu;
	a->sq_psn = end->sq_psn ? end->sq_psn - 1 : a->sq_psn;
	a->timeout = value(end->timeout, a->timeout);
	a->retry_cnt = value(end->retry_cnt, a->retry_cnt);
	a->rnr_retry = value(end->rnr_retry, a->rnr_retry);
	a->min_rnr_timer = value(end->rnr_timer, a->min_rnr_timer);
	if (end->rd_atomic)
		a->max_rd_atomic = s->attr[!e].max_dest_rd_atomic = (uint8_t)end->rd_atomic;
}

static uint32_t longest(const struct scenario *row)
{
	uint32_t len = 1;

	for (unsigned i = 0; i < SCENARIO_WORK; i++)
		if (row->work[i].len > len)
			len = row->work[i].len;
	return len;
}

static void begin(struct run *r, const struct scenario *row)
{
	struct traffic_spec spec = {.seed = 7, .area = AREA, .recv_len = longest(row)};
	struct pair_spec pair = pair_defaults();

	memset(r, 0, sizeof(*r));
	r->row = row;
	for (int e = A; e < ENDS; e++)
		set_end(row, &pair, e);
	pair_init(&r->pair, &pair);
	traffic_init(&r->traffic, r->pair.end[A].qp, r->pair.end[B].qp, &spec);
	trace_init(&r->trace, row, &r->pair);
	r->start = r->pair.fabric.now;
	for (int e = A; e < ENDS; e++) {
		uint8_t may = row->status[e];

		if (may)
			traffic_allow(&r->traffic, e,
				TRAFFIC_MAY(may) | TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR), 0);
		if (row->recv_status[e])
			traffic_allow(&r->traffic, e, TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR),
				TRAFFIC_MAY(row->recv_status[e]) |
					TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR));
		if (!row->end[e].starved)
			r->receives[e] = SCENARIO_FOREVER;
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
		link_set_faults(&end->link, &(struct link_faults){.loss = 1000000});
		break;
	case MEND:
		link_set_faults(&end->link, &r->row->end[ev->side].faults);
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
	case GHOST_ACK:
		trace_ghost_ack(&r->pair, ev->side, (uint32_t)ev->arg);
		break;
	case NOTHING:
		break;
	}
}

static const struct scenario_event *next_event(const struct run *r)
{
	const struct scenario_event *ev = &r->row->event[r->events];

	return r->events < SCENARIO_EVENTS && ev->what ? ev : NULL;
}

static void post(struct run *r, int e)
{
	const struct scenario_work *w;

	for (; r->work[e] < SCENARIO_WORK; r->work[e]++, r->posted[e] = 0) {
		w = &r->row->work[r->work[e]];
		if (w->side != e)
			continue;
		for (; r->posted[e] < w->count; r->posted[e]++)
			if (!traffic_post(&r->traffic, e,
				    &(struct traffic_wr){.op = w->op,
					    .len = w->len,
					    .flags = w->flags | ABI_WQE_SIGNALED,
					    .mistake = w->mistake}))
				return;
	}
}

static void post_receives(struct run *r, int e)
{
	while (r->receives[e] && traffic_post_recv(&r->traffic, e, 0, MISTAKE_NONE))
		if (r->receives[e] != SCENARIO_FOREVER)
			r->receives[e]--;
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

static unsigned drained(const struct run *r, int e)
{
	return app_event_count(&r->pair.end[e].app, ABI_EVENT_SQ_DRAINED);
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
	uint64_t until = ev ? r->start + ev->at : r->start + LIMIT;

	for (int e = A; e < ENDS; e++) {
		if (!traffic_broken(&r->traffic, e))
			post(r, e);
		post_receives(r, e);
	}
	if (!pair_step(&r->pair, until) && !ev)
		fail_msg("nothing moves any more");
	for (int e = A; e < ENDS; e++)
		if (!r->drained[e] && drained(r, e))
			r->drained[e] = r->pair.fabric.now - r->start;
	traffic_take(&r->traffic, &r->pair);
}

/* --- how it ended --------------------------------------------------------------------- */

static void check_counters(const struct run *r)
{
	for (unsigned i = 0; i < SCENARIO_COUNTS && r->row->count[i].offset; i++) {
		const struct scenario_count *c = &r->row->count[i];
		uint64_t got;

		memcpy(&got, (const char *)&r->pair.end[c->side].host->core.count + c->offset,
			sizeof(got));
		if (got < c->least || got > c->most)
			fail_msg("counter %u of side %c: %llu, not in [%llu, %llu]", i,
				"AB"[c->side], (unsigned long long)got,
				(unsigned long long)c -> least, (unsigned long long)c -> most);
	}
}

/* The receives of a QP whose send fails are flushed. */
static uint8_t recv_status(const struct scenario *row, int e)
{
	if (row->recv_status[e])
		return row->recv_status[e];
	return row->status[e] && !row->end[e].starved ? ABI_WC_WR_FLUSH_ERR : 0;
}

static void check_ends(const struct run *r)
{
	for (int e = A; e < ENDS; e++) {
		const struct traffic_side *side = &r->traffic.side[e];

		assert_int_equal(side->failed, r->row->status[e]);
		assert_int_equal(side->recv_failed, recv_status(r->row, e));
		assert_int_equal(drained(r, e), r->row->drained[e] != 0);
		assert_true(r->drained[e] >= r->row->drained[e]);
	}
}

/* Frames that are on their way, flushes, a timer that nobody should have left: a second more. */
static void settle(struct run *r)
{
	uint64_t until = r->pair.fabric.now + SEC;

	while (pair_step(&r->pair, until))
		traffic_take(&r->traffic, &r->pair);
	traffic_take(&r->traffic, &r->pair);
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
	settle(&r);
	if (print_trace)
		printf("%s", r.trace.text);
	printf("%-40s %12.3f ms of %12.3f\n", row->name, (double)took / 1e6,
		(double)row->most / 1e6);
	check_ends(&r);
	check_counters(&r);
	if (row->trace)
		assert_string_equal(r.trace.text, row->trace);
	assert_in_range(took, row->least, row->most);
	end(&r);
}

/* --- choosing ------------------------------------------------------------------------- */

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

int main(int argc, char **argv)
{
	struct CMUnitTest *tests = calloc(scenario_rows, sizeof(*tests));
	size_t n = 0;
	int rc;
	bool list = false;

	if (!tests)
		return 1;
	for (int i = 1; i < argc; i++) {
		list |= !strcmp(argv[i], "--list");
		print_trace |= !strcmp(argv[i], "--trace");
	}
	for (unsigned i = 0; i < scenario_rows; i++) {
		const struct scenario *row = &scenario_table[i];

		if (list)
			printf("%-40s %s\n", row->name, row->rules);
		else if (chosen(row->name, argc, argv))
			tests[n++] = (struct CMUnitTest){.name = row->name,
				.test_func = scenario_run,
				.initial_state = (void *)(uintptr_t)row};
	}
	if (!list && !n) {
		fprintf(stderr, "scenario: no row of that name: see --list\n");
		return 2;
	}
	rc = list ? 0 : _cmocka_run_group_tests("scenario", tests, n, NULL, NULL);
	free(tests);
	return rc;
}
