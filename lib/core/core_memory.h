/* SPDX-License-Identifier: BSD-3-Clause */
/** @file core_memory.h  How a core reaches application memory. */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include "core.h"
#include "uaccess.h"

static inline struct uaccess core_memory(const struct core *c)
{
	return (struct uaccess){.icrc = c->cfg.icrc, .faults = c->cfg.faults};
}

#endif
