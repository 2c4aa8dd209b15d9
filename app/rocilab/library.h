/* SPDX-License-Identifier: BSD-3-Clause */
/** @file library.h  Scenario files: those of the user and those that are installed. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <stddef.h>

struct scenario;
struct setting;

/**
 * Reads the scenario @p name: a file, or NAME.lab of the folder @p folder.
 * @return 0, or -EINVAL with a sentence in @p why
 */
int library_read(struct scenario *s, const char *folder, const char *name, struct setting *settings,
	unsigned n, char *why, size_t size);

/** Names of the scenarios in @p folder, sorted; free() each and the list.
 *  @return their number, or -errno */
int library_list(const char *folder, char ***names);

void library_free(char **names, int n);

#endif
