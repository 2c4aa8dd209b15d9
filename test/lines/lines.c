/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "lines.h"

#define TABLE_BITS 18u
#define TABLE	   (1u << TABLE_BITS) /* lines at most */

struct line {
	uint64_t number; /* address / CACHE_LINE; 0: none */
	uint64_t reads[LINES_WORKERS];
	uint64_t writes[LINES_WORKERS];
	void *reader[LINES_WORKERS];
	void *writer[LINES_WORKERS];
};

static struct line table[TABLE];
static unsigned used;
static uint64_t accesses;
static uint64_t stack_low, stack_high;
/* Rocid's own threads run the same code. */
static _Thread_local unsigned who = LINES_WORKERS;

/* Each worker has a stack of its own, but here they run on the same one. */
static void find_stack(void)
{
	pthread_attr_t attr;
	size_t size;
	void *low;

	if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &low, &size))
		abort();
	stack_low = (uint64_t)low;
	stack_high = stack_low + size;
	pthread_attr_destroy(&attr);
}

void lines_by(unsigned i)
{
	if (!stack_high)
		find_stack();
	who = i;
}

void lines_clear(void)
{
	memset(table, 0, sizeof(table));
	used = 0;
	accesses = 0;
}

uint64_t lines_accesses(void)
{
	return accesses;
}

static struct line *line_at(uint64_t number)
{
	uint64_t slot = number * 0x9E3779B97F4A7C15u >> (64 - TABLE_BITS);

	while (table[slot].number && table[slot].number != number)
		slot = (slot + 1) % TABLE;
	if (!table[slot].number && ++used == TABLE) {
		fputs("lines: more lines than the table has\n", stderr);
		abort();
	}
	table[slot].number = number;
	return &table[slot];
}

static void count(const volatile void *at, size_t size, bool write, void *by)
{
	uint64_t address = (uint64_t)at;

	if (who == LINES_WORKERS || (address >= stack_low && address < stack_high) || !size)
		return;
	accesses++;
	for (uint64_t n = address / CACHE_LINE; n <= (address + size - 1) / CACHE_LINE; n++) {
		struct line *l = line_at(n);

		if (write) {
			l->writes[who]++;
			l->writer[who] = by;
		} else {
			l->reads[who]++;
			l->reader[who] = by;
		}
	}
}

/* @return how often worker @p w wrote @p l and the other one used it. */
static uint64_t moves(const struct line *l, unsigned w)
{
	uint64_t uses = l->reads[!w] + l->writes[!w];

	return l->writes[w] < uses ? l->writes[w] : uses;
}

struct shared_lines lines_shared(void)
{
	struct shared_lines all = {0};
	uint64_t most = 0;

	for (unsigned i = 0; i < 2 * TABLE; i++) {
		const struct line *l = &table[i / 2];
		unsigned w = i % 2;
		uint64_t n = moves(l, w);

		all.times += n;
		if (n <= most)
			continue;
		most = n;
		all.address = l->number * CACHE_LINE;
		all.writer = l->writer[w];
		all.user = l->writes[!w] ? l->writer[!w] : l->reader[!w];
		memcpy(all.reads, l->reads, sizeof(all.reads));
		memcpy(all.writes, l->writes, sizeof(all.writes));
	}
	return all;
}

/* --- what gcc calls before an access ------------------------------------------------------ */

#define READ(at, size)	count(at, size, false, __builtin_return_address(0))
#define WRITE(at, size) count(at, size, true, __builtin_return_address(0))

#define ACCESS(kind, COUNT, size)                     \
	void __tsan_##kind##size(void *at);           \
	void __tsan_##kind##size(void *at)            \
	{                                             \
		COUNT(at, size);                      \
	}                                             \
	void __tsan_unaligned_##kind##size(void *at); \
	void __tsan_unaligned_##kind##size(void *at)  \
	{                                             \
		COUNT(at, size);                      \
	}

#define ACCESSES(size)           \
	ACCESS(read, READ, size) \
	ACCESS(write, WRITE, size)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *at, size_t size);
void __tsan_read_range(void *at, size_t size)
{
	READ(at, size);
}

void __tsan_write_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size)
{
	WRITE(at, size);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

/* --- what gcc calls instead of an atomic operation ----------------------------------------- */

#define FETCH(bits, op)                                                        \
	uint##bits##_t __tsan_atomic##bits##_fetch_##op(                       \
		volatile uint##bits##_t *at, uint##bits##_t value, int order); \
	uint##bits##_t __tsan_atomic##bits##_fetch_##op(                       \
		volatile uint##bits##_t *at, uint##bits##_t value, int order)  \
	{                                                                      \
		WRITE(at, sizeof(*at));                                        \
		return __atomic_fetch_##op(at, value, __ATOMIC_SEQ_CST);       \
	}

#define COMPARE(bits, strength, weak)                                                      \
	int __tsan_atomic##bits##_compare_exchange_##strength(volatile uint##bits##_t *at, \
		uint##bits##_t *expected, uint##bits##_t value, int order, int failed);    \
	int __tsan_atomic##bits##_compare_exchange_##strength(volatile uint##bits##_t *at, \
		uint##bits##_t *expected, uint##bits##_t value, int order, int failed)     \
	{                                                                                  \
		WRITE(at, sizeof(*at));                                                    \
		return __atomic_compare_exchange_n(                                        \
			at, expected, value, weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);    \
	}

#define ATOMIC(bits)                                                                             \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order); \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)  \
	{                                                                                        \
		READ(at, sizeof(*at));                                                           \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                    \
	}                                                                                        \
	void __tsan_atomic##bits##_store(                                                        \
		volatile uint##bits##_t *at, uint##bits##_t value, int order);                   \
	void __tsan_atomic##bits##_store(                                                        \
		volatile uint##bits##_t *at, uint##bits##_t value, int order)                    \
	{                                                                                        \
		WRITE(at, sizeof(*at));                                                          \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                   \
	}                                                                                        \
	uint##bits##_t __tsan_atomic##bits##_exchange(                                           \
		volatile uint##bits##_t *at, uint##bits##_t value, int order);                   \
	uint##bits##_t __tsan_atomic##bits##_exchange(                                           \
		volatile uint##bits##_t *at, uint##bits##_t value, int order)                    \
	{                                                                                        \
		WRITE(at, sizeof(*at));                                                          \
		return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                         \
	}                                                                                        \
	FETCH(bits, add)                                                                         \
	FETCH(bits, sub)                                                                         \
	FETCH(bits, and)                                                                         \
	FETCH(bits, or)                                                                          \
	FETCH(bits, xor)                                                                         \
	COMPARE(bits, strong, false)                                                             \
	COMPARE(bits, weak, true)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	atomic_thread_fence(memory_order_seq_cst);
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
}

/* --- calls that the linker brings here ---------------------------------------------------- */

#define COPY(name)                                                 \
	void *__real_##name(void *to, const void *from, size_t n); \
	void *__wrap_##name(void *to, const void *from, size_t n); \
	void *__wrap_##name(void *to, const void *from, size_t n)  \
	{                                                          \
		READ(from, n);                                     \
		WRITE(to, n);                                      \
		return __real_##name(to, from, n);                 \
	}

COPY(memcpy)
COPY(memmove)

void *__real_memset(void *to, int value, size_t n);
void *__wrap_memset(void *to, int value, size_t n);
void *__wrap_memset(void *to, int value, size_t n)
{
	WRITE(to, n);
	return __real_memset(to, value, n);
}
