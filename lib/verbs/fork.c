/* SPDX-License-Identifier: BSD-3-Clause */
/* fork(): nothing is pinned, and a child gets a copy like that of any other memory. */
#include "verbs.h"

VERBS_API int ibv_fork_init(void)
{
	return 0;
}

VERBS_API enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* Not in the public headers; libibverbs had them before copy-on-fork. */
VERBS_API int ibv_dontfork_range(void *base, size_t size);
VERBS_API int ibv_dofork_range(void *base, size_t size);

VERBS_API int ibv_dontfork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}

VERBS_API int ibv_dofork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}
