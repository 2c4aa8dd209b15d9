/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations of this process. */
#ifndef ARENA_FIXTURE_H
#define ARENA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "patience.h"
#include "source.h"

static char why[ARENA_WHY_MAX];

static inline struct arena_hold *take(const void *p, size_t len)
{
	struct arena_hold *h = NULL;

	why[0] = 0;
	if (arena_take(&source, (uintptr_t)p, len, true, &h, why))
		fail_msg("%s", why);
	return h;
}

static inline int refusal(const void *p, size_t len, bool write)
{
	struct arena_hold *h = NULL;

	why[0] = 0;
	return arena_take(&source, (uintptr_t)p, len, write, &h, why);
}

/* The file has the bytes of @p h that the program sees. */
static inline void same(const struct arena_hold *h, const uint8_t *p, size_t len)
{
	uint8_t *copy = malloc(len);
	size_t at = 0;

	for (unsigned i = 0; i < h->npieces; at += h->piece[i++].len)
		assert_int_equal(pread(h->fd, copy + at, h->piece[i].len, (off_t)h->piece[i].off),
			h->piece[i].len);
	assert_int_equal(at, len);
	assert_memory_equal(copy, p, len);
	free(copy);
}

static inline void *again(uint8_t *p, size_t len)
{
	return mmap(p, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Whole pages of the heap, where nothing is a block: their first generation is 0. */
static inline uint8_t *heap(size_t len)
{
	uint8_t *p = sbrk((intptr_t)(len + PAGE));

	if (p == (void *)-1)
		__builtin_trap();
	return p + PAGE - (uintptr_t)p % PAGE;
}

static inline void *wait_for_byte(void *arg)
{
	char byte;

	return read(*(int *)arg, &byte, 1) == 1 ? arg : NULL;
}

#endif
