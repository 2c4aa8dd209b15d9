/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "abi_ring.h"
#include "abi_wqe.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "memory/alloc.h"
#include "memory/shm.h"
#include "refuse.h"
#include "session/handles.h"
#include "session/ids.h"
#include "session/job.h"
#include "session/notifier.h"
#include "session/quota.h"
#include "session/rings.h"
#include "session/session.h"
#include "session/sessions.h"
#include "srq.h"
#include "verbs/command.h"
#include "verbs/cq_obj.h"
#include "verbs/mr_obj.h"
#include "verbs/objects.h"
#include "verbs/srq_obj.h"
#include "verbs/xrcd.h"
#include "worker.h"

static int check_size(uint32_t max_wr, struct reply *r)
{
	if (max_wr && max_wr <= SRQ_WR_MAX)
		return 0;
	return refuse(
		r->why, -EINVAL, "an SRQ has 1 to %u work requests, not %u", SRQ_WR_MAX, max_wr);
}

static int check_limit(uint32_t limit, uint32_t max_wr, struct reply *r)
{
	if (limit <= max_wr)
		return 0;
	return refuse(r->why, -EINVAL,
		"a limit of %u would always be reached: the SRQ has %u work requests at most",
		limit, max_wr);
}

static int check_srq(const struct abi_create_srq *in, struct reply *r)
{
	int err = check_size(in->max_wr, r);

	if (!err && in->max_sge > SGE_MAX)
		return refuse(r->why, -EINVAL,
			"%u SGEs per work request are too many: %u is the maximum", in->max_sge,
			SGE_MAX);
	if (!err)
		err = check_limit(in->limit, round_pow2(in->max_wr), r);
	return err;
}

/* Creates a region for @p depth entries, laid out as that of a new SRQ. */
static int make_ring(struct session *s, struct srq_obj *o, uint32_t depth, struct shm *region,
	struct srq_ring **out, int *fd, struct reply *r)
{
	struct srq_ring *ring = calloc(1, sizeof(*ring));
	int err;

	if (!ring)
		return refuse_memory(r->why);
	err = rings_create(s, region, "roci-srq",
		sizeof(struct abi_queue) + (size_t)depth * o->srq.stride, fd, r->why);
	if (err) {
		free(ring);
		return err;
	}
	ring->entries = region->base + sizeof(struct abi_queue);
	ring->depth = depth;
	*out = ring;
	return 0;
}

static void reply_ring(
	struct srq_obj *o, const struct shm *region, const struct srq_ring *ring, struct reply *r)
{
	struct abi_create_srq_reply out = {
		.handle = o->srq.handle,
		.srqn = o->srq.srqn,
		.max_wr = ring->depth,
		.stride = o->srq.stride,
		.ring_off = sizeof(struct abi_queue),
		.region_size = (uint32_t)region->size,
	};

	reply_body(r, &out, sizeof(out));
}

/* Gives @p o a handle and a number; from here on the notifier and the workers can find it. */
static int publish(struct session *s, struct srq_obj *o, struct reply *r)
{
	struct ctl *ctl = s->ctl;
	struct srq_table *table = ctl->dp->srqs;
	uint32_t srqn = 0;
	int err = srqn_choose(&ctl->objects->srqns, table, &srqn);

	if (!err) {
		notifier_lock(&ctl->sessions->notifier);
		err = handle_add(&s->srqs, o, &o->srq.handle);
		if (!err)
			event_source_init(&o->async, &s->async, o->srq.handle);
		notifier_unlock(&ctl->sessions->notifier);
	}
	if (err)
		return refuse(r->why, err, "no room for another SRQ: let QPs share one");
	o->srq.srqn = srqn;
	o->pd->users++;
	if (o->xrcd) {
		o->xrcd->users++;
		o->cq->users++;
	}
	atomic_store_explicit(&table->slot[SRQN_SLOT(srqn)], &o->srq, memory_order_release);
	return 0;
}

/* Finds the objects that the SRQ uses.  Returns 0 or a negative errno with a sentence. */
static int find_parts(
	struct session *s, const struct abi_create_srq *in, struct srq_obj *o, struct reply *r)
{
	o->pd = object_named(&s->pds, in->pd, "protection domain", r);
	if (!o->pd)
		return -EINVAL;
	if (in->xrcd == ABI_NO_HANDLE)
		return 0;
	o->xrcd = handle_get(&s->xrcds, in->xrcd);
	o->cq = handle_get(&s->cqs, in->cq);
	if (!o->xrcd)
		return refuse(r->why, -EINVAL, "there is no XRC domain %u", in->xrcd);
	if (!o->cq)
		return refuse(
			r->why, -EINVAL, "an XRC SRQ needs a CQ, but there is no CQ %u", in->cq);
	o->srq.xrcd = o->xrcd->xrcd->number;
	o->srq.cq = &o->cq->cq;
	return 0;
}

static void set_up(struct session *s, const struct abi_create_srq *in, struct srq_obj *o)
{
	o->session = s;
	o->srq.max_sge = in->max_sge ? in->max_sge : 1;
	o->srq.stride = abi_rq_stride(o->srq.max_sge);
	o->srq.pd = o->pd->number;
	o->srq.session = s->number;
	atomic_init(&o->srq.limit, in->limit);
}

/* @return 0, or a negative errno with a sentence after undoing everything. */
static int make_srq(
	struct session *s, const struct abi_create_srq *in, struct srq_obj *o, struct reply *r)
{
	int err = find_parts(s, in, o, r);
	int fd;

	if (err)
		return err;
	set_up(s, in, o);
	err = make_ring(s, o, round_pow2(in->max_wr), &o->region, &o->at, &fd, r);
	if (err)
		return err;
	reply_fd(r, fd);
	o->srq.shared = (struct abi_queue *)o->region.base;
	atomic_init(&o->srq.ring, o->at);
	err = publish(s, o, r);
	if (err) {
		rings_free(s, &o->region);
		free(o->at);
	}
	return err;
}

int cmd_create_srq(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_create_srq in;
	struct srq_obj *o;
	int err;

	memcpy(&in, q->body, sizeof(in));
	err = check_srq(&in, r);
	if (!err)
		err = quota_take_one(s, CTL_SRQS, r->why);
	if (err)
		return err;
	o = object_alloc(sizeof(*o));
	err = o ? make_srq(s, &in, o, r) : refuse_memory(r->why);
	if (err) {
		quota_give_one(s, CTL_SRQS);
		free(o);
		return err;
	}
	reply_ring(o, &o->region, o->at, r);
	return 0;
}

/* --- resize --------------------------------------------------------------------------- */

/* Copies the posted entries in steps; then workers take them from the new ring, and the old one is
 * freed once all of them use the new one. */
struct resize {
	struct job job;
	struct srq_obj *srq;
	struct abi_modify_srq in;
	struct shm region; /* the new one */
	struct srq_ring *ring;
	struct srq_move move;
	int fd; /* for the reply; -1: already passed on */
};

static void set_limit(struct srq_obj *o, const struct abi_modify_srq *in)
{
	if (in->mask & ABI_SRQ_LIMIT) /* SRQ-04 */
		atomic_store_explicit(&o->srq.limit, in->limit, memory_order_relaxed);
}

static void drop_resize(struct job *j)
{
	struct resize *z = container_of(j, struct resize, job);

	rings_free(j->session, &z->region);
	if (z->fd >= 0)
		close(z->fd);
	free(z->ring);
	free(z);
}

static int step_resize(struct job *j, struct reply *r)
{
	struct resize *z = container_of(j, struct resize, job);
	struct session *s = j->session;
	struct srq_obj *o = z->srq;
	struct srq_ring *old = o->at;

	if (srq_move_some(&z->move, &o->srq, z->ring, old, RESIZE_STEP))
		return JOB_MORE;
	atomic_store_explicit(&o->srq.ring, z->ring, memory_order_release);
	worker_grace(s->ctl->dp);
	rings_free(s, &o->resized);
	o->resized = z->region;
	o->at = z->ring;
	z->region = (struct shm){0};
	z->ring = old;
	reply_fd(r, z->fd);
	z->fd = -1;
	reply_ring(o, &o->resized, o->at, r);
	set_limit(o, &z->in);
	return 0;
}

static int resize(struct session *s, const struct request *q, struct srq_obj *o,
	const struct abi_modify_srq *in, struct reply *r)
{
	uint32_t depth = round_pow2(in->max_wr);
	struct resize *z = calloc(1, sizeof(*z));
	int err;

	if (!z)
		return refuse_memory(r->why);
	*z = (struct resize){
		.job = {.step = step_resize, .drop = drop_resize}, .srq = o, .in = *in};
	err = make_ring(s, o, depth, &z->region, &z->ring, &z->fd, r);
	if (err) {
		free(z);
		return err;
	}
	srq_move_begin(&z->move, &o->srq, depth);
	return job_begin(&z->job, s, q, r);
}

/* SRQ-05 */
static int check_resize(const struct srq_obj *o, uint32_t max_wr, struct reply *r)
{
	uint32_t waiting = srq_waiting(&o->srq, o->at->depth);
	int err = check_size(max_wr, r);

	if (!err && max_wr < waiting)
		return refuse(r->why, -EINVAL,
			"%u work requests are waiting in the SRQ: request at least as many, not %u",
			waiting, max_wr);
	return err;
}

/* All attributes change or none; a limit that stays armed must fit a new size too. */
static int check_change(const struct srq_obj *o, const struct abi_modify_srq *in, struct reply *r)
{
	uint32_t limit = atomic_load_explicit(&o->srq.limit, memory_order_relaxed);
	uint32_t depth = o->at->depth;
	int err = 0;

	if (in->mask & ABI_SRQ_MAX_WR) {
		err = check_resize(o, in->max_wr, r);
		depth = err ? 0 : round_pow2(in->max_wr);
	}
	if (!err && (in->mask & ABI_SRQ_LIMIT))
		return check_limit(in->limit, depth, r);
	if (!err && limit > depth)
		return refuse(r->why, -EINVAL,
			"the SRQ's armed limit of %u would always be reached with %u work requests "
			"at most: arm a lower one, or none, with the same call",
			limit, depth);
	return err;
}

int cmd_modify_srq(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_modify_srq in;
	struct srq_obj *o;
	int err;

	memcpy(&in, q->body, sizeof(in));
	o = object_named(&s->srqs, in.handle, "SRQ", r);
	if (!o)
		return -EINVAL;
	if (in.mask & ~(ABI_SRQ_MAX_WR | ABI_SRQ_LIMIT))
		return refuse(r->why, -EINVAL,
			"an SRQ has no attributes 0x%x: only max_wr (1) and limit (2) can be "
			"modified",
			in.mask);
	err = check_change(o, &in, r);
	if (err)
		return err;
	if (in.mask & ABI_SRQ_MAX_WR)
		return resize(s, q, o, &in, r);
	set_limit(o, &in);
	return 0;
}

int cmd_query_srq(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_srq_attr out = {0};
	struct srq_obj *o = object_of(q, &s->srqs, "SRQ", r);

	if (!o)
		return -EINVAL;
	out.max_wr = o->at->depth;
	out.max_sge = o->srq.max_sge;
	out.limit = atomic_load_explicit(&o->srq.limit, memory_order_relaxed);
	out.waiting = srq_waiting(&o->srq, o->at->depth);
	reply_body(r, &out, sizeof(out));
	return 0;
}

void srq_unpublish(struct srq_obj *o)
{
	struct ctl *ctl = o->session->ctl;

	atomic_store_explicit(
		&ctl->dp->srqs->slot[SRQN_SLOT(o->srq.srqn)], NULL, memory_order_release);
}

void srq_release(struct srq_obj *o)
{
	struct session *s = o->session;
	struct notifier *n = &s->ctl->sessions->notifier;

	notifier_lock(n);
	handle_del(&s->srqs, o->srq.handle);
	event_source_withdraw(&o->async);
	notifier_unlock(n);
	o->pd->users--;
	if (o->xrcd) {
		o->xrcd->users--;
		o->cq->users--;
	}
	rings_free(s, &o->resized);
	rings_free(s, &o->region);
	quota_give_one(s, CTL_SRQS);
	free(o->at);
	free(o);
}

int cmd_destroy_srq(struct session *s, const struct request *q, struct reply *r)
{
	struct srq_obj *o = object_of(q, &s->srqs, "SRQ", r);

	if (!o)
		return -EINVAL;
	if (o->users) /* SRQ-09 */
		return refuse(
			r->why, -EBUSY, "%u QPs still use the SRQ: destroy them first", o->users);
	srq_unpublish(o);
	worker_grace(s->ctl->dp);
	srq_release(o);
	return 0;
}
