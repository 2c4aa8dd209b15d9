/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "pieces.h"
#include "random.h"

#define MTU 256u

static uint8_t memory[SGE_MAX][4 * MTU];
static uint32_t faults;

/* A payload of @p n segments.  @return its length; @p whole receives its bytes. */
static uint32_t fill(struct txd *t, unsigned n, struct random *r, uint8_t *whole)
{
	uint32_t len = 0;

	t->nsegs = (uint8_t)n;
	for (unsigned i = 0; i < n; i++) {
		uint32_t part = 1 + random_below(r, random_below(r, 2) ? 20 : 4 * MTU);

		if (!random_below(r, 4))
			part = MTU * (1 + random_below(r, 4));
		for (uint32_t k = 0; k < part; k++)
			memory[i][k] = (uint8_t)random_below(r, 256);
		t->seg[i] = (struct txseg){.addr = memory[i], .len = part};
		memcpy(whole + len, memory[i], part);
		len += part;
	}
	return len;
}

/* Each ends with a packet or with the payload, and together they are the payload. */
static void pieces__end_with_packets(void **state)
{
	const struct uaccess ua = {.icrc = icrc_best(), .faults = &faults};
	static uint8_t whole[sizeof(memory)];
	static struct pieces p;
	struct random r = {1};

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		struct txseg s;
		struct txd t;
		uint32_t len = fill(&t, random_below(&r, SGE_MAX + 1), &r, whole);
		uint32_t at = 0;

		for (pieces_begin(&p, &t, MTU); pieces_next(ua, &p, &s); at += s.len) {
			assert_true(s.len && s.len <= len - at);
			assert_true((at + s.len) % MTU == 0 || at + s.len == len);
			assert_memory_equal(s.addr, whole + at, s.len);
		}
		assert_int_equal(at, len);
		assert_false(p.faulted);
	}
}

/* Whole packets of one segment are not copied twice. */
static void pieces__lie_where_they_are(void **state)
{
	const struct uaccess ua = {.icrc = icrc_best(), .faults = &faults};
	static struct pieces p;
	struct txseg s;
	struct txd t = {.nsegs = 2,
		.seg = {{.addr = memory[0], .len = 3 * MTU + 4}, {.addr = memory[1], .len = MTU}}};

	(void)state;
	pieces_begin(&p, &t, MTU);
	assert_true(pieces_next(ua, &p, &s));
	assert_ptr_equal(s.addr, memory[0]);
	assert_int_equal(s.len, 3 * MTU);
	assert_true(pieces_next(ua, &p, &s));
	assert_int_equal(s.len, MTU);
	assert_true(pieces_next(ua, &p, &s));
	assert_ptr_equal(s.addr, memory[1] + MTU - 4);
	assert_int_equal(s.len, 4);
	assert_false(pieces_next(ua, &p, &s));
}

/* The count of faults changes while a packet is copied together, as a handler of SIGBUS does it. */
static void fault(void *dst, const void *src, size_t words)
{
	icrc_best()->move_words(dst, src, words);
	faults++;
}

static void pieces__end_with_a_fault(void **state)
{
	struct icrc_ops ops = *icrc_best();
	const struct uaccess ua = {.icrc = &ops, .faults = &faults};
	static struct pieces p;
	struct txseg s;
	struct txd t = {.nsegs = 2,
		.seg = {{.addr = memory[0], .len = 64}, {.addr = memory[1], .len = 64}}};

	(void)state;
	ops.move_words = fault;
	pieces_begin(&p, &t, MTU);
	assert_false(pieces_next(ua, &p, &s));
	assert_true(p.faulted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces__end_with_packets),
		cmocka_unit_test(pieces__lie_where_they_are),
		cmocka_unit_test(pieces__end_with_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
