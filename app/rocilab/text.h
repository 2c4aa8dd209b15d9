/* SPDX-License-Identifier: BSD-3-Clause */
/** @file text.h  Numbers with units, as scenarios and reports write them. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unit {
	UNIT_NONE,
	UNIT_BYTES, /* 200K, 1Mi */
	UNIT_RATE,  /* bit/s: 40G */
	UNIT_TIME,  /* ns: 100us, 1ms, 2s */
	UNIT_PART,  /* 1%, 0.01 */
	UNIT_SLOPE, /* part per second: 3.64%/ms */
};

/** Reads a number with its unit, which may begin with a minus sign. @return false: it is not one */
bool text_number(const char *text, enum unit unit, double *value);

/** @return what text_number() reads, for an error: "a time such as 100us". */
const char *text_what(enum unit unit);

/** Writes @p value in its most readable unit, with five digits.  @return @p text */
char *text_of(double value, enum unit unit, char *text, size_t size);

/** Reads "3" or "2..7".  @return false: it is neither */
bool text_range(const char *text, uint32_t *first, uint32_t *last);

#endif
