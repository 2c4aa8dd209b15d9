/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vectors [-v] FILE.json: checks everything in a file of vectors against the real core. A line a
 * failure (-v: a line an item), then "N passed, N failed, N skipped". Skipped is only what
 * skip.list names; what of that list the file has no use for is said on standard error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "golden.h"

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
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &err);
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

	while ((opt = getopt(argc, argv, "v")) == 'v')
		g.verbose = true;
	if (opt != -1 || optind + 1 != argc) {
		fprintf(stderr, "usage: vectors [-v] FILE.json\n");
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
