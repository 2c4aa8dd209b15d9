/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/fault.h
 * Faults that are injected into the packets of QPs (doc/inject.md): what may be armed, by whom, and
 * the memory that it takes. Control thread.
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
 * Arms @p f, which is checked first, for the QP of @p o.
 * @param application  a program asks for its own QP, not an administrator
 * @param id           receives the fault's number
 * @return 0 or a negative errno with a sentence.
 */
int fault_arm(struct ctl *ctl, struct qp_obj *o, const struct abi_fault *f, bool application,
	uint32_t *id, char why[ABI_SENTENCE_MAX]);

/** Takes fault @p id of @p o away; 0: all of them.  @return 0 or -ENOENT with a sentence. */
int fault_clear(struct ctl *ctl, struct qp_obj *o, uint32_t id, char why[ABI_SENTENCE_MAX]);

/** Workers no longer know the QP of @p o: frees what its faults took. */
void fault_qp_gone(struct ctl *ctl, struct qp_obj *o);

/** @return fault @p id of @p o, or NULL; its counters change under the reader. */
const struct inject_rule *fault_find(const struct qp_obj *o, uint32_t id);

/** @return how often faults happened to packets of @p o. */
uint64_t fault_hits(const struct qp_obj *o);

#endif
