/* SPDX-License-Identifier: BSD-3-Clause */
/* CQ lanes: phase marks, overflow, arming. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "cq.h"

#define DEPTH 4u

static struct {
	struct abi_cq head;
	struct abi_cq_lane lane;
	struct abi_cqe cqe[DEPTH];
	uint8_t guard[64];
} __attribute__((aligned(ABI_LINE))) shared;
static struct cq cq;

static int setup(void **state)
{
	memset(&shared, 0, sizeof(shared));
	memset(shared.guard, 0xAB, sizeof(shared.guard));
	memset(&cq, 0, sizeof(cq));
	cq.arm = &shared.head.arm;
	cq_lane_init(&cq, 0, &shared.lane, DEPTH);
	return 0;
}

static bool push(uint64_t id, uint8_t status, uint8_t flags)
{
	struct abi_cqe cqe = {.wr_id = id, .status = status, .flags = flags, .mark = 0xFFFFFFFF};

	return cq_push(&cq.lane[0], &cqe, cq.lane[0].head);
}

static void cq_push__marks_laps(void **state)
{
	for (uint32_t i = 0; i < 5 * DEPTH; i++) {
		struct abi_cqe *slot = &shared.cqe[i % DEPTH];

		assert_int_not_equal(slot->mark & 1, i / DEPTH % 2 == 0);
		assert_true(push(i, 0, 0));
		assert_int_equal(slot->mark & 1, i / DEPTH % 2 == 0);
		assert_int_equal(slot->wr_id, i);
		atomic_store(&shared.lane.consumer, i + 1);
	}
	for (unsigned i = 0; i < sizeof(shared.guard); i++)
		assert_int_equal(shared.guard[i], 0xAB);
}

/* proves CQ-01: nothing is overwritten, and the lane stays closed. */
static void cq_push__refuses_when_full(void **state)
{
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_true(push(i, 0, 0));
	assert_false(push(99, 0, 0));
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(shared.cqe[i].wr_id, i);
	atomic_store(&shared.lane.consumer, DEPTH);
	assert_false(push(99, 0, 0));
	assert_true(cq.lane[0].overflow);
}

/* Any consumer index that the application writes stays inside the ring. */
static void cq_push__survives_a_wild_consumer(void **state)
{
	static const uint32_t wild[] = {UINT32_MAX, 1u << 31, 1000, 0};

	for (unsigned w = 0; w < 4; w++) {
		setup(NULL);
		atomic_store(&shared.lane.consumer, wild[w]);
		for (uint32_t i = 0; i < 3 * DEPTH; i++)
			push(i, 0, 0);
		for (unsigned i = 0; i < sizeof(shared.guard); i++)
			assert_int_equal(shared.guard[i], 0xAB);
	}
}

/* proves CQ-03, CQ-04, CQ-05, CQ-06 */
static void cq_notify_wanted__arms(void **state)
{
	static const struct {
		uint32_t arm;
		uint8_t status, flags;
		bool want;
	} row[] = {
		{ABI_CQ_ARM_NONE, 0, 0, false},
		{ABI_CQ_ARM_ANY, 0, 0, true},
		{ABI_CQ_ARM_SOLICITED, 0, 0, false},
		{ABI_CQ_ARM_SOLICITED, 0, ABI_WC_SOLICITED, true},
		{ABI_CQ_ARM_SOLICITED, ABI_WC_WR_FLUSH_ERR, 0, true},
		{ABI_CQ_ARM_ANY, 0, ABI_WC_SOLICITED, true},
		{ABI_CQ_ARM_ANY | ABI_CQ_ARM_SOLICITED, 0, 0, true},
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		setup(NULL);
		atomic_store(&shared.head.arm, 5 * ABI_CQ_ARM_STEP + row[i].arm);
		assert_false(cq_notify_wanted(&cq.lane[0])); /* nothing was added */
		push(1, row[i].status, row[i].flags);
		assert_int_equal(cq_notify_wanted(&cq.lane[0]), row[i].want);
		assert_int_equal(atomic_load(&shared.head.arm),
			5 * ABI_CQ_ARM_STEP + (row[i].want ? 0 : row[i].arm));
		push(2, row[i].status, row[i].flags);
		assert_false(cq_notify_wanted(&cq.lane[0])); /* one shot */
	}
	for (unsigned at = 0; at < 3; at++) { /* the solicited one among others */
		setup(NULL);
		atomic_store(&shared.head.arm, ABI_CQ_ARM_SOLICITED);
		for (unsigned i = 0; i < 3; i++)
			push(i, 0, i == at ? ABI_WC_SOLICITED : 0);
		assert_true(cq_notify_wanted(&cq.lane[0]));
	}
}

/* proves CQ-11: the old ring stays as it is, the new one begins at its start. */
static void cq_lane_move__goes_on_elsewhere(void **state)
{
	static struct {
		struct abi_cq_lane lane;
		struct abi_cqe cqe[2 * DEPTH];
	} larger __attribute__((aligned(ABI_LINE)));

	memset(&larger, 0, sizeof(larger));
	for (uint32_t i = 0; i < 6; i++) { /* into the second lap */
		assert_true(push(i, 0, 0));
		atomic_store(&shared.lane.consumer, i < 3 ? i + 1 : 3);
	}
	assert_int_equal(cq_lane_waiting(&cq.lane[0]), 3);
	cq_lane_move(&cq.lane[0], &larger.lane, 2 * DEPTH);
	assert_int_equal(cq_lane_waiting(&cq.lane[0]), 0);
	for (uint32_t i = 0; i < 2 * DEPTH; i++)
		assert_true(push(10 + i, 0, 0));
	assert_false(push(99, 0, 0));
	for (uint32_t i = 0; i < 2 * DEPTH; i++) {
		assert_int_equal(larger.cqe[i].wr_id, 10 + i);
		assert_int_equal(larger.cqe[i].mark & 1, 1);
	}
	assert_int_equal(shared.cqe[3].wr_id, 3);
	assert_int_equal(shared.cqe[0].wr_id, 4);
	assert_int_equal(shared.cqe[1].wr_id, 5);
	assert_int_equal(cq_lane_waiting(&cq.lane[0]), 2 * DEPTH);
}

/* proves CQ-01: more room does not bring back what was lost. */
static void cq_lane_move__does_not_forgive(void **state)
{
	static struct {
		struct abi_cq_lane lane;
		struct abi_cqe cqe[2 * DEPTH];
	} larger __attribute__((aligned(ABI_LINE)));

	for (uint32_t i = 0; i < DEPTH; i++)
		assert_true(push(i, 0, 0));
	assert_false(push(99, 0, 0));
	cq_lane_move(&cq.lane[0], &larger.lane, 2 * DEPTH);
	assert_false(push(99, 0, 0));
}

/* A wild consumer index counts as a full or an empty lane. */
static void cq_lane_waiting__is_bounded(void **state)
{
	push(1, 0, 0);
	atomic_store(&shared.lane.consumer, 5);
	assert_int_equal(cq_lane_waiting(&cq.lane[0]), DEPTH);
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(cq_push__marks_laps),
		T(cq_push__refuses_when_full),
		T(cq_push__survives_a_wild_consumer),
		T(cq_notify_wanted__arms),
		T(cq_lane_move__goes_on_elsewhere),
		T(cq_lane_move__does_not_forgive),
		T(cq_lane_waiting__is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
