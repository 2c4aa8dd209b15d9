/* SPDX-License-Identifier: BSD-3-Clause */
/* The access list of switches, and their buckets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <pthread.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "bits.h"
#include "switch_list.h"

#define SECOND 1000000000ull

/* proves FCN-10 */
static void switch_find__address_or_prefix(void **state)
{
	static const struct {
		const char *addr;
		int entry;
	} row[] = {{"2001:db8:5::1", 0}, {"2001:db8:5::2", 2}, {"2001:db8:5:0:8000::", -1},
		{"2001:db8:6::ffff", 1}, {"2001:db8:6:1::", -1}, {"::", -1},
		{"2001:db8:5:0:7fff:ffff:ffff:ffff", 2}};
	struct switch_list l = {.n = 3};

	inet_pton(AF_INET6, "2001:db8:5::1", l.entry[0].addr);
	l.entry[0].prefix = 128;
	inet_pton(AF_INET6, "2001:db8:6::", l.entry[1].addr);
	l.entry[1].prefix = 64;
	inet_pton(AF_INET6, "2001:db8:5::", l.entry[2].addr);
	l.entry[2].prefix = 65;
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct switch_entry *e;
		uint8_t addr[16];

		inet_pton(AF_INET6, row[i].addr, addr);
		e = switch_find(&l, addr);
		assert_int_equal(e ? e - l.entry : -1, row[i].entry);
	}
	l.n = 0;
	assert_null(switch_find(&l, l.entry[0].addr));
}

static unsigned take_all(struct bucket *b, uint64_t now)
{
	unsigned n = 0;

	while (bucket_take(b, now))
		n++;
	return n;
}

/* proves FCN-11 */
static void bucket__burst_then_rate(void **state)
{
	struct bucket b;
	uint64_t now = 12345;
	unsigned n = 0;

	bucket_init(&b, 1000, 8);
	assert_int_equal(take_all(&b, now), 8);
	assert_int_equal(take_all(&b, now + SECOND / 1000 - 1), 0);
	assert_int_equal(take_all(&b, now + SECOND / 1000), 1);
	now += SECOND / 1000;
	for (uint64_t end = now + SECOND; now < end; now += 777)
		n += bucket_take(&b, now);
	assert_in_range(n, 999, 1000);
	assert_int_equal(take_all(&b, now + 3600 * SECOND), 8); /* no more is saved up */
	bucket_init(&b, 1, 1);
	assert_int_equal(take_all(&b, 0), 1);
	assert_int_equal(take_all(&b, SECOND - 1), 0);
	assert_int_equal(take_all(&b, SECOND), 1);
	bucket_init(&b, SECOND, 1);
	assert_int_equal(take_all(&b, 5), 1);
	assert_int_equal(take_all(&b, 6), 1);
}

/* A worker's clock may be a little slower than another's. */
static void bucket__goes_back_in_time(void **state)
{
	struct bucket b;

	bucket_init(&b, 1000, 3);
	assert_true(bucket_take(&b, SECOND));
	assert_true(bucket_take(&b, SECOND - 1000));
	assert_false(bucket_take(&b, SECOND - 2000));
	assert_true(bucket_take(&b, SECOND + SECOND / 1000));
}

/* proves FCN-11: workers together get no more than one would */
static struct bucket shared;

static void *take_some(void *arg)
{
	uintptr_t n = 0;

	for (unsigned i = 0; i < 100000; i++)
		n += bucket_take(&shared, SECOND);
	return (void *)n;
}

static void bucket__of_many_workers(void **state)
{
	pthread_t t[4];
	uintptr_t sum = 0;

	bucket_init(&shared, 1, 1000);
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, take_some, NULL), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		void *n;

		pthread_join(t[i], &n);
		sum += (uintptr_t)n;
	}
	assert_int_equal(sum, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switch_find__address_or_prefix),
		cmocka_unit_test(bucket__burst_then_rate),
		cmocka_unit_test(bucket__goes_back_in_time),
		cmocka_unit_test(bucket__of_many_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
