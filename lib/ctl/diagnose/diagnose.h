/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file diagnose/diagnose.h
 * Explains why a QP failed and why a packet was dropped. Combines the workers' notes (core/cause.h)
 * with the control thread's knowledge (live and deregistered regions, GIDs, routes, neighbours,
 * MTUs, programs) into sentences that say what is wrong and what to do. Control thread.
 *
 * Diagnosis is lazy: a note becomes a sentence when a user asks for it, or just before the object
 * that it describes is destroyed. An application learns only about its own objects; administrators
 * read about any object in its owner's sentence.
 */
#ifndef DIAGNOSE_DIAGNOSE_H
#define DIAGNOSE_DIAGNOSE_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "drop.h"

struct ctl;
struct failure_ops;
struct qp_obj;
struct failure;

/** @return the meaning of drops for the reason @p why, and the remedy; NULL if @p why is out of
 * range. */
const char *drop_means(enum drop why);

/** For failures_create(). */
extern const struct failure_ops diagnose_ops;

/** Collects the workers' new notes. */
void diagnose_all(struct ctl *ctl);

/** @return the newest entry whose id is below @p below, or NULL. */
const struct failure *failure_before(const struct ctl *ctl, uint32_t below);

/** @return how often the failure in @p e happened, including similar entries with an id below
 *  @p below; 0 if a newer one of those represents it. */
uint64_t failure_times(const struct ctl *ctl, const struct failure *e, uint32_t below);

/** Describes the difficulties of @p o, which has not failed, in @p text; empty if there are none.
 */
void diagnose_hint(struct ctl *ctl, const struct qp_obj *o, char text[ABI_WHY_MAX]);

#endif
