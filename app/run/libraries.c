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
#define PRELOAD "libroci-preload.so"

/* From the program's folder in a build tree, app/run. */
#define BUILT_VERBS   "../../lib/verbs"
#define BUILT_CLIENT  "../../lib/client"
#define BUILT_PRELOAD "../../lib/preload"

static bool has_library(const char *folder)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/" LIBRARY, folder) < (int)sizeof(path) &&
	       !access(path, R_OK);
}

/* Finds a folder of the build tree that this program may run from. */
static bool built_folder(const char *name, char folder[PATH_MAX])
{
	char self[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = 0;
	return snprintf(path, sizeof(path), "%s/%s", dirname(self), name) < (int)sizeof(path) &&
	       realpath(path, folder);
}

/* @return whether this program runs from a build tree, whose folders are then in @p path. */
static bool built(char *path, size_t size)
{
	char verbs[PATH_MAX], client[PATH_MAX];

	return built_folder(BUILT_VERBS, verbs) && has_library(verbs) &&
	       built_folder(BUILT_CLIENT, client) &&
	       snprintf(path, size, "%s:%s", verbs, client) < (int)size;
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

int libraries_preload(char *value, size_t size, bool with_verbs)
{
	const char *before = getenv("LD_PRELOAD");
	char folder[PATH_MAX] = VERBS_FOLDER, verbs[PATH_MAX];
	int n;

	if (built_folder(BUILT_VERBS, verbs) && has_library(verbs))
		built_folder(BUILT_PRELOAD, folder);
	else
		snprintf(verbs, sizeof(verbs), VERBS_FOLDER);
	n = snprintf(value, size, "%s/" PRELOAD, folder);
	if (n >= (int)size)
		return -ENAMETOOLONG;
	if (access(value, R_OK))
		return -ENOENT;
	if (with_verbs)
		n += snprintf(value + n, size - (size_t)n, ":%s/" LIBRARY, verbs);
	if (n >= (int)size)
		return -ENAMETOOLONG;
	if (before && *before &&
		snprintf(value + n, size - (size_t)n, ":%s", before) >= (int)(size - (size_t)n))
		return -ENAMETOOLONG;
	return 0;
}
