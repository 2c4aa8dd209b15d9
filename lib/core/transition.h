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

struct modify_result;

/** Checks whether a QP of @p type may go from state @p from to @p to with the attributes @p mask.
 *  @return its refusal: MODIFY_OK, _NO_TRANSITION, _MISSING or _FORBIDDEN. */
struct modify_result transition_check(uint8_t type, uint8_t from, unsigned to, uint32_t mask);

/** @return whether the transition, which transition_check() found valid, allows ABI_QP_PORT. */
bool transition_takes_port(uint8_t type, uint8_t from, unsigned to);

#endif
