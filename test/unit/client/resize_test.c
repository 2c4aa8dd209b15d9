/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues that change their size while completions wait in them. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
#include "fixture.h"

static bool complete(struct rig *r, unsigned lane, uint64_t wr_id)
{
	return harness_complete(r->h, 0, lane, 0, wr_id, ABI_WC_RECV, ABI_WC_SUCCESS);
}

/* The next @p n completions of one lane are @p first and so on. */
static void expect(struct rig *r, uint64_t first, unsigned n)
{
	struct roci_wc wc;

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, first + i);
	}
}

static void expect_none(struct rig *r)
{
	struct roci_wc wc;

	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 0);
}

/* proves CQ-11: what waits stays, before what comes later; the ring may be full. */
static void resize_cq__keeps_what_waits(void **state)
{
	struct rig *r = *state;

	for (uint64_t i = 0; i < 16; i++)
		assert_true(complete(r, 1, i));
	assert_int_equal(roci_resize_cq(r->cq, 60), 0);
	assert_int_equal(r->cq->cqe, 64);
	for (uint64_t i = 16; i < 80; i++)
		assert_true(complete(r, 1, i)); /* 64 more find room */
	expect(r, 0, 80);
	expect_none(r);
	for (uint64_t i = 80; i < 300; i++) { /* laps of the new ring */
		assert_true(complete(r, 1, i));
		expect(r, i, 1);
	}
	expect_none(r);
}

/* proves CQ-11: each lane for itself; some have moved on when others still hold old completions. */
static void resize_cq__each_lane(void **state)
{
	uint64_t next[HARNESS_WORKERS] = {0};
	struct rig *r = *state;
	struct roci_wc wc;
	unsigned seen = 0;

	for (unsigned l = 0; l < HARNESS_WORKERS; l++)
		for (uint64_t i = 0; i < 4 * l; i++)
			assert_true(complete(r, l, l << 8 | i));
	assert_int_equal(roci_resize_cq(r->cq, 32), 0);
	for (unsigned l = 0; l < HARNESS_WORKERS; l++)
		for (uint64_t i = 4 * l; i < 4 * l + 5; i++)
			assert_true(complete(r, l, l << 8 | i));
	while (roci_poll_cq(r->cq, 1, &wc) == 1) {
		assert_int_equal(wc.wr_id & 0xFF, next[wc.wr_id >> 8]++);
		seen++;
	}
	assert_int_equal(seen, 0 + 4 + 8 + 3 * 5);
}

/* proves CQ-11: again and again, without a look between. */
static void resize_cq__several_times(void **state)
{
	static const int size[] = {100, 20, 37, 64, 500, 9};
	struct rig *r = *state;
	uint64_t id = 0;

	for (unsigned i = 0; i < 6; i++) {
		if (i == 5)
			expect(r, 0, 16);
		assert_true(complete(r, 0, id++));
		assert_true(complete(r, 0, id++));
		assert_true(complete(r, 0, id++));
		assert_true(complete(r, 0, id++));
		if (i < 5)
			assert_int_equal(roci_resize_cq(r->cq, size[i]), 0);
	}
	expect(r, 16, 8);
	assert_int_equal(roci_resize_cq(r->cq, 9), 0);
	assert_int_equal(r->cq->cqe, 16);
	assert_true(complete(r, 0, id));
	expect(r, id, 1);
	expect_none(r);
}

static unsigned mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned n = 0;
	int ch;

	assert_non_null(f);
	while ((ch = fgetc(f)) != EOF)
		n += ch == '\n';
	fclose(f);
	return n;
}

/* Rings in which nothing waits do not stay, polled or not. */
static void resize_cq__old_rings_go(void **state)
{
	struct rig *r = *state;
	unsigned before;

	assert_int_equal(roci_resize_cq(r->cq, 64), 0);
	before = mappings();
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(roci_resize_cq(r->cq, i % 2 ? 16 : 32), 0);
	assert_in_range(mappings(), 0, before + 2);
	for (uint64_t i = 0; i < 100; i++) {
		assert_true(complete(r, i % HARNESS_WORKERS, i));
		assert_int_equal(roci_resize_cq(r->cq, i % 2 ? 200 : 300), 0);
	}
	for (unsigned i = 0; i < 100; i++) {
		struct roci_wc wc;

		assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	}
	expect_none(r);
	assert_in_range(mappings(), 0, before + 2);
}

/* proves CQ-11: less than what waits, in all lanes together, is refused and changes nothing. */
static void resize_cq__below_what_waits(void **state)
{
	struct rig *r = *state;

	for (uint64_t i = 0; i < 7; i++)
		assert_true(complete(r, 0, i));
	for (uint64_t i = 7; i < 10; i++)
		assert_true(complete(r, 2, i));
	assert_int_equal(roci_resize_cq(r->cq, 9), EINVAL);
	assert_int_equal(r->cq->cqe, 16);
	assert_int_equal(roci_resize_cq(r->cq, 0), EINVAL);
	assert_int_equal(roci_resize_cq(r->cq, -3), EINVAL);
	expect(r, 0, 1); /* not told to rocid by the poll: a quarter is not reached */
	assert_int_equal(roci_resize_cq(r->cq, 8), EINVAL);
	assert_int_equal(roci_resize_cq(r->cq, 9), 0);
	assert_int_equal(r->cq->cqe, 16);
	for (unsigned i = 1; i < 10; i++) {
		struct roci_wc wc;

		assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	}
	expect_none(r);
}

/* proves CQ-11: what waits in rings that were left counts as well. */
static void resize_cq__below_what_waits_in_several_rings(void **state)
{
	struct rig *r = *state;

	for (uint64_t i = 0; i < 7; i++)
		assert_true(complete(r, 0, i));
	assert_int_equal(roci_resize_cq(r->cq, 32), 0);
	assert_true(complete(r, 0, 7));
	assert_int_equal(roci_resize_cq(r->cq, 64), 0);
	assert_true(complete(r, 0, 8));
	expect(r, 0, 1);
	assert_int_equal(roci_resize_cq(r->cq, 7), EINVAL);
	assert_int_equal(r->cq->cqe, 64);
	assert_int_equal(roci_resize_cq(r->cq, 8), 0);
	expect(r, 1, 8);
	expect_none(r);
	assert_int_equal(roci_resize_cq(r->cq, 1), 0);
}

/* proves CQ-11, CQ-12: a QP that goes takes its completions with it, from the old ring and the new.
 */
static void resize_cq__then_a_qp_goes(void **state)
{
	struct rig *r = *state;
	struct roci_qp *other = rig_qp(r, 4, 0);

	harness_complete(r->h, 0, 0, 1, 1, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 0, 0, 2, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_resize_cq(r->cq, 32), 0);
	harness_complete(r->h, 0, 0, 1, 3, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 0, 0, 4, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_resize_cq(r->cq, 64), 0);
	harness_complete(r->h, 0, 0, 1, 5, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_destroy_qp(other), 0);
	other = rig_qp(r, 4, 0); /* of the same number */
	expect(r, 2, 1);
	expect(r, 4, 1);
	expect_none(r);
	assert_int_equal(roci_destroy_qp(other), 0);
}

/* An arm from before the resize counts for completions after it. */
static void resize_cq__keeps_the_arm(void **state)
{
	struct rig *r = *state;
	struct roci_channel *ch = roci_create_channel(r->ctx);
	struct roci_cq *cq = roci_create_cq(r->ctx, 4, NULL, ch, 0), *told = NULL;

	assert_int_equal(roci_req_notify_cq(cq, 0), 0);
	assert_int_equal(roci_resize_cq(cq, 9), 0);
	harness_complete(r->h, 1, 2, 0, 1, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_get_cq_event(ch, &told, NULL), 0);
	assert_ptr_equal(told, cq);
	roci_ack_cq_events(cq, 1);
	assert_int_equal(roci_req_notify_cq(cq, 0), 0);
	harness_complete(r->h, 1, 1, 0, 2, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_get_cq_event(ch, &told, NULL), 0);
	roci_ack_cq_events(cq, 1);
	assert_int_equal(roci_destroy_cq(cq), 0);
	assert_int_equal(roci_destroy_channel(ch), 0);
}

static void resize_cq__when_rocid_is_gone(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc;

	harness_die(r->h);
	assert_int_equal(roci_resize_cq(r->cq, 100), EIO);
	assert_int_equal(r->cq->cqe, 16);
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), -EIO);
}

/* A ring that is smaller than rocid says cannot be mapped, and rocid has turned to it already. */
static bool resize_badly(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	const struct abi_resize_cq *in = body;
	struct abi_create_cq_reply r = {
		.handle = in->handle,
		.depth = 256,
		.lanes = HARNESS_WORKERS,
		.lane_off = sizeof(struct abi_cq),
		.lane_stride = sizeof(struct abi_cq_lane) + 256 * sizeof(struct abi_cqe),
	};

	if (msg->type != ABI_RESIZE_CQ)
		return false;
	r.region_size = r.lane_off + r.lanes * r.lane_stride;
	harness_reply(h, msg, 0, &r, sizeof(r), &h->session.fd, 1);
	return true;
}

/* Earlier completions can be polled; then there is an error, not an empty queue for ever. */
static void poll_cq__the_new_ring_is_lost(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc;

	complete(r, 0, 7);
	atomic_store(&r->h->hook, resize_badly);
	assert_int_equal(roci_resize_cq(r->cq, 200), EPROTO);
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), -ENOMEM);
	assert_non_null(strstr(roci_last_error(), "destroy it and its QPs"));
	assert_int_equal(r->cq->cqe, 16);
}

/* --- while others poll ------------------------------------------------------------------ */

static struct {
	struct rig *rig;
	pthread_t thread;
	_Atomic int polled; /* -1: not yet */
	bool waited;
} busy;

static void *poll_once(void *arg)
{
	struct roci_wc wc;
	int n = roci_poll_cq(busy.rig->cq, 1, &wc);

	atomic_store(&busy.polled, n == 1 ? (int)wc.wr_id : 0);
	return NULL;
}

/* The workers have moved, and a completion lies in the new ring. */
static void reply_is_slow(struct harness *h)
{
	complete(busy.rig, 0, 7);
	pthread_create(&busy.thread, NULL, poll_once, NULL);
	usleep(100000);
	busy.waited = atomic_load(&busy.polled) == -1;
}

/* proves CQ-11: who polls meanwhile is not told that nothing is there: he may have armed before the
 * completion came, have had its event, and would now sleep for ever. */
static void poll_cq__waits_for_the_ring_that_is_due(void **state)
{
	struct rig *r = *state;

	busy.rig = r;
	atomic_store(&busy.polled, -1);
	r->h->resized = reply_is_slow;
	assert_int_equal(roci_resize_cq(r->cq, 100), 0);
	pthread_join(busy.thread, NULL);
	assert_true(busy.waited);
	assert_int_equal(atomic_load(&busy.polled), 7);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup_16, rig_teardown)

/* --- while a QP is reset ------------------------------------------------------------------ */

/* The new ring waits to be mapped until the QP has been reset, or tries to be. */
static struct {
	struct rig *rig;
	_Atomic bool hold;
	_Atomic bool held;
	_Atomic bool done;
} map;

void *__real_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off);

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (atomic_exchange(&map.hold, false)) {
		atomic_store(&map.held, true);
		/* It may have to wait for this ring: then it has not come far after this. */
		for (int i = 0; i < 500 && !atomic_load(&map.done); i++)
			usleep(1000);
	}
	return __real_mmap64(addr, len, prot, flags, fd, off);
}

static void fill_the_new_ring(struct harness *h)
{
	complete(map.rig, 0, 8);
	atomic_store(&map.hold, true);
}

static void *resize_once(void *arg)
{
	return roci_resize_cq(map.rig->cq, 100) ? arg : NULL;
}

/* QPS-16: what the reset QP completed does not come after it, from a ring that the resizing thread
 * was about to map either. Its number would fit no later completion: the lane would stand. */
static void modify_qp__resets_while_the_ring_comes(void **state)
{
	struct rig *r = *state;
	pthread_t thread;
	void *failed;

	map.rig = r;
	atomic_store(&map.held, false);
	atomic_store(&map.done, false);
	complete(r, 0, 7);
	expect(r, 7, 1);
	r->h->resized = fill_the_new_ring;
	assert_int_equal(pthread_create(&thread, NULL, resize_once, r), 0);
	while (!atomic_load(&map.held))
		sched_yield();
	assert_int_equal(rig_modify(r->qp, ROCI_QPS_RESET), 0);
	atomic_store(&map.done, true);
	pthread_join(thread, &failed);
	assert_null(failed);
	expect_none(r);
	complete(r, 0, 9);
	expect(r, 9, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(resize_cq__keeps_what_waits),
		T(resize_cq__each_lane),
		T(resize_cq__several_times),
		T(resize_cq__old_rings_go),
		T(resize_cq__below_what_waits),
		T(resize_cq__below_what_waits_in_several_rings),
		T(resize_cq__then_a_qp_goes),
		T(resize_cq__keeps_the_arm),
		T(resize_cq__when_rocid_is_gone),
		T(poll_cq__the_new_ring_is_lost),
		T(poll_cq__waits_for_the_ring_that_is_due),
		T(modify_qp__resets_while_the_ring_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
