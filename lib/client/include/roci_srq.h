/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci_srq.h
 * XRC domains and shared receive queues; a part of roci.h, which includes it.
 */
#ifndef ROCI_SRQ_H
#define ROCI_SRQ_H

#ifndef ROCI_H
#error "include roci.h"
#endif

/* --- XRC domains ------------------------------------------------------------------------ */

/** An XRC domain: a message to one of its ROCI_QPT_XRC_RECV QPs names any of its SRQs. */
struct roci_xrcd {
	struct roci_context *context; /**< its session */
};

/** How an XRC domain is to be opened. */
struct roci_xrcd_init_attr {
	size_t size; /**< sizeof(struct roci_xrcd_init_attr) */
	int fd; /**< of a file or a directory, not O_PATH: programs that open one share its domain;
		 * -1: a domain of one's own */
	int oflags; /**< O_CREAT: make it if there is none (needed with fd -1); with O_EXCL: only if
		     * there is none */
};

/**
 * Opens or makes an XRC domain. It lasts until all who opened it have closed it.
 * @param ctx   the session
 * @param attr  which one
 * @return the domain, or NULL with errno EINVAL, EBADF (O_PATH), EEXIST, ENOENT (as open(2)),
 * EDQUOT or ENOSPC (there are too many).
 */
ROCI_API struct roci_xrcd *roci_open_xrcd(
	struct roci_context *ctx, const struct roci_xrcd_init_attr *attr);

/**
 * Closes an XRC domain.
 * @param xrcd  whose SRQs and QPs of this session are destroyed already
 * @return 0, or EBUSY: SRQs or QPs still use it.
 */
ROCI_API int roci_close_xrcd(struct roci_xrcd *xrcd);

/* --- shared receive queues -------------------------------------------------------------- */

/** A shared receive queue: QPs that are made with it take their receives from it, first come
 *  first served (SRQ-02). The fields are read-only. */
struct roci_srq {
	struct roci_context *context; /**< its session */
	struct roci_pd *pd; /**< whose MRs its receives may use, whatever the QP's PD is */
	void *user_data;    /**< of roci_create_srq() */
	uint32_t srq_num;   /**< 24 bits */
};

/** How an SRQ is to be made. */
struct roci_srq_init_attr {
	size_t size;	    /**< sizeof(struct roci_srq_init_attr) */
	void *user_data;    /**< the program's own, kept in struct roci_srq */
	uint32_t max_wr;    /**< in: receives that may wait in it, 1 .. max_srq_wr; out: may wait */
	uint32_t max_sge;   /**< in: SGEs a receive, 0 .. max_sge; out: it may have */
	uint32_t srq_limit; /**< as in struct roci_srq_attr; verbs ignores it here */
	struct roci_xrcd *xrcd; /**< not NULL: an XRC SRQ of this domain; */
	struct roci_cq *cq;	/**< it completes here (XRC-05) */
};

/** Attributes of an SRQ. */
struct roci_srq_attr {
	size_t size;	    /**< sizeof(struct roci_srq_attr) */
	uint32_t max_wr;    /**< receives that may wait in it */
	uint32_t max_sge;   /**< SGEs a receive; query only */
	uint32_t srq_limit; /**< ROCI_EVENT_SRQ_LIMIT_REACHED, once, when a message finds or leaves
			     * fewer receives than this (SRQ-04); then 0 until it is set anew */
};

/** Which members of struct roci_srq_attr count. */
enum roci_srq_attr_mask {
	ROCI_SRQ_MAX_WR = 1 << 0, /**< max_wr */
	ROCI_SRQ_LIMIT = 1 << 1,  /**< srq_limit */
};

/**
 * Makes a shared receive queue.
 * @param pd    whose MRs its receives may use
 * @param attr  max_wr and max_sge are updated to what the SRQ really has
 * @return the SRQ, or NULL with errno EINVAL (a capability beyond roci_query_device(), no work
 * requests at all, a limit above max_wr), EDQUOT or ENOSPC (too many, or too long).
 */
ROCI_API struct roci_srq *roci_create_srq(struct roci_pd *pd, struct roci_srq_init_attr *attr);

/**
 * Changes how many receives may wait, arms the limit, or both. Receives that wait stay. Other
 * threads may post meanwhile; while the size changes they wait.
 * @param srq   the SRQ
 * @param attr  its `size` set by the caller; only what @p mask names is read
 * @param mask  enum roci_srq_attr_mask
 * @return 0; EINVAL: max_wr is 0, beyond max_srq_wr or less than what waits (SRQ-05), or the limit
 * is above max_wr: nothing has changed.
 */
ROCI_API int roci_modify_srq(struct roci_srq *srq, const struct roci_srq_attr *attr, int mask);

/**
 * Reads the attributes.
 * @param srq   the SRQ
 * @param attr  filled in; its `size` set by the caller
 * @return 0 or an errno value.
 */
ROCI_API int roci_query_srq(struct roci_srq *srq, struct roci_srq_attr *attr);

/**
 * Destroys @p srq. Receives that wait in it are gone without a completion. Waits until its async
 * events have been acknowledged.
 * @param srq  whose QPs are destroyed already
 * @return 0, or EBUSY: QPs still use it (SRQ-09).
 */
ROCI_API int roci_destroy_srq(struct roci_srq *srq);

#endif
