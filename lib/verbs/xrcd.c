/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains. */
#include <stdlib.h>
#include "verbs.h"

struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct roci_xrcd_init_attr r = {.size = sizeof(r), .fd = attr->fd, .oflags = attr->oflags};
	struct xrcd *xrcd;

	if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((attr->comp_mask & needed) != needed) {
		errno = EINVAL;
		return NULL;
	}
	xrcd = calloc(1, sizeof(*xrcd));
	if (xrcd)
		xrcd->roci = roci_open_xrcd(context_of(c)->roci, &r);
	if (!xrcd || !xrcd->roci) {
		free(xrcd);
		return explain_null("ibv_open_xrcd", errno);
	}
	xrcd->pub.context = c;
	object_enter(c, OBJECT_XRCD, &xrcd->object);
	return &xrcd->pub;
}

int verbs_close_xrcd(struct ibv_xrcd *p)
{
	struct xrcd *xrcd = (struct xrcd *)p;
	int err = roci_close_xrcd(xrcd->roci);

	if (err)
		return explain("ibv_close_xrcd", err);
	object_leave(p->context, &xrcd->object);
	free(xrcd);
	return 0;
}
