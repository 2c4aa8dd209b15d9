/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/priority.h
 * The text form of a port's priority map: "sl3=5,dscp46=6,dscp8-15=1,tag=yes", or "default" for
 * none of these (ETH-05).
 */
#ifndef NET_PRIORITY_H
#define NET_PRIORITY_H

#include <stddef.h>
#include "path.h"

/** Room for the longest text of priority_text(). */
#define PRIORITY_TEXT 704

/**
 * Sets @p m from @p text; values that it does not mention are those of priority_init().
 * @param why  receives the error sentence
 * @return 0 or -EINVAL.
 */
int priority_parse(struct priority_map *m, const char *text, char *why, size_t why_size);

/** Writes the values of @p m that differ from the default, or "default".  @return @p text. */
const char *priority_text(const struct priority_map *m, char text[PRIORITY_TEXT]);

#endif
