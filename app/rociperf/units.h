/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file units.h
 * Numbers in text form.
 */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

/** "4096", "64K", "256M", "1G" (powers of 1024) or "0x10" to @p value. @return false: it is not a
 * number, or beyond 64 bits. */
bool units_bytes(const char *text, uint64_t *value);

/** "5", "0.5" or "1e-3" seconds to microseconds; at most a year.  @return false: it is not a time.
 */
bool units_seconds(const char *text, uint64_t *us);

/** A decimal number, or a hexadecimal one after 0x.  @return false: it is not a number. */
bool units_number(const char *text, uint64_t *value);

#endif
