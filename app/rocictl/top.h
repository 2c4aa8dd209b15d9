/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file top.h
 * `rocictl top`: queue pairs by their packet rate, on a screen that is refreshed. A rate is the
 * advance of a QP's PSNs between two samples.
 */
#ifndef TOP_H
#define TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/** Samples that a sparkline shows. */
#define TOP_HISTORY 16u

/** A queue pair at the last sample. */
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

/** Takes the answer to `show traffic` at @p now seconds. @return false: no memory; the list is
 * unchanged */
bool top_look(struct top *t, const json_t *document, double now);

void top_free(struct top *t);

/** Writes the last @p looks samples of @p q, at most TOP_HISTORY, one character each, scaled to the
 * highest: blocks in UTF-8, or digits. */
void top_sparkline(
	const struct top_qp *q, unsigned looks, bool utf8, char out[TOP_HISTORY * 3 + 1]);

/** Runs until q or Ctrl-C, or for @p looks samples unless that is 0. @return the exit status;
 * errors are reported on standard error */
int top_run(const char *socket, double seconds, unsigned looks);

#endif
