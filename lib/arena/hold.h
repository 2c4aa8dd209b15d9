/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hold.h
 * Holds the writers of a piece of memory, while it is copied and replaced: other threads, and the
 * kernel on their behalf. By the best means that the process has.
 */
#ifndef ARENA_HOLD_H
#define ARENA_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "arena.h"

/** Pages of one mapping whose writers are held. */
struct hold {
	uintptr_t at;
	size_t len;
	bool alone;   /* the process has no other threads */
	pid_t waiter; /* a thread that waits for the caller and runs no program code meanwhile */
	/* The memory has control blocks of threads. The kernel writes there at any time (rseq,
	 * clear_child_tid) and kills the process if it cannot, as with userfaultfd in user mode:
	 * threads get signals instead. */
	bool blocks;
	/* No page is absent, or absent ones are holes of a file, which may be read. */
	bool whole;
	/* Threads that do not answer are not held; they sleep. */
	bool anyway;
	enum arena_writers by; /* hold_begin()'s */
};

/** Chooses the means. @p device: of /dev/userfaultfd, or -1; it is closed. */
void hold_open(int device);
void hold_close(void);

/** @return the best means that this process has when it has several threads. */
enum arena_writers hold_best(void);

/** @return whether the process has no threads besides @p own, which do not run. */
bool hold_alone(unsigned own);

/** @return 0, or a negative errno: -EBUSY if a thread does not answer. */
int hold_begin(struct hold *h);

/** Lets them go on. @p moved: the memory has been replaced. */
void hold_end(const struct hold *h, bool moved);

/** @return whether hold_take() can work. */
bool hold_can_take(void);

/** Registers [@p at, @p at + @p len), which hold_take() may fill.  @return 0 or a negative errno.
 */
int hold_place(uintptr_t at, size_t len);

/** Takes the pages of @p h away, to @p to: system calls that have pinned one, and will write to it
 *  later, would write to a page that the program no longer has.
 *  @return 0; -EBUSY: one is pinned, or shared with a child; else another negative errno. Unless it
 *  is 0 all pages are back. */
int hold_take(const struct hold *h, uintptr_t to);

/** Puts them back. */
void hold_give_back(const struct hold *h, uintptr_t from, size_t len);

/** @return whether hold_shared() can work: from Linux 5.19 on. */
bool hold_can_share(void);

/** Write-protects memory of the arena: writers wait until hold_page_end().
 *  @return 0 or a negative errno. */
int hold_shared(uintptr_t at, size_t len);

/** Ends it for a page, or all. */
void hold_page_end(uintptr_t at, size_t len);
void hold_shared_end(uintptr_t at, size_t len);

/** @return a descriptor that is readable when a thread has come to a protected page; -1: none. */
int hold_descriptor(void);

/** @return whether a thread waits, and the address that it is about to write. */
bool hold_waiter(uintptr_t *addr);

/* --- hold_signal.c ---------------------------------------------------------------------- */

/** Stops all threads except the caller and @p waiter; with @p anyway, those that answer.
 *  @return 0 or -EBUSY, -ENOMEM, -EAGAIN. */
int park(pid_t waiter, bool anyway);
void unpark(void);

/** Stops the other threads, for as long as it takes to look at something. @p gently: those that
 *  sleep are not disturbed. Raw calls only (raw.h) until still_end().
 *  @return 0 or -EBUSY, -EAGAIN. */
int still_begin(bool gently);

/** @return whether no other thread has run since still_begin(). If it has, nothing that has been
 *  seen counts. */
bool still_end(void);

/** Interrupts the system calls of all other threads. */
void nudge(void);

/** Whether a signal is left to park with. */
bool park_possible(void);

#endif
