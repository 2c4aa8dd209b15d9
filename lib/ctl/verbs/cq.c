/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and completion queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "abi_ring.h"
#include "abi_wqe.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "core_command.h"
#include "cq.h"
#include "memory/alloc.h"
#include "memory/shm.h"
#include "qp.h"
#include "refuse.h"
#include "session/handles.h"
#include "session/notifier.h"
#include "session/quota.h"
#include "session/rings.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/command.h"
#include "verbs/cq_obj.h"
#include "worker.h"

static const struct charge channel_charge[] = {{CTL_CHANNELS, 1}, {CTL_DESCRIPTORS, 1}};

/* Opens @p ch and gives it a handle.  @return 0 or a negative errno with a sentence. */
static int make_channel(struct session *s, struct channel *ch, struct reply *r)
{
	int app_fd, err = channel_open(ch, &s->events, &app_fd);

	if (err)
		return refuse(r->why, err,
			"rocid cannot create a channel (%s): raise its limit of "
			"open files (ulimit -n)",
			strerror(-err));
	reply_fd(r, app_fd);
	err = handle_add(&s->channels, ch, &ch->handle);
	if (!err)
		return 0;
	notifier_lock(&s->ctl->sessions->notifier);
	channel_close(ch);
	notifier_unlock(&s->ctl->sessions->notifier);
	return refuse(r->why, err, "no room for another channel: let CQs share one");
}

int cmd_create_channel(struct session *s, const struct request *q, struct reply *r)
{
	int err = quota_take(s, channel_charge, ARRAY_SIZE(channel_charge), r->why);
	struct abi_handle_reply out;
	struct channel *ch;

	if (err)
		return err;
	ch = calloc(1, sizeof(*ch));
	err = ch ? make_channel(s, ch, r) : refuse_memory(r->why);
	if (err) {
		quota_give(s, channel_charge, ARRAY_SIZE(channel_charge));
		free(ch);
		return err;
	}
	out.handle = ch->handle;
	reply_body(r, &out, sizeof(out));
	return 0;
}

void channel_release(struct session *s, struct channel *ch)
{
	struct notifier *n = &s->ctl->sessions->notifier;

	handle_del(&s->channels, ch->handle);
	notifier_lock(n);
	channel_close(ch);
	notifier_unlock(n);
	quota_give(s, channel_charge, ARRAY_SIZE(channel_charge));
	free(ch);
}

int cmd_destroy_channel(struct session *s, const struct request *q, struct reply *r)
{
	struct channel *ch = object_of(q, &s->channels, "channel", r);

	if (!ch)
		return -EINVAL;
	if (ch->users)
		return refuse(r->why, -EBUSY, "%u CQs still use the channel: destroy them first",
			ch->users);
	channel_release(s, ch);
	return 0;
}

static uint32_t lane_stride(uint32_t depth)
{
	uint32_t bytes = (uint32_t)sizeof(struct abi_cq_lane) + depth * ABI_ENTRY;

	return (bytes + ABI_LINE - 1) / ABI_LINE * ABI_LINE;
}

static int check_depth(uint32_t depth, struct reply *r)
{
	if (depth && depth <= CQE_MAX) /* CQ-02 */
		return 0;
	return refuse(r->why, -EINVAL, "a CQ has 1 to %u entries, not %u", CQE_MAX, depth);
}

static int check_cq(
	struct session *s, const struct abi_create_cq *in, struct channel **ch, struct reply *r)
{
	int err = check_depth(in->depth, r);

	if (err)
		return err;
	if (in->vector)
		return refuse(
			r->why, -EINVAL, "there is no completion vector %u: use 0", in->vector);
	if (in->flags & ~ABI_CQ_FLAG_TIMESTAMP)
		return refuse(r->why, -EOPNOTSUPP,
			"completion queue flags 0x%x are unknown to this rocid: use none, or "
			"a "
			"rocid of the program's version",
			in->flags);
	*ch = NULL;
	if (in->channel == ABI_NO_HANDLE)
		return 0;
	*ch = handle_get(&s->channels, in->channel);
	if (!*ch)
		return refuse(r->why, -EINVAL, "there is no channel %u", in->channel);
	return 0;
}

/* Creates a ring for out->depth CQEs per lane, laid out as in abi_ring.h. */
static int make_ring(
	struct session *s, struct shm *ring, struct abi_create_cq_reply *out, struct reply *r)
{
	uint64_t size;
	int fd, err;

	out->lanes = s->ctl->dp->nworkers;
	out->lane_off = sizeof(struct abi_cq);
	out->lane_stride = lane_stride(out->depth);
	size = out->lane_off + (uint64_t)out->lanes * out->lane_stride;
	if (size > UINT32_MAX)
		return refuse(r->why, -EINVAL,
			"a CQ of %u entries for each of %u workers is too large: request fewer",
			out->depth, out->lanes);
	err = rings_create(s, ring, "roci-cq", size, &fd, r->why);
	if (err)
		return err;
	reply_fd(r, fd);
	out->region_size = (uint32_t)ring->size;
	return 0;
}

static struct abi_cq_lane *ring_lane(
	const struct shm *ring, const struct abi_create_cq_reply *at, uint32_t i)
{
	return (struct abi_cq_lane *)(ring->base + at->lane_off + (size_t)i * at->lane_stride);
}

static void init_lanes(struct cq_obj *o, const struct abi_create_cq_reply *at, uint32_t flags)
{
	struct dataplane *dp = o->session->ctl->dp;

	o->cq.arm = &((struct abi_cq *)o->ring.base)->arm;
	o->cq.lanes = at->lanes;
	for (uint32_t i = 0; i < at->lanes; i++) {
		cq_lane_init(&o->cq, i, ring_lane(&o->ring, at, i), at->depth);
		if (flags & ABI_CQ_FLAG_TIMESTAMP)
			cq_lane_stamp(&o->cq, i, worker_clock(dp->worker[i]));
	}
}

/* Adds @p o to the session, where the notifier can find it. */
static int add_cq(struct session *s, struct cq_obj *o, struct channel *ch)
{
	struct notifier *n = &s->ctl->sessions->notifier;
	int err;

	notifier_lock(n);
	err = handle_add(&s->cqs, o, &o->cq.handle);
	if (!err) {
		o->cq.session = s->number;
		o->cq.channel = ch ? ch->handle : ABI_NO_HANDLE;
		o->channel = ch;
		event_source_init(&o->completion, ch, o->cq.handle);
		event_source_init(&o->async, &s->async, o->cq.handle);
	}
	notifier_unlock(n);
	if (!err && ch)
		ch->users++;
	return err;
}

/* @return 0, or a negative errno with a sentence after undoing everything. */
static int make_cq(struct session *s, struct cq_obj *o, struct channel *ch, uint32_t flags,
	struct abi_create_cq_reply *out, struct reply *r)
{
	int err = make_ring(s, &o->ring, out, r);

	if (err)
		return err;
	o->session = s;
	init_lanes(o, out, flags);
	err = add_cq(s, o, ch);
	if (!err)
		return 0;
	rings_free(s, &o->ring);
	return refuse(r->why, err, "no room for another CQ: let QPs share one");
}

int cmd_create_cq(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_create_cq_reply out = {0};
	struct abi_create_cq in;
	struct channel *ch;
	struct cq_obj *o;
	int err;

	memcpy(&in, q->body, sizeof(in));
	err = check_cq(s, &in, &ch, r);
	if (!err)
		err = quota_take_one(s, CTL_CQS, r->why);
	if (err)
		return err;
	out.depth = round_pow2(in.depth);
	o = object_alloc(sizeof(*o));
	err = o ? make_cq(s, o, ch, in.flags, &out, r) : refuse_memory(r->why);
	if (err) {
		quota_give_one(s, CTL_CQS);
		free(o);
		return err;
	}
	out.handle = o->cq.handle;
	reply_body(r, &out, sizeof(out));
	return 0;
}

static uint32_t count_waiting(struct ctl *ctl, struct cq_obj *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->cq.lanes; i++) {
		struct core_cmd cmd = {.type = CORE_CMD_COUNT_CQ, .cq = &o->cq};

		worker_call(ctl->dp->worker[i], &cmd);
		n += cmd.cqes;
	}
	return n;
}

/* Makes each worker continue in @p ring. Earlier completions stay in the old ring, to which no
 * worker writes after this returns. */
static void move_lanes(struct ctl *ctl, struct cq_obj *o, const struct shm *ring,
	const struct abi_create_cq_reply *at)
{
	struct abi_cq *head = (struct abi_cq *)o->ring.base;

	atomic_fetch_add(&head->resizes, 1);
	for (uint32_t i = 0; i < o->cq.lanes; i++) {
		struct core_cmd cmd = {.type = CORE_CMD_RESIZE_CQ,
			.cq = &o->cq,
			.cqes = at->depth,
			.lane = ring_lane(ring, at, i)};

		worker_call(ctl->dp->worker[i], &cmd);
	}
}

int cmd_resize_cq(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_create_cq_reply out = {0};
	struct abi_resize_cq in;
	struct shm ring = {0};
	struct cq_obj *o;
	uint32_t waiting;
	int err;

	memcpy(&in, q->body, sizeof(in));
	o = object_named(&s->cqs, in.handle, "CQ", r);
	if (!o)
		return -EINVAL;
	err = check_depth(in.depth, r);
	if (err)
		return err;
	waiting = count_waiting(s->ctl, o);
	if (in.depth < waiting) /* CQ-11 */
		return refuse(r->why, -EINVAL,
			"%u completions are waiting in the CQ, but only %u entries were requested: "
			"poll "
			"them first",
			waiting, in.depth);
	out.handle = in.handle;
	out.depth = round_pow2(in.depth);
	err = make_ring(s, &ring, &out, r);
	if (err)
		return err;
	move_lanes(s->ctl, o, &ring, &out);
	rings_free(s, &o->resized);
	o->resized = ring;
	reply_body(r, &out, sizeof(out));
	return 0;
}

/* Makes the workers drop @p o, which no QP uses. */
static void cq_detach(struct cq_obj *o)
{
	struct ctl *ctl = o->session->ctl;

	for (uint32_t i = 0; i < o->cq.lanes; i++) {
		struct core_cmd cmd = {.type = CORE_CMD_DETACH_CQ, .cq = &o->cq};

		worker_call(ctl->dp->worker[i], &cmd);
	}
}

void cq_release(struct cq_obj *o)
{
	struct session *s = o->session;
	struct notifier *n = &s->ctl->sessions->notifier;

	notifier_lock(n);
	handle_del(&s->cqs, o->cq.handle);
	event_source_withdraw(&o->completion);
	event_source_withdraw(&o->async);
	notifier_unlock(n);
	if (o->channel)
		o->channel->users--;
	rings_free(s, &o->resized);
	rings_free(s, &o->ring);
	quota_give_one(s, CTL_CQS);
	free(o);
}

int cmd_destroy_cq(struct session *s, const struct request *q, struct reply *r)
{
	struct cq_obj *o = object_of(q, &s->cqs, "CQ", r);

	if (!o)
		return -EINVAL;
	if (o->users) /* CQ-12 */
		return refuse(r->why, -EBUSY,
			"%u queues of QPs still complete to the CQ: destroy the QPs first",
			o->users);
	cq_detach(o);
	worker_grace(s->ctl->dp);
	cq_release(o);
	return 0;
}
