/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci_private.h
 * Functions that libroci exports for lib/verbs only, in the stanza ROCI_PRIVATE_1, without a stable
 * ABI: both libraries are built from the same source, and the stanza's version changes with
 * anything here.
 */
#ifndef ROCI_PRIVATE_H
#define ROCI_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_wqe.h"
#include "roci.h"

/* --- a send queue, entry by entry (post.c) -------------------------------------------- */

/**
 * Entries being written to a send queue that rocid cannot see yet: they keep the marks of the
 * previous lap until roci_build_commit(). The queue's lock is held meanwhile.
 */
struct roci_builder {
	uint8_t *entries;
	uint32_t mask; /* depth - 1 */
	uint32_t stride;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t next;	/* index of the entry to write */
	uint32_t limit; /* first entry known to have no room; `next` after a failure */
	int err;	/* of the first failure since roci_build_begin() */
};

/** Fills in the members that never change during the life of the QP. */
ROCI_API void roci_build_init(struct roci_qp *qp, struct roci_builder *b);

/** Takes the lock.  @return b->err: 0, or why nothing can be posted: EINVAL (state), EIO. The lock
 *  is held in either case. */
ROCI_API int roci_build_begin(struct roci_qp *qp, struct roci_builder *b);

/** Looks for room after b->next has reached b->limit.  @return 0 or ENOMEM. */
ROCI_API int roci_build_room(struct roci_qp *qp, struct roci_builder *b);

/** Hands the entries over, in order, and releases the lock.  @return 0. */
ROCI_API int roci_build_commit(struct roci_qp *qp, struct roci_builder *b);

/** Discards the entries and releases the lock. */
ROCI_API void roci_build_abort(struct roci_qp *qp);

/* --- a CQ, completion by completion (poll.c) --------------------------------------------- */

/** A thread's position in a CQ. */
struct roci_reader {
	const struct abi_cqe *cqe; /* valid until the next call */
	const struct roci_qp *qp;  /* its QP; NULL: see cqe->qpn */
	bool dead;		   /* rocid is gone: `flushed` has the remaining requests */
	struct abi_cqe flushed;
};

/** Takes the CQ's lock and the first completion.  @return 0; ENOENT, EIO, ENOMEM: none, the lock is
 *  free. */
ROCI_API int roci_read_start(struct roci_cq *cq, struct roci_reader *r);

/** Takes the next completion.  @return 0; ENOENT: none. */
ROCI_API int roci_read_next(struct roci_cq *cq, struct roci_reader *r);

/** Frees the slots that were taken, and releases the lock. */
ROCI_API void roci_read_end(struct roci_cq *cq, struct roci_reader *r);

/* --- sessions ---------------------------------------------------------------------------- */

/** Ends the session: when this returns, rocid has destroyed its objects, so that peers no longer
 *  have access to its memory (unless rocid is stopped for 2 s). The caller then destroys the
 *  remaining handles, which sends no requests and waits for no acknowledgement, and finally closes
 *  the context. */
ROCI_API void roci_abandon(struct roci_context *ctx);

/** @return the number of rocid's workers. */
ROCI_API uint32_t roci_workers(struct roci_context *ctx);

/** madvise(2) for memory that may have been swapped (lib/arena): clears it if the kernel would.
 *  @return 0, or an errno. */
ROCI_API int roci_madvise(void *addr, size_t len, int advice);

/** mremap(2) for such memory: what it adds reads as zeroes.  @return the address, or MAP_FAILED
 *  with errno. */
ROCI_API void *roci_mremap(void *old, size_t old_len, size_t new_len, int flags, void *to);

/** @return a stand-in for the PD of an XRC target: each request uses the keys of the PD of its SRQ.
 */
ROCI_API struct roci_pd *roci_no_pd(struct roci_context *ctx);

/** Like roci_create_ah(), but without a wait for the kernel. EAGAIN: it has begun to look for the
 * peer.
 */
ROCI_API struct roci_ah *roci_create_ah_at_once(
	struct roci_pd *pd, const struct roci_ah_attr *attr);

/** @return the number of @p ah for work requests. */
ROCI_API uint32_t roci_ah_handle(const struct roci_ah *ah);

/* --- communication manager ----------------------------------------------------------------- */

/**
 * Sends request @p type of abi_cm.h and waits for its reply.
 * @param body   @p body_len bytes; NULL: none
 * @param reply  receives @p reply_len bytes, zeroes where rocid sent fewer; NULL: none
 * @param fd     receives the descriptor of CM_OPEN; else NULL
 * @return 0 or an errno value, with a sentence; EAGAIN of CM_GET_EVENT: there is no event.
 */
ROCI_API int roci_cm_call(struct roci_context *ctx, uint32_t type, const void *body,
	size_t body_len, void *reply, size_t reply_len, int *fd);

#endif
