/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file aside.h
 * Work on memory that the calling thread itself uses: its stack and its thread-local data. A helper
 * thread with a separate stack does it, while the caller waits and touches nothing.
 */
#ifndef ARENA_ASIDE_H
#define ARENA_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A range of addresses. */
struct span {
	uintptr_t s, e;
};

/** Memory that the caller may write at any moment: around its stack pointer, and its thread-local
 *  data. */
void own_spans(struct span out[2]);

/** @return whether [@p s, @p e) overlaps it. */
bool is_own(uintptr_t s, uintptr_t e);

/** Includes room for the program's thread-local data, which libc places there. */
#define ASIDE_STACK (1u << 20)

/** Starts a thread with all signals blocked on @p stack, of ASIDE_STACK bytes. libc would reuse
 *  stacks of earlier threads, which may be registered.
 *  @return 0 or a negative errno. */
int aside_start(pthread_t *t, void *stack, void *(*run)(void *arg), void *arg);

/**
 * Calls @p work with a copy of the @p size bytes at @p arg, and copies them back.
 * @return the result of @p work, or a negative errno.
 */
int aside(int (*work)(void *arg), void *arg, size_t size);

#endif
