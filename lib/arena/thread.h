/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file thread.h
 * Finds out from /proc why a thread does not handle a signal.
 */
#ifndef ARENA_THREAD_H
#define ARENA_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** In order of severity. */
enum thread_absence {
	THREAD_ENDED,  /**< a zombie: the first thread after pthread_exit() */
	THREAD_COMING, /**< it takes the signal when it has a CPU */
	THREAD_BLOCKS, /**< it sleeps with the signal blocked, or a debugger has stopped it */
};

/** May be called while other threads are parked.
 *  @param dir a descriptor of /proc/self/task
 *  @param sig the signal that the thread has not handled */
enum thread_absence thread_absence(int dir, pid_t tid, int sig);

/** @return whether the @p size bytes at @p page, from address @p at of the program, contain the
 *  start of a thread's control block. */
bool thread_block_in(const uint8_t *page, uintptr_t at, size_t size);

/**
 * Whether thread @p tid of directory @p dir sleeps and has left its CPU. @p switches: how often it
 * has left one. If a later call returns true with the same number, it has not run in between.
 */
bool thread_sleeps(int dir, pid_t tid, uint64_t *switches);

/** The relation of a thread to the futexes in some memory. */
enum thread_wait {
	THREAD_RUNS,	  /**< unknown: it may be about to sleep */
	THREAD_ELSEWHERE, /**< it sleeps, but not on such a futex, or has ended */
	THREAD_WAITS,	  /**< it may sleep on a futex there that is not process-private */
};

/** Whether thread @p tid of directory @p dir waits for a futex in [@p s, @p e). */
enum thread_wait thread_waits(int dir, pid_t tid, uintptr_t s, uintptr_t e);

#endif
