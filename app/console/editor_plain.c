/* SPDX-License-Identifier: BSD-3-Clause */
/* For builds without DPDK: the terminal's own line discipline, which has no completion. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "editor.h"

struct editor {
	int in;
	FILE *out;
	const char *prompt;
	struct editor_calls calls;
};

static void show_prompt(struct editor *e)
{
	fputs(e->prompt, e->out);
	fflush(e->out);
}

struct editor *editor_open(
	int in, FILE *out, const char *prompt, bool signals, const struct editor_calls *calls)
{
	struct editor *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct editor){in, out, prompt, *calls};
	show_prompt(e);
	return e;
}

/* The terminal returns one line per read. */
bool editor_input(struct editor *e)
{
	char line[1024];
	ssize_t n = read(e->in, line, sizeof(line) - 1);

	if (n <= 0)
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (!e->calls.line(e->calls.arg, line))
		return false;
	show_prompt(e);
	return true;
}

void editor_print(struct editor *e, const char *text, size_t len)
{
	fputc('\r', e->out);
	fwrite(text, 1, len, e->out);
	show_prompt(e);
}

void editor_close(struct editor *e)
{
	free(e);
}
