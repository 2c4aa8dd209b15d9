/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cfgfile.h>
#include "config.h"

/* The line length of rte_cfgfile. */
#define LINE_MAX_LEN (CFG_NAME_LEN + CFG_VALUE_LEN + 2)

struct place {
	const char *path;
	unsigned line;
	bool inside; /* a section */
	struct report *report;
};

/* The text without surrounding blanks; *len is its length. */
static const char *strip(const char *s, size_t *len)
{
	while (*len && isspace((unsigned char)*s)) {
		s++;
		--*len;
	}
	while (*len && isspace((unsigned char)s[*len - 1]))
		--*len;
	return s;
}

/* A comment begins with '#', unless '\' precedes it. */
static size_t without_comment(const char *s, size_t len)
{
	const char *hash = memchr(s, '#', len);

	return hash && (hash == s || hash[-1] != '\\') ? (size_t)(hash - s) : len;
}

static void check_head(struct place *at, const char *s, size_t len)
{
	const char *end = memchr(s, ']', len);
	size_t name = end ? (size_t)(end - s) - 1 : 0;

	at->inside = true;
	if (!end || end != s + len - 1)
		report_add(at->report, "%.100s line %u: a section needs a line of its own, [NAME]",
			at->path, at->line);
	else if (!name || name >= CFG_NAME_LEN)
		report_add(at->report,
			"%.100s line %u: the name of a section must have 1 to %d characters",
			at->path, at->line, CFG_NAME_LEN - 1);
}

static void check_entry(struct place *at, const char *s, size_t len)
{
	const char *equals = memchr(s, '=', len);
	size_t name = equals ? (size_t)(equals - s) : len;
	size_t value = equals ? len - name - 1 : 0;

	strip(s, &name);
	if (equals)
		strip(equals + 1, &value);
	if (!equals)
		report_add(at->report, "%.100s line %u: '%.*s' has no value: write %.*s = yes",
			at->path, at->line, (int)name, s, (int)name, s);
	else if (!name || !value)
		report_add(at->report,
			"%.100s line %u: an entry must be `name = value`, neither empty", at->path,
			at->line);
	else if (name >= CFG_NAME_LEN || value >= CFG_VALUE_LEN)
		report_add(at->report,
			"%.100s line %u: a name may have at most %d characters, a value %d",
			at->path, at->line, CFG_NAME_LEN - 1, CFG_VALUE_LEN - 1);
	else if (!at->inside)
		report_add(at->report,
			"%.100s line %u: '%.*s' belongs to no section: put a line like "
			"[applications] above it, see rocid.conf(5)",
			at->path, at->line, (int)name, s);
}

/* @return whether rte_cfgfile accepts the line. */
static bool check_line(struct place *at, const char *line, size_t len)
{
	size_t rest = len;
	const char *s;

	if (len > LINE_MAX_LEN || memchr(line, '\0', len)) {
		report_add(at->report, "%.100s line %u: it %s", at->path, at->line,
			len > LINE_MAX_LEN ? "is too long for a name, a value and a comment"
					   : "contains a NUL byte");
		return false;
	}
	rest = without_comment(line, len);
	s = strip(line, &rest);
	if (!rest)
		return false;
	if (*s == '[')
		check_head(at, s, rest);
	else
		check_entry(at, s, rest);
	return true;
}

static int remember(struct config_lines *lines, unsigned line)
{
	unsigned *grown = realloc(lines->number, (lines->count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[lines->count++] = line;
	lines->number = grown;
	return 0;
}

int config_lines(FILE *f, const char *path, struct config_lines *lines, struct report *r)
{
	struct place at = {.path = path, .report = r};
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int err = 0;

	memset(lines, 0, sizeof(*lines));
	while (!err && (len = getline(&line, &size, f)) >= 0) {
		at.line++;
		if (check_line(&at, line, (size_t)len))
			err = remember(lines, at.line);
	}
	free(line);
	return err;
}
