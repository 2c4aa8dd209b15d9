/* SPDX-License-Identifier: BSD-3-Clause */
/** @file program.h What a program must be for its libraries to be chosen. One thread. */
#ifndef PROGRAM_H
#define PROGRAM_H

/**
 * Says in a sentence on stderr why @p name, as execvp() would find it, does not take Rocinante's
 * libraries: it is static, has rights of its own, or is for another C library or CPU. Of a script
 * the interpreter counts. execvp() is left to complain of files that cannot be read or run;
 * children are not looked at.
 */
void program_check(const char *name);

#endif
