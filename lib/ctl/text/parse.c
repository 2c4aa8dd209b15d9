/* SPDX-License-Identifier: BSD-3-Clause */
#include "text/parse.h"
#include <errno.h>
#include <stdlib.h>

bool parse_number(const char *word, uint64_t most, uint64_t *number)
{
	char *end;

	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	*number = strtoull(word, &end, 0);
	return !errno && !*end && *number <= most;
}
