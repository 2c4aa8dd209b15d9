/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arguments.h"
#include "bits.h"
#include "config.h"
#include "option_links.h"
#include "option_table.h"
#include "suggest.h"

#ifndef ROCID_CONF
#define ROCID_CONF "/etc/rocid/rocid.conf"
#endif

/* Not in the table because a configuration file cannot have them. */
enum {
	OPT_CONFIG = 1000,
	OPT_CHECK,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option extra[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"check-config", optional_argument, NULL, OPT_CHECK},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
};

void options_init(struct options *o)
{
	static struct option_links links; /* of the one command line */

	memset(o, 0, sizeof(*o));
	memset(&links, 0, sizeof(links));
	o->links = &links;
	strcpy(o->socket, ABI_SOCKET_DEFAULT);
	o->workers = 1;
	o->migrate = true;
	o->ready_fd = -1;
	o->highest_port = -1;
}

static bool is_named(const char *name, const char *argument, size_t len)
{
	return strlen(name) == len && !memcmp(name, argument, len);
}

bool options_is_own(const char *argument)
{
	size_t len;

	if (!strcmp(argument, "-h") || !strcmp(argument, "-i"))
		return true;
	if (strncmp(argument, "--", 2))
		return false;
	argument += 2;
	len = strcspn(argument, "=");
	for (unsigned i = 0; options_at(i); i++)
		if (is_named(options_at(i)->name, argument, len))
			return true;
	for (unsigned i = 0; i < ARRAY_SIZE(extra); i++)
		if (is_named(extra[i].name, argument, len))
			return true;
	return false;
}

/* --- the command line ------------------------------------------------------------------- */

struct getopt_table {
	struct option option[OPTION_ROWS_MAX + ARRAY_SIZE(extra) + 1];
};

static void make_getopt_table(struct getopt_table *t)
{
	const struct option_row *r;
	unsigned n;

	for (n = 0; (r = options_at(n)); n++)
		t->option[n] = (struct option){r->name, r->argument, NULL, (int)n};
	memcpy(&t->option[n], extra, sizeof(extra));
	t->option[n + ARRAY_SIZE(extra)] = (struct option){0};
}

/* The name nearest to the argument @p wrong, for a sentence's end. */
static const char *nearest(const char *wrong, char text[VALUE_MAX])
{
	struct suggestion s;

	suggest_begin(&s, wrong + strspn(wrong, "-"));
	for (unsigned i = 0; options_at(i); i++)
		suggest_try(&s, options_at(i)->name);
	for (unsigned i = 0; i < ARRAY_SIZE(extra); i++)
		suggest_try(&s, extra[i].name);
	text[0] = '\0';
	if (s.best)
		snprintf(text, VALUE_MAX, "; did you mean --%s?", s.best);
	return text;
}

static int complain(int code, char *const argv[], char why[VALUE_MAX * 2])
{
	char text[VALUE_MAX];

	if (code == ':')
		snprintf(why, VALUE_MAX * 2, "%s needs a value: see `rocid --help`",
			argv[optind - 1]);
	else
		snprintf(why, VALUE_MAX * 2,
			"%.100s is not an option of rocid: see `rocid --help`%s", argv[optind - 1],
			nearest(argv[optind - 1], text));
	return -EINVAL;
}

static int add_config(struct options *o, const char *path, char why[VALUE_MAX * 2])
{
	if (o->nconfigs == CONFIG_MAX) {
		snprintf(why, VALUE_MAX * 2, "--config %.100s: at most %u files can be given", path,
			CONFIG_MAX);
		return -EINVAL;
	}
	o->config[o->nconfigs++] = path;
	return 0;
}

/* Handles options that do not depend on the files; @p given: options on the command line. */
static int survey(struct options *o, int code, bool *given, char why[VALUE_MAX * 2])
{
	switch (code) {
	case OPT_CONFIG:
		return add_config(o, optarg, why);
	case OPT_CHECK:
		o->check = true;
		return optarg ? add_config(o, optarg, why) : 0;
	case OPT_HELP:
	case 'h':
		o->help = true;
		return 0;
	case 'i':
		o->interactive = true;
		return 0;
	case OPT_VERSION:
		o->version = true;
		return 0;
	}
	given[code] = true;
	return 0;
}

static int apply(struct options *o, int code, char why[VALUE_MAX * 2])
{
	char reason[VALUE_MAX];
	const char *name;

	if (code >= OPT_CONFIG || code == 'h' || code == 'i')
		return 0;
	name = options_at((unsigned)code)->name;
	if (!options_set(o, name, optarg ? optarg : "", reason))
		return 0;
	snprintf(why, VALUE_MAX * 2, "--%s %.100s: %s", name, optarg ? optarg : "", reason);
	return -EINVAL;
}

/* Arguments after the options: `--check-config FILE` may have one there. Without any, and without
 * other options, it is the installed file. */
static int survey_rest(
	struct options *o, int argc, char *argv[], const bool *given, char why[VALUE_MAX * 2])
{
	bool any = o->nconfigs > 0;

	if (optind < argc && (!o->check || any || optind + 1 < argc)) {
		snprintf(why, VALUE_MAX * 2, "'%s' is not an option: options begin with --",
			argv[optind]);
		return -EINVAL;
	}
	if (optind < argc)
		return add_config(o, argv[optind], why);
	for (unsigned i = 0; i < OPTION_ROWS_MAX; i++)
		any |= given[i];
	return o->check && !any ? add_config(o, ROCID_CONF, why) : 0;
}

/* Walks the command line. With @p given it only records which options there are. */
static int walk(struct options *o, int argc, char *argv[], bool *given, char why[VALUE_MAX * 2])
{
	struct getopt_table table;
	int err = 0;
	int code;

	make_getopt_table(&table);
	opterr = 0;
	optind = 0; /* glibc: start over */
	while (!err && (code = getopt_long(argc, argv, ":hi", table.option, NULL)) != -1) {
		if (code == ':' || code == '?')
			return complain(code, argv, why);
		err = given ? survey(o, code, given, why) : apply(o, code, why);
	}
	return err || !given ? err : survey_rest(o, argc, argv, given, why);
}

static int read_files(struct options *o, const bool *given, char why[VALUE_MAX * 2])
{
	struct report r = {.why = why, .all = o->check ? stderr : NULL};

	for (uint32_t i = 0; i < o->nconfigs; i++)
		config_read(o, o->config[i], given, &r);
	o->faults = r.count;
	return r.count && !o->check ? -EINVAL : 0;
}

int options_parse(struct options *o, int argc, char *argv[], char why[VALUE_MAX * 2])
{
	bool given[OPTION_ROWS_MAX] = {false};
	int err = walk(o, argc, argv, given, why);

	if (!err)
		err = read_files(o, given, why);
	return err ? err : walk(o, argc, argv, NULL, why);
}

/* --- names of ports --------------------------------------------------------------------- */

static bool has_tap(const struct options *o, uint32_t port)
{
	for (uint32_t i = 0; i < o->ntaps; i++)
		if (o->tap[i].port == port)
			return true;
	return false;
}

/* Moves the settings of slot @p from to @p to. */
static int move_slot(struct options *o, uint32_t from, uint32_t to, char why[VALUE_MAX * 2])
{
	if (has_tap(o, from) && has_tap(o, to)) {
		snprintf(why, VALUE_MAX * 2,
			"port %u is %s: give --tap for only one of the two names", to,
			o->name[from - PORT_MAX]);
		return -EINVAL;
	}
	if ((o->mtu[from] && o->mtu[to]) || (o->impaired[from] && o->impaired[to]) ||
		(o->prioritized[from] && o->prioritized[to]) ||
		(o->congested[from] && o->congested[to])) {
		snprintf(why, VALUE_MAX * 2,
			"port %u is %s: give mtu, impair, priority and cc for only one of the two "
			"names",
			to, o->name[from - PORT_MAX]);
		return -EINVAL;
	}
	if (o->mtu[from])
		o->mtu[to] = o->mtu[from];
	if (o->impaired[from])
		o->links->impair[to] = o->links->impair[from];
	o->impaired[to] |= o->impaired[from];
	o->mtu[from] = 0;
	o->impaired[from] = false;
	if (o->prioritized[from])
		o->priority[to] = o->priority[from];
	o->prioritized[to] |= o->prioritized[from];
	o->prioritized[from] = false;
	if (o->congested[from])
		o->links->congestion[to] = o->links->congestion[from];
	o->congested[to] |= o->congested[from];
	o->congested[from] = false;
	for (uint32_t i = 0; i < o->nshares; i++)
		if (o->share[i].port == from)
			o->share[i].port = to;
	for (uint32_t i = 0; i < o->ntaps; i++)
		if (o->tap[i].port == from)
			o->tap[i].port = to;
	for (uint32_t i = 0; i < o->nipoibs; i++)
		if (o->ipoib[i].port == from)
			o->ipoib[i].port = to;
	for (uint32_t i = 0; i < o->ngids; i++)
		if (o->gid[i].port == from)
			o->gid[i].port = to;
	for (uint32_t i = 0; i < o->nneighs; i++)
		if (o->neigh[i].port == from)
			o->neigh[i].port = to;
	for (uint32_t i = 0; i < o->npkeys; i++)
		if (o->pkey[i].port == from)
			o->pkey[i].port = to;
	return 0;
}

int options_resolve(struct options *o, int (*number)(void *arg, const char *name), void *arg,
	char why[VALUE_MAX * 2])
{
	for (uint32_t i = 0; i < o->nnames; i++) {
		int port = number(arg, o->name[i]);
		int err;

		if (port < 0) {
			snprintf(why, VALUE_MAX * 2,
				"%s names port %s, which is neither an ethdev of EAL nor a shared "
				"netdev: --share %s (share = yes in [port %s]) makes a netdev a "
				"port",
				o->named_by[i], o->name[i], o->name[i], o->name[i]);
			return -EINVAL;
		}
		err = move_slot(o, PORT_MAX + i, (uint32_t)port, why);
		if (err)
			return err;
	}
	return 0;
}

/* --- help ------------------------------------------------------------------------------- */

static void help_row(const struct option_row *r)
{
	const char *space = r->argument == required_argument ? " " : "";

	printf("  --%s%s%s\n        %s\n", r->name, space, r->value, r->help);
}

void options_help(void)
{
	static const char *const title[SECTION_MAX] = {
		[SECTION_APPLICATIONS] = "Applications",
		[SECTION_PORTS] = "Ports",
		[SECTION_PORT] = "One port, by its number, its ethdev's name, or its shared netdev",
		[SECTION_WORKERS] = "Workers",
		[SECTION_START] = "Start and end",
	};

	printf("usage: rocid [EAL arguments] -- [options]\n       rocid --config FILE [options]\n  "
	       "     rocid --check-config [FILE]\n\nRoCE on any DPDK port. EAL arguments choose "
	       "cores, memory and devices, e.g.\n  rocid -l 1 --no-huge -m 128 --no-pci -- --share "
	       "eth0\nor they are in the file. Without -l, rocid uses one CPU per worker.\n");
	for (unsigned section = 0; section < SECTION_MAX; section++) {
		printf("\n%s:\n", title[section]);
		for (unsigned i = 0; options_at(i); i++)
			if (options_at(i)->section == section)
				help_row(options_at(i));
	}
	printf("  --config FILE\n        read options and EAL arguments from FILE: see "
	       "rocid.conf(5)\n  --check-config[=FILE]\n        report what is wrong with FILE "
	       "(" ROCID_CONF "), or what rocid would do, and end\n"
	       "  --help, --version\n");
}
