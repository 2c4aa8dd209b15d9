/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sysfs/folder.h
 * A folder of text files that change while other users read them. A reader sees the old text or the
 * new one, never a mixture. One thread at a time.
 */
#ifndef SYSFS_FOLDER_H
#define SYSFS_FOLDER_H

#include "abi_ctl.h"

struct folder {
	int fd;	    /* -1: none */
	char *path; /* NULL: none */
};

/**
 * Creates the folder @p path, readable by all, or empties the one that an earlier rocid left.
 * Refuses one that another user owns or may write to, because files in it could lead elsewhere.
 * @return 0, or a negative errno with a sentence; @p f is none then.
 */
int folder_open(struct folder *f, const char *path, char why[ABI_SENTENCE_MAX]);

/** Removes the folder and its contents. Does nothing if there is none. */
void folder_close(struct folder *f);

/* Paths below are relative to the folder, and their parent folders must exist. */

/** Creates a folder in it.  @return 0 or a negative errno. */
int folder_make(const struct folder *f, const char *path);

/** Writes a file in it, replacing any existing one.  @return 0 or a negative errno. */
int folder_write(const struct folder *f, const char *path, const char *text);

/** Creates a symbolic link in it, replacing any existing one.  @return 0 or a negative errno. */
int folder_link(const struct folder *f, const char *path, const char *target);

/** Removes a file, or a folder and its contents, if it exists. */
void folder_remove(const struct folder *f, const char *path);

#endif
