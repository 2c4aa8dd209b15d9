/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vectors [-v] [-i ICRC] FILE.json: checks everything in a file of vectors against the real core,
 * which computes ICRCs by the implementation of that name (default: the fastest). A line a failure
 * (-v: a line an item), then "N passed, N failed, N skipped". Skipped is only what skip.list names;
 * what of that list the file has no use for is said on standard error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "golden.h"
#include "icrc.h"

static const struct {
	const char *name;
	void (*run)(struct golden *g, const json_t *v); /* NULL: prose */
	bool needs_context;
} groups[] = {
	{"about", NULL, false},
	{"verification", NULL, false},
	{"context", NULL, false},
	{"frame_format", NULL, false},
	{"sequence_format", NULL, false},
	{"frames", run_frames, true},
	{"sequences", run_sequences, true},
	{"tables", run_tables, true},
	{"entropy", run_entropy, false},
};

static void run_group(struct golden *g, const char *name, const json_t *v, bool context_ok)
{
	for (unsigned i = 0; i < ARRAY_SIZE(groups); i++) {
		if (strcmp(groups[i].name, name))
			continue;
		if (groups[i].run && (context_ok || !groups[i].needs_context))
			groups[i].run(g, v);
		return;
	}
	item_begin(g, name);
	item_fail(g, "this group is not handled");
	item_end(g);
}

/* @return the file's text, to be freed; NULL: see errno. */
static char *read_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *s = NULL;
	size_t len = 0;

	if (!f)
		return NULL;
	if (getdelim(&s, &len, '\0', f) < 0) {
		free(s);
		s = strdup(""); /* empty, which the parser has words for */
	}
	fclose(f);
	return s;
}

/* JSON knows no largest integer, but the parser does: INT64_MAX, 19 digits. Words of 64 bits may
 * be larger. @return a copy of @p s in which numbers of so many digits are strings, which
 * number() takes as well; to be freed. */
static char *quote_long_numbers(const char *s)
{
	const size_t too_long = 19;
	char *copy = malloc(2 * strlen(s) + 1), *to = copy;
	bool in_string = false;

	if (!copy)
		abort();
	while (*s) {
		size_t token = in_string ? 0 : strspn(s, "0123456789+-.eE");
		size_t digits = strspn(s, "0123456789");
		bool quote = token == digits && digits >= too_long;

		if (*s == '"')
			in_string = !in_string;
		else if (*s == '\\' && s[1])
			*to++ = *s++;
		if (quote)
			*to++ = '"';
		token += !token;
		memcpy(to, s, token);
		to += token;
		s += token;
		if (quote)
			*to++ = '"';
	}
	*to = '\0';
	return copy;
}

static json_t *load_file(const char *path, json_error_t *err)
{
	char *s = read_text(path), *quoted;
	json_t *root;

	if (!s) {
		snprintf(err->text, sizeof(err->text), "%s", strerror(errno));
		err->line = 0;
		return NULL;
	}
	quoted = quote_long_numbers(s);
	root = json_loads(quoted, JSON_REJECT_DUPLICATES, err);
	free(quoted);
	free(s);
	return root;
}

static json_t *load(struct golden *g, const char *path)
{
	const char *list = getenv("GOLDEN_SKIPS");
	json_error_t err;
	json_t *root;

	if (!skips_load(g, list ? list : GOLDEN_SKIPS)) {
		fprintf(stderr,
			"cannot read the skip list %s: set GOLDEN_SKIPS to test/golden/skip.list\n",
			list ? list : GOLDEN_SKIPS);
		return NULL;
	}
	root = load_file(path, &err);
	if (root && json_is_object(root))
		return root;
	if (root)
		fprintf(stderr, "%s: the file's outermost value is no object of groups\n", path);
	else
		fprintf(stderr, "%s:%d: %s\n", path, err.line, err.text);
	json_decref(root);
	json_decref(g->skips);
	return NULL;
}

int main(int argc, char **argv)
{
	struct golden g = {0};
	bool context_ok;
	const char *key;
	json_t *root, *v;
	int opt;

	g.icrc = icrc_best();
	while ((opt = getopt(argc, argv, "vi:")) == 'v' || opt == 'i') {
		if (opt == 'v')
			g.verbose = true;
		else
			g.icrc = icrc_by_name(optarg);
		if (!g.icrc) {
			fprintf(stderr, "vectors: this CPU has no ICRC implementation %s\n",
				optarg);
			return 2;
		}
	}
	if (opt != -1 || optind + 1 != argc) {
		fprintf(stderr, "usage: vectors [-v] [-i ICRC] FILE.json\n");
		return 2;
	}
	root = load(&g, argv[optind]);
	if (!root)
		return 2;
	g.context = json_object_get(root, "context");
	context_ok = context_check(&g);
	json_object_foreach(root, key, v) run_group(&g, key, v, context_ok);
	skips_unused(&g);
	printf("%u passed, %u failed, %u skipped\n", g.passed, g.failed, g.skipped);
	json_decref(g.skips);
	json_decref(root);
	return g.failed || !g.passed ? 1 : 0;
}
