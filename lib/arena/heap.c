/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recognizes memory that no mremap() extends: the main stack, the heap of brk(), and the heaps that
 * glibc's malloc() makes for threads. In all other memory any page may be the last one of a mapping
 * that malloc() or the program extends, because the kernel merges adjacent mappings.
 */
#include <fcntl.h>
#include "arena_impl.h"
#include "raw.h"

/* The begin of such a heap (glibc's heap_info). */
struct glibc_heap {
	uint64_t arena; /* follows the first heap's own begin */
	uint64_t previous;
	uint64_t size, writable; /* bytes */
};

bool peek(uintptr_t at, void *to, size_t len)
{
	int fd = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && pread(fd, to, len, (off_t)at) == (ssize_t)len;

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool is_first(uintptr_t at, const struct glibc_heap *h)
{
	return !h->previous && h->arena > at && h->arena - at < arena.page;
}

/* Another thread may unmap memory that is not a heap, so read it by a system call. */
static bool in_glibc_heap(uintptr_t s, uintptr_t e)
{
	uintptr_t at = s & ~(GLIBC_HEAP - 1);
	struct glibc_heap h, first;

	if (!peek(at, &h, sizeof(h)) || h.size > h.writable || h.writable > GLIBC_HEAP ||
		e - at > h.size)
		return false;
	if (is_first(at, &h))
		return true;
	at = h.arena & ~(GLIBC_HEAP - 1);
	return h.previous && !(h.previous & (GLIBC_HEAP - 1)) && peek(at, &first, sizeof(first)) &&
	       is_first(at, &first) && first.arena == h.arena;
}

/* The heap's mapping may have merged with another one above. Below are only the program's .bss. */
static bool in_brk(const struct vma *v, uintptr_t e)
{
	uintptr_t end = (uintptr_t)syscall(SYS_brk, 0);

	return v->heap && e <= ((end + arena.page - 1) & ~(arena.page - 1));
}

bool is_heap(const struct vma *v, uintptr_t s, uintptr_t e)
{
	return v->stack || in_brk(v, e) || in_glibc_heap(s, e);
}
