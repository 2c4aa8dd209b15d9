/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <stdatomic.h>
#include "abi_ctl.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "refuse.h"
#include "tables.h"
#include "hash.h"
#include "headers.h"
#include "limits.h"
#include "list.h"
#include "loop/loop.h"
#include "mr.h"
#include "net/net.h"
#include "qp.h"
#include "qp_table.h"
#include "session/handles.h"
#include "memory/huge.h"
#include "session/ids.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/cq_obj.h"
#include "verbs/mr_obj.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "verbs/srq_obj.h"
#include "worker.h"

int objects_init(
	struct objects *all, struct ctl *ctl, struct hash_seed *dests, char why[ABI_SENTENCE_MAX])
{
	int err;

	all->ctl = ctl;
	handles_init(&all->pds, PD_MAX);
	handles_init(&all->xrcds, XRCD_MAX);
	handles_init(&all->ahs, AH_MAX);
	all->populated = (struct watch){
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = mrs_populated};
	all->huge = all->populated.fd < 0 ? NULL : huge_create(all->populated.fd);
	err = all->huge ? loop_watch(ctl->loop, &all->populated) : -ENOMEM;
	if (err)
		return refuse(why, err, "rocid cannot set up huge pages: %s", strerror(-err));
	err = qpn_pool_init(&all->qpns);
	if (!err)
		err = srqn_pool_init(&all->srqns);
	if (!err)
		err = random_bytes(all->keys.part, sizeof(all->keys.part));
	if (!err)
		err = random_bytes(dests, sizeof(*dests));
	if (!err)
		err = random_bytes(&ctl->dp->mcasts->seed, sizeof(ctl->dp->mcasts->seed));
	if (!err)
		err = random_bytes(&ctl->dp->flows->seed, sizeof(ctl->dp->flows->seed));
	if (err)
		return refuse(
			why, err, "the kernel returned no random numbers: %s", strerror(-err));
	return 0;
}

void objects_destroy(struct objects *all)
{
	huge_destroy(all->huge);
	loop_unwatch(all->ctl->loop, &all->populated);
	handles_free(&all->pds);
	handles_free(&all->xrcds);
	handles_free(&all->ahs);
}

struct event_source *objects_event_source(void *arg, const struct core_event *ev)
{
	struct ctl *ctl = arg;
	struct session *s = ctl->sessions->session[ev->session % SESSION_MAX];
	struct srq_obj *srq;
	struct cq_obj *cq;
	struct qp_obj *qp;

	if (!s || s->number != ev->session)
		return NULL;
	switch (ev->type) {
	case ABI_EVENT_COMPLETION:
		cq = handle_get(&s->cqs, ev->handle);
		return cq ? &cq->completion : NULL;
	case ABI_EVENT_CQ_ERR:
		cq = handle_get(&s->cqs, ev->handle);
		return cq ? &cq->async : NULL;
	case ABI_EVENT_SRQ_ERR:
	case ABI_EVENT_SRQ_LIMIT_REACHED:
		srq = handle_get(&s->srqs, ev->handle);
		return srq ? &srq->async : NULL;
	default:
		qp = handle_get(&s->qps, ev->handle);
		return qp ? &qp->async : NULL;
	}
}

/* --- finding ------------------------------------------------------------------------- */

struct session *find_session(const struct ctl *ctl, uint64_t number)
{
	struct session *s = ctl->sessions->session[number % SESSION_MAX];

	return s && s->number == number ? s : NULL;
}

/* QP1 of a port is not in the slot of its internal QPN, but in its own table. */
static struct qp *published_qp(const struct ctl *ctl, uint32_t qpn)
{
	const struct qp_table *t = ctl->dp->qps;
	struct qp *qp = atomic_load_explicit(&t->slot[QPN_SLOT(qpn)], memory_order_relaxed);

	for (uint32_t i = 0; (!qp || qp->qpn != qpn) && i < ctl->net->nports; i++)
		qp = atomic_load_explicit(&t->gsi[i], memory_order_relaxed);
	return qp && qp->qpn == qpn ? qp : NULL;
}

struct qp_obj *find_qp(const struct ctl *ctl, uint64_t qpn)
{
	struct qp *qp = qpn < QPN_MULTICAST ? published_qp(ctl, (uint32_t)qpn) : NULL;
	struct session *s = qp ? find_session(ctl, qp->session) : NULL;

	return s ? handle_get(&s->qps, qp->handle) : NULL;
}

struct mr_obj *find_mr(const struct ctl *ctl, uint64_t key, struct session **owner)
{
	struct mr *mr = key <= UINT32_MAX ? mr_find(ctl->dp->mrs, (uint32_t)key) : NULL;
	struct mr_obj *o = mr ? container_of(mr, struct mr_obj, mr) : NULL;

	for (uint32_t i = 0; o && i < SESSION_MAX; i++) {
		struct session *s = ctl->sessions->session[i];

		if (s && handle_get(&s->mrs, o->handle) == o) {
			*owner = s;
			return o;
		}
	}
	return NULL;
}
