/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hold.h
 * Holds all writers of some memory while it is copied and replaced: other threads, and the kernel
 * on their behalf. Uses the best means available to the process.
 */
#ifndef ARENA_HOLD_H
#define ARENA_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "arena_writers.h"

/** Pages of one mapping whose writers are held. */
struct hold {
	uintptr_t at;
	size_t len;
	bool alone;   /* the process has no other threads */
	pid_t waiter; /* a thread that waits for the caller and meanwhile runs no program code */
	/* The memory has control blocks of threads. The kernel writes them at any time (rseq,
	 * clear_child_tid) and kills the process if it cannot, as with a userfaultfd for user mode:
	 * then threads get signals instead. */
	bool blocks;
	/* No page is absent, or absent ones are holes of a file, which may be read. */
	bool whole;
	/* Continue even if sleeping threads do not answer and are not held. */
	bool anyway;
	enum arena_writers by; /* chosen by hold_begin() */
};

/** Chooses the mechanism. @p device: a descriptor of /dev/userfaultfd, which is closed, or -1. */
void hold_open(int device);
void hold_close(void);

/** @return the best means of this process when it has several threads. */
enum arena_writers hold_best(void);

/** @return whether the process has no other threads than @p own ones, which do not run now. */
bool hold_alone(unsigned own);

/** @return 0, or a negative errno: -EBUSY if a thread does not answer. */
int hold_begin(struct hold *h);

/** Releases the writers. @p moved: the memory was replaced. */
void hold_end(const struct hold *h, bool moved);

/** @return whether hold_take() is supported. */
bool hold_can_take(void);

/** Registers [@p at, @p at + @p len), a place for hold_take().  @return 0 or a negative errno. */
int hold_place(uintptr_t at, size_t len);

/** Moves the pages of @p h to @p to. Fails for a page that a system call has pinned: its later
 *  write would go to a page that the program no longer has.
 *  @return 0; -EBUSY: a page is pinned, or shared with a child; else another negative errno. On
 *  failure all pages are back in place. */
int hold_take(const struct hold *h, uintptr_t to);

/** Moves them back. */
void hold_give_back(const struct hold *h, uintptr_t from, size_t len);

/** @return whether hold_shared() is supported: Linux 5.19 or later. */
bool hold_can_share(void);

/** Write-protects memory of the arena: writers wait until hold_page_end().
 *  @return 0 or a negative errno. */
int hold_shared(uintptr_t at, size_t len);

/** Ends the protection of a page, or of all. */
void hold_page_end(uintptr_t at, size_t len);
void hold_shared_end(uintptr_t at, size_t len);

/** @return a descriptor that becomes readable when a thread accesses a protected page; -1: none. */
int hold_descriptor(void);

/** @return whether a thread waits, and the address that it is about to write. */
bool hold_waiter(uintptr_t *addr);

/* --- hold_signal.c ---------------------------------------------------------------------- */

/** Stops all threads except the caller and @p waiter; with @p anyway, only those that answer.
 *  @return 0 or -EBUSY, -ENOMEM, -EAGAIN. */
int park(pid_t waiter, bool anyway);
void unpark(void);

/** Stops the other threads briefly, to read what they change. @p gently: sleeping threads are not
 *  disturbed. Only raw calls (raw.h) are allowed until still_end().
 *  @return 0 or -EBUSY, -EAGAIN. */
int still_begin(bool gently);

/** @return whether no other thread has run since still_begin(). Otherwise discard anything seen in
 *  between. */
bool still_end(void);

/** Attempts to look while no other thread runs. */
#define STILL_LOOKS  8u
#define STILL_GENTLE 4u /* the first ones are gentle */

/** Interrupts other threads that wait for futexes in [@p s, @p e), whose pages were replaced: the
 *  kernel would look for them at the old pages. */
void nudge(uintptr_t s, uintptr_t e);

/** @return whether threads may be stopped by a signal. */
bool park_possible(void);

#endif
