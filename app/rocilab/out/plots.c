/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots of the CSV files, as SVG by gnuplot. Points are written into its input, so it reads no
 * file, and a series may be thinned. */
#include <string.h>
#include <unistd.h>
#include <jansson.h>
#include "bits.h"
#include "gnuplot.h"
#include "out.h"
#include "table.h"

#define CURVES	 16u /* of one plot */
#define COLOURS	 8u
#define DASHES	 4u
#define QUEUES	 6u
#define SIZES	 24u /* steps of the plot of slowdown by size */
#define RATE	 2u  /* columns of qp.csv */
#define ALPHA	 4u
#define WINDOW	 5u
#define RTT	 6u
#define GOODPUT	 7u
#define QUEUE	 2u /* of queue.csv */
#define SIZE	 3u /* of fct.csv */
#define FCT	 6u
#define SLOWDOWN 8u
#define MS	 1e3
#define TIME	 "time (ms)"

const char *const out_plot_name[] = {"rate.svg", "goodput.svg", "alpha.svg", "window.svg",
	"rtt.svg", "queue.svg", "queue-cdf.svg", "jain.svg", "fct.svg", "slowdown.svg"};
const unsigned out_plot_count = ARRAY_SIZE(out_plot_name);

/* Not every run has all of them: those of one before, in the same folder, are not of this one. */
static void forget(const char *folder)
{
	char path[OUT_PATH];

	for (unsigned i = 0; i < out_plot_count; i++)
		unlink(out_path(path, folder, out_plot_name[i]));
}

static void begin(FILE *g, const char *folder, const char *name, const char *title, const char *x,
	const char *y)
{
	char path[OUT_PATH];

	fputs("reset\n", g);
	gnuplot_svg(g, out_path(path, folder, name));
	fprintf(g,
		"set title '%s'\nset xlabel '%s'\nset ylabel '%s'\nset grid\n"
		"set key outside right top font ',11' spacing 0.8 maxrows 16\nset yrange [0:]\n",
		title, x, y);
}

/* A block of points of series @p i, those of @p from seconds on. */
static void curve(FILE *g, const struct table *t, unsigned i, unsigned column, double by,
	unsigned id, double from)
{
	fprintf(g, "$d%u << EOD\n", id);
	for (size_t r = i; r < t->rows; r += t->nseries)
		if (table_at(t, r, 0) >= from)
			fprintf(g, "%.6f %.6g\n", table_at(t, r, 0) * MS,
				table_at(t, r, column) * by);
	fputs("EOD\n", g);
}

/* The series of a large table that a plot shows, in their order. */
struct choice {
	unsigned series[CURVES];
	unsigned n;
};

static bool has_any(const struct table *t, unsigned column)
{
	for (size_t r = 0; r < t->rows; r++)
		if (table_at(t, r, column) > 0)
			return true;
	return false;
}

/* The @p most series with the largest mean of @p column, without those that are always 0 if any is
 * not. */
static void choose(struct choice *c, const struct table *t, unsigned column, unsigned most)
{
	double mean[TABLE_SERIES];
	bool taken[TABLE_SERIES] = {false};
	bool any = has_any(t, column);

	for (unsigned i = 0; i < t->nseries; i++)
		mean[i] = table_mean(t, column, i);
	for (unsigned k = 0; k < most; k++) {
		unsigned best = TABLE_SERIES;

		for (unsigned i = 0; i < t->nseries; i++)
			if (!taken[i] && (!any || mean[i] > 0) &&
				(best == TABLE_SERIES || mean[i] > mean[best]))
				best = i;
		if (best == TABLE_SERIES)
			break;
		taken[best] = true;
	}
	c->n = 0;
	for (unsigned i = 0; i < t->nseries; i++)
		if (taken[i])
			c->series[c->n++] = i;
}

/* The style of curve @p i: no two have both colour and dashes in common. */
static void look(FILE *g, unsigned i)
{
	fprintf(g, "lc %u dt %u ", i % COLOURS + 1, (i + i / COLOURS) % DASHES + 1);
}

/* Notes in the legend that there are more curves. */
static void count(FILE *g, const struct choice *c, const struct table *t)
{
	if (c->n < t->nseries)
		fprintf(g, "set key title '%u of %u'\n", c->n, t->nseries);
}

/* One curve for each of the chosen QPs. */
static void over_time(FILE *g, const struct table *t, unsigned column, double by, const char *style)
{
	struct choice c;

	choose(&c, t, GOODPUT, CURVES);
	for (unsigned i = 0; i < c.n; i++)
		curve(g, t, c.series[i], column, by, i, 0);
	count(g, &c, t);
	for (unsigned i = 0; i < c.n; i++) {
		fprintf(g, "%s$d%u with %s ", i ? ", " : "plot ", i, style);
		look(g, i);
		fprintf(g, "title 'QP %s'", t->series[c.series[i]]);
	}
	fputc('\n', g);
}

/* Jain's index of all flows' goodput in each moment. */
static void jain(FILE *g, const struct table *t)
{
	fputs("set yrange [0:1.05]\n$d << EOD\n", g);
	for (size_t r = 0; r + t->nseries <= t->rows; r += t->nseries) {
		double sum = 0, squares = 0;

		for (unsigned i = 0; i < t->nseries; i++) {
			double v = table_at(t, r + i, GOODPUT);

			sum += v;
			squares += v * v;
		}
		if (squares > 0)
			fprintf(g, "%.6f %.6f\n", table_at(t, r, 0) * MS,
				sum * sum / squares / t->nseries);
	}
	fputs("EOD\nplot $d with lines notitle\n", g);
}

/* Whether @p column is worth a plot: neither empty nor 0 everywhere, and not constant. */
static bool is_used(const struct table *t, unsigned column)
{
	for (size_t r = 1; r < t->rows; r++)
		if (table_at(t, r, column) != table_at(t, 0, column))
			return true;
	return false;
}

/* Fairness means something only if most flows send at the same time. */
static bool compete(const struct table *t)
{
	size_t sending = 0, could = 0;

	for (size_t r = 0; r + t->nseries <= t->rows; r += t->nseries) {
		unsigned n = 0;

		for (unsigned i = 0; i < t->nseries; i++)
			n += table_at(t, r + i, GOODPUT) > 0;
		sending += n;
		could += n ? t->nseries : 0;
	}
	return t->nseries > 1 && 2 * sending > could;
}

/* A live trace has a line when the rate changes, which holds until the next; its goodput is that
 * since the one before. */
static void rates(FILE *g, const char *folder, const struct table *t, bool live)
{
	const char *style = live ? "steps" : "lines";

	begin(g, folder, "rate.svg", "rate that the algorithm allows", TIME, "rate (Gb/s)");
	over_time(g, t, RATE, 1e-9, style);
	if (has_any(t, GOODPUT)) {
		begin(g, folder, "goodput.svg", "goodput", TIME, "goodput (Gb/s)");
		over_time(g, t, GOODPUT, 1e-9, live ? "fsteps" : "lines");
	}
	if (is_used(t, ALPHA)) {
		begin(g, folder, "alpha.svg", "alpha", TIME, "alpha");
		over_time(g, t, ALPHA, 1, style);
	}
	if (is_used(t, WINDOW)) {
		begin(g, folder, "window.svg", "window", TIME, "window (packets)");
		over_time(g, t, WINDOW, 1, style);
	}
	if (is_used(t, RTT)) {
		begin(g, folder, "rtt.svg", "round trip that the algorithm measures", TIME,
			"round trip (us)");
		over_time(g, t, RTT, 1e6, style);
	}
	if (compete(t)) {
		begin(g, folder, "jain.svg", "fairness of the goodput", TIME, "Jain''s index");
		jain(g, t);
	}
}

/* --- queues ------------------------------------------------------------------------------- */

/* When the measurement begins, in seconds; 0 if that is not known, or no row of @p t follows. */
static double measured_from(const char *folder, const struct table *t)
{
	char path[OUT_PATH];
	json_t *run = json_load_file(out_path(path, folder, "run.json"), 0, NULL);
	json_t *parameters = json_object_get(run, "parameters");
	double ns = json_number_value(json_array_get(json_object_get(parameters, "measure_ns"), 0));

	json_decref(run);
	return table_at(t, t->rows - 1, 0) > ns * 1e-9 ? ns * 1e-9 : 0;
}

static void queue_curves(FILE *g, const struct table *t, const struct choice *c, const char *how)
{
	count(g, c, t);
	for (unsigned i = 0; i < c->n; i++) {
		fprintf(g, "%s$d%u %s with lines ", i ? ", " : "plot ", i, how);
		look(g, i);
		fprintf(g, "title '%s'", t->series[c->series[i]]);
	}
	fputc('\n', g);
}

/* The ports with the longest queues. */
static void queues(FILE *g, const char *folder, const struct table *t)
{
	struct choice c;
	double from;

	if (!has_any(t, QUEUE))
		return;
	choose(&c, t, QUEUE, QUEUES);
	begin(g, folder, "queue.svg", "bytes that wait at a port", TIME, "queue (KB)");
	for (unsigned i = 0; i < c.n; i++)
		curve(g, t, c.series[i], QUEUE, 1e-3, i, 0);
	queue_curves(g, t, &c, "");
	from = measured_from(folder, t);
	begin(g, folder, "queue-cdf.svg", "part of the measured time in which no more wait",
		"queue (KB)", "part of the time");
	for (unsigned i = 0; i < c.n; i++)
		curve(g, t, c.series[i], QUEUE, 1e-3, i, from);
	queue_curves(g, t, &c, "using 2:(1) smooth cnormal");
}

/* --- messages ----------------------------------------------------------------------------- */

static double quantile(const double *sorted, size_t n, double part)
{
	return sorted[(size_t)(part * (double)(n - 1))];
}

/* Slowdown of the messages in rows [from, until), which are about equally long. */
static void slowdown_of(FILE *g, struct table *t, size_t from, size_t until)
{
	struct table part = {.cell = &t->cell[from * TABLE_COLUMNS], .rows = until - from};
	double size = table_at(&part, part.rows / 2, SIZE);
	double *v = part.cell;

	table_sort(&part, SLOWDOWN);
	for (size_t i = 0; i < part.rows; i++)
		v[i] = table_at(&part, i, SLOWDOWN);
	fprintf(g, "%.0f %.4f %.4f %.4f\n", size, quantile(v, part.rows, 0.5),
		quantile(v, part.rows, 0.95), quantile(v, part.rows, 0.99));
}

static void slowdown(FILE *g, const char *folder, struct table *t)
{
	size_t steps = t->rows < SIZES ? t->rows : SIZES;

	begin(g, folder, "slowdown.svg", "slowdown of messages by their size", "size (bytes)",
		"slowdown");
	fputs("set logscale xy\nset yrange [1:]\n$d << EOD\n", g);
	for (size_t i = 0; i < steps; i++)
		slowdown_of(g, t, i * t->rows / steps, (i + 1) * t->rows / steps);
	fputs("EOD\nplot $d using 1:2 with linespoints title 'median', "
	      "$d using 1:3 with linespoints title '95 %', "
	      "$d using 1:4 with linespoints title '99 %'\n",
		g);
}

static void times(FILE *g, const char *folder, const struct table *t)
{
	begin(g, folder, "fct.svg", "fraction of messages that took no longer",
		"completion time (ms)", "fraction of messages");
	fputs("$d << EOD\n", g);
	for (size_t i = 0; i < t->rows; i++)
		fprintf(g, "%.6f\n", table_at(t, i, FCT) * 1e-6);
	fputs("EOD\nplot $d using 1:(1) smooth cnormal with lines notitle\n", g);
}

static void messages(FILE *g, const char *folder, struct table *t)
{
	if (!t->rows)
		return;
	times(g, folder, t);
	table_sort(t, SIZE);
	if (table_at(t, 0, SIZE) != table_at(t, t->rows - 1, SIZE))
		slowdown(g, folder, t);
}

/* --- the whole ---------------------------------------------------------------------------- */

bool out_plots(const char *folder)
{
	char path[OUT_PATH];
	struct table t;
	FILE *g = gnuplot_open();

	if (!g)
		return false;
	forget(folder);
	if (table_read(&t, out_path(path, folder, "qp.csv")) && t.nseries)
		rates(g, folder, &t, false);
	table_free(&t);
	if (table_read(&t, out_path(path, folder, "queue.csv")) && t.nseries)
		queues(g, folder, &t);
	table_free(&t);
	if (table_read(&t, out_path(path, folder, "fct.csv")))
		messages(g, folder, &t);
	table_free(&t);
	return gnuplot_close(g);
}

/* Whether the file @p csv begins as a qp.csv does. */
static bool is_trace(const char *csv)
{
	static const char head[] = "t,qp,rate,";
	char line[sizeof(head)] = "";
	FILE *f = fopen(csv, "r");
	bool is = f && fgets(line, sizeof(line), f) && !strcmp(line, head);

	if (f)
		fclose(f);
	return is;
}

bool out_plot_rates(const char *csv, const char *to)
{
	struct table t;
	FILE *g;

	if (!is_trace(csv) || !table_read(&t, csv) || !t.nseries)
		return false;
	g = gnuplot_open();
	if (g)
		rates(g, to, &t, true);
	table_free(&t);
	return g && gnuplot_close(g);
}
