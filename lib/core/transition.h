/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file transition.h
 * The transitions of the QP state machine, and the attributes that each requires and allows, by QP
 * type (IBA 10.3.1, 11.2.5.2; ibv_modify_qp(3)).
 */
#ifndef TRANSITION_H
#define TRANSITION_H

#include <stdbool.h>
#include <stdint.h>

/** @return the name of an enum abi_qp_state; "no state" for other numbers. */
const char *qp_state_name(uint8_t state);

/** Why MODIFY_QP was refused with -EINVAL. */
enum modify_refusal {
	MODIFY_OK,
	MODIFY_NO_TRANSITION, /* none exists from `state` to the requested state (QPS-01) */
	MODIFY_MISSING,	      /* it requires `attrs`, which the mask lacks (QPS-12) */
	MODIFY_FORBIDDEN,     /* it does not allow `attrs` (QPS-12) */
	MODIFY_CUR_STATE,     /* cur_qp_state is not `state` (QPS-13) */
	MODIFY_DRAINING,      /* SQD -> SQD while requests are outstanding (QPS-19) */
	MODIFY_VALUE,	      /* the value of `attrs` is out of range (QPS-15) */
};

struct modify_result {
	uint8_t refusal; /* enum modify_refusal */
	uint8_t state;	 /* that the QP was in: enum abi_qp_state */
	uint8_t port;	 /* MODIFY_VALUE: number of the port that `attrs` disagrees with, or 0 */
	uint32_t attrs;	 /* ABI_QP_*: all that are missing or forbidden, or one with a bad value */
};

/** Checks whether a QP of @p type may go from state @p from to @p to with the attributes @p mask.
 *  @return its refusal: MODIFY_OK, _NO_TRANSITION, _MISSING or _FORBIDDEN. */
struct modify_result transition_check(uint8_t type, uint8_t from, unsigned to, uint32_t mask);

/** @return whether the transition, which transition_check() found valid, allows ABI_QP_PORT. */
bool transition_takes_port(uint8_t type, uint8_t from, unsigned to);

#endif
