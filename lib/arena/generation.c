/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses where fresh memory lies in the arena. Neighbours with adjacent offsets are a single
 * mapping of the kernel, which keeps thousands of small buffers of a heap below vm.max_map_count.
 * But if a mapping is extended by mremap(), as realloc() does with large blocks, the following
 * offsets become visible in it. So everything outside heaps is a block of its own generation: even
 * a part of a mapping may end where a block of malloc() ends, as the kernel merges mappings.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "arena_impl.h"
#include "hold.h"

/* @return the index of the first used range that ends at or after @p off. */
static size_t used_at(const struct arena_file *f, uint64_t off)
{
	size_t low = 0, high = f->nused;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->used[middle].off + f->used[middle].len < off)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool was_used(const struct arena_file *f, uint64_t off, uint64_t len)
{
	size_t i = used_at(f, off + 1);

	return i < f->nused && f->used[i].off < off + len;
}

/* Makes room for @p n ranges. */
static bool make_room(struct arena_file *f, size_t n)
{
	size_t room = f->room ? f->room : 64;
	struct arena_piece *a;

	if (n <= f->room)
		return true;
	while (room < n)
		room *= 2;
	a = realloc(f->used, room * sizeof(*a));
	if (!a)
		return false;
	f->used = a;
	f->room = room;
	return true;
}

static bool mark_used(struct arena_file *f, uint64_t off, uint64_t len)
{
	size_t i = used_at(f, off), end = i;
	uint64_t s = off, e = off + len;

	for (; end < f->nused && f->used[end].off <= e; end++) {
		if (f->used[end].off < s)
			s = f->used[end].off;
		if (f->used[end].off + f->used[end].len > e)
			e = f->used[end].off + f->used[end].len;
	}
	if (end == i && !make_room(f, f->nused + 1))
		return false;
	memmove(&f->used[i + 1], &f->used[end], (f->nused - end) * sizeof(f->used[0]));
	f->nused = f->nused + 1 - (end - i);
	f->used[i] = (struct arena_piece){s, e - s};
	return true;
}

void generations_forget(void)
{
	for (struct arena_file *f = arena.file; f < arena.file + ARENA_FILES; f++)
		f->nused = 0;
}

bool is_held(const struct arena_file *f, uint64_t off, uint64_t len)
{
	for (const struct arena_hold *h = arena.holds; h; h = h->next)
		for (unsigned i = 0; h->file == f && i < h->npieces; i++)
			if (off < h->piece[i].off + h->piece[i].len && h->piece[i].off < off + len)
				return true;
	return false;
}

static bool is_seen(const struct arena_file *f, uint64_t off, uint64_t len)
{
	struct vma v;

	if (maps_again(&arena.maps))
		return true;
	for (bool more = maps_find(&arena.maps, 0, &v); more;
		more = maps_find(&arena.maps, v.end, &v))
		if (file_of(&v) == f && off < v.off + (v.end - v.start) && v.off < off + len)
			return true;
	return false;
}

/* Scans skipped after a failed one, because each stops the process for a long time. */
#define LOOKS_SKIPPED 256u

/* @return whether a scan of the mappings, during which no other thread ran (sweep.c), found no part
 * of [@p off, @p off + @p len). The scan disturbs no sleeping thread, because there are other
 * places. */
static bool is_unseen(const struct arena_file *f, uint64_t off, uint64_t len, bool alone)
{
	static unsigned skip;

	if (alone)
		return !is_seen(f, off, len);
	if (skip && skip--)
		return false;
	for (unsigned i = 0; i < STILL_GENTLE; i++) {
		bool seen;

		if (still_begin(true)) {
			skip = LOOKS_SKIPPED;
			return false;
		}
		seen = is_seen(f, off, len);
		if (still_end())
			return !seen;
	}
	return false;
}

/* Takes [@p off, @p off + @p len), which is free, and removes anything that freed memory has left
 * there, or memory that was extended (mremap()) and is not recorded. */
static bool occupy(struct arena_file *f, uint64_t off, uint64_t len)
{
	return !fallocate(
		       f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len) &&
	       mark_used(f, off, len);
}

/* Takes [@p off, @p off + @p len) if it is free, together with @p room on both sides, for blocks
 * that grow. While other threads run, no view of the mappings is reliable (sweep.c), so offsets
 * once used become free only by a sweep. */
static bool take(struct arena_file *f, uint64_t off, uint64_t len, uint64_t room, bool alone)
{
	uint64_t s = off - room;
	uint64_t e = off + len + room;

	if (was_used(f, s, e - s) && (!alone || is_held(f, s, e - s) || is_seen(f, s, e - s)))
		return false;
	return occupy(f, off, len);
}

bool generations_know(struct arena_file *f, const struct arena_piece *live, size_t n)
{
	if (!make_room(f, n)) /* what was known before remains true */
		return false;
	f->nused = 0;
	for (size_t i = 0; i < n; i++)
		mark_used(f, live[i].off, live[i].len);
	return true;
}

/* @return the generation of the memory at @p addr, if it is in @p f; else -1. */
static int64_t generation_at(const struct arena_file *f, uintptr_t addr)
{
	struct vma v;

	if (!look_at(addr, &v) || v.start > addr || file_of(&v) != f || v.off < v.start ||
		(v.off - v.start) & ((1ull << GENERATION_SHIFT) - 1))
		return -1; /* it was moved */
	return (int64_t)((v.off - v.start) >> GENERATION_SHIFT);
}

static uint64_t take_any(struct arena_file *f, const struct fresh *m, bool block)
{
	uint64_t least = block ? GENERATION_BLOCK : 0;
	uint64_t n = block ? BLOCKS_MAX : GENERATION_BLOCK - GENERATION_SPAN;
	uint64_t from = block ? arena.blocks++ % n : 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t off = m->s + ((least + (from + i) % n) << GENERATION_SHIFT);

		if (take(f, off, m->e - m->s, room_of(off), m->alone))
			return off;
	}
	return UINT64_MAX;
}

/* @return whether [@p s, @p e), a part of a block's room, is free. The block may have been extended
 * into it, and that part moved elsewhere, or registered: nothing records this. */
static bool is_free_room(const struct arena_file *f, uint64_t s, uint64_t e, bool alone)
{
	return !is_held(f, s, e - s) && is_unseen(f, s, e - s, alone);
}

/* Prefers the generation of adjacent parts of the registration, so that it becomes one piece. */
static uint64_t beside(struct arena_file *f, const struct fresh *m, bool block)
{
	int64_t after = m->after ? generation_at(f, m->s - 1) : -1;
	int64_t before = m->before ? generation_at(f, m->e) : -1;
	int64_t like = after >= 0 ? after : before;
	uint64_t s = m->s + ((uint64_t)like << GENERATION_SHIFT), e = s + (m->e - m->s);
	bool ok;

	if (like < 0 || block != (room_of(s) > 0))
		return UINT64_MAX;
	if (!block)
		ok = take(f, s, e - s, 0, m->alone);
	else if (after == before) /* a gap */
		ok = is_free_room(f, s, e, m->alone) && occupy(f, s, e - s);
	else if (after >= 0)
		ok = is_free_room(f, s, e + ROOM_TO_GROW, m->alone) && occupy(f, s, e - s);
	else
		ok = is_free_room(f, s - ROOM_TO_GROW, e, m->alone) && occupy(f, s, e - s);
	return ok ? s : UINT64_MAX;
}

uint64_t choose_offset(struct arena_file *f, const struct vma *v, const struct fresh *m)
{
	bool block = !is_heap(v, m->s, m->e);
	uint64_t off = beside(f, m, block);

	if (off == UINT64_MAX)
		off = take_any(f, m, block);
	if (off == UINT64_MAX && !sweep_now(f))
		off = take_any(f, m, block);
	return off;
}
