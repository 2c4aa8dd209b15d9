/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. Binding one is a send work request: post.c. */
#include <stdlib.h>
#include "client.h"

struct roci_mw *roci_alloc_mw(struct roci_pd *pd, enum roci_mw_type type)
{
	struct abi_alloc_mw body = {.pd = ((struct pd *)pd)->handle, .type = (uint32_t)type};
	struct abi_alloc_mw_reply r;
	struct mw *mw = calloc(1, sizeof(*mw));
	int err = mw ? 0
		     : fail_const(ENOMEM,
			       "out of memory for a memory window: free some memory and try again");

	if (!err)
		err = call_plain(
			context_of(pd->context), ABI_ALLOC_MW, &body, sizeof(body), &r, sizeof(r));
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	mw->pub = (struct roci_mw){.context = pd->context, .pd = pd, .rkey = r.rkey, .type = type};
	mw->handle = r.handle;
	return &mw->pub;
}

int roci_dealloc_mw(struct roci_mw *p)
{
	struct mw *mw = (struct mw *)p;
	int err = call_destroy(context_of(p->context), ABI_DEALLOC_MW, mw->handle);

	if (!err)
		free(mw);
	return err;
}

int roci_bind_mw(struct roci_qp *qp, struct roci_mw *mw, const struct roci_mw_bind *bind)
{
	struct roci_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = ROCI_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = mw,
			.rkey = roci_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info},
	};
	int err;

	if (mw->type != ROCI_MW_TYPE_1)
		return fail_const(EINVAL, "the window is of type 2: bind it with roci_post_send() "
					  "and ROCI_WR_BIND_MW");
	err = roci_post_send(qp, &wr, NULL);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
