/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "bits.h"
#include "number.h"
#include "text.h"

struct suffix {
	const char *name;
	double factor;
};

static const struct suffix bytes[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"Ki", 1024},
	{"Mi", 1048576}, {"Gi", 1073741824}, {NULL, 0}};
static const struct suffix rates[] = {
	{"G", 1e9}, {"M", 1e6}, {"K", 1e3}, {"T", 1e12}, {"", 1}, {NULL, 0}};
static const struct suffix times[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"ns", 1}, {NULL, 0}};
static const struct suffix parts[] = {{"%", 0.01}, {"", 1}, {NULL, 0}};
static const struct suffix slopes[] = {{"%/ms", 10}, {"%/us", 1e4}, {"%/s", 0.01}, {NULL, 0}};
static const struct suffix numbers[] = {{"", 1}, {NULL, 0}};

static const struct {
	const struct suffix *suffixes;
	const char *what;
} units[] = {
	[UNIT_NONE] = {numbers, "a number"},
	[UNIT_BYTES] = {bytes, "a number of bytes such as 200K or 1Mi"},
	[UNIT_RATE] = {rates, "a rate such as 40G"},
	[UNIT_TIME] = {times, "a time such as 100us, 1ms or 2s"},
	[UNIT_PART] = {parts, "a part such as 1%"},
	[UNIT_SLOPE] = {slopes, "a slope such as 3.6%/ms"},
};

bool text_number(const char *text, enum unit unit, double *value)
{
	bool negative = *text == '-'; /* slopes fall, too */
	const char *end = text + negative;
	double v;

	if (strpbrk(text, "xXpP") || !take_decimal(&end, &v))
		return false;
	v = negative ? -v : v;
	for (const struct suffix *s = units[unit].suffixes; s->name; s++) {
		if (!strcmp(end, s->name)) {
			*value = v * s->factor;
			return true;
		}
	}
	return unit == UNIT_TIME && v == 0 && !*end ? (*value = 0, true) : false;
}

const char *text_what(enum unit unit)
{
	return units[unit].what;
}

/* The largest unit in which the value is at least 1. */
static char *scaled(double value, const struct suffix *s, unsigned n, char *text, size_t size)
{
	double most = fabs(value);
	unsigned best = 0;

	for (unsigned i = 1; i < n; i++)
		if (most >= s[i].factor)
			best = i;
	snprintf(text, size, "%.5g%s", value / s[best].factor, s[best].name);
	return text;
}

char *text_of(double value, enum unit unit, char *text, size_t size)
{
	static const struct suffix tens[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}};
	static const struct suffix spans[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

	if (isnan(value)) /* nothing was measured */
		return strcpy(text, "none");
	switch (unit) {
	case UNIT_BYTES:
	case UNIT_RATE:
		return scaled(value, tens, ARRAY_SIZE(tens), text, size);
	case UNIT_TIME:
		if (isinf(value))
			return strcpy(text, "never");
		return scaled(value, spans, ARRAY_SIZE(spans), text, size);
	case UNIT_PART:
		snprintf(text, size, "%.2f%%", value * 100);
		return text;
	case UNIT_SLOPE:
		snprintf(text, size, "%.3f%%/ms", value / 10);
		return text;
	default:
		snprintf(text, size, "%.5g", value);
		return text;
	}
}

bool text_range(const char *text, uint32_t *first, uint32_t *last)
{
	uint64_t a, b;

	if (!take_number(&text, 10, UINT32_MAX, &a))
		return false;
	b = a;
	if (!strncmp(text, "..", 2)) {
		text += 2;
		if (!take_number(&text, 10, UINT32_MAX, &b))
			return false;
	}
	*first = (uint32_t)a;
	*last = (uint32_t)b;
	return a <= b && !*text;
}
