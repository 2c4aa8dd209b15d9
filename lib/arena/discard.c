/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * madvise() with MADV_DONTNEED or MADV_FREE, for memory that may have been moved. The kernel only
 * forgets where such pages are, so they would keep their bytes, while allocators (jemalloc) rely on
 * zeroes: the pages are punched out of the file.
 *
 * An allocator calls it from within malloc(), which the arena calls with its lock held. So nothing
 * here takes a lock, calls malloc() or uses a look at the mappings that others use, too: the range
 * is the caller's, and no other thread maps it anew meanwhile.
 */
#include <fcntl.h>
#include <sched.h>
#include "arena_impl.h"
#include "raw.h"

static _Atomic bool forking;
static _Atomic unsigned punching;

void discard_fork_begin(void)
{
	atomic_store(&forking, true);
	while (atomic_load(&punching))
		sched_yield();
}

void discard_fork_end(void)
{
	atomic_store(&forking, false);
}

void discard_fork_child(void)
{
	atomic_store(&forking, false);
	atomic_store(&punching, 0); /* by threads that are not here */
}

/* A child that copies the pages must see those of fork(): what is written is put aside for it, what
 * is punched is not. */
static void clear(const struct arena_file *f, uint64_t off, uintptr_t s, size_t len, bool writable)
{
	volatile uint8_t *p = (volatile uint8_t *)s;

	atomic_fetch_add(&punching, 1);
	if (!atomic_load(&forking) || !writable) {
		fallocate(
			f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len);
		atomic_fetch_sub(&punching, 1);
		return;
	}
	atomic_fetch_sub(&punching, 1);
	for (size_t i = 0; i < len; i++)
		p[i] = 0;
}

static int kernel(uintptr_t s, size_t len, int advice)
{
	return raw_madvise((void *)s, len, advice) ? errno : 0;
}

/* The part of @p v in [@p s, @p e). */
static int discard_part(const struct vma *v, uintptr_t s, uintptr_t e, int advice)
{
	const struct arena_file *f = file_of(v);

	if (!f)
		return kernel(s, e - s, advice);
	e &= ~(f->page - 1); /* as the kernel does with huge pages */
	if (s & (f->page - 1))
		return EINVAL;
	if (s < e)
		clear(f, v->off + (s - v->start), s, e - s, v->prot & PROT_WRITE);
	return 0;
}

int arena_madvise(uintptr_t addr, size_t len, int advice)
{
	size_t page = arena.page;
	struct maps maps;
	uintptr_t at = addr, end;
	struct vma v;
	int err = 0, hole = 0;

	if ((advice != MADV_DONTNEED && advice != MADV_FREE) || !is_open() || addr % page ||
		len > SIZE_MAX - page || addr + len < addr || maps_open(&maps))
		return kernel(addr, len, advice);
	end = addr + ((len + page - 1) & ~(page - 1));
	while (at < end && !err) {
		uintptr_t s, e;

		if (!maps_find(&maps, at, &v) || v.start >= end) {
			hole = ENOMEM;
			break;
		}
		s = v.start > at ? v.start : at;
		hole = s > at ? ENOMEM : hole;
		e = v.end < end ? v.end : end;
		err = discard_part(&v, s, e, advice);
		at = e;
	}
	maps_close(&maps);
	return err ? err : hole;
}
