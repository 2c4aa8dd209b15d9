/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vectors FILE.json: checks everything in a file of vectors against the real core. A line a
 * failure, then "N passed, N failed, N skipped". Skipped is only what skip.list names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"

static const struct {
	const char *name;
	void (*run)(struct golden *g, const json_t *v); /* NULL: nothing to run */
} groups[] = {
	{"about", NULL},
	{"verification", NULL},
	{"context", NULL},
	{"frame_format", NULL},
	{"sequence_format", NULL},
	{"frames", run_frames},
	{"sequences", run_sequences},
	{"tables", run_tables},
	{"entropy", run_entropy},
};

static void run_group(struct golden *g, const char *name, const json_t *v)
{
	for (unsigned i = 0; i < ARRAY_SIZE(groups); i++) {
		if (strcmp(groups[i].name, name))
			continue;
		if (groups[i].run)
			groups[i].run(g, v);
		return;
	}
	item_begin(g, name);
	item_fail(g, "this group is not handled");
	item_end(g);
}

int main(int argc, char **argv)
{
	const char *list = getenv("GOLDEN_SKIPS");
	struct golden g = {0};
	json_error_t err;
	const char *key;
	json_t *root, *v;

	if (argc != 2) {
		fprintf(stderr, "usage: vectors FILE.json\n");
		return 2;
	}
	root = json_load_file(argv[1], 0, &err);
	if (!root) {
		fprintf(stderr, "%s:%d: %s\n", argv[1], err.line, err.text);
		return 2;
	}
	if (!skips_load(&g, list ? list : GOLDEN_SKIPS)) {
		fprintf(stderr, "cannot read the skip list %s\n", list ? list : GOLDEN_SKIPS);
		return 2;
	}
	g.context = json_object_get(root, "context");
	json_object_foreach(root, key, v) run_group(&g, key, v);
	printf("%u passed, %u failed, %u skipped\n", g.passed, g.failed, g.skipped);
	json_decref(g.skips);
	json_decref(root);
	return g.failed || !g.passed ? 1 : 0;
}
