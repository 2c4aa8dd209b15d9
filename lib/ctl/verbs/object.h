/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/object.h
 * Life and death of a session's objects. Taking an object from the workers and freeing it are
 * two steps, because a grace period lies between: one for each command, but a single one for
 * all objects of a session that ends.
 */
#ifndef VERBS_OBJECT_H
#define VERBS_OBJECT_H

#include "state.h"

/** @return @p size zeroed bytes, aligned to CACHE_LINE, to be freed with free(), or NULL. */
void *object_alloc(size_t size);

/** Takes @p o from the MR table. */
void mr_unpublish(struct ctl *ctl, struct mr_obj *o);
/** After a grace period. */
void mr_release(struct session *s, struct mr_obj *o);
/** ctl.populated: session/huge.h is done with regions. */
void mrs_populated(struct watch *w);
/** Gives an unfinished REG_MR of @p s up, if there is one, without a reply. */
void mr_give_up(struct session *s);

/** Takes @p o from the table. */
void mw_unpublish(struct ctl *ctl, struct mw_obj *o);
/** After a grace period. */
void mw_obj_release(struct session *s, struct mw_obj *o);
/** The QP @p qpn is no worker's any more: frees the windows that it bound. */
void mws_of_qp_release(struct session *s, uint32_t qpn);

/** Takes @p o from the AH table and its destination; gives an unfinished CREATE_AH up, without a
 *  reply. */
void ah_unpublish(struct ctl *ctl, struct ah_obj *o);
/** After a grace period. */
void ah_release(struct session *s, struct ah_obj *o);
/** Has the @p n AHs @p o lead to @p dmac from @p smac, or to this daemon when @p local.
 *  @return how many of them, from the first on: there may be no memory for all. */
uint32_t ahs_readdress(struct ctl *ctl, struct ah_obj *const o[], uint32_t n, const uint8_t dmac[6],
	const uint8_t smac[6], bool local);

/** Has the workers forget @p o, which no QP uses. */
void cq_detach(struct ctl *ctl, struct cq_obj *o);
/** After a grace period. */
void cq_release(struct session *s, struct cq_obj *o);

/** Takes @p o from the SRQ table. */
void srq_unpublish(struct ctl *ctl, struct srq_obj *o);
/** After a grace period, when no QP uses it. */
void srq_release(struct session *s, struct srq_obj *o);

/** Nothing of the session uses @p ref any more. */
void xrcd_release(struct session *s, struct xrcd_ref *ref);

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
