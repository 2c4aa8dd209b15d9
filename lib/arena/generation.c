/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where fresh memory lies in the arena. Neighbours whose offsets are neighbours, too, are one
 * mapping of the kernel: thousands of small buffers must not meet vm.max_map_count. But a block
 * that the program may extend with mremap() shows the offsets after it then, so it gets a
 * generation of its own.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "arena_impl.h"

/* Smaller ones come from inside a heap; malloc() maps larger ones for themselves. */
#define BLOCK (128u << 10)

/* Offsets that have been used, ascending, merged: others are empty for sure. */
static struct {
	struct arena_piece *a;
	size_t n, room;
} used;

/* @return the first that ends at or after @p off. */
static size_t used_at(uint64_t off)
{
	size_t low = 0, high = used.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (used.a[middle].off + used.a[middle].len < off)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool was_used(uint64_t off, uint64_t len)
{
	size_t i = used_at(off + 1);

	return i < used.n && used.a[i].off < off + len;
}

static bool mark_used(uint64_t off, uint64_t len)
{
	size_t i = used_at(off), end = i;
	uint64_t s = off, e = off + len;

	for (; end < used.n && used.a[end].off <= e; end++) {
		if (used.a[end].off < s)
			s = used.a[end].off;
		if (used.a[end].off + used.a[end].len > e)
			e = used.a[end].off + used.a[end].len;
	}
	if (end == i && used.n == used.room) {
		size_t room = used.room ? 2 * used.room : 64;
		struct arena_piece *a = realloc(used.a, room * sizeof(*a));

		if (!a)
			return false;
		used.a = a;
		used.room = room;
	}
	memmove(&used.a[i + 1], &used.a[end], (used.n - end) * sizeof(used.a[0]));
	used.n = used.n + 1 - (end - i);
	used.a[i] = (struct arena_piece){s, e - s};
	return true;
}

void generations_forget(void)
{
	used.n = 0;
}

bool is_held(uint64_t off, uint64_t len)
{
	for (const struct arena_hold *h = arena.holds; h; h = h->next)
		for (unsigned i = 0; i < h->npieces; i++)
			if (off < h->piece[i].off + h->piece[i].len && h->piece[i].off < off + len)
				return true;
	return false;
}

static bool is_mapped(uint64_t off, uint64_t len)
{
	struct vma v;

	for (bool more = look_at(0, &v); more; more = maps_find(&arena.maps, v.end, &v))
		if (is_arena(&v) && off < v.off + (v.end - v.start) && v.off < off + len)
			return true;
	return false;
}

/* Takes [@p off, @p off + @p len) if nobody has it. */
static bool take(uint64_t off, uint64_t len)
{
	if (was_used(off, len)) {
		if (is_held(off, len) || is_mapped(off, len))
			return false;
		/* Freed memory may have left something there. */
		if (fallocate(arena.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
			    (off_t)len))
			return false;
	}
	return mark_used(off, len);
}

/* Whether it may be a mapping of the program, not a part of a heap. */
static bool is_block(const struct vma *v, uintptr_t s, uintptr_t e)
{
	struct vma before;

	if (e - s >= BLOCK)
		return true;
	if (v->stack || (s > v->start && e < v->end))
		return false;
	/* Buffers side by side in a heap: the one before has been swapped. */
	return !(s == v->start && e < v->end && look_at(s - 1, &before) && is_arena(&before) &&
		 before.off == before.start);
}

/* The generation of what is mapped at @p addr, if it is of the arena; else -1. */
static int64_t generation_at(uintptr_t addr)
{
	struct vma v;

	if (!look_at(addr, &v) || v.start > addr || !is_arena(&v) ||
		(v.off - v.start) & ((1ull << GENERATION_SHIFT) - 1))
		return -1; /* it has been moved */
	return (int64_t)((v.off - v.start) >> GENERATION_SHIFT);
}

uint64_t choose_offset(const struct vma *v, uintptr_t s, uintptr_t e, bool after, bool before)
{
	/* A part of a range of which other parts are there: the range should be one piece. */
	int64_t like = after ? generation_at(s - 1) : -1;
	uint64_t g = 0;

	if (like < 0 && before)
		like = generation_at(e);
	if (like >= 0 && take(s + ((uint64_t)like << GENERATION_SHIFT), e - s))
		return s + ((uint64_t)like << GENERATION_SHIFT);
	if (is_block(v, s, e)) {
		g = arena.next_generation;
		arena.next_generation = (uint32_t)(g % (GENERATIONS - 1) + 1);
	}
	for (unsigned tried = 0; tried < GENERATIONS; tried++) {
		uint64_t off = s + (g << GENERATION_SHIFT);

		if (take(off, e - s))
			return off;
		g = (g + 1) % GENERATIONS;
	}
	return UINT64_MAX;
}
