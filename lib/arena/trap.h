/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file trap.h
 * Finds the exact moment of fork(). Between the pthread_atfork() handlers and the system call, libc
 * takes its own locks: that of malloc() and that of its list of FILEs. The data that they protect
 * are consistent only while they are held.
 */
#ifndef ARENA_TRAP_H
#define ARENA_TRAP_H

#include <stdbool.h>

/** Has @p before called when this thread is about to create a process, and @p after in both
 *  processes once it has, or once that has failed. They must not allocate: the locks are held. If a
 *  handler of the program creates a thread or calls vfork() first, @p before is called with false,
 *  at the last observable moment, and @p after never. Signals are blocked until trap_end().
 *  @return false if this kernel, or the program's use of SIGSYS, does not allow it. */
bool trap_fork(void (*before)(bool fork), void (*after)(bool child));

/** Call it in parent and child, whether or not the functions were called. */
void trap_end(void);

#endif
