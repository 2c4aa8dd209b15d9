/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file namespace.h
 * The mount namespace of the program, in which it finds what a machine with an RDMA adapter has.
 * One thread.
 */
#ifndef NAMESPACE_H
#define NAMESPACE_H

#define WHY_MAX	       256
#define NAMESPACE_EXIT 125 /* exit status, as env(1) has it for failures of its own */

/** Writes the sentence into @p why.  @return @p err. */
int fail(char why[WHY_MAX], int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

/**
 * Moves the caller to a mount namespace of its own. Without the right to have it alone, it comes
 * with a user namespace, in which user and group are the same; exits with a sentence if the kernel
 * refuses that once the namespace exists.
 * @return 0, or a negative errno and a sentence: the process may have a namespace then, in which
 * nothing has changed.
 */
int namespace_enter(char why[WHY_MAX]);

#endif
