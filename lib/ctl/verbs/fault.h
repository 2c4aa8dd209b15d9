/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/fault.h
 * Faults injected into the packets of QPs (doc/inject.md): permissions, limits and memory. Control
 * thread.
 */
#ifndef VERBS_FAULT_H
#define VERBS_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include "abi_ctl.h"
#include "abi_fault.h"

struct ctl;
struct inject_rule;
struct qp_obj;

/**
 * Checks @p f and arms it for the QP of @p o.
 * @param application  requested by the program for its own QP, not by an administrator
 * @param id           receives the fault's number
 * @return 0 or a negative errno with a sentence.
 */
int fault_arm(struct ctl *ctl, struct qp_obj *o, const struct abi_fault *f, bool application,
	uint32_t *id, char why[ABI_SENTENCE_MAX]);

/** Clears fault @p id of @p o; 0: all of them.  @return 0 or -ENOENT with a sentence. */
int fault_clear(struct ctl *ctl, struct qp_obj *o, uint32_t id, char why[ABI_SENTENCE_MAX]);

/** Frees the memory of the faults of @p o, whose QP workers no longer use. */
void fault_qp_gone(struct ctl *ctl, struct qp_obj *o);

/** @return how often faults have hit packets of @p o. */
uint64_t fault_hits(const struct qp_obj *o);

#endif
