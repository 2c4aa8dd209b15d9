/* SPDX-License-Identifier: BSD-3-Clause */
/* rocilab: experiments with congestion on the transport of rocid, in virtual time. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "library.h"
#include "metric.h"
#include "report.h"

#define SETTINGS_MAX 64u
#define WHY_SIZE     512u

struct options {
	const char *library;
	bool quick;
	bool seeded;
	uint64_t seed;
	struct setting setting[SETTINGS_MAX];
	unsigned settings;
};

static void usage(FILE *f)
{
	fprintf(f,
		"Usage: rocilab COMMAND [OPTION]... [ARGUMENT]...\n"
		"\n"
		"  run SCENARIO...   run files, or scenarios of the library, and print what came "
		"out\n"
		"  list              name the scenarios of the library\n"
		"  verify            run the library and compare with what each scenario expects\n"
		"  help              the statements of a scenario, and what is measured\n"
		"\n"
		"  --set STATEMENT.KEY=VALUE   instead of what the scenario says: switch.kmin=5K\n"
		"  --seed N                    of everything random\n"
		"  --quick                     verify: only what takes seconds\n"
		"  --library FOLDER            of scenarios; default: %s\n"
		"  --version\n",
		ROCILAB_LIBRARY);
}

static void help(void)
{
	usage(stdout);
	printf("\nStatements of a scenario, one per line; # begins a comment:\n");
	parse_help(stdout);
	printf("\nWhat expect can name; PORT is such as sw0.8, FLOW a number:\n");
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

static int fail(const char *why)
{
	fprintf(stderr, "rocilab: %s\n", why);
	return 2;
}

/* --- running ---------------------------------------------------------------------------- */

static int load(struct scenario *s, struct options *o, const char *name)
{
	char why[WHY_SIZE];

	if (library_read(s, o->library, name, o->setting, o->settings, why, sizeof(why)))
		return fail(why);
	if (o->seeded)
		s->seed = o->seed;
	return 0;
}

static int run_all(struct options *o, char **names, int n)
{
	static struct scenario s;
	unsigned bad = 0;

	if (!n)
		return fail("run needs the name of a scenario, or a file: see 'rocilab list'");
	for (int i = 0; i < n; i++) {
		struct lab *l;

		if (load(&s, o, names[i]))
			return 2;
		l = lab_run(&s);
		if (!l)
			return fail("there is not enough memory for this scenario");
		report_run(l);
		bad += report_expectations(l, NULL);
		lab_free(l);
	}
	return bad != 0;
}

static int with_library(const struct options *o, char ***names)
{
	int n = library_list(o->library, names);

	if (n < 0)
		fprintf(stderr, "rocilab: the library %s: %s\n", o->library, strerror(-n));
	return n;
}

static int list(struct options *o)
{
	static struct scenario s;
	char **names;
	int n = with_library(o, &names);

	for (int i = 0; i < n; i++)
		if (!load(&s, o, names[i]))
			printf("%-20s %s\n", names[i], s.title);
	library_free(names, n);
	return n < 0 ? 2 : 0;
}

static int verify_one(const struct scenario *s, unsigned *bad, double *cpu)
{
	char command[NAME_SIZE + 16];
	struct lab *l = lab_run(s);

	if (!l)
		return fail("there is not enough memory for this scenario");
	snprintf(command, sizeof(command), "rocilab run %s", s->name);
	*bad += report_expectations(l, command);
	*cpu += l->cpu_s;
	fflush(stdout);
	lab_free(l);
	return 0;
}

static int verify(struct options *o)
{
	static struct scenario s;
	unsigned bad = 0, runs = 0;
	double cpu = 0;
	char **names;
	int n = with_library(o, &names);
	int rc = n < 0 ? 2 : 0;

	for (int i = 0; i < n && !rc; i++) {
		rc = load(&s, o, names[i]);
		if (rc || !s.expects || (o->quick && !s.quick))
			continue;
		rc = verify_one(&s, &bad, &cpu);
		runs++;
	}
	library_free(names, n);
	if (rc)
		return rc;
	fprintf(stderr, "%.0f s of CPU\n", cpu);
	printf("%u scenarios: ", runs);
	printf(bad ? "%u expectations are not met\n" : "all as expected\n", bad);
	return bad || !runs;
}

/* --- the command line ------------------------------------------------------------------- */

static int take_setting(struct options *o, char *text)
{
	char *dot = strchr(text, '.');
	char *value = dot ? strchr(dot, '=') : NULL;

	if (!value || o->settings == SETTINGS_MAX)
		return fail("--set reads STATEMENT.KEY=VALUE, such as switch.kmin=5K");
	*dot = *value = '\0';
	o->setting[o->settings++] =
		(struct setting){.statement = text, .name = dot + 1, .value = value + 1};
	return 0;
}

static int take_seed(struct options *o, const char *text)
{
	double v;

	if (!text_number(text, UNIT_NONE, &v) || v < 0 || v > 1e9)
		return fail("--seed needs a whole number");
	o->seeded = true;
	o->seed = (uint64_t)v;
	return 0;
}

static int read_options(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {{"set", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'r'}, {"quick", no_argument, NULL, 'q'},
		{"library", required_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'}, {0}};
	int c, rc = 0;

	while (!rc && (c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (c) {
		case 's':
			rc = take_setting(o, optarg);
			break;
		case 'r':
			rc = take_seed(o, optarg);
			break;
		case 'q':
			o->quick = true;
			break;
		case 'l':
			o->library = optarg;
			break;
		case 'h':
			help();
			exit(0);
		case 'v':
			printf("rocilab %s\n", ROCINANTE_VERSION);
			exit(0);
		default:
			fprintf(stderr, "Try 'rocilab help'.\n");
			rc = 2;
		}
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {.library = ROCILAB_LIBRARY};
	const char *command;
	int rc = read_options(&o, argc, argv);

	if (rc)
		return rc;
	command = optind < argc ? argv[optind++] : "";
	if (!strcmp(command, "run"))
		return run_all(&o, argv + optind, argc - optind);
	if (!strcmp(command, "list"))
		return list(&o);
	if (!strcmp(command, "verify"))
		return verify(&o);
	if (!strcmp(command, "help")) {
		help();
		return 0;
	}
	usage(stderr);
	return 2;
}
