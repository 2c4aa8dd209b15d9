/* SPDX-License-Identifier: BSD-3-Clause */
#include "inet.h"

/* The sum of the low halves of 64-bit words is the sum of the words less that of the high halves,
 * modulo 2^64: a shift and two additions per vector. */
#define SUM_OF(lanes)                                                                        \
	lanes all = {0}, high = {0};                                                         \
	for (; len >= 4 * sizeof(lanes); p += 4 * sizeof(lanes), len -= 4 * sizeof(lanes)) { \
		const lanes *v = (const void *)p;                                            \
		all += (v[0] + v[1]) + (v[2] + v[3]);                                        \
		high += ((v[0] >> 32) + (v[1] >> 32)) + ((v[2] >> 32) + (v[3] >> 32));       \
	}                                                                                    \
	all += high - (high << 32);                                                          \
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)                          \
		sum += all[i];                                                               \
	return inet_add_words(sum, p, len)

typedef uint64_t lanes_16 __attribute__((vector_size(16), aligned(1), may_alias));

static uint64_t add(uint64_t sum, const uint8_t *p, uint32_t len)
{
	SUM_OF(lanes_16);
}

#ifdef __x86_64__
typedef uint64_t lanes_32 __attribute__((vector_size(32), aligned(1), may_alias));

__attribute__((target("avx2"))) static uint64_t add_avx2(
	uint64_t sum, const uint8_t *p, uint32_t len)
{
	SUM_OF(lanes_32);
}

uint64_t inet_add_many(uint64_t sum, const uint8_t *p, uint32_t len)
{
	return __builtin_cpu_supports("avx2") ? add_avx2(sum, p, len) : add(sum, p, len);
}
#else
uint64_t inet_add_many(uint64_t sum, const uint8_t *p, uint32_t len)
{
	return add(sum, p, len);
}
#endif
