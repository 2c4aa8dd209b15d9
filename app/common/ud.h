/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ud.h
 * Setting up a datagram queue pair, which has no peer.
 */
#ifndef UD_H
#define UD_H

#include <roci.h>

/** RESET to INIT: receives can be posted. Packets must have @p qkey.
 *  @return 0 or an errno value; roci_last_error() says more. */
int ud_init(struct roci_qp *qp, uint8_t port, uint32_t qkey);

/** INIT to RTR (can receive) and RTS (can send), from PSN @p psn on.  @return as ud_init(). */
int ud_start(struct roci_qp *qp, uint32_t psn);

/** @return an address handle to @p gid from GID @p gid_index of @p port, or NULL. */
struct roci_ah *ud_peer(
	struct roci_pd *pd, uint8_t port, uint8_t gid_index, const union roci_gid *gid);

#endif
