/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "gnuplot.h"
#include "jobs.h"
#include "lab.h"
#include "library.h"
#include "options.h"
#include "out/out.h"
#include "parse.h"
#include "report.h"
#include "run.h"
#include "scenario.h"

#define WHY_SIZE 512u

static int load(struct scenario *s, struct options *o, const char *name)
{
	char why[WHY_SIZE];

	if (library_read(s, o->library, name, o->setting, o->settings, why, sizeof(why)))
		return fail(why);
	if (o->seeded)
		s->seed = o->seed;
	return 0;
}

/* --- how far it is ------------------------------------------------------------------------ */

/* On a terminal, once per second. */
static void show_progress(struct lab *l, uint64_t at)
{
	static time_t begun, shown;
	time_t now = time(NULL);

	if (!begun)
		begun = shown = now;
	if (now == shown || !at)
		return;
	shown = now;
	fprintf(stderr, "\r%s: %.0f %%, %.0f s left  ", l->s->name,
		100.0 * (double)at / (double)l->s->to,
		(double)(now - begun) * (double)(l->s->to - at) / (double)at);
	if (at == l->s->to)
		fprintf(stderr, "\r%60s\r", "");
}

/* --- one ---------------------------------------------------------------------------------- */

static int write_files(const struct lab *l, const char *folder)
{
	if (out_json(l, folder))
		return fail("run.json cannot be written: is the disk full?");
	if (!gnuplot_found())
		fprintf(stderr, "rocilab: there are no plots, because gnuplot is not installed: "
				"`apt install gnuplot-nox`\n");
	else if (!out_plots(folder))
		return fail("gnuplot could not draw the plots: see above");
	if (out_page(folder))
		return fail("index.html cannot be written: is the disk full?");
	return 0;
}

/* @return expectations that are not met; negative: it could not run */
static int run_one(const struct scenario *s, const struct out_options *out, bool all_ports)
{
	char why[WHY_SIZE] = "out of memory for this scenario";
	struct lab *l = lab_make(s);
	struct record *r = l && out->folder ? record_open(l, out, why, sizeof(why)) : NULL;
	int bad;

	if (!l || (out->folder && !r)) {
		if (l)
			lab_free(l);
		return -fail(why);
	}
	if (isatty(STDERR_FILENO))
		l->progress = show_progress;
	sample_run(l);
	report_run(l, all_ports);
	bad = (int)report_expectations(l, NULL);
	if (r && record_close(r))
		bad = -fail("the CSV files are not complete: is the disk full?");
	if (r && bad >= 0 && write_files(l, out->folder))
		bad = -1;
	lab_free(l);
	return bad;
}

/* --- run ---------------------------------------------------------------------------------- */

struct runs {
	struct options *o;
	char **names;
	unsigned scenarios;
	unsigned each; /* combinations of --sweep */
};

/* The settings of combination @p i, and its name: "switch.kmin=5K cc.rp_ai_rate=10". */
static void combine(struct options *o, unsigned i, char *name, size_t size)
{
	size_t len = 0;

	*name = '\0';
	for (unsigned k = 0; k < o->sweeps; k++) {
		struct sweep *w = &o->sweep[k];
		const char *value = w->value[i % w->values];

		i /= w->values;
		o->setting[o->settings++] = (struct setting){
			.statement = w->statement, .name = w->name, .value = value};
		len += (size_t)snprintf(name + len, len < size ? size - len : 0, "%s%s.%s=%s",
			len ? " " : "", w->statement, w->name, value);
		len = len < size ? len : size - 1;
	}
}

/* One folder per run if there are several. */
static void choose_folder(const struct runs *r, struct out_options *out, const char *scenario,
	const char *combination, char path[OUT_PATH])
{
	const char *base = strrchr(scenario, '/');

	if (!out->folder || (r->scenarios == 1 && r->each == 1))
		return;
	mkdir(out->folder, 0777);
	snprintf(path, OUT_PATH, "%s/%s%s%s", out->folder, base ? base + 1 : scenario,
		*combination ? " " : "", combination);
	for (char *c = path + strlen(out->folder) + 1; *c; c++)
		if (*c == ' ' || *c == '/')
			*c = ',';
	out->folder = path;
}

static int run_job(void *arg, unsigned i)
{
	static struct scenario s;
	const struct runs *r = arg;
	struct options o = *r->o;
	const char *scenario = r->names[i / r->each];
	struct out_options out = o.out;
	char name[256], path[OUT_PATH];

	combine(&o, i % r->each, name, sizeof(name));
	choose_folder(r, &out, scenario, name, path);
	if (load(&s, &o, scenario))
		return -1;
	if (*name)
		printf("== %s\n", name);
	return run_one(&s, &out, o.all_ports);
}

int run_scenarios(struct options *o, char **names, int n)
{
	struct runs r = {.o = o, .names = names, .scenarios = (unsigned)n, .each = 1};
	struct jobs_result result;

	if (!n)
		return fail("run needs the name of a scenario, or a file: see 'rocilab list'");
	for (unsigned k = 0; k < o->sweeps; k++)
		r.each *= o->sweep[k].values;
	if (o->settings + o->sweeps > SETTINGS_MAX)
		return fail("there are too many settings");
	if (r.scenarios * r.each == 1) {
		int bad = run_job(&r, 0);

		return bad < 0 ? 2 : bad > 0;
	}
	result = jobs_run(r.scenarios * r.each, o->jobs, run_job, &r);
	return result.failed ? 2 : result.bad != 0;
}

/* --- the library -------------------------------------------------------------------------- */

static int with_library(const struct options *o, char ***names)
{
	int n = library_list(o->library, names);

	if (n < 0)
		fprintf(stderr,
			"rocilab: there is no library in %s (%s): name its folder with --library\n",
			o->library, strerror(-n));
	return n;
}

int run_list(struct options *o)
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

/* @return expectations that are not met; negative: it could not run */
static int verify_one(const struct scenario *s)
{
	char command[2 * NAME_SIZE + 32];
	struct lab *l = lab_make(s);
	int bad;

	if (!l)
		return -fail("out of memory for this scenario");
	sample_run(l);
	snprintf(command, sizeof(command), "rocilab run --out %s %s", s->name, s->name);
	bad = (int)report_expectations(l, command);
	lab_free(l);
	return bad;
}

static int verify_job(void *arg, unsigned i)
{
	static struct scenario s;
	const struct runs *r = arg;

	return load(&s, r->o, r->names[i]) ? -1 : verify_one(&s);
}

/* Keeps those of the @p n scenarios in @p names that must run. @return how many; negative: one is
 * wrong */
static int choose(struct options *o, char **names, int n, char **chosen)
{
	static struct scenario s;
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (load(&s, o, names[i]))
			return -1;
		if (s.expects && (!o->quick || s.quick))
			chosen[kept++] = names[i];
	}
	return kept;
}

int run_verify(struct options *o)
{
	char **names, **chosen;
	int n = with_library(o, &names), kept;
	struct runs r = {.o = o};
	struct jobs_result result = {0};

	if (n < 0)
		return 2;
	chosen = calloc((size_t)n + 1, sizeof(*chosen));
	kept = chosen ? choose(o, names, n, chosen) : -1;
	r.names = chosen;
	if (kept > 0)
		result = jobs_run((unsigned)kept, o->jobs, verify_job, &r);
	free(chosen);
	library_free(names, n);
	if (kept < 0 || result.failed)
		return 2;
	fprintf(stderr, "%.0f s of CPU\n", result.cpu_s);
	printf("%d scenarios: ", kept);
	printf(result.bad ? "%u expectations are not met\n" : "all as expected\n", result.bad);
	return result.bad || !kept;
}
