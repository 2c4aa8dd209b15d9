/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arena.h
 * Registration of any memory of this process. rocid can map only files, so private memory is
 * swapped in place for pages of one sparse memfd, the arena: the program sees the same bytes at the
 * same addresses, and rocid maps the same pages. Shared memory is not swapped; its own file is
 * used. doc/arena.md.
 *
 * Only the kernel's maps say reliably what is mapped where. A page at address A gets the arena
 * offset A + g * 2^44, where g, its generation, is one that is free there: realloc() and mremap()
 * move pages together with their offsets, and memory mapped at A later needs different ones.
 *
 * One arena per process, even if the program uses several libraries and several daemons. Huge pages
 * have a separate file.
 */
#ifndef ARENA_H
#define ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arena_writers.h"
#include "refuse.h"

#define ARENA_WHY_MAX SENTENCE_MAX

/** Functions that request the arena's resources from rocid. They return a descriptor or a negative
 *  errno. */
struct arena_source {
	int (*memfd)(void *arg, bool huge);
	/** A descriptor of /dev/userfaultfd. */
	int (*uffd)(void *arg);
	/** A descriptor of the file that is mapped shared at [start, end). */
	int (*map_file)(void *arg, uintptr_t start, uintptr_t end);
	void *arg;
};

/** A range of a file. */
struct arena_piece {
	uint64_t off, len;
};

struct arena_file;

/** Memory whose pages stay in place while it is registered. */
struct arena_hold {
	struct arena_hold *prev, *next;
	int fd; /* to register: the arena's, or one that arena_sent() closes */
	const struct arena_file *file; /* the arena's file; NULL: another file */
	unsigned epoch; /* forks before it was made; listed only in the process that made it */
	unsigned npieces;
	struct arena_piece piece[];
};

/**
 * Makes [@p addr, @p addr + @p len) registrable.
 * @param write  peers or receives may write to it
 * @param out    receives the ranges of `fd` with this memory, ascending by address; the first
 * begins at @p addr
 * @param why    on failure receives a sentence
 * @return 0; EFAULT: not mapped, or without the needed access; EPERM, EOPNOTSUPP, EBUSY, ENOMEM.
 */
int arena_take(const struct arena_source *src, uintptr_t addr, size_t len, bool write,
	struct arena_hold **out, char why[ARENA_WHY_MAX]);

/** The descriptor of @p h has been sent. */
void arena_sent(struct arena_hold *h);

/** The memory of @p h is no longer registered. */
void arena_release(struct arena_hold *h);

/** Returns pages that were freed.  @return whether there were any. */
bool arena_reclaim(void);

/** @return how this process holds writers; ARENA_WRITERS_NONE before the first swap. */
enum arena_writers arena_writers(void);

/** madvise(2) for a caller that interposes it: makes swapped pages, too, read as zeroes after
 *  MADV_DONTNEED and MADV_FREE. Takes no lock and does not allocate.  @return 0, or an errno. */
int arena_madvise(uintptr_t addr, size_t len, int advice);

/** mremap(2) for a caller that interposes it: makes pages that it adds to swapped memory read as
 *  zeroes, also if the memory has been longer before. Takes no lock and does not allocate.
 *  @return the address, or MAP_FAILED with errno. */
void *arena_mremap(void *old, size_t old_len, size_t new_len, int flags, void *to);

/** For pthread_atfork(): a child created by fork() gets private memory with a copy of the swapped
 *  pages as of the fork(), and has nothing registered. */
void arena_fork_prepare(void);
void arena_fork_parent(void);
void arena_fork_child(void);

/** Bytes swapped since the start; swapped bytes that sweeps returned; sweeps. For tests. */
struct arena_stats {
	uint64_t swapped, swept, sweeps;
};
struct arena_stats arena_stats(void);

#endif
