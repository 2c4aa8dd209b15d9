/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arena_impl.h
 * Shared by the arena's parts. The arena's lock protects everything.
 */
#ifndef ARENA_IMPL_H
#define ARENA_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "arena.h"
#include "maps.h"

#define GENERATION_SHIFT 44
#define GENERATIONS	 (1u << 18)
#define CHUNK		 (2u << 20)

#define HUGE_PAGE     (2ul << 20)
#define PAGE_SIZE_MAX 65536 /* of an ordinary page, on any architecture */

/** One memfd of the arena; all of its pages have the same size. */
struct arena_file {
	int fd; /* -1: not opened yet */
	uint64_t inode;
	uint32_t major, minor;
	size_t page;
	uint64_t threshold; /* sweep when this many bytes are allocated */
	/* Offsets ever used, ascending, merged: all others are certainly empty. */
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
	uint64_t blocks;	  /* for which a generation was sought */
	struct arena_hold *holds; /* those in the arena */
	unsigned epoch;		  /* forks between the first process and this one */
	struct arena_stats stats;
};
extern struct arena arena;

/** Locks the arena, without cancellation points until arena_unlock(): a cancelled thread would
 *  leave it locked, and writers held.  @return what arena_unlock() needs. */
int arena_lock(void);
void arena_unlock(int cancel);

/** @return whether memory may have been swapped. */
static inline bool is_open(void)
{
	return arena.file[ORDINARY].fd >= 0 || arena.file[HUGE].fd >= 0;
}

/** @return the arena's file that @p v maps, or NULL. */
static inline struct arena_file *file_of(const struct vma *v)
{
	for (struct arena_file *f = arena.file; v->shared && f < arena.file + ARENA_FILES; f++)
		if (f->fd >= 0 && v->inode == f->inode && v->major == f->major &&
			v->minor == f->minor)
			return f;
	return NULL;
}

/** @return the page size of @p v in bytes. */
static inline size_t page_of(const struct vma *v)
{
	return v->page > arena.page ? v->page : arena.page;
}

/** Rereads the mappings and finds the first at or above @p addr.  @return false if there is none.
 */
bool look_at(uintptr_t addr, struct vma *v);

/* --- heap.c ----------------------------------------------------------------------------- */

#define GLIBC_HEAP (64ul << 20) /* alignment of malloc()'s heaps */

/** Copies @p len bytes at @p at, which another thread may unmap.  @return false if they cannot be
 *  read. */
bool peek(uintptr_t at, void *to, size_t len);

/** @return whether [@p s, @p e) of @p v is in a heap or the main stack, where mremap() extends
 *  nothing. */
bool is_heap(const struct vma *v, uintptr_t s, uintptr_t e);

/* --- generation.c ----------------------------------------------------------------------- */

/** Fresh memory [s, e) that needs a place in the arena. */
struct fresh {
	uintptr_t s, e;
	bool after, before; /* of the same registration: memory before s; memory from e on */
	bool alone;	    /* the process has no other threads */
};

/** @return an offset in @p f, whose pages are empty, for @p m of @p v; UINT64_MAX: none is left, or
 *  none is known to be free. */
uint64_t choose_offset(struct arena_file *f, const struct vma *v, const struct fresh *m);

/** Forgets which offsets were used. */
void generations_forget(void);

/** Records that only @p live, ascending, of the offsets of @p f are in use or may be mapped.
 *  @return false if there is not enough memory to record it. */
bool generations_know(struct arena_file *f, const struct arena_piece *live, size_t n);

/* Blocks use the generations from this one on, with room after each, because they may be extended
 * at any moment. */
#define GENERATION_BLOCK (1u << 11)
/* Generations that one address range may span: stop this many before a limit. */
#define GENERATION_SPAN 8u
#define BLOCKS_MAX	(GENERATIONS - GENERATION_BLOCK - GENERATION_SPAN)
#define ROOM_TO_GROW	(1ull << 40)

/** @return how many bytes a block at @p off may grow. */
static inline uint64_t room_of(uint64_t off)
{
	return off >> GENERATION_SHIFT >= GENERATION_BLOCK ? ROOM_TO_GROW : 0;
}

/** @return whether an MR holds pages of [@p off, @p off + @p len) of @p f. */
bool is_held(const struct arena_file *f, uint64_t off, uint64_t len);

/* --- swap.c ----------------------------------------------------------------------------- */

/** Replaces @p m, a part of the private mapping @p v, by pages of @p f at @p off. */
int swap_range(const struct arena_file *f, const struct vma *v, const struct fresh *m, uint64_t off,
	char why[ARENA_WHY_MAX]);

/* --- traits.c --------------------------------------------------------------------------- */

/** Advice and locks that the program has applied to a mapping. */
struct traits {
	bool locked, no_fork, no_dump;
	bool huge;  /* not of the program: libroci asks for huge pages */
	int policy; /* of NUMA; 0: default */
	unsigned long nodes[16];
};

/** Determines the traits of @p v.  @return 0, or -EOPNOTSUPP: device memory. */
int traits_of(const struct vma *v, uintptr_t at, struct traits *t);

/** Applies the traits, except the lock, to the memory at [@p at, @p at + @p len). */
void traits_keep(const struct traits *t, void *at, size_t len);

/* --- fork.c ----------------------------------------------------------------------------- */

/** Opens the descriptors that fork() will need, as far as possible. */
void fork_reserve(void);

/* --- discard.c -------------------------------------------------------------------------- */

/** Between begin and end, no page is punched for a program. */
void discard_fork_begin(void);
void discard_fork_end(void);
void discard_fork_child(void);

/* --- shared.c --------------------------------------------------------------------------- */

/** Opens the file of the shared mapping @p v.  @return a descriptor to close, or a negative errno
 *  with a sentence. */
int open_shared(
	const struct arena_source *src, const struct vma *v, bool write, char why[ARENA_WHY_MAX]);

/* --- sweep.c ---------------------------------------------------------------------------- */

/** Returns pages that neither a mapping nor an MR holds, if there may be many. @p late: nobody is
 *  waiting for memory, so sweep at half the threshold of a registration. */
void sweep_if_due(bool late);

/** Sweeps @p f.  @return 0, or a negative errno: -EBUSY, a thread cannot be stopped. */
int sweep_now(struct arena_file *f);

#endif
