/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file raw.h
 * System calls on the address space that bypass libc's functions: UCX and Open MPI patch those, and
 * would see mappings that the program did not make.
 *
 * While writers are held, only these calls and plain loads and stores to the caller's stack are
 * allowed: a held thread may hold any lock.
 */
#ifndef ARENA_RAW_H
#define ARENA_RAW_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/** @return the address, or MAP_FAILED with errno. */
static inline void *raw_mmap(void *addr, size_t len, int prot, int flags, int fd, uint64_t off)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

static inline int raw_munmap(void *addr, size_t len)
{
	return (int)syscall(SYS_munmap, addr, len);
}

static inline int raw_mprotect(void *addr, size_t len, int prot)
{
	return (int)syscall(SYS_mprotect, addr, len, prot);
}

static inline int raw_madvise(void *addr, size_t len, int advice)
{
	return (int)syscall(SYS_madvise, addr, len, advice);
}

/** Moves a mapping to @p to, replacing what is there.  @return 0 or a negative errno. */
static inline int raw_move(void *from, size_t len, uintptr_t to)
{
	long r = syscall(SYS_mremap, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	return r == -1 ? -errno : 0;
}

/** For functions that read memory whose layout they do not know: a sanitizer would report accesses
 *  between objects. */
#define RAW_UNCHECKED __attribute__((no_sanitize_address))

/** memcpy() of such memory. */
static inline void raw_copy(void *to, const void *from, size_t len)
{
#ifdef __x86_64__
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
#else
	volatile uint64_t *t = to;
	const volatile uint64_t *f = from;
	size_t i;

	for (i = 0; i < len / sizeof(*t); i++)
		t[i] = f[i];
	for (i *= sizeof(*t); i < len; i++)
		((volatile uint8_t *)to)[i] = ((const volatile uint8_t *)from)[i];
#endif
}

#endif
