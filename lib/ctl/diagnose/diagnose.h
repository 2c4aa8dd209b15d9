/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file diagnose/diagnose.h
 * Why did that QP fail, and why was that packet dropped? The workers' notes (core/cause.h) and what
 * the control thread knows besides (regions, also those that are gone, GIDs, routes, neighbours,
 * MTUs, programs) become sentences that say what is wrong and what to do. Control thread.
 *
 * Nobody waits for a failure: a note becomes a sentence when somebody asks, or when what it is
 * about is about to go. An application hears of its own objects only; what another's are like is
 * told to administrators by that one's own sentence.
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

/** @return what it means that packets are dropped because of @p why, and what to do; NULL beyond
 * the table. */
const char *drop_means(enum drop why);

/** For failures_create(). */
extern const struct failure_ops diagnose_ops;

/** Takes in what the workers have noted. */
void diagnose_all(struct ctl *ctl);

/** @return the newest entry whose id is below @p below, NULL: none. */
const struct failure *failure_before(const struct ctl *ctl, uint32_t below);

/** @return how often what @p e tells of happened, entries alike with an id below @p below included;
 *  0: it is told by a newer one of these. */
uint64_t failure_times(const struct ctl *ctl, const struct failure *e, uint32_t below);

/** Writes what is remarkable about @p o although it did not fail, into @p text; empty: nothing. */
void diagnose_hint(struct ctl *ctl, const struct qp_obj *o, char text[ABI_WHY_MAX]);

#endif
