/* SPDX-License-Identifier: BSD-3-Clause */
/** @file invariants.h  What must hold after every step (decision 0000.8), whatever happened in it.
 *  That work requests complete once and in order, app.c sees; that bytes are right, traffic.h;
 *  that frames are, wirecheck.h. */
#ifndef INVARIANTS_H
#define INVARIANTS_H

#include "app.h"

/** Fails the test when something does not hold of a host and its application at @p now. */
void invariants_check(struct app *a, uint64_t now);

/** Requests from one QP to another, as they were after the step before. */
struct invariants_flow {
	bool known;
	uint32_t una;
	uint32_t psn_new;
	uint32_t epsn;
	uint32_t msn;
};

/** Fails the test when the two ends of a connection do not fit each other. When it begins anew,
 *  @p f is to be zeroed. */
void invariants_flow(struct invariants_flow *f, const struct qp *from, const struct qp *to);

#endif
