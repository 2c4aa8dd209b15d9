/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dcqcn_model.h
 * DCQCN event by event: each update of alpha, each increase and each monitor period is an event of
 * its own. It shares no code with lib/cc/dcqcn.c, which computes the same without events.
 */
#ifndef DCQCN_MODEL_H
#define DCQCN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum model_law {
	MODEL_PAPER,
	MODEL_CONNECTX,
	MODEL_NS3HPCC
};

struct model {
	/* parameters */
	enum model_law law;
	double line, g, initial_alpha, ai, hai, min, min_dec; /* bit/s; min_dec: 0..1 */
	uint64_t alpha_ns, time_ns, monitor_ns, bytes_reset;
	unsigned f;
	bool clamp, clamp_ati;
	/* state */
	bool known;
	double rc, rt, alpha;
	uint64_t next_alpha, next_time, next_monitor;
	uint64_t bytes;
	unsigned t, b;
	bool cnp_alpha, cnp_monitor;
};

/** The defaults of @p law on a port of @p line bit/s. */
void model_init(struct model *m, enum model_law law, double line);

/** Runs all events up to and including @p now. */
void model_run(struct model *m, uint64_t now);

void model_cnp(struct model *m, uint64_t now);
void model_sent(struct model *m, uint32_t bytes, uint64_t now);

#endif
