/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "hash.h"

#define SEEDS	1000u
#define BUCKETS 1024u
#define KEYS	256u

static uint64_t state = 1;

/* xorshift64: the same seeds in each run */
static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* KEYS of BUCKETS that chance fills are about 226 different ones. */
static void hash_words__keys_in_a_row(void **cmocka)
{
	(void)cmocka;
	for (unsigned s = 0; s < SEEDS; s++) {
		bool filled[BUCKETS] = {false};
		struct hash_seed seed;
		unsigned used = 0;

		for (unsigned i = 0; i <= HASH_WORDS; i++)
			seed.factor[i] = next();
		for (uint32_t n = 0; n < KEYS; n++) {
			const uint32_t key[4] = {0, 0, 0xFFFF0000, 0x0A000000 + n};
			bool *at = &filled[hash_words(&seed, key, 4) % BUCKETS];

			used += !*at;
			*at = true;
		}
		assert_true(used > 190);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(hash_words__keys_in_a_row)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
