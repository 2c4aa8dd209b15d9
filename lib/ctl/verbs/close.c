/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/socket.h>
#include <stdlib.h>
#include "bits.h"
#include "session/job.h"
#include "session/turn.h"
#include "verbs/close.h"
#include "verbs/object.h"

/* Objects a step. The dearest are failed QPs, whose reasons are told: diagnose/log.c bounds them.
 */
#define STEP QPS_CALL_MAX
/* Groups that QPs leave in a step: each takes a grace period. */
#define LEAVES 8u
/* QPs that are freed in a step: the private copy of a long queue is megabytes to unmap. */
#define FREED_QPS 8u

static bool leave_groups(struct session *s)
{
	struct qp_obj *o;
	uint32_t n = 0;

	while (n < LEAVES && (o = handle_next(&s->qps, &s->cursor))) {
		n += group_detach_some(s->ctl, o, LEAVES - n);
		if (o->nmembers)
			s->cursor--; /* the next step goes on with it */
	}
	return n == LEAVES;
}

static bool detach_qps(struct session *s)
{
	struct qp_obj *o[STEP];
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QPS};
	uint32_t n = 0;

	while (n < STEP && (o[n] = handle_next(&s->qps, &s->cursor)))
		qp_unpublish(s->ctl, o[n++]);
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
		srq_unpublish(s->ctl, o);
		n++;
	}
	return n == STEP;
}

static bool unpublish_mrs(struct session *s)
{
	struct mr_obj *o;
	uint32_t n = 0;

	while (n < STEP && (o = handle_next(&s->mrs, &s->cursor))) {
		mr_unpublish(s->ctl, o);
		n++;
	}
	return n == STEP;
}

static bool unpublish_mws(struct session *s)
{
	struct mw_obj *o;
	uint32_t n = 0;

	while (n < STEP && (o = handle_next(&s->mws, &s->cursor))) {
		mw_unpublish(s->ctl, o);
		n++;
	}
	return n == STEP;
}

static bool unpublish_ahs(struct session *s)
{
	struct list *l;
	uint32_t n = 0;

	while (n < STEP && (l = list_pop(&s->ahs))) {
		ah_unpublish(s->ctl, container_of(l, struct ah_obj, node));
		list_push(&s->ahs_gone, l);
		n++;
	}
	return n == STEP;
}

/* --- freeing ------------------------------------------------------------------------- */

static void free_qp(struct session *s, void *o)
{
	qp_release(s, o);
}

static void free_srq(struct session *s, void *o)
{
	srq_release(s, o);
}

static void free_cq(struct session *s, void *o)
{
	cq_release(s, o);
}

static void free_mr(struct session *s, void *o)
{
	mr_release(s, o);
}

static void free_mw(struct session *s, void *o)
{
	mw_obj_release(s, o);
}

static bool free_ahs(struct session *s)
{
	struct list *l;
	uint32_t n = 0;

	while (n < STEP && (l = list_pop(&s->ahs_gone))) {
		ah_release(s, container_of(l, struct ah_obj, node));
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
	xrcd_release(s, o);
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

/* The last: nobody knows of it any more but the application. */
static void finish(struct session *s)
{
	struct ctl *ctl = s->ctl;

	handles_free(&s->qps);
	handles_free(&s->srqs);
	handles_free(&s->xrcds);
	handles_free(&s->cqs);
	handles_free(&s->mrs);
	handles_free(&s->mws);
	handles_free(&s->channels);
	handles_free(&s->pds);
	notifier_lock(&ctl->notifier);
	for (uint32_t i = 0; i < ctl->nports; i++)
		if (s->greeted)
			event_source_withdraw(&s->port_events[i]);
	channel_close(&s->async);
	notifier_unlock(&ctl->notifier);
	free(s->bells);
	if (s->region.base) /* tells a program that outlives us, should it look */
		atomic_store(&((struct abi_session *)s->region.base)->epoch, 0);
	/* The socket last: its end says that no completion comes any more. */
	shutdown(s->watch.fd, SHUT_RDWR);
	dispose_fd(ctl->closer, owner_connections(s->peer.uid), s->watch.fd);
	session_shm_free(s, &s->region);
	quota_close(s);
	list_del(&s->node);
	ctl->nending--;
	free(s);
}

/* --- steps ---------------------------------------------------------------------------- */

/* Makes one step of phase s->ending.  Returns false when the phase is over, true after STEP
 * objects. */
static bool step(struct session *s)
{
	switch (s->ending) {
	case ENDING_LEAVE_GROUPS:
		return leave_groups(s);
	case ENDING_DETACH_QPS:
		return detach_qps(s);
	case ENDING_DETACH_CQS:
		return detach_cqs(s);
	case ENDING_UNPUBLISH_SRQS:
		return unpublish_srqs(s);
	case ENDING_UNPUBLISH_MRS:
		return unpublish_mrs(s);
	case ENDING_UNPUBLISH_MWS:
		return unpublish_mws(s);
	case ENDING_UNPUBLISH_AHS:
		return unpublish_ahs(s);
	case ENDING_GRACE: /* one for all objects */
		worker_grace(s->ctl->dp);
		return false;
	case ENDING_FREE_MWS:
		return free_some(s, &s->mws, free_mw);
	case ENDING_FREE_QPS:
		return free_up_to(FREED_QPS, s, &s->qps, free_qp);
	case ENDING_FREE_SRQS:
		return free_some(s, &s->srqs, free_srq);
	case ENDING_FREE_CQS:
		return free_some(s, &s->cqs, free_cq);
	case ENDING_FREE_MRS:
		return free_some(s, &s->mrs, free_mr);
	case ENDING_FREE_AHS:
		return free_ahs(s);
	case ENDING_FREE_CHANNELS:
		return free_some(s, &s->channels, free_channel);
	case ENDING_FREE_XRCDS:
		return free_some(s, &s->xrcds, free_xrcd);
	default:
		return free_some(s, &s->pds, free_pd);
	}
}

/* Makes steps up to the first full one: a session with few objects ends at once, or those who open
 * and close in a loop would be faster than their ends. Returns false when @p s is gone. */
static bool go_on(struct session *s)
{
	while (!step(s)) {
		s->cursor = 0;
		if (s->ending++ == ENDING_FREE_PDS) {
			finish(s);
			return false;
		}
	}
	return true;
}

void session_end(struct session *s)
{
	struct ctl *ctl = s->ctl;

	notifier_lock(&ctl->notifier);
	ctl->session[s->slot] = NULL; /* its events find nobody from here on */
	ctl->nsessions--;
	notifier_unlock(&ctl->notifier);
	ctl->nending++;
	s->ending = ENDING_LEAVE_GROUPS;
	mr_give_up(s);
	list_push(&ctl->endings, &s->node);
	list_del(&s->held);
	job_cancel(s);
	turn_leave(s);
	for (uint32_t i = 0; s->bells && i < ctl->dp->nworkers; i++)
		worker_del_doorbell(ctl->dp->worker[i], &s->bells->w[i]);
}

void session_close(struct session *s)
{
	session_end(s);
	while (go_on(s))
		;
}

bool endings_poll(struct ctl *ctl)
{
	struct list *l = list_pop(&ctl->endings);
	struct session *s;

	if (!l)
		return false;
	/* in turns, so that a large one does not hold up small ones */
	s = container_of(l, struct session, node);
	list_push(&ctl->endings, &s->node);
	go_on(s);
	return !list_empty(&ctl->endings);
}
