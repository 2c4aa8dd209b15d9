/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of another context, or another process. */
#include "verbs.h"

/* Two contexts cannot share a session with rocid. */
static void *refuse(const char *call)
{
	errno = explain_as(call, EOPNOTSUPP,
		"objects belong to the context that made them: open the device in this process and "
		"create them again");
	return NULL;
}

VERBS_API struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	return refuse("ibv_import_device");
}

VERBS_API struct ibv_pd *ibv_import_pd(struct ibv_context *c, uint32_t handle)
{
	(void)c, (void)handle;
	return refuse("ibv_import_pd");
}

VERBS_API void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

VERBS_API struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	(void)pd, (void)handle;
	return refuse("ibv_import_mr");
}

VERBS_API void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}
