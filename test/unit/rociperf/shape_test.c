/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "shape.h"

/* The rules that each shape must obey. */
static void check(const struct plan *p, uint32_t size)
{
	struct shape s = shape_of(p, size);
	uint64_t part = shape_memory(p) / p->value[PARAM_QPS];

	assert_true(s.depth >= 1 && s.rx_depth >= 1 && s.repost >= 1 && s.repost <= s.rx_depth);
	assert_true(s.list >= 1 && s.cq_mod >= 1);
	assert_true(s.list + s.cq_mod <= s.depth + 1); /* else the queue stops */
	assert_true(s.tx_slots >= 1 && s.rx_slots >= 1);
	assert_true(s.tx_stride >= size && s.rx_stride >= s.rx_header + size);
	assert_int_equal(s.rx_header, plan_datagrams(p) ? ROCI_GRH_LEN : 0);
	assert_true((uint64_t)s.tx_stride * s.tx_slots <= part);
	assert_true((uint64_t)s.rx_stride * s.rx_slots <= part);
	if (!plan_op(p)->scatters) { /* the same slot on both sides */
		assert_int_equal(s.tx_stride, s.rx_stride);
		assert_int_equal(s.tx_slots, s.rx_slots);
	}
	if (p->value[PARAM_VERIFY]) {
		assert_true(s.depth < s.tx_slots);
		assert_true(s.rx_depth < s.rx_slots);
	}
	if (plan_op(p)->receives && p->value[PARAM_VERIFY])
		assert_int_equal(s.rx_depth, shape_of(p, plan_largest(p)).rx_depth);
}

static void shape_of__all_plans(void **state)
{
	static const uint64_t qps[] = {1, 3, 1000, 16384}, memory[] = {0, 1, 5000, 256u << 20},
			      depth[] = {0, 1, 2, 17, 128}, list[] = {0, 1, 7}, mod[] = {0, 1, 11};
	unsigned count = 0;

	for (unsigned n = 0; n < op_count * TEST_COUNT * 2 * 4 * 4 * 5 * 3 * 3 * 4; n++) {
		struct plan p;
		char why[256];
		unsigned k = n;

		plan_usual(&p);
#define PICK(param, of, count) (p.value[param] = (of), k /= (count))
		PICK(PARAM_OP, k % op_count, op_count);
		PICK(PARAM_TEST, k % TEST_COUNT, TEST_COUNT);
		PICK(PARAM_VERIFY, k % 2, 2);
		PICK(PARAM_QPS, qps[k % 4], 4);
		PICK(PARAM_MEMORY, memory[k % 4], 4);
		PICK(PARAM_TX_DEPTH, depth[k % 5], 5);
		PICK(PARAM_POST_LIST, list[k % 3], 3);
		PICK(PARAM_CQ_MOD, mod[k % 3], 3);
		PICK(PARAM_CONNECTION, k % 4, 4);
		if (!plan_check(&p, why, sizeof(why)))
			continue;
		check(&p, plan_first_size(&p));
		p.value[PARAM_ALL] = 1;
		for (uint32_t size = plan_first_size(&p); size; size = plan_next_size(&p, size))
			check(&p, size);
		count++;
	}
	assert_true(count > 1000);
}

static void shape_of__defaults(void **state)
{
	struct plan p;
	struct shape s;

	plan_usual(&p);
	s = shape_of(&p, 65536);
	assert_int_equal(s.depth, 128);
	assert_int_equal(s.cq_mod, 16);
	assert_int_equal(s.list, 1);
	assert_int_equal(shape_of(&p, 8 << 20).depth, 4); /* 32 MiB under way */
	assert_int_equal(s.send_flags, 0);
	p.value[PARAM_INLINE] = 64;
	assert_int_equal(shape_of(&p, 64).send_flags, ROCI_SEND_INLINE);
	assert_int_equal(shape_of(&p, 65).send_flags, 0);
	p.value[PARAM_MEMORY] = 256 << 20;
	assert_int_equal(shape_of(&p, 4096).tx_slots, 65536);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shape_of__all_plans),
		cmocka_unit_test(shape_of__defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
