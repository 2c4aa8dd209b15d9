/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles. A published struct ah never changes: if a neighbour moves, a new one with the
 * same id replaces it. When a session ends, it releases its handles in steps (verbs/close.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ah.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "mcast.h"
#include "memory/alloc.h"
#include "net/gids.h"
#include "net/neigh.h"
#include "net/net.h"
#include "qp.h"
#include "refuse.h"
#include "session/job.h"
#include "session/quota.h"
#include "session/session.h"
#include "text/sentence.h"
#include "verbs/ah_obj.h"
#include "verbs/av.h"
#include "verbs/command.h"
#include "verbs/dest.h"
#include "verbs/mr_obj.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

static _Atomic(struct ah *) *slot_of(struct ctl *ctl, uint32_t id)
{
	return &ctl->dp->ahs->slot[AH_SLOT(id)];
}

void ah_unpublish(struct ah_obj *o)
{
	struct ctl *ctl = o->session->ctl;

	if (o->resolving) {
		neigh_cancel(&o->query);
		quota_give_one(o->session, CTL_LOOKUPS);
	}
	dest_leave_ah(o);
	if (o->ah)
		atomic_store_explicit(slot_of(ctl, o->id), NULL, memory_order_release);
}

void ah_release(struct ah_obj *o)
{
	struct session *s = o->session;

	handle_del(&s->ctl->objects->ahs, o->id);
	gid_hold_set(&o->hold, NULL, 0);
	list_del(&o->node);
	quota_give_one(s, CTL_AHS);
	o->pd->users--;
	free(o->ah);
	free(o);
}

static struct ah *make_ah(const struct ah_obj *o)
{
	struct ah *ah = object_alloc(sizeof(*ah));
	struct path_spec spec = o->spec;

	if (!ah)
		return NULL;
	spec.sgid = &o->hold.gids->table.entry[o->hold.index];
	ah->id = o->id;
	ah->pd = o->pd->number;
	ah->hashed = !spec.flow_label;
	ah->plain = spec.plain_label;
	path_init(&ah->path, &spec);
	return ah;
}

/* Publishes @p o, whose o->spec is complete now that its destination is known. */
static int publish(struct ah_obj *o, struct reply *r)
{
	struct ctl *ctl = o->session->ctl;
	struct dest *d = dest_get(ctl, &o->key);
	struct abi_handle_reply out;
	int err = d ? handle_add(&ctl->objects->ahs, o, &o->id) : -ENOMEM;

	if (!err) {
		o->ah = make_ah(o);
		err = o->ah ? 0 : -ENOMEM;
	}
	if (err) {
		if (d)
			dest_release(d);
		return err == -ENOMEM ? refuse_memory(r->why)
				      : refuse(r->why, err,
						"no room for another address handle: destroy some");
	}
	dest_join_ah(d, o, o->hold.gids->table.entry[o->hold.index].mac);
	atomic_store_explicit(slot_of(ctl, o->id), o->ah, memory_order_release);
	out.handle = o->id;
	reply_body(r, &out, sizeof(out));
	return 0;
}

static void set_dmac(struct ah_obj *o)
{
	memcpy(o->spec.dmac, o->query.mac, sizeof(o->spec.dmac));
}

static void resolved(struct neigh_query *q, int err, const char *why)
{
	struct ah_obj *o = container_of(q, struct ah_obj, query);
	struct session *s = o->session;
	struct reply r = {0};

	o->resolving = false;
	quota_give_one(s, CTL_LOOKUPS);
	if (err) {
		refuse(r.why, err, "%s", why);
	} else {
		set_dmac(o);
		err = publish(o, &r);
	}
	session_reply(s, &o->request, err, &r);
	if (err)
		ah_release(o);
}

/* The kernel continues to look for the neighbour. */
static int not_yet(struct session *s, struct ah_obj *o, struct reply *r)
{
	char gid[GID_TEXT];

	neigh_cancel(&o->query);
	quota_give_one(s, CTL_LOOKUPS);
	return refuse(r->why, -EAGAIN,
		"the MAC of %s is not known yet; the kernel is looking for it: try again",
		gid_text(o->key.dgid, gid));
}

static int find_way(
	struct session *s, struct ah_obj *o, const struct request *q, bool at_once, struct reply *r)
{
	int err;

	o->query = (struct neigh_query){.done = resolved};
	err = av_find(s, &o->key, &o->query, &o->spec.local, r->why);
	if (err == DEFERRED && at_once)
		return not_yet(s, o, r);
	if (err == DEFERRED) {
		o->resolving = true;
		o->request = q->msg;
	}
	if (err)
		return err;
	set_dmac(o);
	return publish(o, r);
}

/* UD-15. */
static int check(struct session *s, const struct abi_ah_attr *ah, struct dest_key *key,
	char why[ABI_SENTENCE_MAX])
{
	char text[GID_TEXT];
	int err = av_check(s->ctl, ah, why);

	if (err)
		return err;
	if (!av_is_unicast(ah->dgid) && !gid_is_multicast(ah->dgid))
		return refuse(why, -EINVAL,
			"the destination GID %s addresses neither a host nor a multicast group: "
			"set the peer's GID",
			gid_text(ah->dgid, text));
	if (!gids_select(&s->ctl->net->port[ah->port - 1].gids, ah->sgid_index, ah->dgid, why))
		return -EINVAL;
	return av_dest_key(s->ctl, ah, key, why);
}

int cmd_create_ah(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_create_ah in;
	struct dest_key key;
	struct ah_obj *o;
	struct pd *pd;
	int err;

	memcpy(&in, q->body, sizeof(in));
	pd = object_named(&s->pds, in.pd, "protection domain", r);
	if (!pd)
		return -EINVAL;
	if (in.flags & ~(uint32_t)ABI_AH_AT_ONCE)
		return refuse(r->why, -EINVAL, "flags %#x has unknown bits: set 0", in.flags);
	err = check(s, &in.attr, &key, r->why);
	if (!err)
		err = quota_take_one(s, CTL_AHS, r->why);
	if (err)
		return err;
	o = calloc(1, sizeof(*o));
	if (!o) {
		quota_give_one(s, CTL_AHS);
		return refuse_memory(r->why);
	}
	o->session = s;
	o->pd = pd;
	o->key = key;
	av_path(s->ctl, &in.attr, &o->spec);
	pd->users++;
	list_push(&s->ahs, &o->node);
	gid_hold_set(&o->hold, &s->ctl->net->port[key.port].gids, key.sgid);
	err = find_way(s, o, q, in.flags & ABI_AH_AT_ONCE, r);
	if (err < 0)
		ah_release(o);
	return err;
}

/* UD-16: a posted request is sent to the address that the handle had when it was posted. So before
 * the handle is destroyed, the workers copy posted requests off the queues, some QPs per step: a
 * session can have thousands of QPs, each with sixteen thousand requests. */
struct destruction {
	struct job job;
	struct ah_obj *ah;
	uint32_t cursor; /* in session.qps */
};

static void drop_destruction(struct job *j)
{
	free(container_of(j, struct destruction, job));
}

/* @return true while QPs remain. */
static bool snapshot_some(struct session *s, const struct pd *pd, uint32_t *cursor)
{
	struct core_cmd cmd = {.type = CORE_CMD_SNAPSHOT_QPS};
	struct qp_obj *o[QPS_CALL_MAX];
	struct qp_obj *qp = NULL;
	uint32_t n = 0, entries = 0;

	while (n < QPS_CALL_MAX && entries < SNAPSHOT_STEP && (qp = handle_next(&s->qps, cursor))) {
		if (qp->pd != pd || !abi_is_datagram(qp->qp->type))
			continue;
		entries += qp->qp->sq.depth;
		o[n++] = qp;
	}
	qps_call(s->ctl, &cmd, o, n);
	return qp;
}

static int step_destruction(struct job *j, struct reply *r)
{
	struct destruction *d = container_of(j, struct destruction, job);
	struct session *s = j->session;

	(void)r;
	if (snapshot_some(s, d->ah->pd, &d->cursor))
		return JOB_MORE;
	ah_unpublish(d->ah);
	worker_grace(s->ctl->dp);
	ah_release(d->ah);
	return 0;
}

int cmd_destroy_ah(struct session *s, const struct request *q, struct reply *r)
{
	struct destruction *d;
	struct abi_handle in;
	struct ah_obj *o;

	memcpy(&in, q->body, sizeof(in));
	o = handle_get(&s->ctl->objects->ahs, in.handle);
	if (!o || o->session != s)
		return refuse(r->why, -EINVAL, "there is no address handle %u", in.handle);
	d = calloc(1, sizeof(*d));
	if (!d)
		return refuse_memory(r->why);
	*d = (struct destruction){
		.job = {.step = step_destruction, .drop = drop_destruction}, .ah = o};
	return job_begin(&d->job, s, q, r);
}

uint32_t ahs_readdress(struct ctl *ctl, struct ah_obj *const o[], uint32_t n, const uint8_t dmac[6],
	const uint8_t smac[6], bool local)
{
	struct ah *old[QPS_CALL_MAX];
	uint32_t changed = 0, done;

	for (uint32_t i = 0; i < n; i++) {
		struct ah *ah = object_alloc(sizeof(*ah));

		if (!ah)
			break;
		*ah = *o[i]->ah;
		path_readdress(&ah->path, dmac, smac, local);
		old[changed++] = o[i]->ah;
		o[i]->ah = ah;
		atomic_store_explicit(slot_of(ctl, ah->id), ah, memory_order_release);
	}
	done = changed;
	if (changed)
		worker_grace(ctl->dp);
	while (changed)
		free(old[--changed]);
	return done;
}
