/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "patience.h"

#define FIRST 7u /* handle of the first object of each kind */

struct test {
	struct rig rig;
	struct roci_channel *channel;
	struct roci_cq *cq; /* with the channel; the second of the harness */
	int user;
};

static int setup(void **state)
{
	struct test *t = calloc(1, sizeof(*t));

	rig_make(&t->rig, 4);
	/* An event that libroci passes by fails its test, which else would wait for it. */
	fcntl(t->rig.ctx->async_fd, F_SETFL, O_NONBLOCK);
	t->channel = roci_create_channel(t->rig.ctx);
	assert_non_null(t->channel);
	t->cq = roci_create_cq(t->rig.ctx, 8, &t->user, t->channel, 0);
	assert_non_null(t->cq);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct test *t = *state;

	if (t->cq)
		assert_int_equal(roci_destroy_cq(t->cq), 0);
	if (t->channel)
		assert_int_equal(roci_destroy_channel(t->channel), 0);
	rig_drop(&t->rig);
	free(t);
	return 0;
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void complete(struct test *t, uint8_t status)
{
	harness_complete(t->rig.h, 1, 0, 0, 1, ABI_WC_SEND, status);
}

static void complete_armed(struct test *t)
{
	roci_req_notify_cq(t->cq, 0);
	complete(t, ABI_WC_SUCCESS);
}

static void get_cq_event__of_an_armed_cq(void **state)
{
	struct test *t = *state;
	struct roci_cq *cq = NULL;
	void *user = NULL;

	complete(t, ABI_WC_SUCCESS);
	assert_false(readable(t->channel->fd)); /* not armed */
	roci_req_notify_cq(t->cq, 0);
	assert_false(readable(t->channel->fd)); /* CQ-04 */
	complete(t, ABI_WC_SUCCESS);
	complete(t, ABI_WC_SUCCESS);
	assert_true(readable(t->channel->fd));
	assert_int_equal(roci_get_cq_event(t->channel, &cq, &user), 0);
	assert_ptr_equal(cq, t->cq);
	assert_ptr_equal(user, &t->user);
	assert_false(readable(t->channel->fd)); /* one-shot */
	roci_ack_cq_events(cq, 1);
}

/* As adapters do it: perftest takes 16 after an event, and waits for the next. */
static void get_cq_event__some_are_left(void **state)
{
	struct test *t = *state;
	struct roci_cq *cq;
	struct roci_wc wc[3];

	fcntl(t->channel->fd, F_SETFL, O_NONBLOCK);
	complete(t, ABI_WC_SUCCESS);
	complete(t, ABI_WC_SUCCESS);
	roci_req_notify_cq(t->cq, 0);
	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), 0);
	assert_ptr_equal(cq, t->cq);
	roci_ack_cq_events(cq, 1);
	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), EAGAIN); /* once an arming */
	roci_req_notify_cq(t->cq, 0);
	roci_poll_cq(t->cq, 3, wc);
	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), EAGAIN); /* none is left */
}

static void receive(struct test *t)
{
	assert_true(harness_complete(t->rig.h, 1, 0, 1, 0, ABI_WC_RECV, ABI_WC_SUCCESS));
}

static void take_event_arm_and_poll(struct test *t)
{
	struct roci_cq *cq;
	struct roci_wc wc;

	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), 0);
	roci_ack_cq_events(cq, 1);
	assert_int_equal(roci_req_notify_cq(cq, 0), 0);
	assert_int_equal(roci_poll_cq(cq, 1, &wc), 1);
}

/* perftest's latency tests take as many events as completions: with more they lose step. */
static void get_cq_event__once_per_completion(void **state)
{
	struct test *t = *state;
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.send_cq = t->cq,
		.recv_cq = t->cq,
		.cap = {8, 8, 1, 1, 0},
		.qp_type = ROCI_QPT_RC};
	struct roci_qp *qp = roci_create_qp(t->rig.pd, &init);
	struct abi_event ev;
	struct roci_cq *cq;
	struct roci_wc wc;

	fcntl(t->channel->fd, F_SETFL, O_NONBLOCK);
	roci_req_notify_cq(t->cq, 0);
	for (int i = 0; i < 5; i++) {
		receive(t);
		take_event_arm_and_poll(t);
	}
	receive(t);
	assert_int_equal(
		recv(t->channel->fd, &ev, sizeof(ev), 0), sizeof(ev)); /* still under way */
	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), EAGAIN);
	assert_int_equal(roci_poll_cq(t->cq, 1, &wc), 1);
	roci_req_notify_cq(t->cq, 0);
	receive(t);
	receive(t);
	take_event_arm_and_poll(t); /* it told of the first */
	take_event_arm_and_poll(t);
	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), EAGAIN);
	assert_int_equal(roci_destroy_qp(qp), 0);
}

static void get_cq_event__solicited_only(void **state)
{
	struct test *t = *state;
	struct roci_cq *cq;

	roci_req_notify_cq(t->cq, 1);
	complete(t, ABI_WC_SUCCESS);
	assert_false(readable(t->channel->fd));
	complete(t, ABI_WC_WR_FLUSH_ERR); /* CQ-06 */
	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), 0);
	roci_ack_cq_events(cq, 1);
}

static void get_cq_event__nonblocking(void **state)
{
	struct test *t = *state;
	struct roci_cq *cq;

	fcntl(t->channel->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), EAGAIN);
}

/* Level and edge, as any descriptor. */
static void get_cq_event__epoll(void **state)
{
	struct test *t = *state;
	struct epoll_event level = {.events = EPOLLIN}, edge = {.events = EPOLLIN | EPOLLET}, ev;
	int a = epoll_create1(0), b = epoll_create1(0);
	struct roci_cq *cq;

	assert_int_equal(epoll_ctl(a, EPOLL_CTL_ADD, t->channel->fd, &level), 0);
	assert_int_equal(epoll_ctl(b, EPOLL_CTL_ADD, t->channel->fd, &edge), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(epoll_wait(a, &ev, 1, 0), 0);
		assert_int_equal(epoll_wait(b, &ev, 1, 0), 0);
		complete_armed(t);
		assert_int_equal(epoll_wait(a, &ev, 1, PATIENCE_MS), 1);
		assert_int_equal(epoll_wait(b, &ev, 1, PATIENCE_MS), 1);
		assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), 0);
		roci_ack_cq_events(cq, 1);
	}
	close(a);
	close(b);
}

static void on_signal(int sig)
{
}

static void *one_event(void *arg)
{
	struct test *t = arg;
	struct roci_cq *cq;
	int err = roci_get_cq_event(t->channel, &cq, NULL);

	if (!err)
		roci_ack_cq_events(cq, 1);
	return (void *)(intptr_t)err;
}

/* As any call that blocks: a handler without SA_RESTART ends it, one with it does not. */
static void get_cq_event__signals(void **state)
{
	struct test *t = *state;
	struct sigaction ends = {.sa_handler = on_signal};
	struct sigaction goes_on = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t thread;
	void *result;

	sigaction(SIGUSR1, &ends, NULL);
	sigaction(SIGUSR2, &goes_on, NULL);
	assert_int_equal(pthread_create(&thread, NULL, one_event, t), 0);
	for (int i = 0; i < 20; i++) {
		usleep(5000);
		pthread_kill(thread, SIGUSR2);
	}
	complete_armed(t);
	pthread_join(thread, &result);
	assert_null(result);
	assert_int_equal(pthread_create(&thread, NULL, one_event, t), 0);
	do { /* until it was in the call */
		usleep(5000);
		pthread_kill(thread, SIGUSR1);
	} while (pthread_tryjoin_np(thread, &result));
	assert_int_equal((intptr_t)result, EINTR);
}

#define WAITERS 8
#define EVENTS	4000

static _Atomic unsigned taken;

static void *take_events(void *arg)
{
	struct test *t = arg;
	struct roci_cq *cq;

	while (!roci_get_cq_event(t->channel, &cq, NULL)) {
		bool end = cq != t->cq;

		roci_ack_cq_events(cq, 1);
		if (end) /* one for each of us */
			return NULL;
		atomic_fetch_add(&taken, 1);
	}
	return t;
}

/* Each event goes to one of the threads that wait. */
static void get_cq_event__many_threads(void **state)
{
	struct test *t = *state;
	struct roci_cq *end = roci_create_cq(t->rig.ctx, 8, NULL, t->channel, 0);
	pthread_t thread[WAITERS];
	void *result;

	atomic_store(&taken, 0);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_events, t), 0);
	for (unsigned i = 0; i < EVENTS; i++)
		harness_event(t->rig.h->channel_fd, ABI_EVENT_COMPLETION, FIRST + 1);
	for (unsigned i = 0; i < WAITERS; i++)
		harness_event(t->rig.h->channel_fd, ABI_EVENT_COMPLETION, FIRST + 2);
	for (unsigned i = 0; i < WAITERS; i++) {
		pthread_join(thread[i], &result);
		assert_null(result);
	}
	assert_int_equal(atomic_load(&taken), EVENTS);
	assert_int_equal(roci_destroy_cq(end), 0); /* all were acknowledged */
}

static void get_cq_event__skips_unknown_queues(void **state)
{
	struct test *t = *state;
	struct roci_cq *cq;

	harness_event(t->rig.h->channel_fd, ABI_EVENT_COMPLETION, 999);
	harness_event(t->rig.h->channel_fd, 77, FIRST);
	harness_event(t->rig.h->channel_fd, ABI_EVENT_COMPLETION, FIRST + 1);
	assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), 0);
	assert_ptr_equal(cq, t->cq);
	roci_ack_cq_events(cq, 1);
}

/* Set just before the last acknowledgement. */
static _Atomic bool acknowledged;

static void *acknowledge_later(void *cq)
{
	usleep(50000);
	roci_ack_cq_events(cq, 1); /* not all of them */
	usleep(50000);
	atomic_store(&acknowledged, true);
	roci_ack_cq_events(cq, 1);
	return NULL;
}

/* proves CQ-07 */
static void destroy_cq__waits_for_acknowledgement(void **state)
{
	struct test *t = *state;
	struct roci_cq *cq;
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		harness_event(t->rig.h->channel_fd, ABI_EVENT_COMPLETION, FIRST + 1);
		assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), 0);
	}
	atomic_store(&acknowledged, false);
	pthread_create(&thread, NULL, acknowledge_later, cq);
	assert_int_equal(roci_destroy_cq(t->cq), 0);
	assert_true(atomic_load(&acknowledged));
	t->cq = NULL;
	pthread_join(thread, NULL);
}

static void destroy_channel__with_cqs(void **state)
{
	struct test *t = *state;

	assert_int_equal(roci_destroy_channel(t->channel), EBUSY);
}

static void get_cq_event__each_cq_once_when_dead(void **state)
{
	struct test *t = *state;
	struct roci_cq *second = roci_create_cq(t->rig.ctx, 8, NULL, t->channel, 0), *a, *b, *c;
	struct roci_wc wc;

	harness_die(t->rig.h);
	assert_true(readable(t->channel->fd));
	assert_int_equal(roci_get_cq_event(t->channel, &a, NULL), 0);
	assert_int_equal(roci_poll_cq(a, 1, &wc), -EIO); /* nothing was outstanding there */
	assert_int_equal(roci_get_cq_event(t->channel, &b, NULL), 0);
	assert_ptr_not_equal(a, b);
	assert_int_equal(roci_get_cq_event(t->channel, &c, NULL), EIO);
	roci_ack_cq_events(a, 1);
	roci_ack_cq_events(b, 1);
	assert_int_equal(roci_destroy_cq(second), 0);
}

/* --- asynchronous events ------------------------------------------------------------------ */

/* proves EVT-05 */
static void get_async_event__elements(void **state)
{
	struct test *t = *state;
	struct harness *h = t->rig.h;
	struct roci_async_event ev = {.size = sizeof(ev)};

	harness_event(h->async_fd, ABI_EVENT_CQ_ERR, FIRST + 1);
	harness_event(h->async_fd, ABI_EVENT_COMM_EST, FIRST);
	harness_event(h->async_fd, ABI_EVENT_PORT_ERR, 2);
	harness_event(h->async_fd, ABI_EVENT_PORT_ACTIVE, 1);
	harness_event(h->async_fd, ABI_EVENT_GID_CHANGE, 3);
	assert_true(readable(t->rig.ctx->async_fd));
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	assert_int_equal(ev.event_type, ROCI_EVENT_CQ_ERR);
	assert_ptr_equal(ev.element.cq, t->cq);
	roci_ack_async_event(&ev);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	assert_int_equal(ev.event_type, ROCI_EVENT_COMM_EST);
	assert_ptr_equal(ev.element.qp, t->rig.qp);
	roci_ack_async_event(&ev);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	assert_int_equal(ev.event_type, ROCI_EVENT_PORT_ERR);
	assert_int_equal(ev.element.port_num, 2);
	roci_ack_async_event(&ev);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	assert_int_equal(ev.event_type, ROCI_EVENT_PORT_ACTIVE);
	assert_int_equal(ev.element.port_num, 1);
	roci_ack_async_event(&ev);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	assert_int_equal(ev.event_type, ROCI_EVENT_GID_CHANGE);
	assert_int_equal(ev.element.port_num, 3);
	roci_ack_async_event(&ev);
}

/* proves EVT-01, EVT-02, EVT-03, EVT-04: each type of a QP's */
static void get_async_event__of_a_qp(void **state)
{
	static const struct {
		uint32_t abi;
		enum roci_event_type type;
	} row[] = {{ABI_EVENT_QP_FATAL, ROCI_EVENT_QP_FATAL},
		{ABI_EVENT_QP_REQ_ERR, ROCI_EVENT_QP_REQ_ERR},
		{ABI_EVENT_QP_ACCESS_ERR, ROCI_EVENT_QP_ACCESS_ERR},
		{ABI_EVENT_COMM_EST, ROCI_EVENT_COMM_EST},
		{ABI_EVENT_SQ_DRAINED, ROCI_EVENT_SQ_DRAINED},
		{ABI_EVENT_QP_LAST_WQE, ROCI_EVENT_QP_LAST_WQE_REACHED}};
	struct test *t = *state;

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct roci_async_event ev = {.size = sizeof(ev)};

		harness_event(t->rig.h->async_fd, row[i].abi, FIRST);
		assert_true(readable(t->rig.ctx->async_fd));
		assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
		assert_int_equal(ev.event_type, row[i].type);
		assert_ptr_equal(ev.element.qp, t->rig.qp);
		roci_ack_async_event(&ev);
	}
}

/* proves EVT-05, EVT-06: whoever sends them, a program never sees LID_CHANGE, SM_CHANGE or
 * CLIENT_REREGISTER. */
static void get_async_event__skips_the_unknown(void **state)
{
	static const uint32_t verbs[] = {11, 13, 17};
	struct test *t = *state;
	struct roci_async_event ev = {.size = sizeof(ev)};

	for (unsigned i = 0; i < ARRAY_SIZE(verbs); i++)
		harness_event(t->rig.h->async_fd, verbs[i] + 1, 1);
	harness_event(t->rig.h->async_fd, ABI_EVENT_QP_FATAL, 12345);
	harness_event(t->rig.h->async_fd, 4711, 1);
	harness_event(t->rig.h->async_fd, ABI_EVENT_GID_CHANGE, 1);
	harness_event(t->rig.h->async_fd, ABI_EVENT_PKEY_CHANGE, 2);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	assert_int_equal(ev.event_type, ROCI_EVENT_GID_CHANGE);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	assert_int_equal(ev.event_type, ROCI_EVENT_PKEY_CHANGE);
	assert_int_equal(ev.element.port_num, 2);
}

static void get_async_event__no_size_takes_nothing(void **state)
{
	struct test *t = *state;
	struct roci_async_event ev = {.size = 0};

	harness_event(t->rig.h->async_fd, ABI_EVENT_PORT_ERR, 1);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), EINVAL);
	assert_true(readable(t->rig.ctx->async_fd));
}

static void *acknowledge_async_later(void *ev)
{
	usleep(50000);
	atomic_store(&acknowledged, true);
	roci_ack_async_event(ev);
	return NULL;
}

/* proves EVT-07 */
static void destroy_qp__waits_for_acknowledgement(void **state)
{
	struct test *t = *state;
	struct roci_async_event ev = {.size = sizeof(ev)};
	pthread_t thread;

	harness_event(t->rig.h->async_fd, ABI_EVENT_QP_FATAL, FIRST);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	atomic_store(&acknowledged, false);
	pthread_create(&thread, NULL, acknowledge_async_later, &ev);
	assert_int_equal(roci_destroy_qp(t->rig.qp), 0);
	assert_true(atomic_load(&acknowledged));
	t->rig.qp = NULL;
	pthread_join(thread, NULL);
}

/* proves EVT-07 */
static void destroy_cq__waits_for_its_async_event(void **state)
{
	struct test *t = *state;
	struct roci_async_event ev = {.size = sizeof(ev)};
	pthread_t thread;

	harness_event(t->rig.h->async_fd, ABI_EVENT_CQ_ERR, FIRST + 1);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	atomic_store(&acknowledged, false);
	pthread_create(&thread, NULL, acknowledge_async_later, &ev);
	assert_int_equal(roci_destroy_cq(t->cq), 0);
	assert_true(atomic_load(&acknowledged));
	t->cq = NULL;
	pthread_join(thread, NULL);
}

static void get_async_event__device_fatal_once(void **state)
{
	struct test *t = *state;
	struct roci_async_event ev = {.size = sizeof(ev)};

	harness_die(t->rig.h);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), 0);
	assert_int_equal(ev.event_type, ROCI_EVENT_DEVICE_FATAL);
	roci_ack_async_event(&ev);
	assert_int_equal(roci_get_async_event(t->rig.ctx, &ev), EIO);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(get_cq_event__of_an_armed_cq),
		T(get_cq_event__some_are_left),
		T(get_cq_event__once_per_completion),
		T(get_cq_event__solicited_only),
		T(get_cq_event__nonblocking),
		T(get_cq_event__epoll),
		T(get_cq_event__signals),
		T(get_cq_event__many_threads),
		T(get_cq_event__skips_unknown_queues),
		T(destroy_cq__waits_for_acknowledgement),
		T(destroy_channel__with_cqs),
		T(get_cq_event__each_cq_once_when_dead),
		T(get_async_event__elements),
		T(get_async_event__of_a_qp),
		T(get_async_event__skips_the_unknown),
		T(get_async_event__no_size_takes_nothing),
		T(destroy_qp__waits_for_acknowledgement),
		T(destroy_cq__waits_for_its_async_event),
		T(get_async_event__device_fatal_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
