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

/** An XRC domain: a message to one of its ROCI_QPT_XRC_RECV QPs names one of its SRQs. */
struct roci_xrcd {
	struct roci_context *context; /**< its session */
};

/** Parameters for opening an XRC domain. */
struct roci_xrcd_init_attr {
	size_t size; /**< sizeof(struct roci_xrcd_init_attr) */
	int fd; /**< of a file or directory, not O_PATH: programs that open the same one share its
		   domain; -1: a private domain */
	int oflags; /**< O_CREAT: create it if there is none (needed with fd -1); with O_EXCL: fail
		       if there is one */
};

/**
 * Opens or creates an XRC domain. It exists until everyone who opened it has closed it.
 * @param ctx   the session
 * @param attr  the domain to open
 * @return the domain, or NULL with errno EINVAL, EBADF (O_PATH), EEXIST, ENOENT (as open(2)),
 * EDQUOT or ENOSPC (too many).
 */
ROCI_API struct roci_xrcd *roci_open_xrcd(
	struct roci_context *ctx, const struct roci_xrcd_init_attr *attr);

/**
 * Closes an XRC domain.
 * @param xrcd  the domain; its SRQs and QPs of this session must have been destroyed
 * @return 0, or EBUSY: SRQs or QPs still use it.
 */
ROCI_API int roci_close_xrcd(struct roci_xrcd *xrcd);

/* --- shared receive queues -------------------------------------------------------------- */

/** A shared receive queue: QPs created with it take their receives from it, in order of arrival
 *  (SRQ-02). The members are read-only. */
struct roci_srq {
	struct roci_context *context; /**< its session */
	struct roci_pd *pd; /**< its receives may use the MRs of this PD, whatever the QP's PD */
	void *user_data;    /**< from roci_create_srq() */
	uint32_t srq_num;   /**< 24 bits */
};

/** Parameters of a new SRQ. */
struct roci_srq_init_attr {
	size_t size;	    /**< sizeof(struct roci_srq_init_attr) */
	void *user_data;    /**< for the program's use, copied to struct roci_srq */
	uint32_t max_wr;    /**< in: outstanding receives needed, 1 .. max_srq_wr; out: actual */
	uint32_t max_sge;   /**< in: SGEs per receive, 0 .. max_sge; out: actual */
	uint32_t srq_limit; /**< as in struct roci_srq_attr; verbs ignores it here */
	struct roci_xrcd *xrcd; /**< not NULL: creates an XRC SRQ in this domain */
	struct roci_cq *cq;	/**< for the completions of an XRC SRQ (XRC-05) */
};

/** Attributes of an SRQ. */
struct roci_srq_attr {
	size_t size;	    /**< sizeof(struct roci_srq_attr) */
	uint32_t max_wr;    /**< outstanding receives that it can hold */
	uint32_t max_sge;   /**< SGEs per receive; query only */
	uint32_t srq_limit; /**< raises ROCI_EVENT_SRQ_LIMIT_REACHED, once, when a message finds or
			       leaves fewer receives than this (SRQ-04); then 0 until it is set
			       again */
};

/** Selects members of struct roci_srq_attr. */
enum roci_srq_attr_mask {
	ROCI_SRQ_MAX_WR = 1 << 0, /**< max_wr */
	ROCI_SRQ_LIMIT = 1 << 1,  /**< srq_limit */
};

/**
 * Creates a shared receive queue.
 * @param pd    its receives may use the MRs of this PD
 * @param attr  max_wr and max_sge are updated to the actual values
 * @return the SRQ, or NULL with errno EINVAL (a capability beyond roci_query_device(), max_wr 0, a
 * limit above max_wr), EDQUOT or ENOSPC (too many, or too long).
 */
ROCI_API struct roci_srq *roci_create_srq(struct roci_pd *pd, struct roci_srq_init_attr *attr);

/**
 * Changes the number of receives that the SRQ can hold, arms the limit, or both. Waiting receives
 * stay. Other threads may post meanwhile; while the size changes they wait.
 * @param srq   the SRQ
 * @param attr  the caller sets its `size`; only members selected by @p mask are read
 * @param mask  enum roci_srq_attr_mask
 * @return 0; EINVAL: max_wr is 0, beyond max_srq_wr or less than the number of waiting receives
 * (SRQ-05), or the limit is above max_wr: nothing has changed.
 */
ROCI_API int roci_modify_srq(struct roci_srq *srq, const struct roci_srq_attr *attr, int mask);

/**
 * Reads the attributes.
 * @param srq   the SRQ
 * @param attr  filled in; the caller sets its `size`
 * @return 0 or an errno value.
 */
ROCI_API int roci_query_srq(struct roci_srq *srq, struct roci_srq_attr *attr);

/**
 * Destroys @p srq. Waiting receives are discarded without completions. Waits until its async events
 * have been acknowledged.
 * @param srq  the SRQ; its QPs must have been destroyed
 * @return 0, or EBUSY: QPs still use it (SRQ-09).
 */
ROCI_API int roci_destroy_srq(struct roci_srq *srq);

#endif
