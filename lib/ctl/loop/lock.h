/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file loop/lock.h
 * One rocid a socket path: a lock file beside the socket. Between looking whether a socket is
 * served and taking its place lies a moment in which another rocid may do the same; the kernel
 * gives a lock to one, and takes it back from one that is killed.
 */
#ifndef LOOP_LOCK_H
#define LOOP_LOCK_H

#include "abi_ctl.h"

/** What the lock file's path is longer by than the socket's. */
#define LOCK_SUFFIX ".lock"

/**
 * Locks @p socket_path for this process; makes the directory that it is in if there is none.
 * @return a descriptor for lock_release(), or a negative errno with a sentence: -EADDRINUSE
 * another rocid has it.
 */
int lock_take(const char *socket_path, char why[ABI_SENTENCE_MAX]);

/** Removes the lock file and unlocks. */
void lock_release(int lock, const char *socket_path);

#endif
