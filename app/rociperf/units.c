/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <string.h>
#include "number.h"
#include "units.h"

#define YEAR_S (366.0 * 86400)

bool units_number(const char *text, uint64_t *value)
{
	return parse_number(text, UINT64_MAX, value);
}

bool units_bytes(const char *text, uint64_t *value)
{
	static const char letters[] = "KMG";
	const char *letter;
	unsigned shift;

	if (!take_number(&text, 0, UINT64_MAX, value))
		return false;
	if (!*text)
		return true;
	letter = strchr(letters, toupper((unsigned char)*text));
	if (!letter || text[1])
		return false;
	shift = 10 * (unsigned)(letter - letters + 1);
	if (*value > UINT64_MAX >> shift)
		return false;
	*value <<= shift;
	return true;
}

bool units_seconds(const char *text, uint64_t *us)
{
	double s;

	if (!parse_decimal(text, &s) || !(s <= YEAR_S))
		return false;
	*us = (uint64_t)(s * 1e6 + 0.5);
	return true;
}
