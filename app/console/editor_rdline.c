/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmdline_rdline.h>
#include "editor.h"
#include "terminal.h"

#define CLEAR_LINE "\r\033[K"

struct editor {
	struct rdline *rdline;
	struct terminal terminal;
	FILE *out;
	const char *prompt;
	struct editor_calls calls;
	bool signals;
	bool end;
};

static int write_char(struct rdline *r, char c)
{
	struct editor *e = rdline_get_opaque(r);

	return fputc(c, e->out) == EOF ? -1 : 1;
}

/* Restore the terminal for the command, so that its keys and Ctrl-C work as usual. */
static void validate(struct rdline *r, const char *buffer, unsigned size)
{
	struct editor *e = rdline_get_opaque(r);
	char *line = strdup(buffer);

	if (!line)
		return;
	line[strcspn(line, "\n")] = '\0';
	if (line[strspn(line, " \t")])
		rdline_add_history(r, line);
	fflush(e->out);
	terminal_restore(&e->terminal);
	e->end = !e->calls.line(e->calls.arg, line);
	free(line);
	if (e->end)
		return;
	terminal_raw(&e->terminal, e->signals);
	rdline_newline(r, e->prompt);
}

static int complete(struct rdline *r, const char *buffer, char *text, unsigned size, int *state)
{
	struct editor *e = rdline_get_opaque(r);

	fflush(e->out);
	if (e->calls.complete(e->calls.arg, buffer, *state < 0, text, size))
		return RDLINE_RES_COMPLETE;
	rdline_redisplay(r);
	return 0;
}

struct editor *editor_open(
	int in, FILE *out, const char *prompt, bool signals, const struct editor_calls *calls)
{
	struct editor *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->rdline = rdline_new(write_char, validate, complete, e);
	if (!e->rdline) {
		free(e);
		return NULL;
	}
	e->out = out;
	e->prompt = prompt;
	e->signals = signals;
	e->calls = *calls;
	terminal_init(&e->terminal, in);
	terminal_raw(&e->terminal, signals);
	rdline_newline(e->rdline, prompt);
	fflush(out);
	return e;
}

bool editor_input(struct editor *e)
{
	char keys[256];
	ssize_t n = read(e->terminal.fd, keys, sizeof(keys));

	if (n <= 0)
		return false;
	for (ssize_t i = 0; i < n && !e->end; i++)
		e->end = rdline_char_in(e->rdline, keys[i]) == RDLINE_RES_EOF || e->end;
	fflush(e->out);
	return !e->end;
}

void editor_print(struct editor *e, const char *text, size_t len)
{
	fputs(CLEAR_LINE, e->out);
	fwrite(text, 1, len, e->out);
	rdline_redisplay(e->rdline);
	fflush(e->out);
}

void editor_close(struct editor *e)
{
	if (!e)
		return;
	terminal_restore(&e->terminal);
	rdline_free(e->rdline);
	free(e);
}
