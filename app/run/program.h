/* SPDX-License-Identifier: BSD-3-Clause */
/** @file program.h Checks whether a program can load Rocinante's libraries. One thread. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "needs.h"

/**
 * Reports on stderr if @p name, as execvp() would find it, cannot load Rocinante's libraries: it is
 * static, has rights of its own, or is for another C library or CPU. For a script the interpreter
 * is checked. execvp() reports files that cannot be read or run; children are not checked.
 * @param needs receives what it needs of the libraries that are loaded first
 */
void program_check(const char *name, struct needs *needs);

#endif
