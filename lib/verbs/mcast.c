/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups. The LID has a meaning only on InfiniBand. */
#include "verbs.h"

VERBS_API int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int err = roci_attach_mcast(qp_of(qp)->roci, (const union roci_gid *)gid);

	(void)lid;
	return refused_qp(qp, "ibv_attach_mcast", err, "%s", roci_last_error());
}

VERBS_API int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return explain("ibv_detach_mcast",
		roci_detach_mcast(qp_of(qp)->roci, (const union roci_gid *)gid));
}
