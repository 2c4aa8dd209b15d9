/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "bits.h"
#include "config.h"
#include "option_links.h"
#include "suggest.h"
#include "values.h"

#ifndef ROCID_CONF
#define ROCID_CONF "/etc/rocid/rocid.conf"
#endif

/* Room for the longest of the names that are derived from it too. */
#define SOCKET_PATH_MAX \
	(sizeof(((struct sockaddr_un *)0)->sun_path) - (sizeof(ABI_ADMIN_SUFFIX) - 1))
#define LIMIT_MB_MAX (UINT32_MAX - 1)

#define FIELD(kind, field, max, what)                                  \
	{                                                              \
		kind, offsetof(struct options, field), max, what, NULL \
	}
#define TEXT(field, what)	FIELD(VALUE_TEXT, field, sizeof(((struct options *)0)->field), what)
#define OCTAL(field)		FIELD(VALUE_OCTAL, field, 0777, "an octal mode such as 0660")
#define COUNT(field, max, what) FIELD(VALUE_COUNT, field, max, what)
#define FLAG(field)		FIELD(VALUE_FLAG, field, 0, NULL)
#define OWN(set)             \
	{                    \
		.own = (set) \
	}

/* If you add an option here, add it to doc/man/rocid.8 and config/rocid.conf too. */
static const struct option_row row[] = {
	{"socket", required_argument, SECTION_APPLICATIONS, false,
		FIELD(VALUE_TEXT, socket, SOCKET_PATH_MAX, "the socket's path"), "PATH",
		"socket for applications (" ABI_SOCKET_DEFAULT ")"},
	{"socket-mode", required_argument, SECTION_APPLICATIONS, false, OCTAL(socket_mode), "MODE",
		"its mode, octal (0660)"},
	{"socket-group", required_argument, SECTION_APPLICATIONS, false,
		TEXT(socket_group, "the group"), "GROUP", "its group"},
	{"admin-mode", required_argument, SECTION_APPLICATIONS, false, OCTAL(admin_mode), "MODE",
		"mode of rocictl's socket, octal (0600)"},
	{"admin-group", required_argument, SECTION_APPLICATIONS, false,
		TEXT(admin_group, "the group"), "GROUP", "its group"},
	{"max-sessions", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_SESSIONS], SESSION_MAX, "a number"), "N",
		"applications per user, except root (256)"},
	{"max-qps", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_QPS], SESSION_QP_MAX, "a number"), "N",
		"QPs per application (12288)"},
	{"max-cqs", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_CQS], SESSION_CQ_MAX, "a number"), "N",
		"CQs per application (12288)"},
	{"max-mrs", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_KEYS], SESSION_MR_MAX, "a number"), "N",
		"memory regions and windows per application (49152)"},
	{"max-queues", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_QUEUES], LIMIT_MB_MAX, "a number"), "MB",
		"memory of an application's queues (8192)"},
	{"max-memory", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_MEMORY], LIMIT_MB_MAX, "a number"), "MB",
		"registered memory per application (the machine's memory)"},
	{"max-connections", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_CONNECTIONS], SESSION_CONNECTION_MAX, "a number"), "N",
		"connections by RDMA CM per application (24576)"},
	{"max-user-qps", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_QPS], QP_MAX, "a number"), "N",
		"QPs of all applications of one user, except root (12288)"},
	{"max-user-cqs", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_CQS], CQ_MAX, "a number"), "N", "their CQs (16384)"},
	{"max-user-mrs", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_KEYS], MR_MAX - 1, "a number"), "N",
		"their memory regions and windows (32764)"},
	{"max-user-connections", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_CONNECTIONS], CONNECTIONS_MAX, "a number"), "N",
		"their connections (16384)"},
	{"max-user-queues", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_QUEUES], LIMIT_MB_MAX, "a number"), "MB",
		"memory of their queues (an eighth of the machine's)"},
	{"max-user-memory", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_MEMORY], LIMIT_MB_MAX, "a number"), "MB",
		"their registered memory (half of the machine's)"},
	{"application-faults", optional_argument, SECTION_APPLICATIONS, false,
		FLAG(application_faults), "[=yes|no]",
		"let programs inject faults into the packets of their own QPs"},
	{"application-macs", optional_argument, SECTION_APPLICATIONS, false, FLAG(application_macs),
		"[=yes|no]",
		"let programs choose the destination MAC, regardless of the host's routes and "
		"neighbours"},
	{"device", required_argument, SECTION_APPLICATIONS, false, OWN(set_device), "NAME",
		"name of the device that programs see (roci0)"},
	{"cm", required_argument, SECTION_APPLICATIONS, false, OWN(set_cm), "yes|no",
		"connect programs by RDMA CM, using QP1 of each port (yes); no: QP1 is left to a "
		"program"},
	{"cm-timeout", required_argument, SECTION_APPLICATIONS, false,
		COUNT(cm_timeout, CM_TIMEOUT_MAX, "an exponent"), "N",
		"how long to wait for a peer's answer to a connection message: 4.096 us * 2^N (20: "
		"4.3 s)"},
	{"cm-retries", required_argument, SECTION_APPLICATIONS, false,
		COUNT(cm_retries, CM_RETRIES_MAX, "a number"), "N",
		"how often an unanswered connection message is repeated (15)"},
	{"userfaultfd", required_argument, SECTION_APPLICATIONS, false, OWN(set_userfaultfd),
		"yes|no",
		"pass /dev/userfaultfd to programs, which use it to stop their other threads' "
		"writes while memory is registered (yes)"},
	{"share", required_argument, SECTION_PORT, true, OWN(set_share), "[PORT=]IFNAME",
		"share the kernel's netdev IFNAME, with its addresses: creates an AF_PACKET port, "
		"or names the netdev that ethdev PORT uses"},
	{"tap", required_argument, SECTION_PORT, true, OWN(set_tap), "PORT[=NAME]",
		"create a kernel netdev NAME (roci0 for port 0) for PORT, which rocid owns: "
		"addresses, ARP, ping, TCP"},
	{"ipoib", required_argument, SECTION_PORT, true, OWN(set_ipoib),
		"PORT[,name=NAME][,pkey=PKEY][,mtu=BYTES]",
		"create a kernel netdev NAME (rib0) for IP over InfiniBand on PORT, as RFC 4391 "
		"has "
		"it, in the partition of PKEY (0xffff), with an IP MTU of BYTES (2044)"},
	{"gid", required_argument, SECTION_PORT, true, OWN(set_gid), "PORT,IP[,vid=VLAN]",
		"a static address of PORT"},
	{"neigh", required_argument, SECTION_PORT, true, OWN(set_neigh), "PORT,IP,MAC",
		"a static neighbour on PORT"},
	{"rocev1", optional_argument, SECTION_PORTS, false, OWN(set_rocev1), "[=yes|no|connect]",
		"RoCEv1 GIDs in addition to the RoCEv2 ones; connect: RDMA CM also connects over "
		"RoCEv1"},
	{"gso", optional_argument, SECTION_PORTS, false, OWN(set_gso), "[=yes|no|auto]",
		"pass many frames at a time to and from shared netdevs: to all peers, to none, or "
		"to those that are seen to take them (auto)"},
	{"mtu", required_argument, SECTION_PORT, true, OWN(set_mtu), "PORT,BYTES",
		"Ethernet MTU of PORT"},
	{"queues", required_argument, SECTION_PORT, true, OWN(set_queues), "PORT,N",
		"number of queues of memif PORT, at both ends: as many as rocid has workers (1)"},
	{"flow-label", required_argument, SECTION_PORTS, false, OWN(set_flow_label), "hash|av",
		"IPv6 flow label if the address vector's is 0: a hash of the QPNs, or 0 as Linux "
		"sends it (hash)"},
	{"pkey", required_argument, SECTION_PORT, true, OWN(set_pkey), "PORT,INDEX,PKEY",
		"an entry of PORT's P_Key table (0xffff at 0)"},
	{"priority", required_argument, SECTION_PORT, true, OWN(set_priority), "PORT,PRIORITIES",
		"802.1p priorities: slA[-B]=P,dscpA[-B]=P,tag=yes (the service level, in VLAN tags "
		"only)"},
	{"cc", required_argument, SECTION_PORT, true, OWN(set_cc),
		"PORT,notify|dcqcn|off[,PARAM=VALUE...]",
		"mark packets as ECN-capable, answer those that met congestion with CNPs (notify), "
		"and limit rates when CNPs arrive (dcqcn, hpcc, swift, fixed) (off)"},
	{"ring-pair", optional_argument, SECTION_PORTS, true, OWN(set_ring_pair), "[=IMPAIRMENT]",
		"two more ports, connected to each other in memory"},
	{"impair", required_argument, SECTION_PORT, true, OWN(set_impair), "PORT,IMPAIRMENT",
		"impair the frames that PORT receives: "
		"loss=P,dup=P,reorder=P,corrupt=P,truncate=P,nth=N,mask=HEX,delay=50us,rate=1G,"
		"queue=400K,red=KMIN:KMAX:PMAX,mark=egress|ingress,seed=N,spread=hash|random"},
	{"window", required_argument, SECTION_WORKERS, false,
		COUNT(window, WINDOW_MAX, "a number of packets"), "N",
		"packets in flight per QP (128)"},
	{"workers", required_argument, SECTION_WORKERS, false,
		COUNT(workers, WORKER_MAX, "a number of workers"), "N",
		"worker threads, one per lcore (1)"},
	{"migrate", required_argument, SECTION_WORKERS, false, OWN(set_migrate), "on|off|MS",
		"whether QPs move to the worker on whose queue their packets arrive (on); MS: also "
		"move some every MS milliseconds, to test programs"},
	{"idle", required_argument, SECTION_WORKERS, false, OWN(set_idle), "poll|yield|adaptive",
		"how workers idle: spin, yield the CPU in each round, or sleep (poll)"},
	{"icrc", required_argument, SECTION_WORKERS, false, OWN(set_icrc), "NAME",
		"how to compute CRCs: avx512, pclmul, pmull, isal, table"},
	{"interactive", optional_argument, SECTION_START, false, FLAG(interactive), "[=yes|no]",
		"-i: a prompt, or commands from standard input, one per line; end of file ends "
		"rocid"},
	{"cmdline-file", required_argument, SECTION_START, false, TEXT(cmdline_file, "the path"),
		"FILE", "commands of the prompt to execute first, one per line"},
	{"ready-fd", required_argument, SECTION_START, false, OWN(set_ready_fd), "FD",
		"write a line to FD when serving"},
	{"stats-on-exit", optional_argument, SECTION_START, false, OWN(set_stats), "[=text|json]",
		"print all counters on exit"},
};

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
	o->gso = GSO_AUTO;
	o->migrate = true;
	o->ready_fd = -1;
	o->highest_port = -1;
}

const struct option_row *options_at(unsigned i)
{
	return i < ARRAY_SIZE(row) ? &row[i] : NULL;
}

const struct option_row *options_find(const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(row[i].name, name))
			return &row[i];
	return NULL;
}

const char *options_section(enum option_section section)
{
	static const char *const name[SECTION_MAX] = {
		[SECTION_APPLICATIONS] = "applications",
		[SECTION_PORTS] = "ports",
		[SECTION_PORT] = "port NAME",
		[SECTION_WORKERS] = "workers",
		[SECTION_START] = "start",
	};

	return name[section];
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
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (strlen(row[i].name) == len && !memcmp(row[i].name, argument, len))
			return true;
	for (unsigned i = 0; i < ARRAY_SIZE(extra); i++)
		if (strlen(extra[i].name) == len && !memcmp(extra[i].name, argument, len))
			return true;
	return false;
}

int options_set(struct options *o, const char *name, const char *value, char why[VALUE_MAX])
{
	const struct option_row *r = options_find(name);

	if (!r) {
		snprintf(why, VALUE_MAX, "there is no such option");
		return -EINVAL;
	}
	if (!*value && r->argument == required_argument) {
		snprintf(why, VALUE_MAX, "it needs a value, %s", r->value);
		return -EINVAL;
	}
	return value_set(o, &r->type, value, why);
}

/* --- the command line ------------------------------------------------------------------- */

struct getopt_table {
	struct option option[ARRAY_SIZE(row) + ARRAY_SIZE(extra) + 1];
};

static void make_getopt_table(struct getopt_table *t)
{
	unsigned n = 0;

	for (; n < ARRAY_SIZE(row); n++)
		t->option[n] = (struct option){row[n].name, row[n].argument, NULL, (int)n};
	memcpy(&t->option[n], extra, sizeof(extra));
	t->option[n + ARRAY_SIZE(extra)] = (struct option){0};
}

/* The name nearest to the argument @p wrong, for a sentence's end. */
static const char *nearest(const char *wrong, char text[VALUE_MAX])
{
	struct suggestion s;

	suggest_begin(&s, wrong + strspn(wrong, "-"));
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		suggest_try(&s, row[i].name);
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

	if (code >= OPT_CONFIG || code == 'h' || code == 'i')
		return 0;
	if (!options_set(o, row[code].name, optarg ? optarg : "", reason))
		return 0;
	snprintf(why, VALUE_MAX * 2, "--%s %.100s: %s", row[code].name, optarg ? optarg : "",
		reason);
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
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
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
	bool given[ARRAY_SIZE(row)] = {false};
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
		for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
			if (row[i].section == section)
				help_row(&row[i]);
	}
	printf("  --config FILE\n        read options and EAL arguments from FILE: see "
	       "rocid.conf(5)\n  --check-config[=FILE]\n        report what is wrong with FILE "
	       "(" ROCID_CONF "), or what rocid would do, and end\n"
	       "  --help, --version\n");
}
