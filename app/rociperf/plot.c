/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include "end.h"
#include "gnuplot.h"
#include "histogram.h"
#include "measure.h"
#include "plan.h"
#include "plot.h"
#include "report.h"
#include "roci.h"
#include "side.h"
#include "ticks.h"

void plot_check(void)
{
	if (!gnuplot_found())
		errx(1, "--plot needs gnuplot, which is not installed: `apt install gnuplot-nox`");
}

static void put_head(FILE *f, const char *file, const struct end *e, const char *what)
{
	gnuplot_svg(f, file);
	fprintf(f,
		"set title '%s %s, %u QP%s, path MTU %u' noenhanced\n"
		"set grid\nset key left top\n",
		e->op->title, what, e->flows, e->flows > 1 ? "s" : "", roci_mtu_bytes(e->mtu));
}

static void put_sizes(FILE *f)
{
	fputs("set logscale x 2\nset xlabel 'message size (bytes)'\n"
	      "set xtics ('2' 2, '16' 16, '128' 128, '1K' 1024, '8K' 8192, '64K' 65536, "
	      "'512K' 524288, '4M' 4194304)\n",
		f);
}

static void put_bandwidth(FILE *f, const struct row row[], unsigned rows)
{
	put_sizes(f);
	fputs("set ylabel 'Gb/sec'\nset y2label 'million messages per second'\n"
	      "set yrange [0:]\nset y2range [0:]\nset ytics nomirror\nset y2tics\n$data << EOD\n",
		f);
	for (unsigned i = 0; i < rows; i++)
		fprintf(f, "%u %.6f %.6f\n", row[i].size, report_gbps(&row[i]),
			report_mpps(&row[i]));
	fputs("EOD\nplot $data using 1:2 with linespoints title 'bandwidth', "
	      "$data using 1:3 axes x1y2 with linespoints title 'message rate'\n",
		f);
}

static void put_latency(FILE *f, const struct row row[], unsigned rows)
{
	put_sizes(f);
	fputs("set logscale y\nset ylabel 'usec'\n$data << EOD\n", f);
	for (unsigned i = 0; i < rows; i++)
		fprintf(f, "%u %.6f %.6f %.6f\n", row[i].size, row[i].figure[FIGURE_TYPICAL],
			row[i].figure[FIGURE_P99], row[i].figure[FIGURE_P99_9]);
	fputs("EOD\nplot $data using 1:2 with linespoints title 'median', "
	      "$data using 1:3 with linespoints title '99 %', "
	      "$data using 1:4 with linespoints title '99.9 %'\n",
		f);
}

/* The distribution of latency: against 1/(1-p), so that the tail has room. */
static void put_distribution(FILE *f, const struct side *s)
{
	const struct histogram *h = s->measure.trip;
	double us = 1e6 / ticks_per_second() / (s->end.op->fetches ? 1 : 2);
	uint64_t seen = 0;

	fputs("set logscale xy\nset xlabel 'messages (%)'\nset ylabel 'usec'\n"
	      "set xtics ('0' 1, '50' 2, '90' 10, '99' 100, '99.9' 1e3, '99.99' 1e4, "
	      "'99.999' 1e5, '99.9999' 1e6)\n$data << EOD\n",
		f);
	for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
		if (!h->count[b])
			continue;
		/* The last has nothing above it. */
		fprintf(f, "%.6f %.6f\n", (double)h->total / (double)(h->total - seen),
			histogram_value(b) * us);
		seen += h->count[b];
	}
	fprintf(f, "EOD\nplot $data using 1:2 with steps title '%u bytes'\n", s->end.shape.size);
}

void plot_draw(const char *file, const struct side *s, const struct row row[], unsigned rows)
{
	bool lat = plan_test(s->end.plan) == TEST_LAT;
	FILE *f = gnuplot_open();

	if (!f)
		err(1, "cannot run gnuplot");
	put_head(f, file, &s->end, lat ? "latency" : "bandwidth");
	if (rows > 1 && lat)
		put_latency(f, row, rows);
	else if (lat)
		put_distribution(f, s);
	else
		put_bandwidth(f, row, rows);
	if (!gnuplot_close(f))
		errx(1,
			"gnuplot could not write %s: check that its directory exists and is "
			"writable",
			file);
}
