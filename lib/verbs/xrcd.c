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
		errno = refused_as(c, "ibv_open_xrcd", EOPNOTSUPP,
			"comp_mask %#x has unknown bits: leave them out", attr->comp_mask);
		return NULL;
	}
	if ((attr->comp_mask & needed) != needed) {
		errno = refused_as(c, "ibv_open_xrcd", EINVAL,
			"comp_mask needs IBV_XRCD_INIT_ATTR_FD and IBV_XRCD_INIT_ATTR_OFLAGS");
		return NULL;
	}
	xrcd = calloc(1, sizeof(*xrcd));
	if (xrcd)
		xrcd->roci = roci_open_xrcd(context_of(c)->roci, &r);
	if (!xrcd || !xrcd->roci) {
		free(xrcd);
		return refused_null(c, "ibv_open_xrcd", errno);
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
