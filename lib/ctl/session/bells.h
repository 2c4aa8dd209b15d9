/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/bells.h
 * The doorbells of a session. Accessed by the control thread, and by workers according to
 * ownership.md.
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
	struct worker_doorbell w[WORKER_MAX]; /* one per worker */
	_Atomic(struct qp *) qp[ABI_DB_MAX];  /* shared by all workers */
	uint64_t taken[ABI_DB_WORDS];
	/** Where the search for a free slot of a worker's QP starts: the slots of one worker are
	 * adjacent, so that it reads few words. */
	uint32_t hint[WORKER_MAX];
};

#endif
