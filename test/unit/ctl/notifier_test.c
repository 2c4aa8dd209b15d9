/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rte_ring_elem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core.h"
#include "daemon.h"
#include "patience.h"
#include "session/notifier.h"

#define WAKES 41

static struct notifier n;
static struct event_turn turn, turn2, crowd;
static struct channel ch, other;
static struct event_source src, src2;
static int app, app2;

#define MANY_CQS  4000u /* of one session */
#define MANY_FROM 100u	/* their handles */
static struct event_source many[MANY_CQS];

/* Handle 1 is src, 2 is src2, from MANY_FROM on they are of `many`; others are gone. */
static struct event_source *find(void *arg, const struct core_event *ev)
{
	if (ev->handle >= MANY_FROM && ev->handle < MANY_FROM + MANY_CQS)
		return &many[ev->handle - MANY_FROM];
	return ev->handle == 1 ? &src : ev->handle == 2 ? &src2 : NULL;
}

static int setup(void **state)
{
	struct test_daemon *d = *state;

	notifier_init(&n, d->dp, find, NULL);
	event_turn_init(&turn);
	event_turn_init(&turn2);
	event_turn_init(&crowd);
	assert_int_equal(channel_open(&ch, &turn, &app), 0);
	assert_int_equal(channel_open(&other, &turn2, &app2), 0);
	event_source_init(&src, &ch, 1);
	event_source_init(&src2, &other, 2);
	return 0;
}

static int teardown(void **state)
{
	notifier_stop(&n);
	notifier_lock(&n);
	event_source_withdraw(&src);
	event_source_withdraw(&src2);
	channel_close(&ch);
	channel_close(&other);
	notifier_unlock(&n);
	close(app);
	close(app2);
	return 0;
}

static void queue_event(const struct test_daemon *d, uint32_t type, uint32_t handle)
{
	struct core_event ev = {.type = type, .handle = handle};

	assert_int_equal(rte_ring_enqueue_elem(d->dp->events, &ev, sizeof(ev)), 0);
}

/* @return false when nothing waits. */
static bool take(int fd, struct abi_event *ev)
{
	return recv(fd, ev, sizeof(*ev), MSG_DONTWAIT) == sizeof(*ev);
}

static void notifier_round__delivers(void **state)
{
	struct abi_event ev;

	queue_event(*state, ABI_EVENT_COMPLETION, 1);
	queue_event(*state, ABI_EVENT_QP_FATAL, 2);
	queue_event(*state, ABI_EVENT_QP_FATAL, 3); /* of an object that is gone */
	notifier_round(&n);
	assert_true(take(app, &ev));
	assert_int_equal(ev.type, ABI_EVENT_COMPLETION);
	assert_int_equal(ev.handle, 1);
	assert_false(take(app, &ev));
	assert_true(take(app2, &ev));
	assert_int_equal(ev.type, ABI_EVENT_QP_FATAL);
	assert_int_equal(ev.handle, 2);
	assert_false(take(app2, &ev));
	assert_int_equal(notifier_round(&n), 0);
}

static void notifier_round__coalesces_what_is_pending(void **state)
{
	struct abi_event ev;

	for (int i = 0; i < 10; i++)
		queue_event(*state, ABI_EVENT_COMPLETION, 1);
	queue_event(*state, ABI_EVENT_CQ_ERR, 1);
	notifier_round(&n);
	assert_true(take(app, &ev));
	assert_int_equal(ev.type, ABI_EVENT_COMPLETION);
	assert_true(take(app, &ev));
	assert_int_equal(ev.type, ABI_EVENT_CQ_ERR);
	assert_false(take(app, &ev));
}

static void raise_all(const uint32_t *type, unsigned count)
{
	notifier_lock(&n);
	for (unsigned i = 0; i < count; i++)
		notifier_raise(&n, &src, type[i]);
	notifier_unlock(&n);
}

static void expect_all(const uint32_t *type, unsigned count)
{
	struct abi_event ev;

	for (unsigned i = 0; i < count; i++) {
		assert_true(take(app, &ev));
		assert_int_equal(ev.type, type[i]);
	}
	assert_false(take(app, &ev));
}

/* Events come in order: the last one tells an application whether its port is up. */
static void notifier_round__in_the_order_they_were_raised(void **state)
{
	static const uint32_t port[] = {ABI_EVENT_PORT_ERR, ABI_EVENT_PORT_ACTIVE,
		ABI_EVENT_GID_CHANGE, ABI_EVENT_PORT_ERR};

	raise_all(port, 2);
	notifier_round(&n);
	expect_all(port, 2);
	raise_all(port, 3); /* up, whatever else happened then */
	notifier_round(&n);
	expect_all(port, 3);
	raise_all(port, 4); /* and down again */
	notifier_round(&n);
	expect_all(port + 1, 3);
}

/* A channel that nobody reads keeps its event and holds up no other. */
static void notifier_round__full_socket(void **state)
{
	struct abi_event ev;
	unsigned sent = 0, got = 0;

	for (int i = 0; i < 100000; i++) {
		queue_event(*state, ABI_EVENT_COMPLETION, 1);
		notifier_round(&n);
		if (src.npending) /* not taken: full */
			break;
		sent++;
	}
	assert_int_equal(src.npending, 1);
	queue_event(*state, ABI_EVENT_COMPLETION, 2);
	notifier_round(&n);
	assert_true(take(app2, &ev));
	while (take(app, &ev))
		got++;
	assert_int_equal(got, sent);
	notifier_round(&n); /* room again: what was kept comes */
	assert_true(take(app, &ev));
	assert_int_equal(ev.handle, 1);
	assert_int_equal(src.npending, 0);
}

static void notifier_round__application_closed_its_end(void **state)
{
	close(app);
	queue_event(*state, ABI_EVENT_COMPLETION, 1);
	notifier_round(&n);
	assert_int_equal(src.npending, 0);
	assert_true(list_empty(&n.busy));
	app = dup(app2); /* for teardown */
}

static void event_source_withdraw__forgets(void **state)
{
	struct abi_event ev;

	notifier_lock(&n);
	notifier_raise(&n, &src, ABI_EVENT_COMPLETION);
	event_source_withdraw(&src);
	notifier_raise(&n, &src, ABI_EVENT_COMPLETION); /* nobody listens any more */
	notifier_unlock(&n);
	notifier_round(&n);
	assert_false(take(app, &ev));
}

static void notifier_start__the_thread_delivers(void **state)
{
	struct pollfd pfd = {.fd = app, .events = POLLIN};
	struct abi_event ev;

	assert_int_equal(notifier_start(&n), 0);
	for (int i = 0; i < 200; i++) {
		queue_event(*state, ABI_EVENT_COMPLETION, 1);
		assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
		assert_true(take(app, &ev));
	}
	notifier_stop(&n);
	notifier_stop(&n); /* harmless */
}

static void wait_asleep(struct waker *k)
{
	time_t end = patience_begin();

	while (!atomic_load(&k->asleep)) {
		assert_false(patience_over(end));
		usleep(1000);
	}
}

/* It sleeps until a worker, or the control thread, wakes it, also around the moment at which it
 * falls asleep; and a socket that is full is looked at again though nobody wakes it for that. */
static void thread_sleeps(struct test_daemon *d, enum idle idle)
{
	struct pollfd pfd = {.fd = app, .events = POLLIN};
	struct abi_event ev;

	d->dp->idle = idle;
	assert_int_equal(notifier_start(&n), 0);
	for (int i = 0; i < 40; i++) {
		wait_asleep(&d->dp->notifier);
		usleep((unsigned)i % 4 * 50);
		if (i % 2) {
			queue_event(d, ABI_EVENT_COMPLETION, 1);
			waker_wake(&d->dp->notifier);
		} else {
			notifier_lock(&n);
			notifier_raise(&n, &src, ABI_EVENT_COMPLETION);
			notifier_unlock(&n);
		}
		assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
		assert_true(take(app, &ev));
	}
	while (send(ch.fd, &ev, sizeof(ev), MSG_DONTWAIT) > 0)
		;
	notifier_lock(&n);
	notifier_raise(&n, &src, ABI_EVENT_QP_FATAL);
	notifier_unlock(&n);
	usleep(100000);
	do {
		assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
		assert_true(take(app, &ev));
	} while (ev.type != ABI_EVENT_QP_FATAL);
	wait_asleep(&d->dp->notifier);
	notifier_stop(&n);
	d->dp->idle = IDLE_POLL;
}

static void notifier_start__the_thread_sleeps(void **state)
{
	thread_sleeps(*state, IDLE_ADAPTIVE);
}

static void notifier_start__the_thread_sleeps_beside_workers_that_yield(void **state)
{
	thread_sleeps(*state, IDLE_YIELD);
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* How long an event waits that comes while the thread sleeps, in microseconds: the median. */
static uint64_t usual_wait(struct test_daemon *d)
{
	struct pollfd pfd = {.fd = app2, .events = POLLIN};
	uint64_t took[WAKES];
	struct abi_event ev;

	for (unsigned i = 0; i < WAKES; i++) {
		wait_asleep(&d->dp->notifier);
		usleep(500); /* really */
		took[i] = now_us();
		queue_event(d, ABI_EVENT_COMPLETION, 2);
		waker_wake(&d->dp->notifier);
		assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
		took[i] = now_us() - took[i];
		assert_true(take(app2, &ev));
	}
	qsort(took, WAKES, sizeof(took[0]), by_size);
	return took[WAKES / 2];
}

/* One application does not read its events. The thread looks at its socket each 10 ms, but what
 * another's event waits is the time that a thread takes to wake. On a busy machine that is long for
 * a while and then short again: one good measurement shows it. */
static void notifier_start__a_full_socket_delays_nobody(void **state)
{
	struct test_daemon *d = *state;
	struct abi_event ev = {0};
	uint64_t alone, waits;
	unsigned tries = 0;

	d->dp->idle = IDLE_ADAPTIVE;
	assert_int_equal(notifier_start(&n), 0);
	alone = usual_wait(d);
	while (send(ch.fd, &ev, sizeof(ev), MSG_DONTWAIT) > 0)
		;
	notifier_lock(&n);
	notifier_raise(&n, &src, ABI_EVENT_QP_FATAL);
	notifier_unlock(&n);
	do
		waits = usual_wait(d);
	while (waits > 5000 + 2 * alone && ++tries < 10);
	assert_in_range(waits, 0, 5000 + 2 * alone);
	notifier_stop(&n);
	d->dp->idle = IDLE_POLL;
}

static void fill(const struct channel *c)
{
	const struct abi_event ev = {0};

	while (send(c->fd, &ev, sizeof(ev), MSG_DONTWAIT) > 0)
		;
}

static void empty(int fd)
{
	struct abi_event ev;

	while (take(fd, &ev))
		;
}

static void raise_one(struct event_source *s)
{
	notifier_lock(&n);
	notifier_raise(&n, s, ABI_EVENT_COMPLETION);
	notifier_unlock(&n);
}

#define CROWD_MAX 200

/* Channels of one session that nobody reads, each full and with a completion that waits. */
static struct {
	struct event_source source[CROWD_MAX];
	struct channel channel[CROWD_MAX];
	int fd[CROWD_MAX];
	unsigned n;
} full;

static void full_open(unsigned count)
{
	for (full.n = 0; full.n < count; full.n++) {
		struct channel *c = &full.channel[full.n];

		assert_int_equal(channel_open(c, &crowd, &full.fd[full.n]), 0);
		event_source_init(&full.source[full.n], c, full.n);
		fill(c);
		raise_one(&full.source[full.n]);
	}
}

static void full_close(void)
{
	for (unsigned i = 0; i < full.n; i++) {
		event_source_withdraw(&full.source[i]);
		channel_close(&full.channel[i]);
		close(full.fd[i]);
	}
}

/* Channels that nobody reads take turns: one that is read again gets what it is owed. */
static void notifier_round__many_full_channels(void **state)
{
	enum {
		MANY = 100
	};
	struct abi_event ev;

	full_open(MANY);
	for (int i = 0; i < 5; i++)
		assert_int_equal(notifier_round(&n), 0);
	queue_event(*state, ABI_EVENT_COMPLETION, 1); /* another one waits for none of them */
	notifier_round(&n);
	assert_true(take(app, &ev));
	empty(full.fd[MANY - 1]);
	for (int i = 0; i < MANY; i++)
		notifier_round(&n);
	assert_true(take(full.fd[MANY - 1], &ev));
	assert_int_equal(ev.handle, MANY - 1);
	full_close();
}

/* One session's channels are all full. Another session's, which was full as well, is read again: it
 * has its turn with the next round, also after channels of both were closed. */
static void notifier_round__sessions_with_full_channels_take_turns(void **state)
{
	enum {
		MANY = 200
	};
	struct abi_event ev;

	full_open(MANY);
	fill(&other);
	raise_one(&src2);
	for (int i = 0; i < MANY; i++) /* until all are known to be full */
		assert_int_equal(notifier_round(&n), 0);
	empty(app2);
	assert_int_equal(notifier_round(&n), 1);
	assert_true(take(app2, &ev));
	assert_int_equal(ev.handle, 2);
	full_close();
	assert_true(list_empty(&n.full));
	fill(&other);
	raise_one(&src2);
	assert_int_equal(notifier_round(&n), 0);
	assert_false(list_empty(&n.full));
	empty(app2);
	assert_int_equal(notifier_round(&n), 1);
	assert_true(list_empty(&n.full));
}

/* Thousands of CQs of one session, on many channels: another session's event, which came last, goes
 * with the next round, and no round is long. */
static void notifier_round__sessions_take_turns(void **state)
{
	enum {
		CHANNELS = 50
	};
	static struct channel c[CHANNELS];
	static int fd[CHANNELS];
	struct abi_event ev;
	unsigned first, rounds = 0;

	for (unsigned i = 0; i < CHANNELS; i++)
		assert_int_equal(channel_open(&c[i], &crowd, &fd[i]), 0);
	for (unsigned i = 0; i < MANY_CQS; i++) {
		event_source_init(&many[i], &c[i % CHANNELS], MANY_FROM + i);
		queue_event(*state, ABI_EVENT_COMPLETION, MANY_FROM + i);
	}
	queue_event(*state, ABI_EVENT_COMPLETION, 2);
	first = notifier_round(&n) - (MANY_CQS + 1); /* that it took */
	assert_true(take(app2, &ev));
	assert_int_equal(ev.handle, 2);
	assert_in_range(first, 1, 100); /* events sent with the lock held */
	while (notifier_round(&n))
		assert_true(++rounds < MANY_CQS);
	for (unsigned i = 0; i < MANY_CQS; i++) {
		assert_true(take(fd[i % CHANNELS], &ev)); /* in their order, all of them */
		assert_int_equal(ev.handle, MANY_FROM + i);
		event_source_withdraw(&many[i]);
	}
	for (unsigned i = 0; i < CHANNELS; i++) {
		channel_close(&c[i]);
		close(fd[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			notifier_round__many_full_channels, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notifier_round__sessions_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notifier_round__sessions_with_full_channels_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(notifier_start__the_thread_sleeps, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notifier_start__the_thread_sleeps_beside_workers_that_yield, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			notifier_start__a_full_socket_delays_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(notifier_round__delivers, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notifier_round__coalesces_what_is_pending, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notifier_round__in_the_order_they_were_raised, setup, teardown),
		cmocka_unit_test_setup_teardown(notifier_round__full_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notifier_round__application_closed_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(event_source_withdraw__forgets, setup, teardown),
		cmocka_unit_test_setup_teardown(
			notifier_start__the_thread_delivers, setup, teardown),
	};

	return cmocka_run_group_tests_name(
		"notifier", tests, daemon_group_setup, daemon_group_teardown);
}
