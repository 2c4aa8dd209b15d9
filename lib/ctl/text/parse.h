/* SPDX-License-Identifier: BSD-3-Clause */
/** @file text/parse.h  Values as people type them. */
#ifndef TEXT_PARSE_H
#define TEXT_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/** @return whether @p word is a number, in C's notations, of at most @p most. */
bool parse_number(const char *word, uint64_t most, uint64_t *number);

#endif
