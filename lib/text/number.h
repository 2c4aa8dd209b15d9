/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file number.h
 * Numbers that users type. Each begins with a digit: signs and blanks, which strtoull() and
 * strtod() skip, are refused.
 */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/** Reads a whole number of at most @p most in @p base (0: as in C) at *@p at and moves *@p at past
 *  it.  @return false: there is none, and *@p at is unchanged. */
bool take_number(const char **at, int base, uint64_t most, uint64_t *number);

/** @return whether the whole @p word is such a number. */
bool parse_in_base(const char *word, int base, uint64_t most, uint64_t *number);

/** @return whether @p word is a number in C notation, at most @p most. */
bool parse_number(const char *word, uint64_t most, uint64_t *number);

/** Reads a number with or without a fraction, as take_number(). */
bool take_decimal(const char **at, double *value);

/** @return whether the whole @p word is such a number. */
bool parse_decimal(const char *word, double *value);

/** Reads such a number, optionally followed by K, M or G for powers of 1000. */
bool take_amount(const char **at, double *value);

/** @return whether @p word is a rate in bit/s from 1M to 1000G, such as 100M or 2.5G. */
bool parse_rate(const char *word, uint64_t *rate);

/** @return whether @p word is a time of at most @p most nanoseconds: a number with a unit of ns,
 *  us, ms or s, such as 1.5ms. */
bool parse_time(const char *word, uint64_t most, uint64_t *ns);

#endif
