/* SPDX-License-Identifier: BSD-3-Clause */
/* Releases the objects of a session, in steps (session/close.c). */
#include <stdlib.h>
#include "config/ctl_parts.h"
#include "core.h"
#include "list.h"
#include "session/handles.h"
#include "session/session.h"
#include "verbs/ah_obj.h"
#include "verbs/command.h"
#include "verbs/cq_obj.h"
#include "verbs/group.h"
#include "verbs/mr_obj.h"
#include "verbs/mw_obj.h"
#include "verbs/qp_obj.h"
#include "verbs/srq_obj.h"
#include "verbs/xrcd.h"
#include "worker.h"

/** The phases in which a session is closed, in order. */
enum close_phase {
	CLOSE_LEAVE_GROUPS = 1,
	CLOSE_DETACH_QPS,
	CLOSE_UNPUBLISH_SRQS, /* before the CQs, to which other sessions' XRC QPs complete */
	CLOSE_DETACH_CQS,
	CLOSE_UNPUBLISH_MRS,
	CLOSE_UNPUBLISH_MWS,
	CLOSE_UNPUBLISH_AHS,
	CLOSE_GRACE,
	CLOSE_FREE_MWS, /* before the regions to which they are bound */
	CLOSE_FREE_QPS,
	CLOSE_FREE_SRQS,
	CLOSE_FREE_CQS,
	CLOSE_FREE_MRS,
	CLOSE_FREE_AHS,
	CLOSE_FREE_CHANNELS,
	CLOSE_FREE_XRCDS,
	CLOSE_FREE_PDS,
};

/* Objects per step. Failed QPs, whose causes are recorded, cost most: diagnose/log.c limits them.
 */
#define STEP QPS_CALL_MAX
/* Groups left per step: each costs a grace period. */
#define LEAVES 8u
/* QPs freed per step: the private copy of a long queue can take megabytes to unmap. */
#define FREED_QPS 8u

static bool leave_groups(struct session *s)
{
	struct qp_obj *o;
	uint32_t n = 0;

	while (n < LEAVES && (o = handle_next(&s->qps, &s->cursor))) {
		n += group_detach_some(s->ctl, o, LEAVES - n);
		if (o->nmembers)
			s->cursor--; /* the next step continues with this QP */
	}
	return n == LEAVES;
}

static bool detach_qps(struct session *s)
{
	struct qp_obj *o[STEP];
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QPS};
	uint32_t n = 0;

	while (n < STEP && (o[n] = handle_next(&s->qps, &s->cursor)))
		qp_unpublish(o[n++]);
	qps_call(s->ctl, &cmd, o, n);
	return n == STEP;
}

static bool detach_cqs(struct session *s)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_CQS};
	struct cq *cqs[STEP];
	struct cq_obj *o;

	while (cmd.n < STEP && (o = handle_next(&s->cqs, &s->cursor)))
		cqs[cmd.n++] = &o->cq;
	cmd.cqs = cqs;
	for (uint32_t w = 0; cmd.n && w < s->ctl->dp->nworkers; w++)
		worker_call(s->ctl->dp->worker[w], &cmd);
	return cmd.n == STEP;
}

static bool unpublish_srqs(struct session *s)
{
	struct srq_obj *o;
	uint32_t n = 0;

	while (n < STEP && (o = handle_next(&s->srqs, &s->cursor))) {
		srq_unpublish(o);
		n++;
	}
	return n == STEP;
}

static bool unpublish_mrs(struct session *s)
{
	struct mr_obj *o;
	uint32_t n = 0;

	while (n < STEP && (o = handle_next(&s->mrs, &s->cursor))) {
		mr_unpublish(o);
		n++;
	}
	return n == STEP;
}

static bool unpublish_mws(struct session *s)
{
	struct mw_obj *o;
	uint32_t n = 0;

	while (n < STEP && (o = handle_next(&s->mws, &s->cursor))) {
		mw_unpublish(o);
		n++;
	}
	return n == STEP;
}

static bool unpublish_ahs(struct session *s)
{
	struct list *l;
	uint32_t n = 0;

	while (n < STEP && (l = list_pop(&s->ahs))) {
		ah_unpublish(container_of(l, struct ah_obj, node));
		list_push(&s->ahs_gone, l);
		n++;
	}
	return n == STEP;
}

/* --- freeing ------------------------------------------------------------------------- */

static void free_qp(struct session *s, void *o)
{
	qp_release(o);
}

static void free_srq(struct session *s, void *o)
{
	srq_release(o);
}

static void free_cq(struct session *s, void *o)
{
	cq_release(o);
}

static void free_mr(struct session *s, void *o)
{
	mr_release(o);
}

static void free_mw(struct session *s, void *o)
{
	mw_obj_release(o);
}

static bool free_ahs(struct session *s)
{
	struct list *l;
	uint32_t n = 0;

	while (n < STEP && (l = list_pop(&s->ahs_gone))) {
		ah_release(container_of(l, struct ah_obj, node));
		n++;
	}
	return n == STEP;
}

static void free_channel(struct session *s, void *o)
{
	channel_release(s, o);
}

static void free_xrcd(struct session *s, void *o)
{
	xrcd_release(o);
}

static void free_pd(struct session *s, void *o)
{
	pd_release(s, o);
}

static bool free_up_to(uint32_t max, struct session *s, struct handles *h,
	void (*release)(struct session *s, void *o))
{
	uint32_t n = 0;
	void *o;

	while (n < max && (o = handle_next(h, &s->cursor))) {
		release(s, o);
		n++;
	}
	return n == max;
}

static bool free_some(
	struct session *s, struct handles *h, void (*release)(struct session *s, void *o))
{
	return free_up_to(STEP, s, h, release);
}

/* --- steps ---------------------------------------------------------------------------- */

/* Executes one step of phase s->closing.  Returns false at the end of the phase, true after a full
 * step. */
static bool step(struct session *s)
{
	switch ((enum close_phase)s->closing) {
	case CLOSE_LEAVE_GROUPS:
		return leave_groups(s);
	case CLOSE_DETACH_QPS:
		return detach_qps(s);
	case CLOSE_DETACH_CQS:
		return detach_cqs(s);
	case CLOSE_UNPUBLISH_SRQS:
		return unpublish_srqs(s);
	case CLOSE_UNPUBLISH_MRS:
		return unpublish_mrs(s);
	case CLOSE_UNPUBLISH_MWS:
		return unpublish_mws(s);
	case CLOSE_UNPUBLISH_AHS:
		return unpublish_ahs(s);
	case CLOSE_GRACE: /* one grace period for all objects */
		worker_grace(s->ctl->dp);
		return false;
	case CLOSE_FREE_MWS:
		return free_some(s, &s->mws, free_mw);
	case CLOSE_FREE_QPS:
		return free_up_to(FREED_QPS, s, &s->qps, free_qp);
	case CLOSE_FREE_SRQS:
		return free_some(s, &s->srqs, free_srq);
	case CLOSE_FREE_CQS:
		return free_some(s, &s->cqs, free_cq);
	case CLOSE_FREE_MRS:
		return free_some(s, &s->mrs, free_mr);
	case CLOSE_FREE_AHS:
		return free_ahs(s);
	case CLOSE_FREE_CHANNELS:
		return free_some(s, &s->channels, free_channel);
	case CLOSE_FREE_XRCDS:
		return free_some(s, &s->xrcds, free_xrcd);
	default:
		return free_some(s, &s->pds, free_pd);
	}
}

/* Executes steps up to the first full one: a session with few objects ends at once, or programs
 * that connect and disconnect in a loop could outrun the release of their sessions. */
bool session_release_some(struct session *s)
{
	while (!step(s)) {
		s->cursor = 0;
		if (s->closing++ == CLOSE_FREE_PDS)
			return false;
	}
	return true;
}
