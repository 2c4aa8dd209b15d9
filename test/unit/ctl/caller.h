/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file caller.h
 * Programs of other users, in tests that link with -Wl,--wrap=getsockopt.
 */
#ifndef CALLER_H
#define CALLER_H

#include <sys/types.h>

/** The user that programs connect as from now on; 0: their real user. */
extern uid_t caller;

#endif
