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
 * Moves the caller to a mount namespace of its own. Without the right to create one alone, it also
 * creates a user namespace, with the same user and group, or joins both namespaces of a program
 * that this user runs over the same devices (siblings.h); exits with a sentence if the kernel
 * refuses that once the namespace exists. @param shown describes what the caller will show there
 * @return 0; 1 if it is already shown; or a negative errno and a sentence: the process may then
 * have a namespace, in which nothing has changed. After 0, call namespace_complete().
 */
int namespace_enter(const char *shown, char why[WHY_MAX]);

/** All is shown: others may join. */
void namespace_complete(void);

#endif
