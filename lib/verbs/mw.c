/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. */
#include <stdlib.h>
#include "verbs.h"

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct mw *mw = calloc(1, sizeof(*mw));

	if (mw)
		mw->roci = roci_alloc_mw(pd_of(pd)->roci, (enum roci_mw_type)type);
	if (!mw || !mw->roci) {
		free(mw);
		return refused_null(pd->context, "ibv_alloc_mw", errno);
	}
	mw->pub = (struct ibv_mw){.context = pd->context,
		.pd = pd,
		.rkey = mw->roci->rkey,
		.handle = mw->roci->rkey >> 8,
		.type = type};
	object_enter(pd->context, OBJECT_MW, &mw->object);
	return &mw->pub;
}

int verbs_dealloc_mw(struct ibv_mw *p)
{
	struct mw *mw = (struct mw *)p;
	int err = roci_dealloc_mw(mw->roci);

	if (err)
		return explain("ibv_dealloc_mw", err);
	object_leave(p->context, &mw->object);
	free(mw);
	return 0;
}

int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *p, struct ibv_mw_bind *bind)
{
	struct mw *mw = (struct mw *)p;
	struct roci_mw_bind r = {
		.wr_id = bind->wr_id,
		.send_flags = bind->send_flags,
		.bind_info = bind_info_to_roci(&bind->bind_info),
	};
	int err = roci_bind_mw(qp_of(qp)->roci, mw->roci, &r);

	if (err)
		return explain("ibv_bind_mw", err);
	p->rkey = mw->roci->rkey;
	return 0;
}
