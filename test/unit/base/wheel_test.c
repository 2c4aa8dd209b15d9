/* SPDX-License-Identifier: BSD-3-Clause */
/* The wheel beside a model that cannot be wrong: a plain array of deadlines. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bits.h"
#include "random.h"
#include "wheel.h"

#define US   1000ull
#define MS   (1000 * US)
#define SEC  (1000 * MS)
#define HOUR (3600 * SEC)
#define TICK (1ull << WHEEL_TICK_SHIFT)
/* One turn of the whole wheel, about 13 days. */
#define TURN  (1ull << (8 * WHEEL_LEVELS + WHEEL_TICK_SHIFT))
#define START (5 * SEC + 123)

static struct wheel w; /* 20 KiB */

static struct wheel_timer *expire(uint64_t now)
{
	unsigned moves = UINT_MAX;

	return wheel_expire(&w, now, &moves);
}

static void wheel_expire__empty(void **state)
{
	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	assert_null(expire(START));
	assert_null(expire(START + 100 * HOUR));
	assert_true(wheel_deadline(&w) == WHEEL_NEVER);
}

/* Not before its time, at most one tick after. */
static void wheel_expire__precision(void **state)
{
	static const uint64_t delays[] = {1, 10 * US, 256 * TICK - 1, 256 * TICK, 256 * TICK + 1,
		MS, 65536 * TICK, SEC, 655360 * US, 100 * SEC, HOUR, 3 * HOUR, 100 * HOUR,
		TURN - TICK, TURN, TURN + 1, 3 * TURN + 5 * SEC};

	for (uint64_t start = 0; start < 3 * TURN; start += TURN / 7 + 12345)
		for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
			struct wheel_timer t;

			wheel_init(&w, WHEEL_TICK_SHIFT, start);
			wheel_timer_init(&t);
			wheel_arm(&w, &t, start + delays[i]);
			assert_true(wheel_armed(&t));
			assert_null(expire(start + delays[i] - 1));
			assert_ptr_equal(expire(start + delays[i] + TICK), &t);
			assert_false(wheel_armed(&t));
			assert_null(expire(start + delays[i] + TICK));
		}
}

static void wheel_arm__in_the_past_is_due_at_once(void **state)
{
	struct wheel_timer t;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	wheel_timer_init(&t);
	wheel_arm(&w, &t, 0);
	assert_true(wheel_armed(&t));
	assert_true(wheel_deadline(&w) <= START);
	assert_ptr_equal(expire(START), &t);
}

static void wheel_arm__moves_an_armed_timer(void **state)
{
	struct wheel_timer t;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	wheel_timer_init(&t);
	wheel_arm(&w, &t, START + SEC);
	wheel_arm(&w, &t, START + 10 * US);
	assert_ptr_equal(expire(START + 12 * US), &t);
	assert_null(expire(START + HOUR));
	wheel_arm(&w, &t, START + 2 * HOUR);
	wheel_arm(&w, &t, START + 3 * HOUR);
	assert_null(expire(START + 3 * HOUR - 1));
	assert_ptr_equal(expire(START + 3 * HOUR + TICK), &t);
}

static void wheel_arm__never(void **state)
{
	struct wheel_timer t;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	wheel_timer_init(&t);
	wheel_arm(&w, &t, WHEEL_NEVER);
	assert_null(expire(START + 20 * TURN));
	assert_true(wheel_armed(&t));
	wheel_cancel(&w, &t);
	assert_true(wheel_deadline(&w) == WHEEL_NEVER);
}

static void wheel_cancel__waiting_expired_and_idle(void **state)
{
	struct wheel_timer a, b;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	wheel_timer_init(&a);
	wheel_timer_init(&b);
	wheel_cancel(&w, &a);
	wheel_arm(&w, &a, START + MS);
	wheel_arm(&w, &b, START + MS);
	/* both are due; one is handed out, the other cancelled before it is */
	assert_ptr_equal(expire(START + SEC), &a);
	assert_true(wheel_armed(&b));
	wheel_cancel(&w, &b);
	wheel_cancel(&w, &b);
	assert_false(wheel_armed(&b));
	assert_null(expire(START + SEC));
	wheel_arm(&w, &b, START + HOUR);
	wheel_cancel(&w, &b);
	assert_null(expire(START + 2 * HOUR));
	assert_true(wheel_deadline(&w) == WHEEL_NEVER);
}

static void wheel_expire__clock_goes_back(void **state)
{
	struct wheel_timer t;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	wheel_timer_init(&t);
	assert_null(expire(START + HOUR));
	wheel_arm(&w, &t, START + HOUR + SEC);
	assert_null(expire(START));
	assert_ptr_equal(expire(START + HOUR + SEC + TICK), &t);
}

/* From the last look to the deadline, and not when something is due or came later. */
static void wheel_pass__until_the_deadline(void **state)
{
	struct wheel_timer a, b;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	wheel_timer_init(&a);
	wheel_timer_init(&b);
	assert_true(wheel_pass(&w, START + TICK));
	wheel_arm(&w, &a, START + SEC);
	assert_null(expire(START + SEC / 2));
	assert_true(wheel_deadline(&w) > START + SEC / 2);
	wheel_arm(&w, &b, START + SEC / 2 + 10 * US); /* sooner */
	assert_false(wheel_pass(&w, START + SEC / 2 + 12 * US));
	assert_ptr_equal(expire(START + SEC / 2 + 12 * US), &b);
	wheel_arm(&w, &b, START); /* in the past */
	assert_false(wheel_pass(&w, START + SEC / 2 + 12 * US));
	assert_ptr_equal(expire(START + SEC / 2 + 12 * US), &b);
	assert_null(expire(START + SEC / 2 + 12 * US));
	assert_true(wheel_pass(&w, wheel_deadline(&w) - 1));
	assert_false(wheel_pass(&w, wheel_deadline(&w)));
	assert_ptr_equal(expire(START + SEC + TICK), &a);
	assert_null(expire(START + SEC + TICK));
	assert_true(wheel_pass(&w, START + HOUR));
}

/* A timer that is armed after quiet rounds has no slot that began before them: a sleeper would find
 * its deadline in the past. */
static void wheel_pass__deadlines_are_of_the_future(void **state)
{
	struct wheel_timer a, b;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	wheel_timer_init(&a);
	wheel_timer_init(&b);
	wheel_arm(&w, &a, START + HOUR);
	assert_null(expire(START));
	assert_true(wheel_pass(&w, START + SEC));
	wheel_arm(&w, &b, START + SEC + 10 * TICK);
	assert_true(wheel_deadline(&w) > START + SEC);
}

/* A sleeper that waits for each deadline in turn wakes at most once per level, and not too late. */
static void wheel_deadline__leads_to_the_timer(void **state)
{
	struct random r = {31337};

	for (unsigned i = 0; i < 2000; i++) {
		uint64_t now = random_below(&r, 4 * TURN);
		uint64_t when = now + 1 + (random_next(&r) >> (14 + random_below(&r, 50)));
		struct wheel_timer *fired;
		struct wheel_timer t;
		unsigned wakes = 0;

		wheel_init(&w, WHEEL_TICK_SHIFT, now);
		wheel_timer_init(&t);
		wheel_arm(&w, &t, when);
		do {
			now = wheel_deadline(&w);
			fired = expire(now);
			wakes++;
		} while (!fired && wakes < 100);
		assert_ptr_equal(fired, &t);
		assert_true(now >= when && now - when < TICK);
		assert_true(wakes <= WHEEL_LEVELS + 1);
	}
}

/* --- against the model ----------------------------------------------------------------------- */

#define TIMERS 300

static struct slot {
	struct wheel_timer t;
	uint64_t when; /* of an armed timer */
	bool armed;
} m[TIMERS];

static uint64_t due_tick(unsigned i)
{
	return (m[i].when + TICK - 1) / TICK;
}

/* From less than a tick to months, each order of magnitude as likely as the others. */
static uint64_t random_delay(struct random *r)
{
	return random_next(r) >> (12 + random_below(r, 52));
}

static void arm(struct random *r, unsigned i, uint64_t now)
{
	uint64_t delay = random_delay(r);

	/* some are late already */
	m[i].when = random_below(r, 20) || now < delay ? now + delay : now - delay;
	m[i].armed = true;
	wheel_arm(&w, &m[i].t, m[i].when);
}

static void check_fired(struct wheel_timer *t, uint64_t now)
{
	unsigned i = (unsigned)(container_of(t, struct slot, t) - m);

	assert_true(i < TIMERS);
	assert_true(m[i].armed);
	assert_true(due_tick(i) <= now / TICK);
	assert_false(wheel_armed(t));
	m[i].armed = false;
}

static void check_rest(uint64_t now)
{
	uint64_t deadline = wheel_deadline(&w);
	bool any = false;

	for (unsigned i = 0; i < TIMERS; i++) {
		assert_int_equal(wheel_armed(&m[i].t), m[i].armed);
		if (!m[i].armed)
			continue;
		any = true;
		assert_true(due_tick(i) > now / TICK); /* or it should have fired */
		assert_true(deadline <= due_tick(i) * TICK);
	}
	if (any)
		assert_true(deadline > now); /* or who sleeps until it spins */
	else
		assert_true(deadline == WHEEL_NEVER);
}

static void run_model(uint64_t seed, uint64_t now)
{
	struct random r = {seed};

	wheel_init(&w, WHEEL_TICK_SHIFT, now);
	for (unsigned i = 0; i < TIMERS; i++) {
		wheel_timer_init(&m[i].t);
		m[i].armed = false;
	}
	for (unsigned step = 0; step < 4000; step++) {
		struct wheel_timer *t;

		for (uint64_t n = random_below(&r, 8); n; n--) {
			unsigned i = (unsigned)random_below(&r, TIMERS);

			if (random_below(&r, 4)) {
				arm(&r, i, now);
			} else {
				wheel_cancel(&w, &m[i].t);
				m[i].armed = false;
			}
		}
		/* mostly small steps, now and then a jump over hours or days; at times none */
		now += random_below(&r, 10) ? random_delay(&r) >> 16 : random_delay(&r);
		while ((t = expire(now))) {
			check_fired(t, now);
			/* handlers arm and cancel while others are still due */
			if (!random_below(&r, 3)) {
				unsigned i = (unsigned)random_below(&r, TIMERS);

				wheel_cancel(&w, &m[i].t);
				m[i].armed = false;
				m[i].when = now + TICK + random_delay(&r);
				m[i].armed = true;
				wheel_arm(&w, &m[i].t, m[i].when);
			}
		}
		check_rest(now);
	}
}

static void wheel__agrees_with_the_model(void **state)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		run_model(seed, (seed & 3) * TURN - (seed & 1) * 5 * MS);
}

/* Of timers that wait, the earlier tick comes first. */
static void wheel_expire__in_order(void **state)
{
	struct wheel_timer *t;
	struct random r = {77};
	uint64_t last = 0;
	unsigned fired = 0;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	for (unsigned i = 0; i < TIMERS; i++) {
		wheel_timer_init(&m[i].t);
		m[i].armed = true;
		m[i].when = START + TICK + random_delay(&r);
		wheel_arm(&w, &m[i].t, m[i].when);
	}
	while ((t = expire(START + 100 * TURN))) {
		assert_true(t->due >= last);
		last = t->due;
		fired++;
	}
	assert_int_equal(fired, TIMERS);
}

/* A slot of thousands is moved in portions; what is cancelled meanwhile does not fire. */
static void wheel_expire__moves_in_portions(void **state)
{
	const unsigned portion = 16;
	unsigned fired = 0, calls = 0;

	wheel_init(&w, WHEEL_TICK_SHIFT, START);
	for (unsigned i = 0; i < TIMERS; i++) { /* a slot of a second, and ticks of their own */
		wheel_timer_init(&m[i].t);
		wheel_arm(&w, &m[i].t, START + 70 * SEC + i * TICK);
	}
	for (; fired < TIMERS - 1 && calls < 100 * TIMERS; calls++) {
		unsigned moves = portion;
		struct wheel_timer *t = wheel_expire(&w, START + 100 * SEC, &moves);

		fired += t != NULL;
		assert_true(t || !moves);
		if (!calls) /* no more than it may: the others are still together */
			assert_non_null(list_at(&w.moving, TIMERS - portion - 1));
		assert_true(fired == TIMERS - 1 || wheel_deadline(&w) <= START + 100 * SEC);
		if (!calls)
			wheel_cancel(&w, &m[TIMERS - 1].t);
	}
	assert_int_equal(fired, TIMERS - 1);
	assert_null(expire(START + HOUR));
	assert_true(wheel_deadline(&w) == WHEEL_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wheel_expire__empty),
		cmocka_unit_test(wheel_expire__precision),
		cmocka_unit_test(wheel_arm__in_the_past_is_due_at_once),
		cmocka_unit_test(wheel_arm__moves_an_armed_timer),
		cmocka_unit_test(wheel_arm__never),
		cmocka_unit_test(wheel_cancel__waiting_expired_and_idle),
		cmocka_unit_test(wheel_expire__clock_goes_back),
		cmocka_unit_test(wheel_deadline__leads_to_the_timer),
		cmocka_unit_test(wheel__agrees_with_the_model),
		cmocka_unit_test(wheel_expire__in_order),
		cmocka_unit_test(wheel_pass__until_the_deadline),
		cmocka_unit_test(wheel_pass__deadlines_are_of_the_future),
		cmocka_unit_test(wheel_expire__moves_in_portions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
