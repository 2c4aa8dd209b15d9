/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers that sleep. Nothing but what is tested would wake them: no ACK timeout runs unless a test
 * says so, so a wake-up that is lost leaves a completion out (rig_poll() gives up) or a call that
 * does not return.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "beside.h"
#include "core_command.h"
#include "eal_test.h"
#include "linkemu.h"
#include "patience.h"
#include "qp_impl.h"
#include "rig.h"

#define WAKES	 4000	/* at random moments */
#define PAUSE_NS 250000 /* the longest: a worker falls asleep after 100 us */
#define NEAR_NS	 30000	/* the longest after it said that it will */

static struct rig r;
static struct rig_qp a, b;
static unsigned seed;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Until somewhere between "just busy" and "long asleep", every other time around the moment at
 * which the worker of `q` falls asleep. */
static void random_pause(const struct rig_qp *q)
{
	uint64_t limit = PAUSE_NS;
	uint64_t end;

	if (rand_r(&seed) % 2) {
		while (!atomic_load(&q->w->sleeper.waker.asleep))
			sched_yield();
		limit = NEAR_NS;
	}
	end = now_ns() + (uint64_t)rand_r(&seed) % limit;
	while (now_ns() < end)
		;
}

static void up(uint32_t nworkers)
{
	seed = 1;
	rig_up_idle(&r, nworkers, IDLE_ADAPTIVE);
	rig_qp_up(&r, &a, 5, 0);
	rig_qp_up(&r, &b, 6, nworkers - 1);
	rig_start(&r);
	rig_connect(&r, &a, &b, 0, false);
	rig_connect(&r, &b, &a, 1, false);
}

static void down(void)
{
	rig_qp_down(&r, &a, 5);
	rig_qp_down(&r, &b, 6);
	rig_down(&r);
}

static uint64_t sleeps(void)
{
	struct worker_stats s;

	worker_stats(r.dp, &s);
	return s.sleeps;
}

/* The state that the kernel knows thread @p tid in. */
static char thread_state(pid_t tid)
{
	char path[64], state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state;
}

/* Whether all workers are in the kernel. One that only waits for a CPU is not: what it will do yet
 * would be taken for a wake-up. */
static bool all_asleep(void)
{
	for (uint32_t i = 0; i < r.dp->nworkers; i++)
		if (!atomic_load(&r.thread[i].w->sleeper.waker.asleep) ||
			thread_state(r.thread[i].tid) != 'S')
			return false;
	return true;
}

/* Waits until all workers are in the kernel, for good. */
static void wait_asleep(void)
{
	time_t end = patience_begin();
	uint64_t before;

	do {
		assert_false(patience_over(end));
		before = sleeps();
		usleep(20000);
	} while (!all_asleep() || !before || sleeps() != before);
}

static void one_write(struct rig_qp *from, struct rig_qp *to)
{
	rig_write(from, to, 100);
	assert_int_equal(rig_poll(from), ABI_WC_SUCCESS);
}

static void sleeper_rest__idle_worker_makes_no_rounds(void **state)
{
	uint64_t before;

	up(1);
	wait_asleep();
	before = sleeps();
	usleep(300000);
	assert_int_equal(sleeps(), before);
	assert_int_equal(atomic_load(&a.bell->asleep), 1);
	down();
}

/* Step by step: between the word and the sleep there is a round, whose bell keeps it up. */
static void sleeper_rest__looks_once_more(void **state)
{
	rig_up_idle(&r, 1, IDLE_ADAPTIVE);
	rig_qp_up(&r, &a, 5, 0);
	a.w->now = a.w->sleeper.busy_at;
	sleeper_rest(a.w, false);
	assert_false(atomic_load(&a.w->sleeper.waker.asleep)); /* it spins */
	a.w->now += 1000000;
	sleeper_rest(a.w, false);
	assert_int_equal(a.w->stats.sleeps, 0);
	assert_true(atomic_load(&a.w->sleeper.waker.asleep));
	assert_int_equal(atomic_load(&a.bell->asleep), 1);
	sleeper_rest(a.w, true);
	assert_int_equal(a.w->stats.sleeps, 0);
	assert_false(atomic_load(&a.w->sleeper.waker.asleep));
	assert_int_equal(atomic_load(&a.bell->asleep), 0);
	a.w->now += 1000;
	sleeper_rest(a.w, false); /* that counted as something to do */
	assert_false(atomic_load(&a.w->sleeper.waker.asleep));
	rig_qp_down(&r, &a, 5);
	rig_down(&r);
}

/* Work inside the worker itself keeps it awake: nobody would wake it for that. */
static void sleeper_rest__stays_up_for_what_is_left(void **state)
{
	rig_up_idle(&r, 1, IDLE_ADAPTIVE);
	rig_qp_up(&r, &a, 5, 0);
	a.w->now += 1000000;
	sleeper_rest(a.w, false);
	assert_true(atomic_load(&a.w->sleeper.waker.asleep));
	a.w->nkept = 1; /* an event that the notifier's ring did not take */
	sleeper_rest(a.w, false);
	a.w->nkept = 0;
	a.w->port[1].count = 1; /* a packet that the port did not take */
	sleeper_rest(a.w, false);
	a.w->port[1].count = 0;
	a.w->laid = 1; /* a packet that an inbox did not take */
	sleeper_rest(a.w, false);
	a.w->laid = 0;
	a.w->doorbell[0].pending[3] = 1; /* doorbells beyond a round's portion */
	sleeper_rest(a.w, false);
	a.w->doorbell[0].pending[3] = 0;
	qp_make_ready(&a.w->core, a.qp); /* a QP whose turn comes */
	sleeper_rest(a.w, false);
	assert_int_equal(a.w->stats.sleeps, 0);
	rig_qp_down(&r, &a, 5);
	rig_down(&r);
}

static void *polls(void *arg)
{
	while (!atomic_load(&beside.enough)) {
		for (uint64_t end = now_ns() + 5000; now_ns() < end;)
			;
		sched_yield();
	}
	return arg;
}

/* Rests until the worker's `shared` is @p value, beside a thread on the same CPU.  @return what it
 * was at the end */
static uint32_t rest_beside(void *(*run)(void *arg), uint32_t value)
{
	beside_begin(run);
	a.w->now = a.w->sleeper.busy_at + 60000;
	for (time_t end = patience_begin(); a.w->sleeper.shared != value && !patience_over(end);)
		sleeper_rest(a.w, false);
	beside_end();
	a.w->now = a.w->sleeper.busy_at;
	return a.w->sleeper.shared;
}

/* Step by step: a yield that another thread used, and the next round without work yields at once.
 */
static void sleeper_rest__yields_a_shared_cpu(void **state)
{
	rig_up_idle(&r, 1, IDLE_ADAPTIVE);
	rig_qp_up(&r, &a, 5, 0);
	assert_int_equal(rest_beside(polls, 64), 64);
	a.w->sleeper.shared = 7;
	sleeper_rest(a.w, false);
	assert_int_not_equal(a.w->sleeper.shared, 7); /* 6, or, if somebody used it, 64 or 0 */
	a.w->sleeper.shared = 0;
	sleeper_rest(a.w, false);
	assert_int_equal(a.w->sleeper.shared, 0); /* it spins */
	rig_qp_down(&r, &a, 5);
	rig_down(&r);
}

static void sleeper_rest__does_not_yield_to_a_computation(void **state)
{
	rig_up_idle(&r, 1, IDLE_ADAPTIVE);
	rig_qp_up(&r, &a, 5, 0);
	a.w->sleeper.shared = 64;
	assert_int_equal(rest_beside(computes, 0), 0);
	rig_qp_down(&r, &a, 5);
	rig_down(&r);
}

static void sleeper_rest__no_bell_is_lost(void **state)
{
	uint64_t before;

	up(1);
	before = sleeps();
	for (unsigned i = 0; i < WAKES; i++) {
		random_pause(i % 2 ? &a : &b);
		one_write(i % 2 ? &a : &b, i % 2 ? &b : &a);
	}
	assert_true(sleeps() > before + WAKES / 20); /* or this tests nothing */
	down();
}

/* A frame for another worker's QP wakes that worker, and its answer wakes the first. */
static void sleeper_rest__no_frame_between_workers_is_lost(void **state)
{
	up(2);
	for (unsigned i = 0; i < WAKES; i++) {
		random_pause(i % 2 ? &a : &b);
		one_write(i % 2 ? &a : &b, i % 2 ? &b : &a);
	}
	down();
}

static void sleeper_rest__no_command_is_lost(void **state)
{
	up(1);
	for (unsigned i = 0; i < WAKES; i++) {
		struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP, .qp = a.qp};

		random_pause(&a);
		assert_int_equal(worker_call(a.w, &cmd), 0);
		assert_int_equal(cmd.attr.qp_state, ABI_QPS_RTS);
	}
	down();
}

static void sleeper_rest__timers_run(void **state)
{
	struct linkemu_config cfg = {.impair.mask = 1};
	struct core_counters count;
	struct linkemu *emu;

	rig_up_idle(&r, 1, IDLE_ADAPTIVE);
	rig_qp_up(&r, &a, 5, 0);
	rig_qp_up(&r, &b, 6, 0);
	emu = linkemu_attach(r.ethdev[1], 0, &cfg);
	r.ack_timeout = 14;
	rig_start(&r);
	rig_connect(&r, &a, &b, 0, false);
	rig_connect(&r, &b, &a, 1, false);
	one_write(&a, &b);
	worker_counters(r.dp, &count);
	assert_true(count.local_ack_timeout_err >= 1);
	rig_qp_down(&r, &a, 5);
	rig_qp_down(&r, &b, 6);
	rig_stop(&r);
	linkemu_detach(emu);
	rig_down(&r);
}

static void worker_grace__does_not_wait_for_a_sleeper(void **state)
{
	uint64_t before;

	up(2);
	wait_asleep();
	before = sleeps();
	worker_grace(r.dp);
	assert_int_equal(sleeps(), before);
	down();
}

static void worker_wake__makes_one_round(void **state)
{
	uint64_t before;

	up(1);
	wait_asleep();
	before = sleeps();
	worker_wake(a.w);
	wait_asleep();
	assert_in_range(sleeps(), before + 1, before + 2);
	down();
}

static void worker_stop__wakes(void **state)
{
	up(2);
	wait_asleep();
	rig_stop(&r);
	rig_start(&r);
	one_write(&a, &b);
	down();
}

/* An application that does not know of sleeping workers only rings. */
static void worker_add_doorbell__old_application_is_served(void **state)
{
	int wake;

	up(1);
	wake = a.wake;
	a.wake = -1;
	atomic_store(&a.db.wakes, false);
	worker_wake(a.w); /* it may sleep for good already */
	for (unsigned i = 0; i < 100; i++) {
		random_pause(&a);
		one_write(&a, &b);
	}
	atomic_store(&a.db.wakes, true);
	a.wake = wake;
	down();
}

/* Each session that comes while a worker sleeps can see that it does. */
static void worker_add_doorbell__while_it_sleeps(void **state)
{
	struct rig_qp late;

	up(1);
	for (unsigned i = 0; i < 200; i++) {
		random_pause(&a);
		rig_qp_up(&r, &late, 7, 0);
		random_pause(&a);
		rig_ring(&late);
		wait_asleep();
		assert_int_equal(atomic_load(&late.bell->summary[0]), 0);
		rig_qp_down(&r, &late, 7);
	}
	down();
}

static void worker_doorbell_eventfd__is_for_sleepers(void **state)
{
	rig_up(&r, 1);
	rig_qp_up(&r, &a, 5, 0);
	assert_int_equal(worker_doorbell_eventfd(a.w, &a.db), -EOPNOTSUPP);
	rig_qp_down(&r, &a, 5);
	rig_down(&r);
}

/* An application may do anything to its descriptor: nobody else is kept awake or asleep. */
static void worker_doorbell_eventfd__hostile_application(void **state)
{
	const uint64_t full = UINT64_MAX - 1;
	uint64_t before;
	uint64_t sink;

	up(1);
	assert_int_equal(write(a.wake, &full, sizeof(full)), sizeof(full));
	assert_int_equal(fcntl(a.wake, F_SETFL, 0), 0); /* and now it blocks */
	wait_asleep();
	before = sleeps();
	usleep(100000);
	assert_int_equal(sleeps(), before);
	for (unsigned i = 0; i < 100; i++) {
		random_pause(&b);
		rig_write(&b, &a, 100);
		assert_int_equal(rig_poll(&b), ABI_WC_SUCCESS);
	}
	assert_int_equal(read(a.wake, &sink, sizeof(sink)), sizeof(sink));
	assert_int_equal(sink, full); /* nobody has read it */
	down();
}

static void worker_del_doorbell__its_eventfd_wakes_nobody(void **state)
{
	const uint64_t one = 1;
	uint64_t before;
	struct rig_qp gone;
	int wake;

	up(1);
	rig_qp_up(&r, &gone, 7, 0);
	wake = fcntl(gone.wake, F_DUPFD_CLOEXEC, 0);
	rig_qp_down(&r, &gone, 7);
	wait_asleep();
	before = sleeps();
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(write(wake, &one, sizeof(one)), sizeof(one));
	usleep(20000);
	assert_int_equal(sleeps(), before);
	close(wake);
	down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeper_rest__idle_worker_makes_no_rounds),
		cmocka_unit_test(sleeper_rest__looks_once_more),
		cmocka_unit_test(sleeper_rest__stays_up_for_what_is_left),
		cmocka_unit_test(sleeper_rest__yields_a_shared_cpu),
		cmocka_unit_test(sleeper_rest__does_not_yield_to_a_computation),
		cmocka_unit_test(sleeper_rest__no_bell_is_lost),
		cmocka_unit_test(sleeper_rest__no_frame_between_workers_is_lost),
		cmocka_unit_test(sleeper_rest__no_command_is_lost),
		cmocka_unit_test(sleeper_rest__timers_run),
		cmocka_unit_test(worker_grace__does_not_wait_for_a_sleeper),
		cmocka_unit_test(worker_wake__makes_one_round),
		cmocka_unit_test(worker_stop__wakes),
		cmocka_unit_test(worker_add_doorbell__old_application_is_served),
		cmocka_unit_test(worker_add_doorbell__while_it_sleeps),
		cmocka_unit_test(worker_doorbell_eventfd__is_for_sleepers),
		cmocka_unit_test(worker_doorbell_eventfd__hostile_application),
		cmocka_unit_test(worker_del_doorbell__its_eventfd_wakes_nobody),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
