/* SPDX-License-Identifier: BSD-3-Clause */
/** @file complain.h  The last words of a program that fails. */
#ifndef COMPLAIN_H
#define COMPLAIN_H

/** Prints "PROGRAM: WHY" on standard error.  @return @p status, for main(). */
int complain(const char *program, const char *why, int status);

#endif
