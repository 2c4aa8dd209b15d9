/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/priority.h
 * A port's map of priorities as people write it: "sl3=5,dscp46=6,dscp8-15=1,tag=yes", or "default"
 * for none of these (ETH-05).
 */
#ifndef NET_PRIORITY_H
#define NET_PRIORITY_H

#include <stddef.h>
#include "path.h"

/** Room for what priority_text() writes: all that can be said. */
#define PRIORITY_TEXT 704

/**
 * Makes @p m what @p text says; what it does not name is as priority_init() has it.
 * @param why  receives what is wrong
 * @return 0 or -EINVAL.
 */
int priority_parse(struct priority_map *m, const char *text, char *why, size_t why_size);

/** Writes what is not default in @p m; "default" if nothing is.  @return @p text. */
const char *priority_text(const struct priority_map *m, char text[PRIORITY_TEXT]);

#endif
