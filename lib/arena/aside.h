/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file aside.h
 * Work on the memory that the calling thread itself runs on: its stack, its thread-local data. A
 * helper does it, on a stack of its own, while the caller waits and touches nothing.
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

/** The memory that the caller may write to at any moment: around its stack pointer, and its own
 * data. */
void own_spans(struct span out[2]);

/** @return whether [@p s, @p e) has any of it. */
bool is_own(uintptr_t s, uintptr_t e);

/**
 * Calls @p work with a copy of the @p size bytes at @p arg, and copies them back.
 * @return what @p work returns, or a negative errno.
 */
int aside(int (*work)(void *arg), void *arg, size_t size);

#endif
