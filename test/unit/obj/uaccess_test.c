/* SPDX-License-Identifier: BSD-3-Clause */
/* Application memory: exact bounds, one pass, faults reported (decision 0000.5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <pthread.h>
#include <stdatomic.h>
#include <cmocka.h>
#include "guard.h"
#include "icrc.h"
#include "random.h"
#include "uaccess.h"

static uint32_t faults;
static struct uaccess ua = {.faults = &faults};

static void place_at(const struct guard *dst, unsigned off, const uint8_t *src, uint32_t len)
{
	memset(dst->begin, 0xEE, 4096);
	assert_true(uaccess_place(ua, dst->begin + off, src, len));
	assert_memory_equal(dst->begin + off, src, len);
	for (unsigned i = 0; i < off; i++)
		assert_int_equal(dst->begin[i], 0xEE);
	for (unsigned i = off + len; i < 400; i++)
		assert_int_equal(dst->begin[i], 0xEE);
}

/* Every length at every alignment of a cache line, between pages that may not be touched, by each
 * implementation. */
static void uaccess_place__exactly(void **state)
{
	struct random r = {.state = 5};
	struct guard dst = guard_map(4096);
	uint8_t src[300];

	random_fill(&r, src, sizeof(src));
	for (unsigned k = 0; (ua.icrc = icrc_nth(k)); k++) {
		for (uint32_t len = 0; len <= 200; len++) {
			for (unsigned off = 0; off < 64; off++)
				place_at(&dst, off, src + (len & 7), len);
			assert_true(uaccess_place(ua, dst.end - len, src, len));
			assert_memory_equal(dst.end - len, src, len);
		}
	}
	guard_unmap(&dst);
}

static void uaccess_gather__copies_and_counts_the_same_bytes(void **state)
{
	struct random r = {.state = 6};
	struct guard src = guard_map(4096);
	uint8_t dst[300];

	ua.icrc = icrc_best();
	random_fill(&r, src.begin, 4096);
	for (uint32_t len = 0; len <= 200; len++) {
		uint32_t crc = ICRC_SEED;

		memset(dst, 0xEE, sizeof(dst));
		assert_true(uaccess_gather(ua, &crc, dst + 3, src.end - len, len));
		assert_memory_equal(dst + 3, src.end - len, len);
		assert_int_equal(dst[3 + len], 0xEE);
		assert_int_equal(crc, icrc_by_name("table")->crc(ICRC_SEED, dst + 3, len));
	}
	guard_unmap(&src);
}

static _Atomic bool stop;

static void *scribble(void *arg)
{
	volatile uint64_t *m = arg;

	for (uint64_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++)
		m[i % 512] = i * 0x9E3779B97F4A7C15ull;
	return NULL;
}

/* The copy and its CRC agree although somebody writes the source meanwhile. */
static void uaccess_gather__under_a_concurrent_writer(void **state)
{
	static uint8_t src[4096] __attribute__((aligned(64))), dst[4096];
	const struct icrc_ops *ops;
	pthread_t t;

	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&t, NULL, scribble, src), 0);
	for (unsigned k = 0; (ops = icrc_nth(k)); k++) {
		ua.icrc = ops;
		for (unsigned i = 0; i < 2000; i++) {
			uint32_t crc = ICRC_SEED;

			uaccess_gather(ua, &crc, dst, src, sizeof(dst));
			assert_int_equal(crc, icrc_best()->crc(ICRC_SEED, dst, sizeof(dst)));
		}
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
}

static void uaccess_wqe__copies(void **state)
{
	_Alignas(64) uint8_t src[512], dst[512];
	struct random r = {.state = 7};

	random_fill(&r, src, sizeof(src));
	for (size_t len = 64; len <= 512; len *= 2) {
		memset(dst, 0, sizeof(dst));
		uaccess_wqe(dst, src, len);
		assert_memory_equal(dst, src, len);
		if (len < 512)
			assert_int_equal(dst[len], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uaccess_place__exactly),
		cmocka_unit_test(uaccess_gather__copies_and_counts_the_same_bytes),
		cmocka_unit_test(uaccess_gather__under_a_concurrent_writer),
		cmocka_unit_test(uaccess_wqe__copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
