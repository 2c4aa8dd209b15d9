/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: allocated and freed here, bound and invalidated by workers (obj/mw.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "config/ctl_parts.h"
#include "mw.h"
#include "refuse.h"
#include "session/handles.h"
#include "session/ids.h"
#include "session/quota.h"
#include "session/session.h"
#include "verbs/command.h"
#include "verbs/mr_obj.h"
#include "verbs/mw_obj.h"
#include "verbs/objects.h"
#include "worker.h"

static int publish(struct session *s, struct mw_obj *o, enum mw_type type, struct reply *r)
{
	struct ctl *ctl = s->ctl;
	uint32_t key;
	int err = key_choose(&ctl->objects->keys, ctl->dp->mrs, &key);

	if (!err)
		err = handle_add(&s->mws, o, &o->handle);
	if (err)
		return refuse(
			r->why, err, "no room for another memory window: free some, or rebind one");
	mw_init(&o->mw, key, o->pd->number, type);
	o->mw.entry.session = s->number;
	o->session = s;
	o->pd->users++;
	atomic_store_explicit(&ctl->dp->mrs->slot[key >> 8], &o->mw.entry, memory_order_release);
	return 0;
}

int cmd_alloc_mw(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_alloc_mw_reply out;
	struct abi_alloc_mw in;
	struct mw_obj *o;
	struct pd *pd;
	int err;

	memcpy(&in, q->body, sizeof(in));
	pd = object_named(&s->pds, in.pd, "protection domain", r);
	if (!pd)
		return -EINVAL;
	if (in.type != MW_TYPE_1 && in.type != MW_TYPE_2)
		return refuse(r->why, -EINVAL,
			"there is no memory window type %u: use 1, for all QPs of the protection "
			"domain, or 2, for the QP that binds it",
			in.type);
	err = quota_take_one(s, CTL_KEYS, r->why);
	if (err)
		return err;
	o = calloc(1, sizeof(*o));
	if (o) {
		o->pd = pd;
		err = publish(s, o, (enum mw_type)in.type, r);
	} else {
		err = refuse_memory(r->why);
	}
	if (err) {
		quota_give_one(s, CTL_KEYS);
		free(o);
		return err;
	}
	out = (struct abi_alloc_mw_reply){.handle = o->handle, .rkey = o->mw.key};
	reply_body(r, &out, sizeof(out));
	return 0;
}

void mw_unpublish(struct mw_obj *o)
{
	struct ctl *ctl = o->session->ctl;

	atomic_store_explicit(&ctl->dp->mrs->slot[o->mw.index >> 8], NULL, memory_order_release);
}

void mw_obj_release(struct mw_obj *o)
{
	struct session *s = o->session;

	mw_release(&o->mw);
	handle_del(&s->mws, o->handle);
	quota_give_one(s, CTL_KEYS);
	o->pd->users--;
	free(o);
}

/* Otherwise a later QP with the same QPN would find them bound to it. */
void mws_of_qp_release(struct session *s, uint32_t qpn)
{
	struct mw_obj *o;
	struct mw_view v;

	for (uint32_t i = 0; (o = handle_next(&s->mws, &i));)
		if (o->mw.type == MW_TYPE_2 && mw_view(&o->mw, &v) && v.qpn == qpn)
			mw_release(&o->mw);
}

int cmd_dealloc_mw(struct session *s, const struct request *q, struct reply *r)
{
	struct mw_obj *o = object_of(q, &s->mws, "memory window", r);

	if (!o)
		return -EINVAL;
	mw_unpublish(o);
	worker_grace(s->ctl->dp);
	mw_obj_release(o);
	return 0;
}
