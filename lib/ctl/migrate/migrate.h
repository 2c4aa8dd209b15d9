/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file migrate/migrate.h
 * Moves QPs between workers (decision 0040): to the worker on whose queue their packets arrive, so
 * that no packet needs to be handed over, or to any worker, to test that it works. Control thread.
 */
#ifndef MIGRATE_MIGRATE_H
#define MIGRATE_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>
#include "random.h"

struct ctl;
struct qp_obj;

/** The position of a walk over all QPs, which takes several turns. */
struct walk {
	uint32_t session; /* index */
	uint32_t cursor;  /* in its QPs */
};

/** The state kept between calls. */
struct migration {
	bool follow;	   /* QPs follow their packets */
	uint32_t shake_ms; /* period in which every QP moves to the next worker; 0: never */
	uint64_t look_due; /* ms */
	uint64_t shake_due;
	uint64_t handoffs; /* of all workers, when the last look started */
	bool looking;	   /* that look is not finished */
	struct walk look;  /* its position */
	struct random coin;
	struct walk shaken; /* position of the last shake */
};

/** @param seed  any number */
void migrate_init(struct migration *m, bool follow, uint32_t shake_ms, uint64_t seed);

/**
 * Moves @p o from its worker to @p worker, even under traffic.
 * @return 0; -EINVAL: there is no such worker; -EOPNOTSUPP: this QP cannot move (decision 0040).
 */
int migrate_qp(struct ctl *ctl, struct qp_obj *o, uint32_t worker);

/** Moves the QPs that are due.  @return milliseconds until the next call, -1 for never. */
int migrate_poll(struct ctl *ctl, uint64_t now_ms);

#endif
