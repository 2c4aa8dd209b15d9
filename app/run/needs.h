/* SPDX-License-Identifier: BSD-3-Clause */
/** @file needs.h Reads which libraries a program loads, and from where. One thread. */
#ifndef NEEDS_H
#define NEEDS_H

#include <limits.h>
#include <link.h>
#include <stdbool.h>

/** Properties of a program that matter for libraries loaded before others. */
struct needs {
	bool asan; /**< it has AddressSanitizer's shared runtime, which must be loaded first */
	/** A folder with a libibverbs.so.1 of its own, which precedes LD_LIBRARY_PATH; or empty. */
	char verbs[PATH_MAX];
};

/** Reads the needs of the program @p path, open as @p fd. A damaged file needs nothing. */
void needs_read(const char *path, int fd, const ElfW(Ehdr) * elf, struct needs *n);

#endif
