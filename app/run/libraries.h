/* SPDX-License-Identifier: BSD-3-Clause */
/** @file libraries.h The folders of our libibverbs.so.1 and of what it needs. One thread. */
#ifndef LIBRARIES_H
#define LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Writes the value of LD_LIBRARY_PATH for programs: the folders of the build tree that this program
 * runs from, or else the installed ones, followed by the variable's current value. @return 0, or
 * -ENAMETOOLONG, or -ENOENT with the missing file in @p path.
 */
int libraries_path(char *path, size_t size);

/**
 * Writes the value of LD_PRELOAD: the library that clears memory for allocators, with @p verbs also
 * libibverbs.so.1, followed by the variable's current value.
 * @return 0, -ENOENT or -ENAMETOOLONG.
 */
int libraries_preload(char *value, size_t size, bool verbs);

#endif
