/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libraries.h"

#define LIBRARY "libibverbs.so.1"

/* From the program's folder in a build tree, app/run. */
#define BUILT_VERBS  "../../lib/verbs"
#define BUILT_CLIENT "../../lib/client"

static bool has_library(const char *folder)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/" LIBRARY, folder) < (int)sizeof(path) &&
	       !access(path, R_OK);
}

/* @return whether this program runs from a build tree, whose folders are then in @p path. */
static bool built(char *path, size_t size)
{
	char self[PATH_MAX], name[PATH_MAX], verbs[PATH_MAX], client[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = 0;
	dirname(self);
	if (snprintf(name, sizeof(name), "%s/" BUILT_VERBS, self) >= (int)sizeof(name) ||
		!realpath(name, verbs) || !has_library(verbs))
		return false;
	if (snprintf(name, sizeof(name), "%s/" BUILT_CLIENT, self) >= (int)sizeof(name) ||
		!realpath(name, client))
		return false;
	return snprintf(path, size, "%s:%s", verbs, client) < (int)size;
}

int libraries_path(char *path, size_t size)
{
	const char *before = getenv("LD_LIBRARY_PATH");
	size_t len;

	if (!built(path, size)) {
		if (!has_library(VERBS_FOLDER)) {
			snprintf(path, size, VERBS_FOLDER "/" LIBRARY);
			return -ENOENT;
		}
		snprintf(path, size, VERBS_FOLDER);
	}
	len = strlen(path);
	if (before && *before &&
		snprintf(path + len, size - len, ":%s", before) >= (int)(size - len))
		return -ENAMETOOLONG;
	return 0;
}
