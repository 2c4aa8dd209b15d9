/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file meter.h
 * How long a queue had which length: its mean over time, and the length below which it was for a
 * given part of the time.
 */
#ifndef METER_H
#define METER_H

#include <stdint.h>

/** Bytes of a step of the distribution, and its steps. */
#define METER_STEP  1024u
#define METER_STEPS 4096u

struct sim_meter {
	uint64_t from;	/* ns */
	uint64_t since; /* the last change */
	uint64_t bytes; /* since then */
	uint64_t most;
	double area;		  /* bytes * ns until then */
	uint64_t empty;		  /* ns without a byte; the others: */
	uint64_t ns[METER_STEPS]; /* i: more than i steps, i + 1 at most; the last: any */
};

/** Measures from @p now on. */
void meter_begin(struct sim_meter *m, uint64_t bytes, uint64_t now);

/** The queue has @p bytes from @p now on. */
void meter_change(struct sim_meter *m, uint64_t bytes, uint64_t now);

/** @return the mean since the start, in bytes. Call meter_change() before. */
double meter_mean(const struct sim_meter *m);

/** @return the length that the queue did not exceed for @p part, in [0, 1], of the time, to
 *  METER_STEP bytes, and never more than the most. */
double meter_quantile(const struct sim_meter *m, double part);

#endif
