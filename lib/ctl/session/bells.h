/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/bells.h
 * The doorbells of a session. Control thread, and workers as ownership.md says.
 */
#ifndef SESSION_BELLS_H
#define SESSION_BELLS_H

#include <stdatomic.h>
#include <stdint.h>
#include "abi_ring.h"
#include "worker.h"

struct qp;

/** A QP keeps its slot when it moves to another worker. */
struct bells {
	struct worker_doorbell w[WORKER_MAX]; /* what each worker sees */
	_Atomic(struct qp *) qp[ABI_DB_MAX];  /* what they share */
	uint64_t taken[ABI_DB_WORDS];
	/** Where to look for a free slot for a worker's QP: those of one worker lie together, so
	 * that it takes them in few words. */
	uint32_t hint[WORKER_MAX];
};

#endif
