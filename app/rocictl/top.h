/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file top.h
 * `rocictl top`: queue pairs by their packet rate, on a screen that is refreshed. A rate is the
 * way of a QP through its PSNs between two looks.
 */
#ifndef TOP_H
#define TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/** Looks that a sparkline shows. */
#define TOP_HISTORY 16u

/** A queue pair, as of the last look. */
struct top_qp {
	uint32_t qpn, peer_qpn, session, port;
	char program[32];
	char peer[64];
	char state[8];
	uint32_t sent_psn, expected_psn;
	double tx, rx;		  /* packets per second */
	double limit_mbps;	  /* 0: none */
	uint64_t cnps;		  /* handled */
	double cnps_s;		  /* per second */
	double past[TOP_HISTORY]; /* tx + rx, the latest last */
	unsigned looks;
};

struct top {
	struct top_qp *qp; /* by rate, the highest first */
	size_t n;
	double at; /* seconds, of the last look */
};

/** Takes the answer to `show traffic` at @p now seconds.
 *  @return false: no memory; the list is then as it was */
bool top_look(struct top *t, const json_t *document, double now);

void top_free(struct top *t);

/** Writes the last @p looks of the history of @p q, TOP_HISTORY at most, as so many characters,
 *  scaled to their highest: blocks in UTF-8, or digits. */
void top_sparkline(
	const struct top_qp *q, unsigned looks, bool utf8, char out[TOP_HISTORY * 3 + 1]);

/** Runs until q or Ctrl-C, or, if @p looks is not 0, for so many looks.
 *  @return the exit status; complains on standard error */
int top_run(const char *socket, double seconds, unsigned looks);

#endif
