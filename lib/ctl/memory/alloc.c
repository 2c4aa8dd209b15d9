/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "memory/alloc.h"

void *object_alloc(size_t size)
{
	void *p = aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	if (p)
		memset(p, 0, size);
	return p;
}
