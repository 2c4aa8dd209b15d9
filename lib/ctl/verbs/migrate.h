/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/migrate.h
 * QPs change their worker (decision 0040): to the one on whose queue their packets come in, so
 * that no packet is handed over on its way, or to any, for who wants to see that it works.
 * Control thread.
 */
#ifndef VERBS_MIGRATE_H
#define VERBS_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>
#include "random.h"

struct ctl;
struct qp_obj;

/** Where a walk over all QPs is: it takes several turns. */
struct walk {
	uint32_t session; /* index */
	uint32_t cursor;  /* in its QPs */
};

/** What is kept between two looks. */
struct migration {
	bool follow;	   /* QPs go where their packets come in */
	uint32_t shake_ms; /* not 0: and each to the next worker this often, wanted or not */
	uint64_t look_due; /* ms */
	uint64_t shake_due;
	uint64_t handoffs; /* of all workers, when the last look began */
	bool looking;	   /* that look still goes on, */
	struct walk look;  /* here */
	struct random coin;
	struct walk shaken; /* where the last shake stopped */
};

/** @param seed  any number */
void migrate_init(struct migration *m, bool follow, uint32_t shake_ms, uint64_t seed);

/**
 * Has @p worker take @p o over from its worker, under traffic too.
 * @return 0; -EINVAL: there is no such worker; -EOPNOTSUPP: it stays where it is (decision 0040).
 */
int migrate_qp(struct ctl *ctl, struct qp_obj *o, uint32_t worker);

/** Moves what is to be moved now.  @return milliseconds until the next look, -1 for never. */
int migrate_poll(struct ctl *ctl, uint64_t now_ms);

#endif
