/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arena.h
 * Registration of any memory of this process. rocid maps files only, so private memory is swapped
 * in place for pages of one sparse memfd, the arena: the program sees the same bytes at the same
 * addresses, and rocid the same pages. Shared memory is not swapped; its own file is found.
 * doc/arena.md.
 *
 * The kernel's maps are the truth about what is where. A page at address A has the offset A + g *
 * 2^47 of the arena, where g, its generation, is the first that nobody uses there: realloc() and
 * mremap() move pages with their offsets, and memory that is mapped at A afterwards needs others.
 *
 * One per process: a program may use several libraries and several daemons. Huge pages have a file
 * of their own.
 */
#ifndef ARENA_H
#define ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "refuse.h"

#define ARENA_WHY_MAX SENTENCE_MAX

/** How writers are held while memory is swapped, from the best. */
enum arena_writers {
	ARENA_WRITERS_NONE,	  /* not at all: there are no other threads, or no means */
	ARENA_WRITERS_UFFD_ROCID, /* userfaultfd of a descriptor that rocid passed */
	ARENA_WRITERS_UFFD,	  /* the process's own userfaultfd, faults of the kernel included */
	ARENA_WRITERS_UFFD_USER,  /* faults of the program only: system calls get EFAULT */
	ARENA_WRITERS_SIGNALS,	  /* other threads are stopped */
};

/** Where the arena comes from: functions that ask rocid. They return a descriptor, or a negative
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

/** Memory whose pages stay where they are while it is registered. */
struct arena_hold {
	struct arena_hold *prev, *next;
	int fd;			       /* to register; the arena's, or one to close: arena_sent() */
	const struct arena_file *file; /* of the arena; NULL: another file */
	unsigned epoch; /* forks since; only the process that made it has it listed */
	unsigned npieces;
	struct arena_piece piece[];
};

/**
 * Makes [@p addr, @p addr + @p len) registrable.
 * @param write  peers or receives may write there
 * @param out    receives the ranges of `fd` that are this memory, ascending by address; the first
 *               begins at @p addr
 * @param why    receives a sentence
 * @return 0; EFAULT: it is not mapped so; EPERM, EOPNOTSUPP, EBUSY, ENOMEM.
 */
int arena_take(const struct arena_source *src, uintptr_t addr, size_t len, bool write,
	struct arena_hold **out, char why[ARENA_WHY_MAX]);

/** The descriptor of @p h has been sent. */
void arena_sent(struct arena_hold *h);

/** The memory of @p h is not registered any more. */
void arena_release(struct arena_hold *h);

/** @return how this process holds writers; ARENA_WRITERS_NONE before the first swap. */
enum arena_writers arena_writers(void);

/** madvise(2) for a caller that interposes it: swapped pages, too, read as zeroes after
 * MADV_DONTNEED and MADV_FREE. Takes no lock and allocates nothing.  @return 0, or an errno. */
int arena_madvise(uintptr_t addr, size_t len, int advice);

/** For pthread_atfork(): a child made by fork() gets private memory with a copy of what is swapped,
 * as of fork(), and nothing registered. */
void arena_fork_prepare(void);
void arena_fork_parent(void);
void arena_fork_child(void);

/** Swaps made since the start, in bytes; swapped pages that a sweep has returned. For tests. */
struct arena_stats {
	uint64_t swapped, swept, sweeps;
};
struct arena_stats arena_stats(void);

/** Bits 1 << enum arena_writers that may be used. For tests; before the first registration. */
extern unsigned arena_means;

#endif
