/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file object.h
 * Life and death of a session's objects. Taking an object from the workers and freeing it are
 * two steps, because a grace period lies between: one for each command, but a single one for
 * all objects of a session that ends.
 */
#ifndef OBJECT_H
#define OBJECT_H

#include "state.h"

/** @return @p size zeroed bytes, aligned to CACHE_LINE, to be freed with free(), or NULL. */
void *object_alloc(size_t size);

/** Takes @p o from the MR table. */
void mr_unpublish(struct ctl *ctl, struct mr_obj *o);
/** After a grace period. */
void mr_release(struct session *s, struct mr_obj *o);

/** Has the workers forget @p o, which no QP uses. */
void cq_detach(struct ctl *ctl, struct cq_obj *o);
/** After a grace period. */
void cq_release(struct session *s, struct cq_obj *o);

/** Takes @p o from the QP table and its doorbell; gives an unfinished MODIFY_QP up, without a
 *  reply. */
void qp_unpublish(struct ctl *ctl, struct qp_obj *o);
/** The same, and has its worker forget it. */
void qp_detach(struct ctl *ctl, struct qp_obj *o);
/** The most QPs of one qps_call(). */
#define QPS_CALL_MAX 64u
/** Has the workers of the @p n QPs @p o execute @p cmd, which is one of several QPs: one message to
 *  each worker. */
void qps_call(struct ctl *ctl, const struct core_cmd *cmd, struct qp_obj *const o[], uint32_t n);
/** After a grace period. */
void qp_release(struct session *s, struct qp_obj *o);

void channel_release(struct session *s, struct channel *ch);
void pd_release(struct session *s, struct pd *pd);

/** Makes a ring region on the account of @p s.  @return as shm_create(); -EDQUOT beyond
 *  its limit. */
int session_shm(struct session *s, struct shm *m, const char *name, size_t size, int *fd,
	char why[ABI_SENTENCE_MAX]);
void session_shm_free(struct session *s, struct shm *m);

/** Releases what @p h holds, if anything, and has it hold entry @p index of @p gids. NULL:
 *  nothing. */
void gid_hold_set(struct gid_hold *h, struct gids *gids, uint32_t index);

#endif
