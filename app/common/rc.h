/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rc.h
 * Connecting a queue pair, RC, UC or XRC, once both sides know each other.
 */
#ifndef RC_H
#define RC_H

#include <roci.h>

/** The parameters of a connection. */
struct rc_path {
	uint8_t port;	   /**< ours, from 1 */
	uint8_t gid_index; /**< ours */
	enum roci_mtu mtu; /**< the same on both sides */
	uint32_t psn;	   /**< the first that we send */
	uint8_t rd_atomic; /**< RC: READs outstanding, either direction */
	uint8_t timeout;   /**< RC: code of the local ACK timeout */
	uint8_t sl;	   /**< service level */
	uint8_t traffic_class;
	uint32_t flow_label; /**< 0: derived from the QPNs */
	uint32_t peer_qpn;
	uint32_t peer_psn; /**< the first that the peer sends */
	union roci_gid peer_gid;
};

/** RESET to INIT: receives can be posted. @p access: enum roci_access_flags, what the peer may do.
 *  @return 0 or an errno value; roci_last_error() says more. */
int rc_init(struct roci_qp *qp, uint8_t port, int access);

/** @return the address vector of @p path. */
struct roci_ah_attr rc_address(const struct rc_path *path);

/** INIT to RTR (can receive) and RTS (can send).  @return as rc_init(). */
int rc_connect(struct roci_qp *qp, const struct rc_path *path);

#endif
