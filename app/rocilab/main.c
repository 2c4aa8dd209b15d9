/* SPDX-License-Identifier: BSD-3-Clause */
/* rocilab: simulates congestion on the transport of rocid, in virtual time. */
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>
#include "bits.h"
#include "gnuplot.h"
#include "options.h"
#include "out/out.h"
#include "run.h"
#include "suggest.h"

#define WHY_SIZE 512u

static int plot(char **words, int n)
{
	if (n != 1 && n != 2)
		return fail("plot needs the folder of a run, or a CSV file and a folder for plots");
	if (!gnuplot_found())
		return fail(
			"plot needs gnuplot, which is not installed: `apt install gnuplot-nox`");
	if (n == 2) {
		mkdir(words[1], 0777);
		return out_plot_rates(words[0], words[1])
			       ? 0
			       : fail("nothing to plot: name a qp.csv and a writable folder");
	}
	if (!out_plots(words[0]) || out_page(words[0]))
		return fail(
			"cannot draw the plots: name a folder that 'rocilab run --out' created");
	return 0;
}

static int compare(char **words, int n)
{
	char why[WHY_SIZE];

	if (n != 2)
		return fail("compare needs the folders of two runs");
	return out_compare(words[0], words[1], why, sizeof(why)) ? fail(why) : 0;
}

static int too_much(const char *command)
{
	char why[WHY_SIZE];

	snprintf(why, sizeof(why), "%s takes no names: 'rocilab run NAME' runs one scenario",
		command);
	return fail(why);
}

static int unknown(const char *command)
{
	static const char *const known[] = {"run", "list", "verify", "plot", "compare", "help"};
	char why[WHY_SIZE];
	struct suggestion s;

	suggest_begin(&s, command);
	for (unsigned i = 0; i < ARRAY_SIZE(known); i++)
		suggest_try(&s, known[i]);
	if (s.best)
		snprintf(why, sizeof(why), "'%s' is not a command; did you mean '%s'?", command,
			s.best);
	else
		snprintf(why, sizeof(why), "'%s' is not a command: see 'rocilab help'", command);
	return fail(why);
}

int main(int argc, char **argv)
{
	struct options o = {.library = ROCILAB_LIBRARY, .jobs = 1};
	const char *command;
	int rc = options_read(&o, argc, argv);

	if (rc)
		return rc;
	command = optind < argc ? argv[optind++] : "";
	argv += optind;
	argc -= optind;
	if (!strcmp(command, "run"))
		return run_scenarios(&o, argv, argc);
	if (!strcmp(command, "list"))
		return argc ? too_much(command) : run_list(&o);
	if (!strcmp(command, "verify"))
		return argc ? too_much(command) : run_verify(&o);
	if (!strcmp(command, "plot"))
		return plot(argv, argc);
	if (!strcmp(command, "compare"))
		return compare(argv, argc);
	if (!strcmp(command, "help")) {
		options_help();
		return 0;
	}
	if (*command)
		return unknown(command);
	options_usage(stderr);
	return 2;
}
