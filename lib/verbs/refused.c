/* SPDX-License-Identifier: BSD-3-Clause */
/* Features that are not offered: the errno that libibverbs gives for a device without it. The
 * functions that are not in the public headers are made at build time: symbols.py. */
#include "verbs.h"

/** Data that providers import; true: objects may be destroyed after their device is gone. */
extern bool verbs_allow_disassociate_destroy;
VERBS_API bool verbs_allow_disassociate_destroy = true;

VERBS_API int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	if (ece->vendor_id || ece->options)
		return EOPNOTSUPP;
	return 0;
}

VERBS_API int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	*ece = (struct ibv_ece){0};
	return EOPNOTSUPP;
}

VERBS_API struct ibv_dm *ibv_import_dm(struct ibv_context *c, uint32_t handle)
{
	(void)c, (void)handle;
	errno = EOPNOTSUPP;
	return NULL;
}

VERBS_API void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}
