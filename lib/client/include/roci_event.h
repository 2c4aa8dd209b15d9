/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci_event.h
 * Asynchronous events; a part of roci.h, which includes it.
 */
#ifndef ROCI_EVENT_H
#define ROCI_EVENT_H

#ifndef ROCI_H
#error "include roci.h"
#endif

/* --- asynchronous events ---------------------------------------------------------------- */

/** Types of events; the values are those of enum ibv_event_type. */
enum roci_event_type {
	ROCI_EVENT_CQ_ERR = 0,	      /**< the CQ overflowed (CQ-01) */
	ROCI_EVENT_QP_FATAL = 1,      /**< the QP failed, and no completion reports it */
	ROCI_EVENT_QP_REQ_ERR = 2,    /**< the peer sent a request that the QP does not allow */
	ROCI_EVENT_QP_ACCESS_ERR = 3, /**< the peer used an invalid key or lacked the right */
	ROCI_EVENT_COMM_EST = 4,      /**< first packet while in RTR */
	ROCI_EVENT_SQ_DRAINED = 5,    /**< in SQD: no request is outstanding */
	ROCI_EVENT_DEVICE_FATAL = 8,  /**< rocid is gone */
	ROCI_EVENT_PORT_ACTIVE = 9,   /**< the link came up */
	ROCI_EVENT_PORT_ERR = 10,     /**< the link went down */
	ROCI_EVENT_PKEY_CHANGE = 12,  /**< the port's P_Key table changed */
	ROCI_EVENT_SRQ_ERR = 14,      /**< the SRQ's ring has invalid contents: SRQ-08 */
	ROCI_EVENT_SRQ_LIMIT_REACHED = 15,   /**< fewer receives than the limit are left (SRQ-04) */
	ROCI_EVENT_QP_LAST_WQE_REACHED = 16, /**< a QP with an SRQ failed and takes no more of its
						receives (SRQ-07): destroy it after this */
	ROCI_EVENT_GID_CHANGE = 18,	     /**< the port's GID table changed */
};

/** An asynchronous event. */
struct roci_async_event {
	size_t size; /**< sizeof(struct roci_async_event) */
	/** The object concerned. */
	union {
		struct roci_cq *cq;	 /**< CQ_* */
		struct roci_qp *qp;	 /**< QP_*, COMM_EST, SQ_DRAINED */
		struct roci_srq *srq;	 /**< SRQ_* */
		uint32_t port_num;	 /**< PORT_*, GID_CHANGE, PKEY_CHANGE */
	} element;			 /**< the object concerned; unused by DEVICE_FATAL */
	enum roci_event_type event_type; /**< type of the event */
};

/**
 * Takes an async event, waiting for one unless async_fd is O_NONBLOCK. Every event must be
 * acknowledged before its object can be destroyed. When rocid is gone the last event is
 * ROCI_EVENT_DEVICE_FATAL; after that EIO.
 * @param ctx    the session
 * @param event  filled in; the caller sets its `size`
 * @return 0, EAGAIN, EINTR, EIO.
 */
ROCI_API int roci_get_async_event(struct roci_context *ctx, struct roci_async_event *event);

/**
 * Acknowledges an event, which lets the destruction of its object proceed.
 * @param event  from roci_get_async_event()
 */
ROCI_API void roci_ack_async_event(struct roci_async_event *event);

#endif
