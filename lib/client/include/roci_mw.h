/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci_mw.h
 * Memory windows; a part of roci.h, which includes it.
 */
#ifndef ROCI_MW_H
#define ROCI_MW_H

#ifndef ROCI_H
#error "include roci.h"
#endif

struct roci_context;
struct roci_mr;
struct roci_pd;
struct roci_qp;

/** Kinds of memory windows. */
enum roci_mw_type {
	/** For all QPs of its PD; bound and unbound by roci_bind_mw(). */
	ROCI_MW_TYPE_1 = 1,
	/** For the QP that binds it only (2B, MW-09); bound by ROCI_WR_BIND_MW, invalidated by
	 *  ROCI_WR_LOCAL_INV or by the peer's ROCI_WR_SEND_WITH_INV. */
	ROCI_MW_TYPE_2 = 2,
};

/** A memory window: an rkey for part of an MR that can be granted and revoked without a control
 *  call. The members are read-only. */
struct roci_mw {
	struct roci_context *context; /**< its session */
	struct roci_pd *pd;	      /**< its PD, the same as that of its QPs and MRs */
	uint32_t rkey;		/**< its first rkey; type 1: that of the latest roci_bind_mw() */
	enum roci_mw_type type; /**< its kind */
};

/** The range that a window is bound to. */
struct roci_mw_bind_info {
	struct roci_mr *mr; /**< with ROCI_ACCESS_MW_BIND; NULL with @p length 0 */
	uint64_t addr;	    /**< of the first byte, in the MR's address range */
	uint64_t length;    /**< bytes; 0 unbinds type 1 (MW-05), type 2 needs 1 or more (MW-04) */
	/** ROCI_ACCESS_REMOTE_*, ROCI_ACCESS_FLUSH_GLOBAL; type 2 also ROCI_ACCESS_ZERO_BASED.
	 *  Remote writes and atomics need an MR with ROCI_ACCESS_LOCAL_WRITE (MW-07), and a flush
	 *  one with the flush right; otherwise the MR's own rkey need not grant the rights of the
	 *  window. */
	unsigned int mw_access_flags;
};

/** Parameters of roci_bind_mw(). */
struct roci_mw_bind {
	uint64_t wr_id;			    /**< returned in its completion */
	unsigned int send_flags;	    /**< ROCI_SEND_SIGNALED, ROCI_SEND_FENCE */
	struct roci_mw_bind_info bind_info; /**< the range to bind it to */
};

/**
 * Allocates a memory window, which is not bound yet.
 * @param pd    its QPs may use the window
 * @param type  its kind
 * @return the window, or NULL with errno EINVAL (no such type), ENOMEM, EDQUOT (too many MRs and
 * windows).
 */
ROCI_API struct roci_mw *roci_alloc_mw(struct roci_pd *pd, enum roci_mw_type type);

/**
 * Frees a window, bound or not. When it returns, nothing accesses memory by its rkey any more.
 * @param mw  from roci_alloc_mw()
 * @return 0, or an errno value, the window being unchanged.
 */
ROCI_API int roci_dealloc_mw(struct roci_mw *mw);

/** @param rkey  of a window  @return its next rkey: only the low 8 bits are the program's to
 *  choose.
 */
static inline uint32_t roci_inc_rkey(uint32_t rkey)
{
	return (rkey & ~0xFFu) | ((rkey + 1) & 0xFFu);
}

/**
 * Binds a type 1 window, or unbinds it (length 0). This posts a send work request, which is
 * executed before later ones. On return `mw->rkey` is the new rkey; the peer may use it once the
 * bind is complete, or once it receives a SEND that was posted later. Once the bind is complete,
 * the former rkey is not in use any more.
 * @param qp    in the window's PD, in RTS or SQD
 * @param mw    of type 1; one thread at a time binds it
 * @param bind  the range to bind it to
 * @return 0; EINVAL: the window is of type 2, or as for roci_post_send(); ENOMEM: the send queue is
 * full; EIO. Errors of the range or the rights are reported by a completion with
 * ROCI_WC_MW_BIND_ERR, after which the QP is in ERR (MW-11).
 */
ROCI_API int roci_bind_mw(struct roci_qp *qp, struct roci_mw *mw, const struct roci_mw_bind *bind);

#endif
