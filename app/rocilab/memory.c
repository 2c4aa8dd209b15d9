/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/mman.h>
#include "bits.h"
#include "memory.h"

#define LARGE_PAGE (2u << 20)
#define CHUNK	   (32u << 20)

/* At the end of the mapping. */
struct memory_chunk {
	struct memory_chunk *before;
	void *map;
	size_t len;
};

static uint8_t *round_up(uint8_t *at, size_t to)
{
	return at + (-(uintptr_t)at & (to - 1));
}

/* A mapping whose first large page is whole. */
static struct memory_chunk *map(struct memory *m, size_t len)
{
	size_t all = len + LARGE_PAGE + sizeof(struct memory_chunk);
	uint8_t *at;
	struct memory_chunk *c;

	if (all < len)
		return NULL;
	at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (at == MAP_FAILED)
		return NULL;
	madvise(at, all, MADV_HUGEPAGE); /* it works without, but more slowly */
	m->free = round_up(at, LARGE_PAGE);
	m->end = m->free + len;
	c = (struct memory_chunk *)m->end;
	*c = (struct memory_chunk){m->chunk, at, all};
	return c;
}

void *memory_take(struct memory *m, size_t len)
{
	struct memory_chunk *c;
	void *taken;

	if (len > SIZE_MAX / 2)
		return NULL;
	len = (len + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	if (!m->chunk || (size_t)(m->end - m->free) < len) {
		c = map(m, len > CHUNK ? len : CHUNK);
		if (!c)
			return NULL;
		m->chunk = c;
	}
	taken = m->free;
	m->free += len;
	return taken;
}

void memory_free(struct memory *m)
{
	while (m->chunk) {
		struct memory_chunk c = *m->chunk;

		munmap(c.map, c.len);
		m->chunk = c.before;
	}
	*m = (struct memory){0};
}
