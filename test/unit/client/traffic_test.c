/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides of the rings at once, each in threads of its own, with a worker that sleeps
 * whenever it may: a bell or an event that is lost stops everything, and the test's time
 * limit tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "harness.h"
#include "patience.h"

#define POSTERS 2
#define POLLERS 2
#define EACH	20000u

struct traffic {
	struct rig rig;
	struct roci_channel *channel;
	_Atomic unsigned posted;
	_Atomic unsigned done;
	_Atomic bool stop;
	unsigned bells;
	uint8_t seen[POSTERS * EACH];
};

/* The worker's side, as requester_idle() of the core does it. */
static bool idle(struct abi_queue *q, struct traffic *t, void *wqe)
{
	atomic_store_explicit(&q->need_doorbell, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!harness_take_send(t->rig.h, 0, wqe))
		return true;
	atomic_store_explicit(&q->need_doorbell, 0, memory_order_relaxed);
	return false;
}

static void *worker(void *arg)
{
	struct traffic *t = arg;
	struct abi_queue *q = harness_sq(t->rig.h, 0);
	union {
		struct abi_wqe w;
		uint8_t bytes[256];
	} u;

	while (!atomic_load(&t->stop)) {
		if (!harness_take_send(t->rig.h, 0, &u) && idle(q, t, &u)) {
			while (!harness_bell(t->rig.h, 0) && !atomic_load(&t->stop))
				sched_yield();
			t->bells++;
			atomic_store_explicit(&q->need_doorbell, 0, memory_order_relaxed);
			continue;
		}
		while (u.w.ctl & ABI_WQE_SIGNALED &&
			!harness_complete(t->rig.h, 0, 1, 0, u.w.wr_id, ABI_WC_SEND, 0)) {
			/* In the core a full lane stays failed; here the pollers are only late. */
			t->rig.h->cq[0].cq.lane[1].overflow = false;
			sched_yield();
		}
		atomic_store_explicit(&q->consumer, t->rig.h->qp[0].sq_next, memory_order_release);
	}
	return NULL;
}

static void *poster(void *arg)
{
	struct traffic *t = arg;
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND, .send_flags = ROCI_SEND_SIGNALED};

	for (unsigned i = 0; i < EACH; i++) {
		int err;

		wr.wr_id = atomic_fetch_add(&t->posted, 1);
		while ((err = roci_post_send(t->rig.qp, &wr, NULL)) == ENOMEM)
			sched_yield();
		if (err)
			abort();
	}
	return NULL;
}

static void *poller(void *arg)
{
	struct traffic *t = arg;
	struct roci_wc wc[3];

	while (atomic_load(&t->done) < POSTERS * EACH) {
		int n = roci_poll_cq(t->rig.cq, 3, wc);

		for (int i = 0; i < n; i++)
			t->seen[wc[i].wr_id]++;
		if (n > 0)
			atomic_fetch_add(&t->done, n);
		else
			sched_yield();
	}
	return NULL;
}

static void traffic__every_request_once(void **state)
{
	struct traffic *t = calloc(1, sizeof(*t));
	pthread_t th[1 + POSTERS + POLLERS];
	unsigned n = 0;

	rig_make(&t->rig, 8);
	pthread_create(&th[n++], NULL, worker, t);
	for (int i = 0; i < POSTERS; i++)
		pthread_create(&th[n++], NULL, poster, t);
	for (int i = 0; i < POLLERS; i++)
		pthread_create(&th[n++], NULL, poller, t);
	while (n > 1)
		pthread_join(th[--n], NULL);
	atomic_store(&t->stop, true);
	pthread_join(th[0], NULL);
	for (unsigned i = 0; i < POSTERS * EACH; i++)
		assert_int_equal(t->seen[i], 1);
	assert_true(t->bells > 0);
	rig_drop(&t->rig);
	free(t);
}

/* Waits until the worker has taken @p n requests.  Returns false: it sleeps through it. */
static bool taken(struct abi_queue *q, uint32_t n)
{
	time_t end = 0;

	for (unsigned i = 0; !end || !patience_over(end); i++) {
		if (atomic_load_explicit(&q->consumer, memory_order_acquire) == n)
			return true;
		if (i == 2000)
			end = patience_begin();
		if (end)
			sched_yield();
	}
	return false;
}

/* Each request is posted while the worker goes to sleep after the one before, a little later
 * each time. */
static void traffic__no_bell_is_lost(void **state)
{
	struct traffic *t = calloc(1, sizeof(*t));
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND};
	struct abi_queue *q;
	pthread_t th;

	rig_make(&t->rig, 8);
	q = harness_sq(t->rig.h, 0);
	pthread_create(&th, NULL, worker, t);
	for (uint32_t i = 1; i <= 100000; i++) {
		assert_int_equal(roci_post_send(t->rig.qp, &wr, NULL), 0);
		assert_true(taken(q, i));
		for (volatile unsigned pause = i % 64; pause; pause--)
			;
	}
	atomic_store(&t->stop, true);
	pthread_join(th, NULL);
	rig_drop(&t->rig);
	free(t);
}

/* Events that came while the program found the completion anyway may fill the socket: the worker
 * waits in send() then. */
static void join_and_read(struct traffic *t, pthread_t th)
{
	struct roci_cq *cq;

	assert_int_equal(fcntl(t->channel->fd, F_SETFL, O_NONBLOCK), 0);
	while (pthread_tryjoin_np(th, NULL)) {
		if (roci_get_cq_event(t->channel, &cq, NULL) == 0)
			roci_ack_cq_events(cq, 1);
		else
			sched_yield();
	}
}

/* One request at a time; the program sleeps on its channel until it is complete. */
static void traffic__no_event_is_lost(void **state)
{
	struct traffic *t = calloc(1, sizeof(*t));
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND, .send_flags = ROCI_SEND_SIGNALED};
	struct roci_cq *cq, *plain;
	unsigned slept = 0;
	struct roci_wc wc;
	pthread_t th;

	rig_make(&t->rig, 8);
	/* The rig's QP on a CQ with a channel, which takes the plain one's place. */
	plain = t->rig.cq;
	assert_int_equal(roci_destroy_qp(t->rig.qp), 0);
	assert_int_equal(roci_destroy_cq(plain), 0);
	t->channel = roci_create_channel(t->rig.ctx);
	t->rig.cq = roci_create_cq(t->rig.ctx, 16, NULL, t->channel, 0);
	t->rig.qp = rig_qp(&t->rig, 8, 0);
	rig_modify(t->rig.qp, ROCI_QPS_RTS);
	pthread_create(&th, NULL, worker, t);
	for (unsigned i = 0; i < 3000; i++) {
		int n;

		wr.wr_id = i;
		assert_int_equal(roci_post_send(t->rig.qp, &wr, NULL), 0);
		while ((n = roci_poll_cq(t->rig.cq, 1, &wc)) == 0) {
			roci_req_notify_cq(t->rig.cq, 0);
			n = roci_poll_cq(t->rig.cq, 1, &wc);
			if (n)
				break;
			assert_int_equal(roci_get_cq_event(t->channel, &cq, NULL), 0);
			roci_ack_cq_events(cq, 1);
			slept++;
		}
		assert_int_equal(n, 1);
		assert_true(wc.wr_id == i);
	}
	assert_true(slept > 0);
	atomic_store(&t->stop, true);
	join_and_read(t, th);
	assert_int_equal(roci_destroy_qp(t->rig.qp), 0);
	assert_int_equal(roci_destroy_cq(t->rig.cq), 0);
	assert_int_equal(roci_destroy_channel(t->channel), 0);
	t->rig.qp = NULL;
	t->rig.cq = NULL;
	rig_drop(&t->rig);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic__every_request_once),
		cmocka_unit_test(traffic__no_bell_is_lost),
		cmocka_unit_test(traffic__no_event_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
