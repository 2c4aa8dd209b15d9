/* SPDX-License-Identifier: BSD-3-Clause */
/** @file session/account.h  The charges of one user: quota.h. */
#ifndef SESSION_ACCOUNT_H
#define SESSION_ACCOUNT_H

#include <stdint.h>
#include <sys/types.h>
#include "config/config.h"
#include "list.h"
#include "loop/reaper.h"

/** The charges of one user. It exists only while there are any. */
struct account {
	struct list node; /* of quota.accounts */
	uid_t uid;
	uint64_t used[CTL_KINDS];
	/** Released, but still mapped: CTL_MAPPINGS, CTL_MEMORY and CTL_QUEUES. */
	uint64_t retired[CTL_KINDS];
	struct reaped memory, queues; /* already unmapped */
};

#endif
