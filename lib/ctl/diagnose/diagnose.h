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
struct mr_obj;
struct qp_obj;
struct session;

/** What happened, as it is told. */
struct why_entry {
	uint32_t id;	  /* grows with each change; 0: empty */
	uint64_t time_ms; /* of the calendar, when it happened last */
	uint64_t key;	  /* tells one happening from another */
	uint64_t alike;	  /* the same of those whose sentences differ in plain numbers only */
	bool drop;	  /* packets were dropped, else a QP failed, */
	bool stalled;	  /* or waits for what will not come */
	uint32_t qpn;
	uint32_t session; /* 0: nobody's */
	uint64_t count;
	const char *cause; /* for programs */
	const char *rule;
	char program[sizeof(((struct abi_hello *)0)->name) + 1];
	char text[ABI_WHY_MAX];
};

struct why;

/** @return what it means that packets are dropped because of @p why, and what to do; NULL beyond
 * the table. */
const char *why_drop_means(enum drop why);

/** @return NULL when memory is short. */
struct why *why_create(void);
void why_destroy(struct why *w);

/** @return why @p o failed, NULL when it did not. Good until the next call of this file's
 *  functions. */
const struct why_entry *why_of_qp(struct ctl *ctl, const struct qp_obj *o);

/** @p o will be destroyed or reset: keeps what there is to say about it.
 *  @param how  what its program did to it, in the past; NULL: it only goes to RESET */
void why_qp_goes(struct ctl *ctl, const struct qp_obj *o, const char *how);

/** @p o will be freed: keys that come for it later are told from those that never were. */
void why_mr_goes(struct session *s, const struct mr_obj *o);

/** Takes in what the workers have noted. */
void why_collect(struct ctl *ctl);

/** @return the newest entry whose id is below @p below, NULL: none. */
const struct why_entry *why_before(const struct ctl *ctl, uint32_t below);

/** @return how often what @p e tells of happened, entries alike with an id below @p below included;
 *  0: it is told by a newer one of these. */
uint64_t why_times(const struct ctl *ctl, const struct why_entry *e, uint32_t below);

/** Writes what is remarkable about @p o although it did not fail, into @p text; empty: nothing. */
void why_hint(struct ctl *ctl, const struct qp_obj *o, char text[ABI_WHY_MAX]);

#endif
