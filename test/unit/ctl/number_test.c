/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "number.h"

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

/* proves QPS-23: a slot rests while all others are used, and then has another generation. */
static void qpn_take__not_reused_soon(void **state)
{
	uint32_t first, qpn;

	assert_int_equal(qpn_pool_init(&qpns), 0);
	assert_int_equal(qpn_take(&qpns, 0, &first), 0);
	qpn_release(&qpns, first);
	for (uint32_t i = 0; i < QP_MAX - 1; i++) {
		assert_int_equal(qpn_take(&qpns, 0, &qpn), 0);
		assert_int_not_equal(QPN_SLOT(qpn), QPN_SLOT(first));
		qpn_release(&qpns, qpn);
	}
	assert_int_equal(qpn_take(&qpns, 0, &qpn), 0);
	assert_int_equal(QPN_SLOT(qpn), QPN_SLOT(first));
	assert_int_not_equal(qpn, first);
}

/* proves QPS-24: QP0, QP1 and the multicast QPN never come, whatever the generation. */
static void qpn_take__skips_reserved(void **state)
{
	const uint32_t edge[][2] = {{0, 0}, {0, 1}, {WORKER_MAX - 1, QP_MAX - 1}};

	for (unsigned e = 0; e < 3; e++) {
		assert_int_equal(qpn_pool_init(&qpns), 0);
		for (unsigned i = 0; i < 3u << QPN_GEN_BITS; i++) {
			uint32_t qpn;

			qpns.line[qpns.head] = (uint16_t)edge[e][1];
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
		cmocka_unit_test(qpn_take__skips_reserved),
		cmocka_unit_test(qpn_take__begins_anywhere),
		cmocka_unit_test(key_choose__changes_in_a_slot),
		cmocka_unit_test(key_choose__spreads),
	};

	return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
