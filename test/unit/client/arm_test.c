/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CQ-03 to CQ-06 under stress: two workers (their real core, one a lane), libroci's real polling
 * and arming, and a third thread that resizes the queue all the time. Hundreds of thousands of
 * cycles:
 *
 *     1. the workers are allowed some completions, and begin to write them
 *     2. meanwhile the program arms, once or twice, polls, and sleeps if it finds nothing; it is
 *        woken by an event only
 *     3. when all is quiet, the events must be what the arms allow
 *
 * An event that is lost leaves the program asleep for ever (here: until patience is over); one that
 * is doubled, or raised for a completion that the arm did not ask for, is too many in 3.
 *
 * usage: arm_test CYCLES
 */
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "complete.h"
#include "harness.h"
#include "patience.h"
#include "qp.h"
#include "qp_impl.h"
#include "random.h"

#define LANES	  2u
#define DEPTH	  8
#define MOST	  3u /* completions of a lane in a cycle */
#define SPINS	  50
#define BURST_LEN 2u /* completions that a worker writes before it looks for waiting programs */

/* The completions that the workers write in a cycle: bit i of `solicited` for the i-th of `count`.
 */
struct plan {
	uint32_t count;
	uint32_t solicited;
};

struct writer {
	/* the program writes */
	struct plan plan;
	_Atomic uint32_t go; /* number of the cycle */
	/* the worker writes */
	_Atomic uint32_t done CACHE_ALIGNED;
	struct core core;
	struct qp qp;
	struct roci_qp *app_qp;
	pthread_mutex_t moving; /* the lane is not moved between two of its steps */
	pthread_t thread;
};

static struct writer writer[LANES];
static _Atomic uint32_t events CACHE_ALIGNED;
static atomic_bool stop;
static struct rig rig;
static struct roci_cq *cq;
static struct harness_cq *theirs;

struct totals {
	unsigned long arms, sleeps, delivered, resizes;
};

/* Lets another thread run now and then: there may be more of them than CPUs. */
static void relax(unsigned *spins)
{
	if (++*spins % SPINS == 0)
		sched_yield();
}

/* --- a worker --------------------------------------------------------------------------- */

static void take_events(struct writer *w)
{
	struct core_event ev[8];
	unsigned n = core_events(&w->core, ev, 8);

	for (unsigned i = 0; i < n; i++) {
		if (ev[i].type != ABI_EVENT_COMPLETION)
			errx(1, "event %u: the queue overflowed", ev[i].type);
		atomic_fetch_add(&events, 1);
	}
}

static void write_some(struct writer *w, uint32_t from, uint32_t to)
{
	pthread_mutex_lock(&w->moving);
	for (uint32_t i = from; i < to; i++) {
		struct abi_cqe e = {.qpn = w->app_qp->qp_num, .opcode = ABI_WC_RECV};

		if (w->plan.solicited >> i & 1) { /* CQ-06: either */
			e.flags = i % 2 ? ABI_WC_SOLICITED : 0;
			e.status = i % 2 ? ABI_WC_SUCCESS : ABI_WC_GENERAL_ERR;
		}
		qp_complete(&w->core, &w->qp, &e, 0);
	}
	take_events(w);
	pthread_mutex_unlock(&w->moving);
}

static void *write_lane(void *arg)
{
	struct writer *w = arg;
	uint32_t cycle = 0;
	unsigned spins = 0;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (atomic_load_explicit(&w->go, memory_order_acquire) == cycle) {
			relax(&spins);
			continue;
		}
		cycle++;
		for (uint32_t i = 0; i < w->plan.count; i += BURST_LEN)
			write_some(w, i,
				i + BURST_LEN < w->plan.count ? i + BURST_LEN : w->plan.count);
		atomic_store_explicit(&w->done, cycle, memory_order_release);
	}
	return NULL;
}

/* --- the resizing thread ---------------------------------------------------------------- */

static bool before_resize(
	struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	for (unsigned i = 0; msg->type == ABI_RESIZE_CQ && i < LANES; i++)
		pthread_mutex_lock(&writer[i].moving);
	return false; /* the harness moves the lanes, and calls: */
}

static void after_resize(struct harness *h)
{
	for (unsigned i = 0; i < LANES; i++)
		pthread_mutex_unlock(&writer[i].moving);
}

static void *resize(void *arg)
{
	struct totals *t = arg;
	unsigned seed = 1;

	while (!atomic_load(&stop)) {
		if (roci_resize_cq(cq, DEPTH + rand_r(&seed) % 200))
			errx(1, "resize: %s", roci_last_error());
		t->resizes++;
		usleep(1000);
	}
	return NULL;
}

/* --- the program ------------------------------------------------------------------------ */

static void sleep_for_event(uint32_t seen, struct totals *t)
{
	unsigned spins = 0;
	time_t end = 0;

	t->sleeps++;
	while (atomic_load_explicit(&events, memory_order_acquire) == seen) {
		relax(&spins);
		if (spins % (SPINS * 100) == 0) {
			if (!end)
				end = patience_begin();
			if (patience_over(end))
				errx(1, "no event for %d s: one was lost (%lu arms)", PATIENCE_S,
					t->arms);
		}
	}
}

static bool is_armed(void)
{
	return atomic_load(theirs->cq.arm) & ABI_CQ_ARM_MASK;
}

/* The events that a cycle asks for, and those that it may get. */
struct cycle {
	bool solicited_only; /* all its arms */
	bool twice;	     /* arms twice, for this and for that */
	bool sleeps;	     /* each completion that is missing will make an event */
	unsigned completions;
	unsigned solicited;
};

static void make_plan(struct random *random, struct cycle *c, unsigned lane)
{
	struct plan *p = &writer[lane].plan;

	p->count = (uint32_t)random_below(random, MOST + 1);
	p->solicited = (uint32_t)random_below(random, 1u << p->count);
	if (c->solicited_only && c->sleeps) { /* the last one of one lane */
		p->count = lane ? 0 : p->count + 1;
		p->solicited = p->count ? 1u << (p->count - 1) : 0;
	}
	c->completions += p->count;
	c->solicited += (unsigned)__builtin_popcount(p->solicited);
}

static struct cycle begin_cycle(struct random *random)
{
	uint64_t kind = random_below(random, 16);
	struct cycle c = {
		.solicited_only = kind < 4, .twice = kind == 4, .sleeps = kind < 2 || kind >= 4};

	for (unsigned i = 0; i < LANES; i++)
		make_plan(random, &c, i);
	for (unsigned i = 0; i < LANES; i++)
		atomic_fetch_add_explicit(&writer[i].go, 1, memory_order_release);
	for (uint64_t n = random_below(random, 256); n; n--)
		atomic_signal_fence(memory_order_seq_cst); /* the time that it takes */
	return c;
}

/* @return how often it armed. */
static unsigned arm(const struct cycle *c, struct random *random)
{
	int weak = c->solicited_only;

	if (c->twice) { /* CQ-05: strengthened, or not weakened */
		weak = (int)random_below(random, 2);
		roci_req_notify_cq(cq, !weak);
	}
	roci_req_notify_cq(cq, weak);
	return c->twice ? 2 : 1;
}

/* Takes what the cycle brings.  @return how often it armed. */
static unsigned receive(const struct cycle *c, struct random *random, struct totals *t)
{
	uint32_t seen = atomic_load(&events);
	unsigned arms = arm(c, random);
	unsigned spins = 0;
	unsigned got = 0;

	while (got < c->completions) {
		struct roci_wc wc[4];
		int n = roci_poll_cq(cq, 1 + (int)random_below(random, 4), wc);

		if (n < 0)
			errx(1, "poll: %s", roci_last_error());
		got += (unsigned)n;
		if (n || got == c->completions)
			continue;
		if (!c->sleeps) {
			relax(&spins);
			continue;
		}
		sleep_for_event(seen, t);
		seen = atomic_load(&events);
		arms += arm(c, random);
	}
	if (got > c->completions)
		errx(1, "%u completions instead of %u", got, c->completions);
	return arms;
}

static void wait_quiet(void)
{
	unsigned spins = 0;

	for (unsigned i = 0; i < LANES; i++)
		while (atomic_load_explicit(&writer[i].done, memory_order_acquire) !=
			atomic_load_explicit(&writer[i].go, memory_order_relaxed))
			relax(&spins);
}

/* One cycle, from quiet to quiet. */
static void run_cycle(struct random *random, struct totals *t)
{
	uint32_t before = atomic_load(&events);
	bool was_armed = is_armed();
	struct cycle c = begin_cycle(random);
	unsigned arms = receive(&c, random, t);
	uint32_t delivered;
	unsigned spent;

	wait_quiet();
	delivered = atomic_load(&events) - before;
	spent = delivered + is_armed(); /* CQ-04: each arm makes one event, or is there still */
	if (spent < 1 || spent > arms + was_armed || (arms == 1 && !was_armed && spent != 1))
		errx(1, "%u events and %s armed after %u arms, %s armed before", delivered,
			is_armed() ? "still" : "not", arms, was_armed ? "already" : "not");
	if (c.solicited_only && !c.solicited && !was_armed && delivered) /* CQ-03 */
		errx(1, "an event for completions that nobody asked for");
	t->arms += arms;
	t->delivered += delivered;
}

/* --- set-up ------------------------------------------------------------------------------ */

static void start(void)
{
	const struct core_config cfg = {0};

	rig_make(&rig, 4);
	cq = rig.cq;
	theirs = &rig.h->cq[0];
	rig.h->resized = after_resize;
	atomic_store(&rig.h->hook, before_resize);
	for (unsigned i = 0; i < LANES; i++) {
		struct writer *w = &writer[i];

		w->app_qp = i ? rig_qp(&rig, 4, 0) : rig.qp;
		w->qp.recv_lane = &theirs->cq.lane[i];
		core_init(&w->core, &cfg, 0);
		pthread_mutex_init(&w->moving, NULL);
		if (pthread_create(&w->thread, NULL, write_lane, w))
			err(1, "cannot start a thread");
	}
}

int main(int argc, char **argv)
{
	unsigned long cycles = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	struct random random = {.state = 1};
	struct totals t = {0};
	pthread_t resizer;

	start();
	if (pthread_create(&resizer, NULL, resize, &t))
		err(1, "cannot start a thread");
	for (unsigned long i = 0; i < cycles; i++)
		run_cycle(&random, &t);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < LANES; i++)
		pthread_join(writer[i].thread, NULL);
	pthread_join(resizer, NULL);
	printf("%lu arms in %lu cycles: %lu events, %lu sleeps, %lu resizes\n", t.arms, cycles,
		t.delivered, t.sleeps, t.resizes);
	if (!t.sleeps || t.resizes < 2)
		errx(1, "nothing was tested");
	if (roci_destroy_qp(writer[1].app_qp))
		errx(1, "destroy: %s", roci_last_error());
	rig_drop(&rig);
	return 0;
}
