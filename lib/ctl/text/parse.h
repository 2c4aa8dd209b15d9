/* SPDX-License-Identifier: BSD-3-Clause */
/** @file text/parse.h  Parses values that users type. */
#ifndef TEXT_PARSE_H
#define TEXT_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/** @return whether @p word is a number in C notation, at most @p most. */
bool parse_number(const char *word, uint64_t most, uint64_t *number);

/** @return whether @p word is a rate in bit/s from 1M to 1000G, such as 100M or 2.5G. */
bool parse_rate(const char *word, uint64_t *rate);

#endif
