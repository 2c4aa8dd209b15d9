/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rte_cfgfile.h>
#include "bits.h"
#include "config.h"
#include "eal_options.h"
#include "option_table.h"
#include "suggest.h"

#define EAL_SECTION  "eal"
#define PORT_SECTION "port "

/* The state of the reader. */
struct reader {
	struct options *o;
	const char *path;
	const bool *given;
	struct report *report;
	struct config_lines lines;
	unsigned line;	     /* of the current head or entry */
	const char *section; /* its name */
	/* entries so far, to find duplicates */
	struct {
		const void *what;
		char port[CFG_NAME_LEN];
		unsigned line;
	} * seen;
	unsigned nseen;
};

static void complain(struct reader *r, const char *name, const char *sentence)
{
	report_add(r->report, "%.100s line %u, [%.60s]: %.60s: %s", r->path, r->line, r->section,
		name, sentence);
}

/* @return whether @p what occurs for the first time, in the section of its port if it has one. */
static bool first_time(struct reader *r, const void *what, const char *port, const char *name)
{
	char text[VALUE_MAX];

	for (unsigned i = 0; i < r->nseen; i++) {
		if (r->seen[i].what != what || strcmp(r->seen[i].port, port))
			continue;
		snprintf(text, sizeof(text), "it is already in line %u: keep one of them",
			r->seen[i].line);
		complain(r, name, text);
		return false;
	}
	r->seen[r->nseen].what = what;
	snprintf(r->seen[r->nseen].port, sizeof(r->seen[0].port), "%s", port);
	r->seen[r->nseen++].line = r->line;
	return true;
}

/* --- [eal] ------------------------------------------------------------------------------ */

static void unknown_eal(struct reader *r, const char *name)
{
	struct suggestion s;
	char text[VALUE_MAX];

	suggest_begin(&s, name);
	for (unsigned i = 0; eal_option_at(i); i++)
		suggest_try(&s, eal_option_at(i)->name);
	snprintf(text, sizeof(text),
		"EAL has no such argument, or it is not allowed in a file%s%s%s",
		s.best ? "; did you mean " : "", s.best ? s.best : "", s.best ? "?" : "");
	complain(r, name, text);
}

static void eal_entry(struct reader *r, const char *name, const char *value)
{
	const struct eal_option *e = eal_option_find(name);
	struct options *o = r->o;

	if (!e) {
		unknown_eal(r, name);
		return;
	}
	if (!e->many && !first_time(r, e->group, "", name))
		return;
	if (!e->value && strcmp(value, "yes") && strcmp(value, "no")) {
		complain(r, name, "it must be yes or no");
		return;
	}
	if (!e->value && !strcmp(value, "no"))
		return;
	if (o->neal == EAL_ENTRIES_MAX) {
		complain(r, name, "there are too many EAL arguments");
		return;
	}
	if (!e->value)
		snprintf(o->eal[o->neal++], sizeof(o->eal[0]), "--%s", name);
	else if (name[1])
		snprintf(o->eal[o->neal++], sizeof(o->eal[0]), "--%s=%s", name, value);
	else
		snprintf(o->eal[o->neal++], sizeof(o->eal[0]), "-%s%s", name, value);
}

/* --- rocid's own ------------------------------------------------------------------------ */

static void unknown_option(struct reader *r, const char *name)
{
	struct suggestion s;
	char text[VALUE_MAX];

	suggest_begin(&s, name);
	for (unsigned i = 0; options_at(i); i++)
		suggest_try(&s, options_at(i)->name);
	if (eal_option_find(name))
		snprintf(text, sizeof(text),
			"it is an EAL argument: it belongs in [" EAL_SECTION "]");
	else if (s.best)
		snprintf(text, sizeof(text), "there is no such option; did you mean %s?", s.best);
	else
		snprintf(text, sizeof(text), "there is no such option: `rocid --help` lists them");
	complain(r, name, text);
}

/* The value as on the command line: with the port, which is the section's name here. @return false
 * if it is "no", or wrong. */
static bool port_value(struct reader *r, const char *name, const char *port, const char *value,
	char full[VALUE_MAX * 2])
{
	bool share = !strcmp(name, "share");
	bool tap = !strcmp(name, "tap");
	bool ipoib = !strcmp(name, "ipoib");
	bool number = strspn(port, "0123456789") == strlen(port);

	if ((share || tap || ipoib) && !strcmp(value, "no"))
		return false;
	if (share && number && !strcmp(value, "yes")) {
		complain(r, name,
			"yes is for a section [port IFNAME], where it opens a packet socket: name "
			"the netdev of this port, as in share = IFNAME");
		return false;
	}
	if ((share || tap || ipoib) && !strcmp(value, "yes"))
		snprintf(full, VALUE_MAX * 2, "%s", port);
	else
		snprintf(full, VALUE_MAX * 2, "%s%s%s", port, share || tap ? "=" : ",", value);
	return true;
}

static void own_entry(struct reader *r, enum option_section section, const char *port,
	const char *name, const char *value)
{
	const struct option_row *row = options_find(name);
	char full[VALUE_MAX * 2];
	char text[VALUE_MAX];

	if (!row) {
		unknown_option(r, name);
		return;
	}
	if (row->section != section) {
		snprintf(text, sizeof(text), "it belongs in [%s]", options_section(row->section));
		complain(r, name, text);
		return;
	}
	/* A port may have several addresses and neighbours, but only one of everything else. */
	if ((!row->many || (*port && strcmp(name, "gid") && strcmp(name, "neigh") &&
				   strcmp(name, "pkey") && strcmp(name, "ipoib"))) &&
		!first_time(r, row, port, name))
		return;
	if (row->argument == optional_argument && !strcmp(value, "no"))
		return;
	if (row->argument == optional_argument && !strcmp(value, "yes"))
		value = "";
	if (*port && !port_value(r, name, port, value, full))
		return;
	if (r->given && r->given[row - options_at(0)])
		return;
	if (options_set(r->o, name, *port ? full : value, text))
		complain(r, name, text);
}

/* --- sections --------------------------------------------------------------------------- */

static void unknown_section(struct reader *r)
{
	struct suggestion s;

	suggest_begin(&s, r->section);
	suggest_try(&s, EAL_SECTION);
	for (unsigned i = 0; i < SECTION_MAX; i++)
		if (i != SECTION_PORT)
			suggest_try(&s, options_section(i));
	suggest_try(&s, "port 0");
	report_add(r->report, "%.100s line %u: there is no section [%.60s]%s%s%s", r->path, r->line,
		r->section, s.best ? "; did you mean [" : ": see rocid.conf(5)",
		s.best ? s.best : "", s.best ? "]?" : "");
}

/* @return its number, SECTION_MAX for [eal], -1 for none. */
static int find_section(const char *name)
{
	if (!strcmp(name, EAL_SECTION))
		return SECTION_MAX;
	if (!strncmp(name, PORT_SECTION, strlen(PORT_SECTION)))
		return SECTION_PORT;
	for (int i = 0; i < SECTION_MAX; i++)
		if (i != SECTION_PORT && !strcmp(name, options_section((enum option_section)i)))
			return i;
	return -1;
}

static void read_entries(
	struct reader *r, const struct rte_cfgfile_entry *entry, int n, unsigned *next)
{
	int section = find_section(r->section);
	const char *port = section == SECTION_PORT ? r->section + strlen(PORT_SECTION) : "";

	port += strspn(port, " \t");
	if (section < 0)
		unknown_section(r);
	for (int i = 0; i < n; i++) {
		r->line = r->lines.number[(*next)++];
		if (section == SECTION_MAX)
			eal_entry(r, entry[i].name, entry[i].value);
		else if (section >= 0)
			own_entry(r, (enum option_section)section, port, entry[i].name,
				entry[i].value);
	}
}

/* config_lines() has seen that each of its lines is a section's head or an entry of one. */
static int read_sections(struct reader *r, struct rte_cfgfile *file)
{
	unsigned next = 0;
	int n = rte_cfgfile_num_sections(file, NULL, 0);

	for (int i = 0; i < n; i++) {
		struct rte_cfgfile_entry *entry = calloc(r->lines.count, sizeof(*entry));
		char name[CFG_NAME_LEN];
		int entries;

		if (!entry)
			return -ENOMEM;
		entries = rte_cfgfile_section_entries_by_index(
			file, i, name, entry, (int)r->lines.count);
		r->section = name;
		r->line = r->lines.number[next++];
		read_entries(r, entry, entries, &next);
		free(entry);
	}
	return 0;
}

/* A copy of the file, because it is read twice: it may be a pipe, or change in between. */
static FILE *copy_of(const char *path, int *err)
{
	int in = open(path, O_RDONLY | O_CLOEXEC);
	int out = in < 0 ? -1 : memfd_create("rocid.conf", MFD_CLOEXEC);
	FILE *copy = out < 0 ? NULL : fdopen(out, "r+");
	char part[4096];
	ssize_t n = 0;

	while (copy && (n = read(in, part, sizeof(part))) > 0)
		fwrite(part, 1, (size_t)n, copy);
	if (!copy || n < 0 || fflush(copy)) {
		*err = errno ? -errno : -EIO;
		if (copy)
			fclose(copy);
		else if (out >= 0)
			close(out);
		copy = NULL;
	} else {
		rewind(copy);
	}
	if (in >= 0)
		close(in);
	return copy;
}

static int read_copy(struct reader *r, FILE *copy)
{
	const struct rte_cfgfile_parameters parameters = {.comment_character = '#'};
	unsigned before = r->report->count;
	struct rte_cfgfile *file;
	char path[32];
	int err = config_lines(copy, r->path, &r->lines, r->report);

	if (err || r->report->count != before || !r->lines.count)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(copy));
	r->seen = calloc(r->lines.count, sizeof(*r->seen));
	file = rte_cfgfile_load_with_params(path, 0, &parameters);
	if (!file || !r->seen)
		err = -ENOMEM; /* nothing else is left */
	else
		err = read_sections(r, file);
	if (file)
		rte_cfgfile_close(file);
	return err;
}

void config_read(struct options *o, const char *path, const bool *given, struct report *report)
{
	struct reader r = {.o = o, .path = path, .given = given, .report = report};
	int err = 0;
	FILE *copy = copy_of(path, &err);

	if (copy) {
		err = read_copy(&r, copy);
		fclose(copy);
	}
	if (err)
		report_add(report, "--config %.200s: %s", path, strerror(-err));
	free(r.seen);
	free(r.lines.number);
}
