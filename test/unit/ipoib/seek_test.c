/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses that are asked for in turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "seek.h"

#define PAUSE 100u

static struct seek s;
static struct hash_seed seed;

static int setup(void **state)
{
	memset(&s, 0, sizeof(s));
	for (unsigned i = 0; i <= HASH_WORDS; i++)
		seed.factor[i] = 0x9E3779B97F4A7C15ull * (i + 1);
	return 0;
}

static void add(uint32_t sender, uint32_t ip)
{
	uint8_t octets[4];

	put_be32(octets, ip);
	seek_add(&s, &seed, sender, octets, sizeof(octets));
}

/* @return the address that is asked for at @p now, 0: none. */
static uint32_t taken(uint64_t now)
{
	struct station_ip at;

	if (!seek_take(&s, now, PAUSE, &at))
		return 0;
	assert_int_equal(at.len, 4);
	return get_be32(at.ip);
}

static void seek__one_per_pause(void **state)
{
	assert_int_equal(seek_deadline(&s), UINT64_MAX);
	assert_int_equal(taken(7), 0);
	add(1, 10);
	add(2, 20);
	add(3, 30);
	assert_true(seek_deadline(&s) <= 7);
	assert_int_equal(taken(7), 10);
	assert_int_equal(seek_deadline(&s), 7 + PAUSE);
	assert_int_equal(taken(6 + PAUSE), 0);
	assert_int_equal(taken(7 + PAUSE), 20);
	assert_int_equal(taken(7 + 2 * PAUSE), 30);
	assert_int_equal(seek_deadline(&s), UINT64_MAX);
	assert_int_equal(taken(1000), 0);
	add(1, 11);
	assert_int_equal(taken(1000), 11);
}

/* One that floods delays another by one turn. */
static void seek__flood_of_one(void **state)
{
	uint64_t now = 0;

	for (uint32_t i = 0; i < 100000; i++)
		add(1, 1000 + i);
	add(2, 20);
	for (uint32_t i = 0; i < 100000; i++)
		add(1, 1000000 + i);
	assert_true(taken(now) >= 1000);
	add(1, 5);
	assert_int_equal(taken(now += PAUSE), 20);
	assert_int_equal(taken(now += PAUSE), 5);
}

/* All that one sender asks for have the same chance, though their order is always the same. */
static void seek__each_has_a_chance(void **state)
{
	uint32_t count[10] = {0};
	uint64_t now = 0;

	for (unsigned round = 0; round < 1000; round++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(count); i++)
			add(1, 1 + i);
		count[taken(now += PAUSE) - 1]++;
		assert_int_equal(taken(now += PAUSE), 0);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(count); i++)
		assert_in_range(count[i], 50, 200);
}

/* Of more senders than there are places some are lost, but none by its number. */
static void seek__more_senders_than_places(void **state)
{
	uint32_t kept[2] = {0}, n = 0;
	uint64_t now = 0;

	for (uint32_t i = 0; i < 2 * SEEK_MAX; i++)
		add(i, 1 + i);
	for (uint32_t ip; (ip = taken(now += PAUSE)); n++)
		kept[ip > SEEK_MAX]++;
	assert_int_equal(n, SEEK_MAX);
	assert_in_range(kept[0], SEEK_MAX / 8, SEEK_MAX - SEEK_MAX / 8);
	assert_in_range(kept[1], SEEK_MAX / 8, SEEK_MAX - SEEK_MAX / 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(seek__one_per_pause, setup),
		cmocka_unit_test_setup(seek__flood_of_one, setup),
		cmocka_unit_test_setup(seek__each_has_a_chance, setup),
		cmocka_unit_test_setup(seek__more_senders_than_places, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
