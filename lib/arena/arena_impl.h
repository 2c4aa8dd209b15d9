/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arena_impl.h
 * The arena's parts for each other. All is protected by the arena's lock.
 */
#ifndef ARENA_IMPL_H
#define ARENA_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "arena.h"
#include "maps.h"

#define GENERATION_SHIFT 47
#define GENERATIONS	 (1u << 15)
#define CHUNK		 (2u << 20)

#define HUGE_PAGE     (2ul << 20)
#define PAGE_SIZE_MAX 65536 /* of ordinary ones, on any architecture */

/** A memfd of the arena, whose pages have one size. */
struct arena_file {
	int fd; /* -1: none yet */
	uint64_t inode;
	uint32_t major, minor;
	size_t page;
	uint64_t threshold; /* bytes allocated at which to sweep */
	/* Offsets that have been used, ascending, merged: others are empty for sure. */
	struct arena_piece *used;
	size_t nused, room;
};
enum {
	ORDINARY,
	HUGE,
	ARENA_FILES
};

/** The state of the process. */
struct arena {
	pthread_mutex_t lock;
	struct arena_file file[ARENA_FILES];
	struct maps maps;
	int pagemap;
	size_t page;
	uint64_t blocks;	  /* for which a generation was looked for */
	struct arena_hold *holds; /* of the arena */
	unsigned epoch;		  /* forks that lead to this process */
	struct arena_stats stats;
};
extern struct arena arena;

/** @return whether memory may have been moved. */
static inline bool is_open(void)
{
	return arena.file[ORDINARY].fd >= 0 || arena.file[HUGE].fd >= 0;
}

/** @return the file of which @p v shows pages, or NULL. */
static inline struct arena_file *file_of(const struct vma *v)
{
	for (struct arena_file *f = arena.file; v->shared && f < arena.file + ARENA_FILES; f++)
		if (f->fd >= 0 && v->inode == f->inode && v->major == f->major &&
			v->minor == f->minor)
			return f;
	return NULL;
}

/** @return the bytes of a page of @p v. */
static inline size_t page_of(const struct vma *v)
{
	return v->page > arena.page ? v->page : arena.page;
}

/** Looks at the mappings anew, from @p addr on.  @return false if there is none. */
bool look_at(uintptr_t addr, struct vma *v);

/* --- generation.c ----------------------------------------------------------------------- */

/** Fresh memory [s, e), for which a place in the arena is to be found. */
struct fresh {
	uintptr_t s, e;
	bool after, before; /* registered memory ends at its begin, begins at its end */
	bool alone;	    /* the process has no other threads */
};

/** @return an offset in @p f for @p m of @p v, whose pages are empty now; UINT64_MAX: none is left,
 *  or none is known to be free. */
uint64_t choose_offset(struct arena_file *f, const struct vma *v, const struct fresh *m);

/** Forgets which offsets have been used. */
void generations_forget(void);

/** The offsets of @p f that are not empty or may be mapped are @p live, ascending.
 *  @return false if there is no memory to know it. */
bool generations_know(struct arena_file *f, const struct arena_piece *live, size_t n);

/* Blocks have the generations from this one on, and room: they may be extended at any moment. */
#define GENERATION_BLOCK 256u
#define ROOM_TO_GROW	 (1ull << 40)

/** @return the bytes after a block at @p off that it may grow into. */
static inline uint64_t room_of(uint64_t off)
{
	return off >> GENERATION_SHIFT >= GENERATION_BLOCK ? ROOM_TO_GROW : 0;
}

/** @return whether an MR holds pages of [@p off, @p off + @p len) of @p f. */
bool is_held(const struct arena_file *f, uint64_t off, uint64_t len);

/* --- swap.c ----------------------------------------------------------------------------- */

/** Replaces @p m of the private mapping @p v by pages of @p f at @p off. */
int swap_range(const struct arena_file *f, const struct vma *v, const struct fresh *m, uint64_t off,
	char why[ARENA_WHY_MAX]);

/* --- traits.c --------------------------------------------------------------------------- */

/** Advice and locks that the program has given the kernel for a mapping. */
struct traits {
	bool locked, no_fork, no_dump;
	int policy; /* of NUMA; 0: default */
	unsigned long nodes[16];
};

/** Finds what can be found of @p v.  @return 0, or -EOPNOTSUPP: it is a device's. */
int traits_of(const struct vma *v, uintptr_t at, struct traits *t);

/** Gives the same to the memory at [@p at, @p at + @p len), except the lock. */
void traits_keep(const struct traits *t, void *at, size_t len);

/* --- discard.c -------------------------------------------------------------------------- */

/** Between them no page is punched on behalf of a program. */
void discard_fork_begin(void);
void discard_fork_end(void);
void discard_fork_child(void);

/* --- shared.c --------------------------------------------------------------------------- */

/** Opens the file of the shared mapping @p v.  @return a descriptor to close, or a negative errno
 *  with a sentence. */
int open_shared(
	const struct arena_source *src, const struct vma *v, bool write, char why[ARENA_WHY_MAX]);

/* --- sweep.c ---------------------------------------------------------------------------- */

/** Gives back pages that neither a mapping nor an MR holds, if there may be many. @p late: nobody
 *  waits for memory; a registration leaves more. */
void sweep_if_due(bool late);

/** Does so for @p f.  @return 0, or a negative errno: -EBUSY, a thread cannot be held. */
int sweep_now(struct arena_file *f);

#endif
