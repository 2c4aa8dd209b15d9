/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include "admin_command.h"
#include "admin_migrate.h"
#include "bits.h"
#include "sentence.h"
#include "show.h"

#define SHOW(...) ((const struct document_section *const[]){__VA_ARGS__, NULL})

static bool next_command(struct ctl *ctl, struct document_cursor *at, json_t **element)
{
	const struct admin_command *c = admin_command_at(at->index++);

	if (!c)
		return false;
	*element = json_pack("{s:s, s:s}", "command", c->form, "does", c->help);
	return true;
}

static const struct document_section show_commands = {.name = "commands", .next = next_command};

/* If you add a command, doc/man/rocictl.1 wants it too. */
static const struct admin_command table[] = {
	{"help", "list the commands", NULL, SHOW(&show_commands)},
	{"version", "version, process, time since the start", NULL, SHOW(&show_version)},
	{"show totals", "how many objects of each kind there are", NULL, SHOW(&show_totals)},
	{"show limits", "what an application and a user may have at most", NULL,
		SHOW(&show_limits)},
	{"show sessions", "applications, what they have and who they are", NULL,
		SHOW(&show_sessions)},
	{"show pds", "protection domains", NULL, SHOW(&show_pds)},
	{"show mrs", "memory regions", NULL, SHOW(&show_mrs)},
	{"show cqs", "completion queues", NULL, SHOW(&show_cqs)},
	{"show qps", "queue pairs", NULL, SHOW(&show_qps)},
	{"show ports", "ports, their netdevs and MTUs", NULL, SHOW(&show_ports)},
	{"show gids", "GID tables", NULL, SHOW(&show_gids)},
	{"show workers", "workers", NULL, SHOW(&show_workers)},
	{"show counters", "what the transport counts, all workers together", NULL,
		SHOW(&show_counters)},
	{"show drops", "packets that were dropped, by reason", NULL, SHOW(&show_drops)},
	{"migrate qp QPN to WORKER", "move a queue pair to another worker", admin_migrate, NULL},
	{"show all", "all of these", NULL,
		SHOW(&show_version, &show_totals, &show_limits, &show_ports, &show_gids,
			&show_workers, &show_sessions, &show_pds, &show_mrs, &show_cqs, &show_qps,
			&show_counters, &show_drops)},
};

const struct admin_command *admin_command_at(unsigned i)
{
	return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

/* Cuts @p line at its blanks.  @return the number of words, ADMIN_WORDS + 1 for too many. */
static unsigned split(char *line, char *word[ADMIN_WORDS])
{
	unsigned n = 0;
	char *rest;

	for (char *w = strtok_r(line, " \t\r", &rest); w; w = strtok_r(NULL, " \t\r", &rest)) {
		if (n == ADMIN_WORDS)
			return n + 1;
		word[n++] = w;
	}
	return n;
}

/* Whether the words are those of @p form; the arguments among them go to @p arg. */
static bool fits(const char *form, char *const word[], unsigned n, char *arg[ADMIN_WORDS])
{
	unsigned args = 0;

	for (unsigned i = 0; i < n; i++) {
		size_t len = strcspn(form, " ");

		if (isupper((unsigned char)*form))
			arg[args++] = word[i];
		else if (!len || strlen(word[i]) != len || memcmp(word[i], form, len))
			return false;
		form += len;
		form += *form == ' ';
	}
	return !*form;
}

static const struct admin_command *find(char *const word[], unsigned n, char *arg[ADMIN_WORDS])
{
	for (unsigned i = 0; i < ARRAY_SIZE(table); i++)
		if (fits(table[i].form, word, n, arg))
			return &table[i];
	return NULL;
}

static int add_member(struct text *text, const char *name, const char *value)
{
	int err = text_add_json(text, json_pack("{s:s}", name, value));

	return err ? err : text_add(text, "\n", 1);
}

int admin_execute(struct ctl *ctl, char *line, struct document *d, struct text *text)
{
	static const struct document_section *const nothing[] = {NULL};
	const struct admin_command *c = NULL;
	char *word[ADMIN_WORDS], *arg[ADMIN_WORDS];
	char why[ABI_SENTENCE_MAX];
	unsigned n;

	for (char *p = line; *p; p++) /* JSON wants UTF-8, terminals want no control codes */
		if (!isprint((unsigned char)*p) && *p != '\t' && *p != '\r')
			*p = '?';
	document_begin(d, ctl, nothing);
	n = split(line, word);
	if (n && n <= ADMIN_WORDS)
		c = find(word, n, arg);
	if (!c) {
		refuse(why, 0, "there is no command \"%.64s%s\": \"help\" lists them",
			n ? word[0] : "", n > 1 ? " ..." : "");
		return add_member(text, "error", why);
	}
	if (c->run && c->run(ctl, arg, why))
		return add_member(text, "error", why);
	if (!c->show)
		return add_member(text, "done", c->form);
	document_begin(d, ctl, c->show);
	return 0;
}
