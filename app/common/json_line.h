/* SPDX-License-Identifier: BSD-3-Clause */
/** @file json_line.h  Output for other programs: lines of JSON on standard output. */
#ifndef JSON_LINE_H
#define JSON_LINE_H

#include <jansson.h>

/** Prints @p value as one line, at once, and releases it. Exits when memory is short. */
void json_line(json_t *value);

#endif
