/* SPDX-License-Identifier: BSD-3-Clause */
#include "number.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool take_number(const char **at, int base, uint64_t most, uint64_t *number)
{
	char *end;

	/* also accepts hexadecimal digits if the base has them. */
	if (!is_digit(**at) && !(base == 16 && **at && strchr("abcdefABCDEF", **at)))
		return false;
	errno = 0;
	*number = strtoull(*at, &end, base);
	if (errno || end == *at || *number > most)
		return false;
	*at = end;
	return true;
}

bool parse_in_base(const char *word, int base, uint64_t most, uint64_t *number)
{
	return take_number(&word, base, most, number) && !*word;
}

bool parse_number(const char *word, uint64_t most, uint64_t *number)
{
	return parse_in_base(word, 0, most, number);
}

bool take_decimal(const char **at, double *value)
{
	const char *digits = *at + (**at == '.');
	char *end;

	if (!is_digit(*digits))
		return false;
	*value = strtod(*at, &end);
	*at = end;
	return isfinite(*value);
}

bool parse_decimal(const char *word, double *value)
{
	return take_decimal(&word, value) && !*word;
}

bool take_amount(const char **at, double *value)
{
	static const char letters[] = "KMG";
	const char *letter;

	if (!take_decimal(at, value))
		return false;
	letter = **at ? strchr(letters, **at) : NULL;
	for (const char *l = letters; letter && l <= letter; l++)
		*value *= 1000;
	*at += letter != NULL;
	return true;
}

bool parse_rate(const char *word, uint64_t *rate)
{
	double value;

	if (!take_amount(&word, &value) || *word || !(value >= 1e6 && value <= 1e12))
		return false;
	*rate = (uint64_t)value;
	return true;
}

bool parse_time(const char *word, uint64_t most, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	double value;

	if (!take_decimal(&word, &value))
		return false;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(word, units[i].name) || !(value * units[i].ns <= (double)most))
			continue;
		*ns = (uint64_t)(value * units[i].ns + 0.5);
		return true;
	}
	return false;
}
