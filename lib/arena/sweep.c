/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * munmap() and free() leave their pages in the arena. A sweep finds what neither a mapping nor an
 * MR has, and returns it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "arena_impl.h"

#define LEAST (4ull << 20) /* bytes that are not worth a sweep */
/* The mappings are read one after another, while other threads may move them: a picture counts if
 * the next ones are the same. */
#define LOOKS 3
/* A block that has its own generation may be extended at any moment (generation.c). */
#define ROOM_TO_GROW (1ull << 40)

struct live {
	struct arena_piece *a;
	size_t n, room;
};

static bool add(struct live *l, uint64_t off, uint64_t len)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		struct arena_piece *a = realloc(l->a, room * sizeof(*a));

		if (!a)
			return false;
		l->a = a;
		l->room = room;
	}
	l->a[l->n++] = (struct arena_piece){off, len};
	return true;
}

static bool add_mapped(struct live *l, const struct arena_file *f)
{
	struct vma v;

	for (bool more = look_at(0, &v); more; more = maps_find(&arena.maps, v.end, &v)) {
		uint64_t len = v.end - v.start;

		if (file_of(&v) != f)
			continue;
		if (v.off >> GENERATION_SHIFT)
			len += ROOM_TO_GROW;
		if (!add(l, v.off, len))
			return false;
	}
	return true;
}

static bool add_held(struct live *l, const struct arena_file *f)
{
	for (const struct arena_hold *h = arena.holds; h; h = h->next)
		for (unsigned i = 0; h->file == f && i < h->npieces; i++) {
			uint64_t s = h->piece[i].off & ~(uint64_t)(f->page - 1);
			uint64_t e = (h->piece[i].off + h->piece[i].len + f->page - 1) &
				     ~(uint64_t)(f->page - 1);

			if (!add(l, s, e - s))
				return false;
		}
	return true;
}

static bool is_stable(const struct live *first, const struct arena_file *f)
{
	bool same = true;

	for (unsigned i = 1; i < LOOKS && same; i++) {
		struct live again = {0};

		same = add_mapped(&again, f) && again.n == first->n &&
		       !memcmp(again.a, first->a, first->n * sizeof(first->a[0]));
		free(again.a);
	}
	return same;
}

static int by_offset(const void *a, const void *b)
{
	const struct arena_piece *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

static void punch(const struct arena_file *f, uint64_t off, uint64_t end)
{
	if (off < end)
		fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
			(off_t)(end - off));
}

static uint64_t allocated(const struct arena_file *f)
{
	struct stat st;

	return fstat(f->fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

/* @return false if the mappings do not keep still, or there is no memory. */
static bool sweep(const struct arena_file *f)
{
	struct live l = {0};
	bool ok = add_mapped(&l, f) && (!l.n || is_stable(&l, f)) && add_held(&l, f);
	uint64_t at = 0;

	if (ok) {
		qsort(l.a, l.n, sizeof(l.a[0]), by_offset);
		for (size_t i = 0; i < l.n; i++) {
			punch(f, at, l.a[i].off);
			if (l.a[i].off + l.a[i].len > at)
				at = l.a[i].off + l.a[i].len;
		}
		punch(f, at, (uint64_t)GENERATIONS << GENERATION_SHIFT);
	}
	free(l.a);
	return ok;
}

static void sweep_file(struct arena_file *f, bool late)
{
	uint64_t before = allocated(f), after;

	if (before < LEAST || before < (late ? f->threshold : 2 * f->threshold))
		return;
	if (!sweep(f))
		return;
	after = allocated(f);
	arena.stats.sweeps++;
	arena.stats.swept += before - after;
	f->threshold = 2 * after;
}

void sweep_if_due(bool late)
{
	for (struct arena_file *f = arena.file; f < arena.file + ARENA_FILES; f++)
		if (f->fd >= 0)
			sweep_file(f, late);
}
