/* SPDX-License-Identifier: BSD-3-Clause */
/* Unsupported features: fail with the errno that libibverbs returns for a device without them.
 * symbols.py generates the functions that are not in the public headers. */
#include "verbs.h"

/** Data that providers import; true: objects may be destroyed after their device has gone. */
extern bool verbs_allow_disassociate_destroy;
VERBS_API bool verbs_allow_disassociate_destroy = true;

VERBS_API int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!ece->vendor_id && !ece->options)
		return 0;
	return refused_qp(qp, "ibv_set_ece", EOPNOTSUPP,
		"enhanced connection establishment (ECE) is not supported: connect without ECE");
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
