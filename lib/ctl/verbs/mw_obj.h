/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/mw_obj.h
 * Memory windows of a session. Control thread.
 */
#ifndef VERBS_MW_OBJ_H
#define VERBS_MW_OBJ_H

#include <stdint.h>
#include "mw.h"

struct ctl;
struct session;

struct pd;

struct mw_obj {
	struct mw mw; /* what workers see, and bind */
	struct session *session;
	struct pd *pd;
	uint32_t handle;
};

/** Takes @p o from the table. */
void mw_unpublish(struct mw_obj *o);

/** After a grace period. */
void mw_obj_release(struct mw_obj *o);

/** The QP @p qpn is no worker's any more: frees the windows that it bound. */
void mws_of_qp_release(struct session *s, uint32_t qpn);

#endif
