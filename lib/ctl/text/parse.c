/* SPDX-License-Identifier: BSD-3-Clause */
#include "text/parse.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool parse_number(const char *word, uint64_t most, uint64_t *number)
{
	char *end;

	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	*number = strtoull(word, &end, 0);
	return !errno && !*end && *number <= most;
}

bool parse_rate(const char *word, uint64_t *rate)
{
	static const char units[] = "KMG";
	double value, unit = 1;
	const char *found;
	char *end;

	if (*word < '0' || *word > '9')
		return false;
	value = strtod(word, &end);
	found = *end ? strchr(units, *end) : NULL;
	if (found) {
		for (const char *u = units; u <= found; u++)
			unit *= 1000;
		end++;
	}
	value *= unit;
	if (*end || !(value >= 1e6 && value <= 1e12))
		return false;
	*rate = (uint64_t)value;
	return true;
}
