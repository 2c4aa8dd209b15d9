/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/mw_obj.h
 * Memory windows of a session. Control thread.
 */
#ifndef VERBS_MW_OBJ_H
#define VERBS_MW_OBJ_H

#include <stdint.h>
#include "mw.h"

struct session;

struct pd;

struct mw_obj {
	struct mw mw; /* the part that workers use */
	struct session *session;
	struct pd *pd;
	uint32_t handle;
};

/** Withdraws @p o from the table. */
void mw_unpublish(struct mw_obj *o);

/** Frees @p o, after a grace period. */
void mw_obj_release(struct mw_obj *o);

/** Unbinds the windows that QP @p qpn bound, which no worker uses any more. */
void mws_of_qp_release(struct session *s, uint32_t qpn);

#endif
