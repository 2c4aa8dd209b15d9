/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * madvise() with MADV_DONTNEED or MADV_FREE, for memory that may have been swapped. For such pages
 * the kernel would only drop the page table entries, so their bytes would survive, while allocators
 * (jemalloc) rely on zeroes: the pages are punched out of the file. The same holds for mremap()
 * that extends such memory, which may have been longer before: the pages that follow still have
 * their old bytes.
 *
 * An allocator calls it within malloc(), which the arena calls while it holds its lock. So nothing
 * here takes a lock, calls malloc() or uses the shared view of the mappings: the range belongs to
 * the caller, and no other thread remaps it meanwhile.
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
	atomic_store(&punching, 0); /* those of the parent's threads do not run here */
}

/* Zeroes the pages, or punches them. A child that copies pages must see them as of the fork(): the
 * monitor saves a page before a write, but not before a punch. */
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

/* Discards the part [@p s, @p e) of @p v. */
static int discard_part(const struct vma *v, uintptr_t s, uintptr_t e, int advice)
{
	const struct arena_file *f = file_of(v);

	if (!f)
		return kernel(s, e - s, advice);
	e &= ~(f->page - 1); /* as the kernel does for huge pages */
	if (s & (f->page - 1))
		return EINVAL;
	if (s < e)
		clear(f, v->off + (s - v->start), s, e - s, v->prot & PROT_WRITE);
	return 0;
}

static int discard(uintptr_t addr, size_t len, int advice)
{
	size_t page = arena.page;
	struct maps maps;
	uintptr_t at = addr, end;
	struct vma v;
	int err = 0, hole = 0;

	if ((advice != MADV_DONTNEED && advice != MADV_FREE) || !is_open() || addr % page ||
		len > SIZE_MAX - page || addr + len < addr)
		return kernel(addr, len, advice);
	if (maps_open(&maps)) /* without a descriptor; the kernel would say 0 and clear nothing */
		return EAGAIN;
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

/* A cancellation would come in the middle of an allocator. */
static int without_cancellation(
	uintptr_t addr, size_t len, int advice, int (*work)(uintptr_t addr, size_t len, int advice))
{
	int err, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = work(addr, len, advice);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int arena_madvise(uintptr_t addr, size_t len, int advice)
{
	return without_cancellation(addr, len, advice, discard);
}

/* Clears a part of one mapping that no other thread uses yet, if it is swapped. */
static int clear_new(uintptr_t s, size_t len, int advice)
{
	struct maps maps;
	struct vma v;

	if (!is_open() || maps_open(&maps))
		return 0;
	if (maps_find(&maps, s, &v) && v.start <= s && s + len <= v.end && file_of(&v))
		discard_part(&v, s, s + len, advice);
	maps_close(&maps);
	return 0;
}

void *arena_mremap(void *old, size_t old_len, size_t new_len, int flags, void *to)
{
	void *p = (void *)syscall(SYS_mremap, old, old_len, new_len, flags, to);
	uintptr_t at = (uintptr_t)p, mask = arena.page - 1;
	uintptr_t s = (at + old_len + mask) & ~mask, e = (at + new_len + mask) & ~mask;

	if (p != MAP_FAILED && old_len && s < e) /* old_len 0: a second mapping of the same pages */
		without_cancellation(s, e - s, MADV_DONTNEED, clear_new);
	return p;
}
