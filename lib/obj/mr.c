/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_ctl.h"
#include "bits.h"
#include "mr.h"

struct mr *mr_find(const struct mr_table *t, uint32_t key)
{
	uint32_t slot = key >> 8;
	struct mr *mr;

	if (slot >= MR_MAX)
		return NULL;
	mr = atomic_load_explicit(&t->slot[slot], memory_order_acquire);
	return mr && mr->key == key ? mr : NULL; /* RSP-14: the key part counts */
}

enum mr_status mr_resolve(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t access,
	uint64_t va, uint64_t len, uint8_t **ptr)
{
	const struct mr *mr = mr_find(t, key);
	uint64_t off;

	if (!mr || mr->pd != pd)
		return MR_NO_KEY;
	if ((mr->access & access) != access)
		return MR_NO_ACCESS;
	/* MR-07: below iova the offset wraps to a huge one, which range_inside() refuses. */
	off = va - mr->iova;
	if (!range_inside(off, len, mr->length))
		return MR_RANGE;
	if (ptr)
		*ptr = mr->base + off;
	return MR_OK;
}

bool mr_access_valid(uint32_t access)
{
	const uint32_t known = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE |
			       ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC |
			       ABI_ACCESS_MW_BIND | ABI_ACCESS_ZERO_BASED |
			       ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_FLUSH_PERSIST;

	if (access & ~known)
		return false;
	if (access & (ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_ATOMIC))
		return access & ABI_ACCESS_LOCAL_WRITE;
	return true;
}
