/* SPDX-License-Identifier: BSD-3-Clause */
/* One command: the console's own, or a request to rocid. */
#include <string.h>
#include <unistd.h>
#include "ask.h"
#include "bits.h"
#include "console.h"
#include "row.h"
#include "table.h"
#include "watch.h"

static int complain(struct console *c, const char *why)
{
	c->failed = true;
	fprintf(c->out, "error: %s\n", why);
	return -1;
}

static int quit(struct console *c, const char *rest)
{
	c->quit = true;
	return 0;
}

static int watch(struct console *c, const char *rest)
{
	struct watch w = {.socket = c->socket,
		.json = c->json,
		.out = c->out,
		.in = c->in,
		.signals = c->signals,
		.stop = c->stop};
	char why[ASK_WHY];

	if (watch_parse(&w, rest, why) || watch_run(&w, why))
		return complain(c, why);
	return 0;
}

static const struct {
	const char *name;
	const char *form;
	const char *help;
	int (*run)(struct console *c, const char *rest);
} own[] = {
	{"watch", "watch [SECONDS] [--count N] COMMAND",
		"repeat a command, with increases per second", watch},
	{"quit", "quit", "end this", quit},
	{"exit", "exit", "likewise", quit},
};

const char *console_command(unsigned i, const char **help)
{
	if (i >= ARRAY_SIZE(own))
		return NULL;
	*help = own[i].help;
	return own[i].name;
}

static const char *find_word(const char *line, size_t *len)
{
	line += strspn(line, " \t\r");
	*len = strcspn(line, " \t\r");
	return line;
}

/* `help` also lists the console's own. */
static void add_own_help(json_t *document)
{
	json_t *commands = json_object_get(document, "commands");

	for (unsigned i = 0; i < ARRAY_SIZE(own); i++) {
		struct row r;

		row_begin(&r);
		put_text(&r, "command", own[i].form);
		put_text(&r, "does", own[i].help);
		json_array_append_new(commands, row_end(&r));
	}
}

static int print(struct console *c, const char *line, json_t *document)
{
	const char *error = json_string_value(json_object_get(document, "error"));
	size_t len;
	const char *word = find_word(line, &len);

	if (error && !c->json)
		return complain(c, error);
	c->failed |= error != NULL;
	if (len == 4 && !memcmp(word, "help", 4) && !word[4 + strspn(word + 4, " \t\r")])
		add_own_help(document);
	answer_print(document, c->json, c->out);
	return error ? -1 : 0;
}

static int ask_rocid(struct console *c, const char *line)
{
	char why[ASK_WHY];
	json_t *document;
	int err, fd = ask_connect(c->socket, why);

	if (fd < 0)
		return complain(c, why);
	document = ask(fd, line, why);
	close(fd);
	if (!document)
		return complain(c, why);
	err = print(c, line, document);
	json_decref(document);
	return err;
}

int console_execute(struct console *c, const char *line)
{
	size_t len;
	const char *word = find_word(line, &len);
	int err;

	if (!len || *word == '#')
		return 0;
	for (unsigned i = 0; i < ARRAY_SIZE(own); i++) {
		if (strlen(own[i].name) != len || memcmp(word, own[i].name, len))
			continue;
		err = own[i].run(c, word + len);
		fflush(c->out);
		return err;
	}
	err = ask_rocid(c, line);
	fflush(c->out);
	return err;
}
