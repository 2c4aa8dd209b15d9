/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing objects between contexts or processes: refused. */
#include "verbs.h"

/* Two contexts cannot share a session with rocid. */
#define WHY                                                                                     \
	"objects belong to the context that created them: open the device in this process and " \
	"create them again"

static void *refuse(struct ibv_context *c, const char *call)
{
	errno = refused_as(c, call, EOPNOTSUPP, WHY);
	return NULL;
}

VERBS_API struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd; /* no session yet through which to report it to rocid */
	errno = explain_as("ibv_import_device", EOPNOTSUPP, WHY);
	return NULL;
}

VERBS_API struct ibv_pd *ibv_import_pd(struct ibv_context *c, uint32_t handle)
{
	(void)handle;
	return refuse(c, "ibv_import_pd");
}

VERBS_API void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

VERBS_API struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	(void)handle;
	return refuse(pd->context, "ibv_import_mr");
}

VERBS_API void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}
