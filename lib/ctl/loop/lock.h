/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file loop/lock.h
 * Ensures one rocid per socket path, by a lock file next to the socket. Without it, two daemons
 * could both find a socket unserved and replace it. The kernel grants the lock to one process and
 * releases it when that process dies.
 */
#ifndef LOOP_LOCK_H
#define LOOP_LOCK_H

#include "abi_ctl.h"

/** Appended to the socket's path. */
#define LOCK_SUFFIX ".lock"

/**
 * Locks @p socket_path for this process, and creates its directory if it does not exist.
 * @return a descriptor for lock_release(), or a negative errno with a sentence: -EADDRINUSE if
 * another rocid holds the lock.
 */
int lock_take(const char *socket_path, char why[ABI_SENTENCE_MAX]);

/** Removes the lock file and unlocks. */
void lock_release(int lock, const char *socket_path);

#endif
