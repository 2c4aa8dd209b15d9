/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file trap.h
 * The moment of fork(). Between the handlers of pthread_atfork() and the system call, libc takes
 * locks of its own: that of malloc(), and that of its list of FILEs. Their data are
 * whole only while they are held.
 */
#ifndef ARENA_TRAP_H
#define ARENA_TRAP_H

#include <stdbool.h>

/** Has @p before called when this thread is about to make a process, and @p after in both when it
 *  has, or has failed to. They may not allocate: the locks are held. A handler of the program's
 *  own may make a thread or a vfork() first: then @p before is called with false, at the last
 *  moment that can be seen, and @p after never. Signals wait from here on, until trap_end().
 *  @return false if this kernel, or the program's use of SIGSYS, does not allow it. */
bool trap_fork(void (*before)(bool fork), void (*after)(bool child));

/** In parent and child, whether they have been called or not. */
void trap_end(void);

#endif
