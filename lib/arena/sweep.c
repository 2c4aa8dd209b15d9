/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * munmap() and free() leave pages in the arena. A sweep finds those that neither a mapping nor an
 * MR uses, and returns them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "arena_impl.h"
#include "hold.h"
#include "raw.h"

#define LEAST (4ull << 20) /* fewer bytes are not worth a sweep */

#define FAILED_LOOKS 8u /* in a row, before a sentence */

struct live {
	struct arena_piece *a; /* not from malloc(), whose lock a stopped thread may hold */
	size_t n, room;
};

static void live_free(struct live *l)
{
	if (l->a)
		raw_munmap(l->a, l->room * sizeof(l->a[0]));
}

static bool add(struct live *l, uint64_t off, uint64_t len)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 4096;
		struct arena_piece *a = raw_mmap(NULL, room * sizeof(*a), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (a == MAP_FAILED)
			return false;
		raw_copy(a, l->a, l->n * sizeof(*a));
		live_free(l);
		l->a = a;
		l->room = room;
	}
	l->a[l->n++] = (struct arena_piece){off, len};
	return true;
}

static bool add_mapped(struct live *l, const struct arena_file *f)
{
	struct vma v;

	if (maps_again(&arena.maps))
		return false;
	for (bool more = maps_find(&arena.maps, 0, &v); more;
		more = maps_find(&arena.maps, v.end, &v))
		if (file_of(&v) == f && !add(l, v.off, v.end - v.start))
			return false;
	return true;
}

/* Reports once that scans keep failing: then memory stays allocated. */
static void complain(int err)
{
	static const char why[] =
		"libroci: memory that was registered and freed cannot be returned to the system: "
		"a thread runs all the time with all signals blocked, or libroci can use no "
		"real-time signal (SIGRTMIN to SIGRTMAX). Leave one unblocked and unused\n";
	static unsigned failed; /* looks in a row */
	static bool complained;

	failed = err ? failed + 1 : 0;
	if (failed == FAILED_LOOKS && !complained) {
		complained = true;
		if (write(STDERR_FILENO, why, sizeof(why) - 1) < 0) { /* then without */
		}
	}
}

/* Mappings are read one after another. If another thread meanwhile moves one (mremap()) from a part
 * not read yet to a part already read, it is missed, and repeating does not help: the list is
 * complete only if no other thread ran.  @return 0 or a negative errno. */
static int add_all_mapped(struct live *l, const struct arena_file *f)
{
	size_t n = l->n;

	if (hold_alone(1))
		return add_mapped(l, f) ? 0 : -ENOMEM;
	for (unsigned i = 0; i < STILL_LOOKS; i++) {
		int err = still_begin(i < STILL_GENTLE);
		bool all;

		complain(err);
		if (err)
			return err;
		all = add_mapped(l, f);
		if (still_end())
			return all ? 0 : -ENOMEM;
		l->n = n;
	}
	return -EBUSY;
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

/* @return 0 or a negative errno. */
static int sweep(struct arena_file *f)
{
	struct live l = {0};
	bool alone = hold_alone(1); /* first: after the look a thread may extend a block, and end */
	int err = add_held(&l, f) ? add_all_mapped(&l, f) : -ENOMEM;
	uint64_t at = 0;

	if (!err) {
		if (l.n) /* undefined for a NULL array */
			qsort(l.a, l.n, sizeof(l.a[0]), by_offset);
		for (size_t i = 0; i < l.n; i++) {
			uint64_t end = l.a[i].off + l.a[i].len;

			if (!alone) /* another thread may be extending it */
				end += room_of(l.a[i].off);
			punch(f, at, l.a[i].off);
			if (end > at)
				at = end;
		}
		punch(f, at, (uint64_t)GENERATIONS << GENERATION_SHIFT);
		err = generations_know(f, l.a, l.n) ? 0 : -ENOMEM;
	}
	live_free(&l);
	return err;
}

int sweep_now(struct arena_file *f)
{
	uint64_t before = allocated(f), after;
	int err = sweep(f);

	if (err) { /* try again when somewhat more is allocated */
		f->threshold = before + before / 4;
		return err;
	}
	after = allocated(f);
	arena.stats.sweeps++;
	arena.stats.swept += before - after;
	f->threshold = 2 * after;
	return 0;
}

void sweep_if_due(bool late)
{
	for (struct arena_file *f = arena.file; f < arena.file + ARENA_FILES; f++) {
		uint64_t now = f->fd < 0 ? 0 : allocated(f);

		if (now >= LEAST && now >= (late ? f->threshold : 2 * f->threshold))
			sweep_now(f);
	}
}
