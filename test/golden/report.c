/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"

bool skips_load(struct golden *g, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256];

	if (!f)
		return false;
	g->skips = json_object();
	while (fgets(line, sizeof(line), f)) {
		size_t len = strcspn(line, "#\n");

		while (len && line[len - 1] == ' ')
			len--;
		line[len] = '\0';
		if (len)
			json_object_set_new(g->skips, line, json_true());
	}
	fclose(f);
	return true;
}

bool skips(const struct golden *g, const char *fmt, ...)
{
	char key[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(key, sizeof(key), fmt, ap);
	va_end(ap);
	return json_object_get(g->skips, key) != NULL;
}

void item_begin(struct golden *g, const char *name)
{
	g->name = name ? name : "(no name)";
	g->bad = false;
	g->skip = false;
}

void item_fail(struct golden *g, const char *fmt, ...)
{
	va_list ap;

	g->bad = true;
	printf("%s: ", g->name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void item_end(struct golden *g)
{
	if (g->bad)
		g->failed++;
	else if (g->skip)
		g->skipped++;
	else
		g->passed++;
}

uint64_t json_u64(struct golden *g, const json_t *v)
{
	char *end;
	uint64_t n;

	if (json_is_integer(v))
		return (uint64_t)json_integer_value(v);
	if (json_is_boolean(v))
		return json_is_true(v);
	if (!json_is_string(v)) {
		item_fail(g, "a number is missing");
		return 0;
	}
	n = strtoull(json_string_value(v), &end, 0);
	if (*end)
		item_fail(g, "'%s' is no number", json_string_value(v));
	return n;
}

uint64_t json_u64_of(struct golden *g, const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	if (!v) {
		item_fail(g, "member %s is missing", key);
		return 0;
	}
	return json_u64(g, v);
}

size_t json_bytes(const json_t *v, uint8_t *dst, size_t room)
{
	const char *hex = json_string_value(v);
	size_t len = hex ? strlen(hex) / 2 : 0;

	if (len > room)
		return 0;
	for (size_t i = 0; i < len; i++) {
		char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
		char *end;

		dst[i] = (uint8_t)strtoul(pair, &end, 16);
		if (*end)
			return 0;
	}
	return len;
}
