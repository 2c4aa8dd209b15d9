/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and bounds: MR-01..07, RSP-13, RSP-14. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "mr.h"

static struct mr_table table;
static uint8_t mem[100];
static struct mr mr;

static int setup(void **state)
{
	memset(&table, 0, sizeof(table));
	mr = (struct mr){.key = 5 << 8 | 0x77,
		.pd = 3,
		.access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_READ,
		.iova = 1000,
		.length = sizeof(mem),
		.base = mem};
	atomic_store(&table.slot[5], &mr);
	return 0;
}

/* proves RSP-14, MR-01 */
static void mr_find__wants_the_whole_key(void **state)
{
	assert_ptr_equal(mr_find(&table, 0x577), &mr);
	assert_null(mr_find(&table, 0x576));
	assert_null(mr_find(&table, 0x677));
	assert_null(mr_find(&table, 0));
	assert_null(mr_find(&table, UINT32_MAX));
	assert_null(mr_find(&table, MR_MAX << 8 | 0x577));
	atomic_store(&table.slot[5], NULL);
	assert_null(mr_find(&table, 0x577));
}

/* proves RSP-13, MR-04, MR-06, MR-07 */
static void mr_resolve__checks_everything(void **state)
{
	static const struct {
		uint64_t va, len;
		enum mr_status want;
	} row[] = {
		{1000, 100, MR_OK},
		{1000, 0, MR_OK},
		{1100, 0, MR_OK},
		{1099, 1, MR_OK},
		{1099, 2, MR_RANGE},
		{1100, 1, MR_RANGE},
		{999, 1, MR_RANGE},
		{999, 0, MR_RANGE},
		{0, 101, MR_RANGE},
		{1000, 101, MR_RANGE},
		{1001, UINT64_MAX, MR_RANGE},
		{1001, UINT64_MAX - 1000, MR_RANGE},
		{UINT64_MAX, 2, MR_RANGE},
		{UINT64_MAX - 3, 1100, MR_RANGE},
	};
	uint8_t *p = NULL;

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_int_equal(
			mr_resolve(&table, 0x577, 3, 0, row[i].va, row[i].len, NULL), row[i].want);
	assert_int_equal(mr_resolve(&table, 0x577, 3, ABI_ACCESS_REMOTE_READ, 1010, 5, &p), MR_OK);
	assert_ptr_equal(p, mem + 10);
	assert_int_equal(mr_resolve(&table, 0x577, 4, 0, 1000, 1, NULL), MR_NO_KEY);
	assert_int_equal(mr_resolve(&table, 0x578, 3, 0, 1000, 1, NULL), MR_NO_KEY);
	assert_int_equal(
		mr_resolve(&table, 0x577, 3, ABI_ACCESS_REMOTE_WRITE, 1000, 1, NULL), MR_NO_ACCESS);
	assert_int_equal(mr_resolve(&table, 0x577, 3,
				 ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_WRITE, 1000, 1, NULL),
		MR_NO_ACCESS); /* all that is asked for */
}

/* proves MR-07: a region at the very end of the address space. */
static void mr_resolve__does_not_wrap(void **state)
{
	mr.iova = UINT64_MAX - 99;
	assert_int_equal(mr_resolve(&table, 0x577, 3, 0, UINT64_MAX - 99, 100, NULL), MR_OK);
	assert_int_equal(mr_resolve(&table, 0x577, 3, 0, UINT64_MAX, 1, NULL), MR_OK);
	assert_int_equal(mr_resolve(&table, 0x577, 3, 0, UINT64_MAX, 2, NULL), MR_RANGE);
	assert_int_equal(mr_resolve(&table, 0x577, 3, 0, 0, 1, NULL), MR_RANGE);
}

/* proves MR-02 */
static void mr_access_valid__combinations(void **state)
{
	assert_true(mr_access_valid(0));
	assert_true(mr_access_valid(ABI_ACCESS_REMOTE_READ));
	assert_true(mr_access_valid(ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE));
	assert_false(mr_access_valid(ABI_ACCESS_REMOTE_WRITE));
	assert_false(mr_access_valid(ABI_ACCESS_REMOTE_ATOMIC));
	assert_true(mr_access_valid(ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_ATOMIC));
	assert_false(mr_access_valid(1u << 20));
	assert_false(mr_access_valid(1u << 31 | ABI_ACCESS_LOCAL_WRITE));
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(mr_find__wants_the_whole_key),
		T(mr_resolve__checks_everything),
		T(mr_resolve__does_not_wrap),
		T(mr_access_valid__combinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
