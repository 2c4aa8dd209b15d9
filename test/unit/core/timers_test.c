/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "fixture.h"
#include "qp.h"
#include "qp_impl.h"
#include "timers.h"

/* proves REQ-32 (IBA Table 46), in units of 10 us. */
static void timers_rnr_usec__table(void **state)
{
	static const uint32_t want[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152};

	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(timers_rnr_usec(i), want[i] * 10);
}

/* proves REQ-22: 4.096 us * 2^n */
static void timers_ack_timeout__table(void **state)
{
	uint64_t want = 4096;

	assert_int_equal(timers_ack_timeout(0), 0);
	for (unsigned i = 1; i < 32; i++) {
		want *= 2;
		assert_int_equal(timers_ack_timeout(i), want);
	}
}

/* proves REQ-22: every code fires within [T, 4T] when the caller comes at core_deadline(). */
static void core_expire__within_t_and_4t(void **state)
{
	for (uint8_t code = 1; code < 32; code++) {
		const uint64_t t = 4096ull << code;
		uint64_t sent;

		if (code > 1)
			lone_init(&l);
		l.attr.timeout = code;
		lone_start(&l);
		lone_post(&l, ABI_WR_SEND, 1, 4, 0);
		lone_tx(&l);
		sent = l.now;
		while (!l.host->core.count.local_ack_timeout_err) {
			uint64_t due = core_deadline(&l.host->core);

			assert_true(due > l.now);
			assert_true(due != WHEEL_NEVER);
			l.now = due;
			core_expire(&l.host->core, l.now);
		}
		assert_in_range(l.now - sent, t, 4 * t);
		if (code < 31)
			lone_fini(&l);
	}
}

/* proves REQ-22 (REQ-24): it is the oldest request's timer: those sent since do not put it off. */
static void core_expire__is_not_put_off_by_new_requests(void **state)
{
	const uint64_t t = 4096ull << 14;
	uint32_t sent = 0;

	lone_start(&l);
	for (; !l.host->core.count.local_ack_timeout_err; sent++) {
		lone_post(&l, ABI_WR_SEND, sent, 4, 0);
		lone_tx(&l);
		lone_wait(&l, t / 3);
		assert_true(sent < 12);
	}
	assert_string_equal(lone_tx_max(&l, 1), "SEND_ONLY@200+4!");
}

/* decision 0000.3, "Pauses": however late the caller comes, it costs one retry. */
static void core_expire__a_long_pause_costs_one_retry(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_wait(&l, 1000 * timers_ack_timeout(14));
	assert_int_equal(l.qp->qp->comp.retry_left, 6);
	assert_int_equal(l.host->core.count.local_ack_timeout_err, 1);
}

/* However many are due at once: the rest waits for the next call, in order. */
static void core_expire__takes_a_bounded_number(void **state)
{
	static struct qp qp[3 * TIMERS_ROUND - 1];
	struct core *c = &l.host->core;

	lone_start(&l);
	for (unsigned i = 0; i < ARRAY_SIZE(qp); i++) {
		list_init(&qp[i].ready);
		wheel_timer_init(&qp[i].timer);
		timers_rnr_nak(c, &qp[i], 1, l.now);
	}
	l.now += 1000000;
	for (unsigned done = TIMERS_ROUND; done <= ARRAY_SIZE(qp); done += TIMERS_ROUND) {
		assert_true(core_expire(c, l.now));
		assert_false(qp[done - 1].comp.rnr_wait);
		assert_true(qp[done].comp.rnr_wait);
		assert_true(wheel_deadline(&c->wheel) <= l.now); /* nobody sleeps meanwhile */
	}
	assert_false(core_expire(c, l.now));
	assert_false(qp[ARRAY_SIZE(qp) - 1].comp.rnr_wait);
	for (unsigned i = 0; i < ARRAY_SIZE(qp); i++)
		qp_make_idle(c, &qp[i]);
}

/* Thousands in one slot of the wheel, which are due at moments of their own, are not moved in one
 * go either. */
static void core_expire__moves_a_bounded_number(void **state)
{
	static struct qp qp[2 * TIMERS_MOVED];
	struct core *c = &l.host->core;

	lone_start(&l);
	for (unsigned i = 0; i < ARRAY_SIZE(qp); i++) {
		list_init(&qp[i].ready);
		wheel_timer_init(&qp[i].timer);
		wheel_arm(&c->wheel, &qp[i].timer, 70ull << 30);
	}
	l.now = 69ull << 30; /* the slot has begun, none is due */
	assert_true(core_expire(c, l.now));
	assert_non_null(list_at(&c->wheel.moving, TIMERS_MOVED - 1));
	assert_true(core_deadline(c) <= l.now); /* nobody sleeps meanwhile */
	while (core_expire(c, l.now))
		;
	assert_true(core_deadline(c) > l.now);
	for (unsigned i = 0; i < ARRAY_SIZE(qp); i++)
		wheel_cancel(&c->wheel, &qp[i].timer);
}

/* proves REQ-23: it runs while something is outstanding, and only then. */
static void core_deadline__follows_the_timer(void **state)
{
	lone_start(&l);
	assert_true(core_deadline(&l.host->core) == WHEEL_NEVER);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	core_doorbell(&l.host->core, l.qp->qp, l.now);
	assert_int_equal(core_deadline(&l.host->core), 0); /* there is work */
	lone_tx(&l);
	assert_in_range(core_deadline(&l.host->core), l.now,
		l.now + timers_ack_timeout(14) + (1 << WHEEL_TICK_SHIFT));
	lone_ack(&l, 0x200, 1);
	lone_tx(&l);
	lone_wait(&l, 4 * timers_ack_timeout(14));
	assert_int_equal(l.host->core.count.local_ack_timeout_err, 0);
	assert_true(core_deadline(&l.host->core) == WHEEL_NEVER);
	lone_cqes(&l);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(timers_rnr_usec__table),
		T(timers_ack_timeout__table),
		T(core_expire__within_t_and_4t),
		T(core_expire__is_not_put_off_by_new_requests),
		T(core_expire__a_long_pause_costs_one_retry),
		T(core_expire__takes_a_bounded_number),
		T(core_expire__moves_a_bounded_number),
		T(core_deadline__follows_the_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
