/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "headers.h"
#include "state.h"
#include "verbs/find.h"

struct session *find_session(const struct ctl *ctl, uint64_t number)
{
	struct session *s = ctl->session[number % SESSION_MAX];

	return s && s->number == number ? s : NULL;
}

/* QP1 of a port is in no slot, whatever number it has among ours. */
static struct qp *published_qp(const struct ctl *ctl, uint32_t qpn)
{
	const struct qp_table *t = ctl->dp->qps;
	struct qp *qp = atomic_load_explicit(&t->slot[QPN_SLOT(qpn)], memory_order_relaxed);

	for (uint32_t i = 0; (!qp || qp->qpn != qpn) && i < ctl->nports; i++)
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
		struct session *s = ctl->session[i];

		if (s && handle_get(&s->mrs, o->handle) == o) {
			*owner = s;
			return o;
		}
	}
	return NULL;
}
