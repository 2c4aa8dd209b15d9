/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shadow.h
 * Replaces some entries of a system folder: in the caller's mount namespace a tmpfs takes its
 * place, with the folder's other entries and those that the caller adds. Entries that the system
 * later adds to the folder itself do not appear; those in its subfolders do. One thread.
 */
#ifndef SHADOW_H
#define SHADOW_H

#include <stdbool.h>
#include "namespace.h"

/** Any folder outside of shadowed ones: the new one is built here, hidden, until it is complete.
 */
#define STAGE "/tmp"

/**
 * Creates the new folder at STAGE, with the entries of @p folder that @p hidden does not name.
 * @param hidden  ends with NULL
 * @return 0, or a negative errno and a sentence: nothing is at STAGE then.
 */
int shadow_begin(const char *folder, const char *const hidden[], char why[WHY_MAX]);

/** Puts it in the place of @p folder.  @return as shadow_begin(). */
int shadow_end(const char *folder, bool read_only, char why[WHY_MAX]);

/** Drops it. */
void shadow_abandon(void);

/** Makes an empty file to bind to.  @return 0 or a negative errno. */
int make_file(const char *path);

/** Shows @p from at @p to.  @return 0 or a negative errno. */
int bind_to(const char *from, const char *to);

#endif
