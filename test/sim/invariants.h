/* SPDX-License-Identifier: BSD-3-Clause */
/** @file invariants.h  The invariants that every step must preserve (decision 0000.8). Other files
 *  check the rest: app.c that work requests complete once and in order, traffic.h the bytes, and
 *  wirecheck.h the frames. */
#ifndef INVARIANTS_H
#define INVARIANTS_H

#include "app.h"

/** Fails the test if an invariant of a host and its application is violated at @p now. */
void invariants_check(struct app *a, uint64_t now);

/** The requests from one QP to another after the previous step. */
struct invariants_flow {
	bool known;
	uint32_t una;
	uint32_t psn_new;
	uint32_t epsn;
	uint32_t msn;
};

/** Fails the test if the states of the two ends of a connection contradict each other. Zero @p f
 *  whenever the connection starts again. */
void invariants_flow(struct invariants_flow *f, const struct qp *from, const struct qp *to);

#endif
