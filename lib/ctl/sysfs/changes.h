/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sysfs/changes.h
 * Changes to a folder of files, collected by one thread and made by another. One thread at a time
 * owns them.
 */
#ifndef SYSFS_CHANGES_H
#define SYSFS_CHANGES_H

#include <stdbool.h>
#include "list.h"
#include "sysfs/folder.h"

enum change_kind {
	CHANGE_MAKE,  /* folder_make() */
	CHANGE_WRITE, /* folder_write() of the text */
	CHANGE_LINK,  /* folder_link() to the text */
	CHANGE_REMOVE /* folder_remove() */
};

struct changes {
	struct list list;
	bool lost; /* there was no memory for one */
};

void changes_init(struct changes *c);

/** Adds a change. @p text is "" where the kind has none. Both strings are copied. */
void changes_add(struct changes *c, enum change_kind kind, const char *path, const char *text);

/**
 * Makes all changes in their order, also those after one that fails, and forgets them.
 * @return false if one failed or was lost.
 */
bool changes_apply(struct changes *c, const struct folder *f);

#endif
