/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"

const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

bool text_is(const json_t *object, const char *key, const char *value)
{
	return !strcmp(text(object, key), value);
}

/* --- numbers ------------------------------------------------------------------------------ */

uint64_t number(struct golden *g, const char *what, const json_t *v)
{
	const char *s = json_string_value(v);
	uint64_t n;
	char *end;

	if (json_is_integer(v)) {
		if (json_integer_value(v) < 0)
			item_fail(g, "%s is negative", what);
		return (uint64_t)json_integer_value(v);
	}
	if (json_is_boolean(v))
		return json_is_true(v);
	if (!s) {
		item_fail(g, "%s is no number", what);
		return 0;
	}
	errno = 0;
	n = strtoull(s, &end, 0);
	if (!isdigit((unsigned char)*s) || *end || errno)
		item_fail(g, "%s: '%.40s' is no number", what, s);
	return n;
}

uint64_t number_of(struct golden *g, const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	if (!v) {
		item_fail(g, "member %s is missing", key);
		return 0;
	}
	return number(g, key, v);
}

uint64_t number_upto(struct golden *g, const char *what, const json_t *v, uint64_t max)
{
	uint64_t n = number(g, what, v);

	if (n <= max)
		return n;
	item_fail(g, "%s is %llu, which is more than %llu", what, (unsigned long long)n,
		(unsigned long long)max);
	return max;
}

uint64_t nanoseconds(struct golden *g, const char *what, const json_t *v)
{
	const double most = 1e16; /* 2^53 us: four months */
	double usec = json_is_real(v) ? json_real_value(v) : (double)number(g, what, v);

	if (usec >= 0 && usec <= most)
		return (uint64_t)(usec * 1000 + 0.5);
	item_fail(g, "%s is no time", what);
	return 0;
}

void same_number(struct golden *g, const char *what, uint64_t got, const json_t *want)
{
	uint64_t n;

	if (!want) {
		item_fail(g, "%s is not given", what);
		return;
	}
	n = number(g, what, want);
	if (got != n)
		item_fail(g, "%s is 0x%llx, not 0x%llx", what, (unsigned long long)got,
			(unsigned long long)n);
}

/* --- bytes -------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (int)(at - digits) : -1;
}

uint8_t *hex_bytes(struct golden *g, const char *what, const json_t *v, size_t *len)
{
	const char *hex = json_string_value(v);
	size_t n = hex ? strlen(hex) : 1;
	uint8_t *b;

	*len = n / 2;
	b = n % 2 ? NULL : malloc(*len + 1);
	for (size_t i = 0; b && i < *len; i++) {
		int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

		if (high < 0 || low < 0) {
			free(b);
			b = NULL;
			break;
		}
		b[i] = (uint8_t)(high << 4 | low);
	}
	if (!b) {
		*len = 0;
		item_fail(g, "%s is no hex string", what);
	}
	return b;
}

bool mac_of(const char *s, uint8_t mac[6])
{
	unsigned m[6];
	char rest;

	if (sscanf(s, "%2x:%2x:%2x:%2x:%2x:%2x%c", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5],
		    &rest) != 6)
		return false;
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)m[i];
	return true;
}

/* --- objects ------------------------------------------------------------------------------ */

bool known_members(
	struct golden *g, const char *what, const json_t *v, const char *const *names, unsigned n)
{
	bool ok = json_is_object(v);
	const char *key;
	json_t *value;

	if (!ok)
		item_fail(g, "%s is no object", what);
	json_object_foreach((json_t *)v, key, value)
	{
		unsigned i = 0;

		while (i < n && strcmp(names[i], key))
			i++;
		if (i < n)
			continue;
		item_fail(g, "%s.%.60s is not handled", what, key);
		ok = false;
	}
	return ok;
}
