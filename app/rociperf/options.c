/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "options.h"
#include "units.h"

#define TCP_PORT "18515" /* perftest's */
#define CPU_MAX	 4095

/* Options that are not parameters of the plan. Codes above all letters. */
enum {
	OPT_BOTH = 1000,
	OPT_SOCKET,
	OPT_PEER_SOCKET,
	OPT_PEER_PORT,
	OPT_JSON,
	OPT_PLOT,
	OPT_CPU,
	OPT_GBITS,
	OPT_VERSION,
	OPT_PARAM, /* + enum param: one without a letter */
};

struct local_option {
	const char *name;
	const char *arg; /* NULL: it has none */
	int code;	 /* also a letter, if it is one */
	const char *help;
};

static const struct local_option local[] = {
	{"both", NULL, OPT_BOTH, "run both ends in one process"},
	{"socket", "PATH", OPT_SOCKET, "rocid's socket ($ROCI_SOCKET, or /run/rocid/rocid.sock)"},
	{"peer-socket", "PATH", OPT_PEER_SOCKET,
		"with --both: the other end's rocid; default: the same"},
	{"ib-port", "N", 'i', "port of the device; 1"},
	{"peer-port", "N", OPT_PEER_PORT,
		"with --both: the other end's port; default: 2 if it exists in the same rocid"},
	{"gid-index", "N", 'x', "GID index; default: the first RoCEv2 GID that matches the peer's"},
	{"port", "N", 'p', "TCP port of the server; " TCP_PORT},
	{"json", NULL, OPT_JSON, "print one JSON document"},
	{"plot", "FILE.svg", OPT_PLOT,
		"plot with gnuplot: sizes with --all, otherwise the distribution of latency"},
	{"cpu", "N", OPT_CPU, "run on this CPU"},
	{"report_gbits", NULL, OPT_GBITS, "ignored; accepted for perftest compatibility"},
	{"help", NULL, 'h', "print this"},
	{"version", NULL, OPT_VERSION, "print the version"},
};
#define LOCALS (sizeof(local) / sizeof(local[0]))

static enum options_result wrong(const char *why)
{
	fprintf(stderr, "rociperf: %s\n", why);
	return OPTIONS_WRONG;
}

/* --- help --------------------------------------------------------------------------------- */

static void print_option(const char *name, int letter, const char *arg, const char *help)
{
	char head[64];

	if (letter)
		snprintf(head, sizeof(head), "-%c, --%s%s%s", letter, name, arg ? " " : "",
			arg ? arg : "");
	else
		snprintf(head, sizeof(head), "    --%s%s%s", name, arg ? " " : "", arg ? arg : "");
	printf("  %-27s %s\n", head, help);
}

static void print_help(void)
{
	static const char *const arg[] = {
		[UNIT_NUMBER] = "N",
		[UNIT_BYTES] = "BYTES",
		[UNIT_SECONDS] = "SECONDS",
		[UNIT_SERVICE] = "SERVICE",
		[UNIT_GROUP] = "GROUP",
	};

	printf("usage: rociperf OPERATION [TEST] [options]         the server: waits\n"
	       "       rociperf OPERATION [TEST] [options] HOST    the client: measures\n"
	       "       rociperf OPERATION [TEST] [options] --both  both ends in one process\n\n"
	       "OPERATION is");
	for (unsigned i = 0; i < op_count; i++)
		printf("%s %s", i ? "," : "", op_table[i].name);
	printf(". TEST is bw (bandwidth, the default), rate (of small\nmessages) or lat (latency). "
	       "The client chooses the measurement.\n\n");
	for (unsigned i = PARAM_SIZE; i < PARAM_COUNT; i++)
		print_option(param_info[i].name, param_info[i].letter, arg[param_info[i].unit],
			param_info[i].help);
	putchar('\n');
	for (unsigned i = 0; i < LOCALS; i++)
		print_option(local[i].name, local[i].code < OPT_BOTH ? local[i].code : 0,
			local[i].arg, local[i].help);
}

/* --- options ------------------------------------------------------------------------------ */

static bool set_number(const char *name, const char *text, uint64_t min, uint64_t max, int *value)
{
	uint64_t n;

	if (!units_number(text, &n) || n < min || n > max) {
		fprintf(stderr, "rociperf: --%s %s: it must be %llu to %llu\n", name, text,
			(unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*value = (int)n;
	return true;
}

static bool set_port(const char *name, const char *text, unsigned *port)
{
	int n;

	if (!set_number(name, text, 1, 255, &n))
		return false;
	*port = (unsigned)n;
	return true;
}

static bool set_local(struct options *o, int code, const char *text)
{
	int ignored;

	switch (code) {
	case OPT_BOTH:
		o->both = true;
		return true;
	case OPT_SOCKET:
		o->own.socket = text;
		return true;
	case OPT_PEER_SOCKET:
		o->peer.socket = text;
		return true;
	case 'i':
		return set_port("ib-port", text, &o->own.port);
	case OPT_PEER_PORT:
		return set_port("peer-port", text, &o->peer.port);
	case 'x':
		return set_number("gid-index", text, 0, 255, &o->own.gid_index);
	case 'p':
		o->tcp_port = text;
		return set_number("port", text, 1, 65535, &ignored);
	case OPT_JSON:
		o->json = true;
		return true;
	case OPT_PLOT:
		o->plot = text;
		return true;
	case OPT_CPU:
		return set_number("cpu", text, 0, CPU_MAX, &o->cpu);
	default: /* OPT_GBITS */
		return true;
	}
}

/* Builds getopt's tables from ours: @letters has room for two characters per option. */
static void make_tables(struct option table[], char *letters)
{
	unsigned n = 0;

	*letters++ = ':';
	for (unsigned i = PARAM_SIZE; i < PARAM_COUNT; i++) {
		const struct param_info *info = &param_info[i];

		table[n++] = (struct option){
			info->name, info->unit != UNIT_NONE, NULL, OPT_PARAM + (int)i};
		if (!info->letter)
			continue;
		*letters++ = info->letter;
		if (info->unit != UNIT_NONE)
			*letters++ = ':';
	}
	for (unsigned i = 0; i < LOCALS; i++) {
		table[n++] =
			(struct option){local[i].name, local[i].arg != NULL, NULL, local[i].code};
		if (local[i].code >= OPT_BOTH)
			continue;
		*letters++ = (char)local[i].code;
		if (local[i].arg)
			*letters++ = ':';
	}
	table[n] = (struct option){0};
	*letters = '\0';
}

/* The parameter that getopt's @code stands for; PARAM_COUNT: none. */
static enum param param_of(int code)
{
	if (code >= OPT_PARAM)
		return (enum param)(code - OPT_PARAM);
	for (unsigned i = PARAM_SIZE; i < PARAM_COUNT; i++)
		if (code == param_info[i].letter)
			return (enum param)i;
	return PARAM_COUNT;
}

static enum options_result take_option(struct options *o, int code, const char *text)
{
	enum param i = param_of(code);
	char why[256];

	if (code == 'h') {
		print_help();
		return OPTIONS_DONE;
	}
	if (code == OPT_VERSION) {
		printf("rociperf %s\n", ROCINANTE_VERSION);
		return OPTIONS_DONE;
	}
	if (i == PARAM_COUNT)
		return set_local(o, code, text) ? OPTIONS_GO : OPTIONS_WRONG;
	return plan_set(&o->plan, i, text, why, sizeof(why)) ? OPTIONS_GO : wrong(why);
}

/* OPERATION [TEST] [HOST] */
static enum options_result take_words(struct options *o, char *const word[], int count)
{
	const struct op *op = count ? op_find(word[0]) : NULL;
	int next = 1;

	if (!count)
		return wrong("an operation is missing, for example `rociperf write --both`: see "
			     "`rociperf --help`");
	if (!op) {
		fprintf(stderr, "rociperf: '%s' is not an operation: see `rociperf --help`\n",
			word[0]);
		return OPTIONS_WRONG;
	}
	o->plan.value[PARAM_OP] = (uint64_t)(op - op_table);
	o->plan.given[PARAM_OP] = true;
	if (next < count && plan_test_find(word[next], &o->plan.value[PARAM_TEST])) {
		o->plan.given[PARAM_TEST] = true;
		next++;
	}
	if (next < count)
		o->host = word[next++];
	if (next < count) {
		fprintf(stderr, "rociperf: unexpected argument '%s': see `rociperf --help`\n",
			word[next]);
		return OPTIONS_WRONG;
	}
	return OPTIONS_GO;
}

static const char *check_places(const struct options *o)
{
	if (o->both && o->host)
		return "--both uses no other host: remove --both or the host";
	if (!o->both && (o->peer.socket || o->peer.port))
		return "--peer-socket and --peer-port need --both";
	if (!o->plot)
		return NULL;
	if (!o->both && !o->host)
		return "the client plots, not the server: give --plot to the client";
	if (plan_test(&o->plan) != TEST_LAT && !o->plan.value[PARAM_ALL])
		return "--plot shows all sizes or the distribution of latency: add --all, or use "
		       "the test lat";
	return NULL;
}

enum options_result options_parse(struct options *o, int argc, char *argv[])
{
	struct option table[PARAM_COUNT + LOCALS + 1];
	char letters[2 * (PARAM_COUNT + LOCALS) + 2], why[256];
	enum options_result result = OPTIONS_GO;
	const char *bad;
	int code;

	*o = (struct options){
		.tcp_port = TCP_PORT,
		.own.gid_index = -1,
		.peer.gid_index = -1,
		.cpu = -1,
	};
	plan_usual(&o->plan);
	make_tables(table, letters);
	opterr = 0;
	while (result == OPTIONS_GO &&
		(code = getopt_long(argc, argv, letters, table, NULL)) != -1) {
		if (code == '?' || code == ':') {
			fprintf(stderr, "rociperf: %s: %s, see `rociperf --help`\n",
				argv[optind - 1],
				code == ':' ? "it needs a value" : "there is no such option");
			return OPTIONS_WRONG;
		}
		result = take_option(o, code, optarg);
	}
	if (result == OPTIONS_GO)
		result = take_words(o, argv + optind, argc - optind);
	if (result != OPTIONS_GO)
		return result;
	if (!plan_check(&o->plan, why, sizeof(why)))
		return wrong(why);
	bad = check_places(o);
	return bad ? wrong(bad) : OPTIONS_GO;
}
