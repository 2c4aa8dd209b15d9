/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file run.h
 * One measurement from READY to DRAINED, of the ends that are in this process.
 */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stdint.h>

struct side;

/** The progress display. */
struct run {
	struct side *side[2];
	unsigned sides; /* in this process */
	bool progress;	/* one line per second on standard output */
};

/** Measures messages of @p size. Both sides' `own` and `peer` figures are filled in afterwards. */
void run_size(struct run *r, uint32_t size);

#endif
