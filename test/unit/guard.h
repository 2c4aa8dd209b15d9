/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file guard.h
 * Memory between two pages that may not be touched: one byte too far is a SIGSEGV, whoever
 * reads it and however it was compiled.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define GUARD_PAGE 4096u

struct guard {
	uint8_t *begin; /* first byte that may be touched */
	uint8_t *end;	/* first byte that may not be touched any more */
};

/* Allocates at least `len` bytes; aborts the test program if there is no memory. */
static inline struct guard guard_map(size_t len)
{
	size_t room = (len + GUARD_PAGE - 1) / GUARD_PAGE * GUARD_PAGE;
	uint8_t *m =
		mmap(NULL, room + 2 * GUARD_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct guard g = {m + GUARD_PAGE, m + GUARD_PAGE + room};

	if (m == MAP_FAILED || mprotect(g.begin, room, PROT_READ | PROT_WRITE))
		__builtin_trap();
	return g;
}

static inline void guard_unmap(struct guard *g)
{
	munmap(g->begin - GUARD_PAGE, (size_t)(g->end - g->begin) + 2 * GUARD_PAGE);
}

#endif
