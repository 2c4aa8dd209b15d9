/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file namespace.h
 * The mount namespace of the program, in which it finds what a machine with an RDMA adapter has.
 * One thread.
 */
#ifndef NAMESPACE_H
#define NAMESPACE_H

#include "refuse.h"

#define WHY_MAX	       SENTENCE_MAX
#define NAMESPACE_EXIT 125 /* exit status, as env(1) has it for failures of its own */

/**
 * Moves the caller to a mount namespace of its own. Without the right to have it alone, it comes
 * with a user namespace, in which user and group are the same, or the caller moves to both of a
 * program that this user runs over the same devices (siblings.h); exits with a sentence if the
 * kernel refuses that once the namespace exists.
 * @param shown  what the caller will show there, in words
 * @return 0; 1 where it is shown already; or a negative errno and a sentence: the process may have
 * a namespace then, in which nothing has changed. After 0 namespace_complete() is due.
 */
int namespace_enter(const char *shown, char why[WHY_MAX]);

/** All is shown: others may come. */
void namespace_complete(void);

#endif
