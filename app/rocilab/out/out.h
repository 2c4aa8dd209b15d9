/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file out.h
 * The files of a run, in a folder of its own:
 *
 *     run.json    parameters, seed, results
 *     qp.csv      rates of queue pairs over time      record.c
 *     queue.csv   queues of ports over time           record.c
 *     fct.csv     messages, and how long they took    record.c
 *     PORT.pcapng the frames that left a port         capture.c
 *     *.svg       plots of them                       plots.c
 *     index.html  all of it on one page               page.c
 */
#ifndef OUT_H
#define OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OUT_PATH 4096u

/** Flows and ports of which the CSV files have lines: the first ones. */
#define OUT_FLOWS 64u
#define OUT_PORTS 64u

struct out_options {
	const char *folder;  /* made if it does not exist */
	const char *capture; /* a port such as sw0.8; NULL: none */
	uint64_t interval;   /* ns between two lines of a CSV file; 0: a thousandth of the run */
};

struct lab;
struct record;
struct capture;

/** Prepares to record @p l, which has not run. @return NULL, and the reason in @p why */
struct record *record_open(struct lab *l, const struct out_options *o, char *why, size_t size);

/** Writes what is left. @return 0 or a negative errno: a file is not complete */
int record_close(struct record *r);

/** Frames that leave @p port go to a file in @p folder. @return NULL with errno */
struct capture *capture_open(struct lab *l, const char *folder, uint32_t sw, uint32_t port);
int capture_close(struct capture *c);

/** Writes run.json. @return 0 or a negative errno */
int out_json(const struct lab *l, const char *folder);

/** All plots that a run may have, in the order in which they are shown. */
extern const char *const out_plot_name[];
extern const unsigned out_plot_count;

/** Draws the CSV files of @p folder. @return false: gnuplot could not */
bool out_plots(const char *folder);

/** Draws one qp.csv, of a run or of `rocictl trace qp N cc csv`, into @p to. @return false: gnuplot
 *  could not */
bool out_plot_rates(const char *csv, const char *to);

/** Writes index.html from run.json and the plots. @return 0 or a negative errno */
int out_page(const char *folder);

/** Prints the results of two runs side by side. @return 0, or -EINVAL with the reason in @p why */
int out_compare(const char *a, const char *b, char *why, size_t size);

/** Writes FOLDER/NAME to @p path. @return @p path */
static inline const char *out_path(char path[OUT_PATH], const char *folder, const char *name)
{
	snprintf(path, OUT_PATH, "%s/%s", folder, name);
	return path;
}

#endif
