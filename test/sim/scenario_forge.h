/* SPDX-License-Identifier: BSD-3-Clause */
/** @file scenario_forge.h  CNPs and Fast CNPs that neither end has sent. */
#ifndef SCENARIO_FORGE_H
#define SCENARIO_FORGE_H

#include "fast.h"
#include "flow.h"
#include "scenario.h"
#include "switch_list.h"

/** A CNP to one side, and what is wrong with it. */
enum forged_cnp {
	CNP_AS_THE_PEERS,
	CNP_ADDRESS, /* from another host */
	CNP_QPN,     /* for a QP that does not exist */
	CNP_PKEY,
	CNP_ICRC,
	CNP_ROCEV1,
};

/** Properties of a Fast CNP besides an enum fast_fault. */
#define FAST_NOT_LISTED (1u << 8)  /* from a switch that is not in the list */
#define FAST_OF_NO_QP	(1u << 9)  /* about a QPN that the peer does not have */
#define FAST_WITH_TRACE (1u << 10) /* option 2 */

/** The tables that one end needs to accept Fast CNPs. */
struct forge_end {
	struct switch_list switches;
	struct qp_flow flow;
};

/** Has @p side accept Fast CNPs of a switch: bursts of two, and one per millisecond. */
void forge_accept(struct forge_end *end, struct pair *p, int side);

void forge_cnp(struct pair *p, int side, enum forged_cnp what);

/** @p what  enum fast_fault and FAST_* */
void forge_fast_cnp(struct pair *p, int side, unsigned what);

#endif
