/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "units.h"

#define YEAR_S (366.0 * 86400)

/* strtoull() accepts signs and blanks as well. */
static const char *number(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno ? NULL : end;
}

bool units_number(const char *text, uint64_t *value)
{
	const char *end = number(text, value);

	return end && !*end;
}

bool units_bytes(const char *text, uint64_t *value)
{
	static const char letters[] = "KMG";
	const char *end = number(text, value), *letter;
	unsigned shift;

	if (!end || !*end)
		return end;
	letter = strchr(letters, toupper((unsigned char)*end));
	if (!letter || end[1])
		return false;
	shift = 10 * (unsigned)(letter - letters + 1);
	if (*value > UINT64_MAX >> shift)
		return false;
	*value <<= shift;
	return true;
}

bool units_seconds(const char *text, uint64_t *us)
{
	char *end;
	double s;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	s = strtod(text, &end);
	if (end == text || *end || !(s >= 0) || s > YEAR_S)
		return false;
	*us = (uint64_t)(s * 1e6 + 0.5);
	return true;
}
