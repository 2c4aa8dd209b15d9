/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains. */
#include <fcntl.h>
#include <stdlib.h>
#include "client.h"

static int open_xrcd(struct context *ctx, const struct roci_xrcd_init_attr *a, struct xrcd *xrcd)
{
	struct abi_open_xrcd body = {0};
	struct abi_handle_reply r;
	int err;

	if (a->oflags & O_CREAT)
		body.flags |= ABI_XRCD_CREATE;
	if (a->oflags & O_EXCL)
		body.flags |= ABI_XRCD_EXCL;
	err = call(ctx, &(struct call){.type = ABI_OPEN_XRCD,
				.body = &body,
				.body_len = sizeof(body),
				.fd = a->fd,
				.reply = &r,
				.reply_len = sizeof(r)});
	if (!err)
		xrcd->handle = r.handle;
	return err;
}

struct roci_xrcd *roci_open_xrcd(struct roci_context *ctx, const struct roci_xrcd_init_attr *attr)
{
	struct roci_xrcd_init_attr a;
	struct xrcd *xrcd = NULL;
	int err = opts_read(&a, sizeof(a), attr, "roci_xrcd_init_attr");

	if (!err) {
		xrcd = calloc(1, sizeof(*xrcd));
		err = xrcd ? open_xrcd(context_of(ctx), &a, xrcd)
			   : fail_const(ENOMEM, "out of memory for an XRC domain: free some memory "
						"and try again");
	}
	if (err) {
		free(xrcd);
		errno = err;
		return NULL;
	}
	xrcd->pub.context = ctx;
	return &xrcd->pub;
}

int roci_close_xrcd(struct roci_xrcd *x)
{
	struct xrcd *xrcd = (struct xrcd *)x;
	int err = call_destroy(context_of(x->context), ABI_CLOSE_XRCD, xrcd->handle);

	if (!err)
		free(xrcd);
	return err;
}
