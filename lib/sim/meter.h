/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file meter.h
 * Statistics of a queue's length: its mean over time, and quantiles by time.
 */
#ifndef METER_H
#define METER_H

#include <stdint.h>

/** Bytes per step of the distribution, and the number of steps. */
#define METER_STEP  1024u
#define METER_STEPS 4096u

struct sim_meter {
	uint64_t from;	/* ns */
	uint64_t since; /* time of the last change */
	uint64_t bytes; /* queue length since then */
	uint64_t most;
	double area;		  /* integral of bytes over ns until then */
	uint64_t empty;		  /* ns with an empty queue; otherwise: */
	uint64_t ns[METER_STEPS]; /* i: ns with i to i + 1 steps; the last: more */
};

/** Starts measuring at @p now. */
void meter_begin(struct sim_meter *m, uint64_t bytes, uint64_t now);

/** The queue length becomes @p bytes at @p now. */
void meter_change(struct sim_meter *m, uint64_t bytes, uint64_t now);

/** @return the mean in bytes since the start. Call meter_change() first. */
double meter_mean(const struct sim_meter *m);

/** @return the length that the queue did not exceed for fraction @p part, in [0, 1], of the time,
 *  rounded to METER_STEP bytes, and never more than the maximum. */
double meter_quantile(const struct sim_meter *m, double part);

#endif
