/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "metric.h"
#include "options.h"

int fail(const char *why)
{
	fprintf(stderr, "rocilab: %s\n", why);
	return 2;
}

void options_usage(FILE *f)
{
	fprintf(f,
		"Usage: rocilab COMMAND [OPTION]... [ARGUMENT]...\n"
		"\n"
		"  run SCENARIO...   run files, or scenarios of the library, and print the "
		"results\n"
		"  list              list the scenarios of the library\n"
		"  verify            run the library and check what each scenario expects\n"
		"  plot FOLDER       draw the plots of a run again\n"
		"  plot FILE.csv FOLDER\n"
		"                    draw the rates in a qp.csv, or in the output of\n"
		"                    'rocictl trace qp N cc csv'\n"
		"  compare A B       compare the results of two runs, in the folders A and B\n"
		"  help              list the statements of a scenario and the metrics\n"
		"\n"
		"  --set STATEMENT.KEY=VALUE   replace a value of the scenario: switch.kmin=5K\n"
		"  --sweep STATEMENT.KEY=A,B,C run: once with each value; if repeated, with all "
		"combinations\n"
		"  --seed N                    the seed of all random choices\n"
		"  --jobs N                    run, verify: do N runs at a time\n"
		"  --out FOLDER                run: write data, plots and a page there\n"
		"  --sample TIME               with --out: interval between lines of data; "
		"default: "
		"1/1000\n"
		"  --capture PORT              with --out: capture what leaves a port, as pcapng\n"
		"  --ports                     run: print all ports that had a queue, not only "
		"the longest\n"
		"  --quick                     verify: only scenarios that take seconds\n"
		"  --library FOLDER            the folder of the scenarios; default: %s\n"
		"  --version\n",
		ROCILAB_LIBRARY);
}

void options_help(void)
{
	options_usage(stdout);
	printf("\nStatements of a scenario, one per line; # begins a comment:\n");
	parse_help(stdout);
	printf("\nMetrics for expect; PORT is a port such as sw0.8, FLOW a number:\n");
	for (unsigned i = 0; i < metric_count; i++) {
		static const char *const of[] = {
			[OF_PORT] = "(PORT)", [OF_FLOW] = "(FLOW)", [OF_ANY_FLOW] = "[(FLOW)]"};
		const struct metric *m = &metrics[i];
		size_t base = strcspn(m->name, ".");
		char name[64];

		snprintf(name, sizeof(name), "%.*s%s%s%s", (int)base, m->name,
			of[m->of] ? of[m->of] : "", m->name + base, m->moment ? " at T" : "");
		printf("  %-24s %s\n", name, m->help);
	}
}

/* Splits "STATEMENT.KEY=VALUE". */
static bool split(char *text, const char **statement, const char **name, char **value)
{
	char *dot = strchr(text, '.');

	*value = dot ? strchr(dot, '=') : NULL;
	if (!*value)
		return false;
	*dot = *(*value)++ = '\0';
	*statement = text;
	*name = dot + 1;
	return true;
}

static int take_setting(struct options *o, char *text)
{
	struct setting *s = &o->setting[o->settings];
	char *value;

	if (o->settings == SETTINGS_MAX || !split(text, &s->statement, &s->name, &value))
		return fail("--set needs STATEMENT.KEY=VALUE, such as switch.kmin=5K");
	s->value = value;
	o->settings++;
	return 0;
}

static int take_sweep(struct options *o, char *text)
{
	struct sweep *s = &o->sweep[o->sweeps];
	char *values, *save = NULL;

	if (o->sweeps == SWEEPS_MAX || !split(text, &s->statement, &s->name, &values))
		return fail("--sweep reads STATEMENT.KEY=A,B,C, such as switch.kmin=5K,50K");
	for (char *v = strtok_r(values, ",", &save); v; v = strtok_r(NULL, ",", &save)) {
		if (s->values == SWEEP_VALUES)
			return fail("--sweep has more than 64 values");
		s->value[s->values++] = v;
	}
	o->sweeps++;
	return s->values ? 0 : fail("--sweep has no values");
}

static int take_number(const char *text, const char *what, double most, double *to)
{
	if (text_number(text, UNIT_NONE, to) && *to >= 0 && *to <= most && *to == (double)(long)*to)
		return 0;
	fprintf(stderr, "rocilab: %s needs a whole number up to %.0f\n", what, most);
	return 2;
}

static int take_value(struct options *o, int c, const char *text)
{
	double v = 0;

	if (c == 'r') {
		if (take_number(text, "--seed", 1e9, &v))
			return 2;
		o->seeded = true;
		o->seed = (uint64_t)v;
	} else if (c == 'j') {
		if (take_number(text, "--jobs", 1024, &v))
			return 2;
		if (v < 1)
			return fail("--jobs needs a whole number from 1 on");
		o->jobs = (unsigned)v;
	} else {
		if (!text_number(text, UNIT_TIME, &v) || v < 1)
			return fail("--sample needs a time such as 10us");
		o->out.interval = (uint64_t)v;
	}
	return 0;
}

static int take(struct options *o, int c)
{
	switch (c) {
	case 's':
		return take_setting(o, optarg);
	case 'w':
		return take_sweep(o, optarg);
	case 'r':
	case 'j':
	case 'i':
		return take_value(o, c, optarg);
	case 'q':
		o->quick = true;
		return 0;
	case 'p':
		o->all_ports = true;
		return 0;
	case 'o':
		o->out.folder = optarg;
		return 0;
	case 'c':
		o->out.capture = optarg;
		return 0;
	case 'l':
		o->library = optarg;
		return 0;
	case 'h':
		options_help();
		exit(0);
	case 'v':
		printf("rocilab %s\n", ROCINANTE_VERSION);
		exit(0);
	default:
		fprintf(stderr, "Try 'rocilab help'.\n");
		return 2;
	}
}

int options_read(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {{"set", required_argument, NULL, 's'},
		{"sweep", required_argument, NULL, 'w'}, {"seed", required_argument, NULL, 'r'},
		{"jobs", required_argument, NULL, 'j'}, {"out", required_argument, NULL, 'o'},
		{"sample", required_argument, NULL, 'i'}, {"capture", required_argument, NULL, 'c'},
		{"ports", no_argument, NULL, 'p'}, {"quick", no_argument, NULL, 'q'},
		{"library", required_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'}, {0}};
	int c, rc = 0;

	while (!rc && (c = getopt_long(argc, argv, "h", known, NULL)) != -1)
		rc = take(o, c);
	if (!rc && (o->out.capture || o->out.interval) && !o->out.folder)
		return fail("--capture and --sample need --out FOLDER");
	return rc;
}
