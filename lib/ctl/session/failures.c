/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/failures.h"
#include "session/ids.h"
#include <stdlib.h>
#include "config/ctl_parts.h"
#include "loop/loop.h"

struct failures *failures_create(const struct failure_ops *ops)
{
	struct failures *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	if (random_bytes(&f->seed, sizeof(f->seed))) {
		free(f);
		return NULL;
	}
	f->ops = ops;
	return f;
}

void failures_destroy(struct failures *f)
{
	free(f);
}

const struct failure *failure_of_qp(struct ctl *ctl, const struct qp_obj *o)
{
	return ctl->failures->ops->of_qp(ctl, o);
}

void failure_keep(struct ctl *ctl, const struct qp_obj *o)
{
	ctl->failures->ops->keep(ctl, o);
}

void failure_request(struct ctl *ctl, const struct failed_request *f)
{
	ctl->failures->ops->request(ctl, f);
}

void failures_qp_gone(struct failures *f, const struct gone_qp *gone)
{
	struct gone_qp *slot = &f->qp[f->qps++ % FAILURES_GONE_MAX];

	*slot = *gone;
	slot->time_ms = loop_calendar_ms();
}

void failures_mr_gone(struct failures *f, const struct gone_mr *gone)
{
	struct gone_mr *slot = &f->mr[f->mrs++ % FAILURES_GONE_MAX];

	*slot = *gone;
	slot->time_ms = loop_calendar_ms();
}

const struct gone_qp *failures_gone_qp(const struct failures *f, uint32_t qpn)
{
	for (uint32_t i = 1; i <= FAILURES_GONE_MAX && i <= f->qps; i++) {
		const struct gone_qp *gone = &f->qp[(f->qps - i) % FAILURES_GONE_MAX];

		if (gone->qpn == qpn)
			return gone;
	}
	return NULL;
}
