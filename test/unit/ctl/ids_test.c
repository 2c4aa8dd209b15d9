/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core.h"
#include "limits.h"
#include "mr.h"
#include "qp_table.h"
#include "session/ids.h"
#include "srq.h"

static struct qpn_pool qpns;
static struct key_pool keys;
static struct mr_table table;
static struct mr some_mr;

static void qpn_take__all_slots_once(void **state)
{
	static uint8_t seen[QP_MAX];
	uint32_t qpn;

	memset(seen, 0, sizeof(seen));
	assert_int_equal(qpn_pool_init(&qpns), 0);
	for (uint32_t i = 0; i < QP_MAX; i++) {
		assert_int_equal(qpn_take(&qpns, i % WORKER_MAX, &qpn), 0);
		assert_int_equal(QPN_WORKER(qpn), i % WORKER_MAX);
		assert_int_equal(seen[QPN_SLOT(qpn)]++, 0);
		assert_in_range(qpn, 2, 0xFFFFFE);
	}
	assert_int_equal(qpn_take(&qpns, 0, &qpn), -ENOSPC);
}

/* proves QPS-23: a slot rests while others become free. */
static void qpn_take__not_reused_soon(void **state)
{
	uint32_t first, qpn;

	assert_int_equal(qpn_pool_init(&qpns), 0);
	for (unsigned run = 0; run < 50; run++) {
		assert_int_equal(qpn_take(&qpns, 0, &first), 0);
		qpn_release(&qpns, first);
		for (uint32_t i = 0; i < QPN_REST; i++) {
			assert_int_equal(qpn_take(&qpns, 0, &qpn), 0);
			assert_int_not_equal(QPN_SLOT(qpn), QPN_SLOT(first));
			qpn_release(&qpns, qpn);
		}
	}
}

/* A pool whose only free slot is @p slot. */
static void leave_one(uint32_t slot)
{
	assert_int_equal(qpn_pool_init(&qpns), 0);
	qpns.line[qpns.head] = (uint16_t)slot;
	qpns.count = 1;
	qpns.resting = 0;
}

/* proves QPS-23, SEC-04: a slot has another generation each time, and which one nobody can tell. */
static void qpn_take__another_generation_each_time(void **state)
{
	uint32_t qpn, last = 0, next = 0;

	leave_one(77);
	for (unsigned i = 0; i < 6300; i++) {
		assert_int_equal(qpn_take(&qpns, 3, &qpn), 0);
		assert_int_equal(QPN_SLOT(qpn), 77);
		assert_int_not_equal(qpn, last);
		next += qpn == ((last + QPN_MAKE(1, 0, 0)) & 0xFFFFFF);
		last = qpn;
		qpn_release(&qpns, qpn);
	}
	assert_in_range(next, 10, 190); /* 9 sigma */
}

/* proves QPS-24: QP0, QP1 and the multicast QPN never come, whatever the generation. */
static void qpn_take__skips_reserved(void **state)
{
	const uint32_t edge[][2] = {{0, 0}, {0, 1}, {WORKER_MAX - 1, QP_MAX - 1}};

	for (unsigned e = 0; e < 3; e++) {
		leave_one(edge[e][1]);
		for (unsigned i = 0; i < 100u << QPN_GEN_BITS; i++) {
			uint32_t qpn;

			assert_int_equal(qpn_take(&qpns, edge[e][0], &qpn), 0);
			assert_in_range(qpn, 2, 0xFFFFFE);
			qpn_release(&qpns, qpn);
		}
	}
}

/* proves QPS-23, SEC-04: where the numbers begin differs from run to run. */
static void qpn_take__begins_anywhere(void **state)
{
	uint32_t first = 0, qpn, slots = 0, generations = 0;

	for (unsigned run = 0; run < 20; run++) {
		assert_int_equal(qpn_pool_init(&qpns), 0);
		assert_int_equal(qpn_take(&qpns, 0, &qpn), 0);
		slots += run && QPN_SLOT(qpn) != QPN_SLOT(first);
		generations += run && qpn >> (24 - QPN_GEN_BITS) != first >> (24 - QPN_GEN_BITS);
		first = run ? first : qpn;
	}
	assert_true(slots > 10);
	assert_true(generations > 10);
}

/* Bit @p bit is set in half of 4000 numbers, give or take 9 sigma. */
static void assert_spreads(const uint32_t *number, uint32_t bit)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 4000; i++)
		n += number[i] >> bit & 1;
	assert_in_range(n, 1700, 2300);
}

/* proves SEC-04: a number says nothing of the next. */
static void qpn_take__spreads(void **state)
{
	static uint32_t qpn[4000];
	unsigned near = 0;

	assert_int_equal(qpn_pool_init(&qpns), 0);
	for (unsigned i = 0; i < 4000; i++)
		assert_int_equal(qpn_take(&qpns, 5, &qpn[i]), 0);
	for (uint32_t bit = 0; bit < 24; bit++)
		if (bit < QPN_SLOT_BITS || bit >= QPN_SLOT_BITS + QPN_WORKER_BITS)
			assert_spreads(qpn, bit);
	for (unsigned i = 1; i < 4000; i++)
		near += (QPN_SLOT(qpn[i]) - QPN_SLOT(qpn[i - 1]) + 8) % QP_MAX <= 16;
	assert_in_range(near, 0, 60); /* 5 or 6 are likely, 4000 where they are in turn */
}

/* proves SEC-04: also of two that one program has at a time. */
static void srqn_choose__spreads(void **state)
{
	static struct srqn_pool srqns;
	static struct srq_table srqs;
	static uint32_t srqn[4000];
	unsigned near = 0;

	assert_int_equal(srqn_pool_init(&srqns), 0);
	for (unsigned i = 0; i < 4000; i++) {
		assert_int_equal(srqn_choose(&srqns, &srqs, &srqn[i]), 0);
		assert_in_range(srqn[i], 1, 0xFFFFFF);
		near += i && (SRQN_SLOT(srqn[i]) - SRQN_SLOT(srqn[i - 1]) + 8) % SRQ_MAX <= 16;
	}
	for (uint32_t bit = 0; bit < 24; bit++)
		assert_spreads(srqn, bit);
	assert_in_range(near, 0, 90); /* 16 or 17 are likely */
}

/* Only one slot is free: each SRQ there has another number. */
static void srqn_choose__changes_in_a_slot(void **state)
{
	static struct srqn_pool srqns;
	static struct srq_table srqs;
	static struct srq some;
	uint32_t srqn, last = 0;

	assert_int_equal(srqn_pool_init(&srqns), 0);
	for (uint32_t i = 1; i < SRQ_MAX; i++)
		atomic_store(&srqs.slot[i], &some);
	for (unsigned i = 0; i < 50000; i++) {
		assert_int_equal(srqn_choose(&srqns, &srqs, &srqn), 0);
		assert_int_equal(SRQN_SLOT(srqn), 0);
		assert_int_not_equal(srqn, last);
		assert_int_not_equal(srqn, 0);
		last = srqn;
	}
	atomic_store(&srqs.slot[0], &some);
	assert_int_equal(srqn_choose(&srqns, &srqs, &srqn), -ENOSPC);
}

/* proves MR-01 */
static void key_choose__changes_in_a_slot(void **state)
{
	uint32_t key, last = 0;

	/* Only one slot is free: each registration there must have another key (MR-01). */
	for (uint32_t i = 0; i < MR_MAX; i++)
		atomic_store(&table.slot[i], &some_mr);
	atomic_store(&table.slot[77], NULL);
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(key_choose(&keys, &table, &key), 0);
		assert_int_equal(key >> 8, 77);
		assert_int_not_equal(key, last);
		last = key;
	}
	atomic_store(&table.slot[77], &some_mr);
	assert_int_equal(key_choose(&keys, &table, &key), -ENOSPC);
	atomic_store(&table.slot[0], NULL); /* never given out */
	assert_int_equal(key_choose(&keys, &table, &key), -ENOSPC);
}

/* proves SEC-04: neither slots nor key parts follow a pattern that a peer could use. */
static void key_choose__spreads(void **state)
{
	unsigned high = 0, odd = 0;

	memset(&table, 0, sizeof(table));
	for (int i = 0; i < 4000; i++) {
		uint32_t key;

		assert_int_equal(key_choose(&keys, &table, &key), 0);
		high += key >> 23;
		odd += key & 1;
	}
	assert_in_range(high, 1700, 2300); /* 9 sigma */
	assert_in_range(odd, 1700, 2300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qpn_take__all_slots_once),
		cmocka_unit_test(qpn_take__not_reused_soon),
		cmocka_unit_test(qpn_take__another_generation_each_time),
		cmocka_unit_test(qpn_take__skips_reserved),
		cmocka_unit_test(qpn_take__begins_anywhere),
		cmocka_unit_test(qpn_take__spreads),
		cmocka_unit_test(srqn_choose__spreads),
		cmocka_unit_test(srqn_choose__changes_in_a_slot),
		cmocka_unit_test(key_choose__changes_in_a_slot),
		cmocka_unit_test(key_choose__spreads),
	};

	return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
