/* SPDX-License-Identifier: BSD-3-Clause */
/** @file memory/alloc.h  Memory for structs with members that are aligned to cache lines. */
#ifndef MEMORY_ALLOC_H
#define MEMORY_ALLOC_H

#include <stddef.h>

/** @return @p size zeroed bytes, aligned to CACHE_LINE, to be freed with free(), or NULL. */
void *object_alloc(size_t size);

#endif
