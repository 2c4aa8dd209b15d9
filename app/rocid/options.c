/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "values.h"

struct option_row {
	const char *name;
	int argument; /* as getopt's has_arg */
	value_set set;
	const char *value; /* what --help calls it */
	const char *help;
};

/* If you add an option here, doc/man/rocid.8 and config/rocid.conf want it too. */
static const struct option_row row[] = {
	{"socket", required_argument, set_socket, "PATH",
		"where applications connect (" ABI_SOCKET_DEFAULT ")"},
	{"socket-mode", required_argument, set_socket_mode, "MODE", "its mode, octal (0660)"},
	{"socket-group", required_argument, set_socket_group, "GROUP", "its group"},
	{"admin-mode", required_argument, set_admin_mode, "MODE",
		"mode of rocictl's socket, octal (0600)"},
	{"admin-group", required_argument, set_admin_group, "GROUP", "its group"},
	{"max-sessions", required_argument, set_max_sessions, "N",
		"applications of one user, root excepted (128)"},
	{"max-qps", required_argument, set_max_qps, "N", "QPs of one application (12288)"},
	{"max-cqs", required_argument, set_max_cqs, "N", "its CQs (12288)"},
	{"max-mrs", required_argument, set_max_mrs, "N", "its memory regions (49152)"},
	{"max-queues", required_argument, set_max_queues, "MB", "memory of its queues (8192)"},
	{"max-memory", required_argument, set_max_memory, "MB", "its registered memory (no limit)"},
	{"max-user-qps", required_argument, set_max_user_qps, "N",
		"QPs of all applications of one user, root excepted (16384)"},
	{"max-user-memory", required_argument, set_max_user_memory, "MB",
		"their registered memory (no limit)"},
	{"share", required_argument, set_share, "[PORT=]IFNAME",
		"share the kernel's netdev IFNAME, with its addresses; makes an AF_PACKET port, or "
		"names the netdev that ethdev PORT stands on"},
	{"tap", required_argument, set_tap, "PORT[=NAME]",
		"a kernel netdev NAME (roci0 for port 0) on PORT, which is rocid's own: its "
		"addresses, ARP, ping, TCP"},
	{"gid", required_argument, set_gid, "PORT,IP[,vid=VLAN]", "a static address of PORT"},
	{"neigh", required_argument, set_neigh, "PORT,IP,MAC", "a static neighbour on PORT"},
	{"rocev1", no_argument, set_rocev1, "", "RoCEv1 GIDs beside the RoCEv2 ones"},
	{"mtu", required_argument, set_mtu, "PORT,BYTES", "Ethernet MTU of PORT"},
	{"ring-pair", optional_argument, set_ring_pair, "[=IMPAIRMENT]",
		"two more ports, connected with each other in memory"},
	{"impair", required_argument, set_impair, "PORT,IMPAIRMENT",
		"spoil what PORT receives: loss=P,dup=P,reorder=P,corrupt=P,truncate=P,nth=N,"
		"mask=HEX,delay=50us,seed=N,spread=hash|random"},
	{"window", required_argument, set_window, "N", "packets in flight of a QP (128)"},
	{"workers", required_argument, set_workers, "N", "worker threads, an lcore each (1)"},
	{"migrate", required_argument, set_migrate, "on|off|MS",
		"whether QPs move to the worker on whose queue their packets come in (on); MS: "
		"besides, move some each MS milliseconds, to test programs"},
	{"idle", required_argument, set_idle, "poll|yield|adaptive",
		"what an idle worker does: spin, offer its CPU each round, or sleep (poll)"},
	{"icrc", required_argument, set_icrc, "NAME",
		"how to compute CRCs: avx512, pclmul, isal, table"},
	{"ready-fd", required_argument, set_ready_fd, "FD", "write a line to FD when serving"},
	{"stats-on-exit", optional_argument, set_stats, "[=text|json]",
		"print all counters at the end"},
};

/* Not in the table because a configuration file cannot have them. */
enum {
	OPT_CONFIG = 1000,
	OPT_HELP,
	OPT_VERSION,
};

void options_init(struct options *o)
{
	memset(o, 0, sizeof(*o));
	strcpy(o->socket, ABI_SOCKET_DEFAULT);
	o->workers = 1;
	o->migrate = true;
	o->ready_fd = -1;
	o->highest_port = -1;
}

static const struct option_row *find(const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(row[i].name, name))
			return &row[i];
	return NULL;
}

int options_set(struct options *o, const char *name, const char *value, char why[VALUE_MAX])
{
	const struct option_row *r = find(name);

	if (!r) {
		snprintf(why, VALUE_MAX, "there is no such option");
		return -EINVAL;
	}
	if (!*value && r->argument == required_argument) {
		snprintf(why, VALUE_MAX, "it needs a value, %s", r->value);
		return -EINVAL;
	}
	if (*value && r->argument == no_argument) {
		snprintf(why, VALUE_MAX, "it takes no value");
		return -EINVAL;
	}
	return r->set(o, value, why);
}

static void make_getopt_table(struct option table[ARRAY_SIZE(row) + 4])
{
	unsigned n = 0;

	for (; n < ARRAY_SIZE(row); n++)
		table[n] = (struct option){row[n].name, row[n].argument, NULL, (int)n};
	table[n++] = (struct option){"config", required_argument, NULL, OPT_CONFIG};
	table[n++] = (struct option){"help", no_argument, NULL, OPT_HELP};
	table[n++] = (struct option){"version", no_argument, NULL, OPT_VERSION};
	table[n] = (struct option){0};
}

static int apply(struct options *o, int code, char why[VALUE_MAX * 2])
{
	char reason[VALUE_MAX];

	switch (code) {
	case OPT_CONFIG:
		return options_read_file(o, optarg, why);
	case OPT_HELP:
	case 'h':
		o->help = true;
		return 0;
	case OPT_VERSION:
		o->version = true;
		return 0;
	}
	if (!options_set(o, row[code].name, optarg ? optarg : "", reason))
		return 0;
	snprintf(why, VALUE_MAX * 2, "--%s %.100s: %s", row[code].name, optarg ? optarg : "",
		reason);
	return -EINVAL;
}

int options_parse(struct options *o, int argc, char *argv[], char why[VALUE_MAX * 2])
{
	struct option table[ARRAY_SIZE(row) + 4];
	int code;

	make_getopt_table(table);
	opterr = 0;
	optind = 0; /* glibc: start over */
	while ((code = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
		if (code == ':') {
			snprintf(why, VALUE_MAX * 2, "%s needs a value: see `rocid --help`",
				argv[optind - 1]);
			return -EINVAL;
		}
		if (code == '?') {
			snprintf(why, VALUE_MAX * 2, "%s is no option of rocid: see `rocid --help`",
				argv[optind - 1]);
			return -EINVAL;
		}
		if (apply(o, code, why))
			return -EINVAL;
	}
	if (optind < argc) {
		snprintf(why, VALUE_MAX * 2, "'%s' is no option: options begin with --",
			argv[optind]);
		return -EINVAL;
	}
	return 0;
}

void options_help(void)
{
	printf("usage: rocid [EAL arguments] -- [options]\n\n"
	       "RoCE on any DPDK port. EAL arguments choose cores, memory and devices, e.g.\n"
	       "  rocid -l 1 --no-huge -m 128 --no-pci -- --share eth0\n"
	       "Without -l, one CPU a worker is taken. PORT is an ethdev number, from 0.\n\n");
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		const struct option_row *r = &row[i];
		const char *space = r->argument == required_argument ? " " : "";

		printf("  --%s%s%s\n        %s\n", r->name, space, r->value, r->help);
	}
	printf("  --config FILE\n        read options from FILE, one `name = value` a line\n"
	       "  --help, --version\n");
}

static char *strip(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

static int read_line(
	struct options *o, char *line, const char *path, unsigned number, char why[VALUE_MAX * 2])
{
	char reason[VALUE_MAX];
	char *comment = strchr(line, '#');
	char *value;
	char *name;

	if (comment)
		*comment = '\0';
	name = strip(line);
	if (!*name)
		return 0;
	value = strchr(name, '=');
	if (value)
		*value++ = '\0';
	name = strip(name);
	if (!options_set(o, name, value ? strip(value) : "", reason))
		return 0;
	snprintf(why, VALUE_MAX * 2, "%.100s line %u: %.60s: %s", path, number, name, reason);
	return -EINVAL;
}

int options_read_file(struct options *o, const char *path, char why[VALUE_MAX * 2])
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	if (!f) {
		snprintf(why, VALUE_MAX * 2, "--config %.200s: %s", path, strerror(errno));
		return -EINVAL;
	}
	for (unsigned n = 1; !err && getline(&line, &size, f) >= 0; n++)
		err = read_line(o, line, path, n, why);
	if (!err && ferror(f)) { /* a directory */
		snprintf(why, VALUE_MAX * 2, "--config %.200s: %s", path, strerror(errno));
		err = -EINVAL;
	}
	free(line);
	fclose(f);
	return err;
}
