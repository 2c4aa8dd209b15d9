/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
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
			json_object_set_new(g->skips, line, json_integer(0));
	}
	fclose(f);
	return true;
}

bool skips(struct golden *g, const char *fmt, ...)
{
	char key[256];
	json_t *uses;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(key, sizeof(key), fmt, ap);
	va_end(ap);
	uses = json_object_get(g->skips, key);
	if (!uses)
		return false;
	json_integer_set(uses, json_integer_value(uses) + 1);
	return true;
}

void skips_unused(const struct golden *g)
{
	const char *key, *between = "skip list: this file has no use for: ";
	json_t *uses;

	json_object_foreach(g->skips, key, uses)
	{
		if (json_integer_value(uses))
			continue;
		fprintf(stderr, "%s%s", between, key);
		between = ", ";
	}
	if (between[0] == ',')
		fprintf(stderr, "\n");
}

void item_begin(struct golden *g, const char *name)
{
	g->name = name && *name ? name : "(no name)";
	g->bad = false;
	g->skip = false;
	g->muted = false;
	g->drop = NULL;
	g->first[0] = '\0';
	if (!name || !*name)
		item_fail(g, "this item has no name");
}

void item_fail(struct golden *g, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (!g->bad)
		memcpy(g->first, line, sizeof(line));
	g->bad = true;
	if (!g->muted)
		printf("%s: %s\n", g->name, line);
}

void item_end(struct golden *g)
{
	if (g->bad)
		g->failed++;
	else if (g->skip)
		g->skipped++;
	else
		g->passed++;
	if (g->verbose && !g->bad)
		printf("%s: %s%s%s\n", g->name, g->skip ? "skipped" : "passed",
			g->drop ? ", counter " : "", g->drop ? g->drop : "");
}
