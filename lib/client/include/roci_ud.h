/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci_ud.h
 * Address handles and multicast; a part of roci.h, which includes it.
 */
#ifndef ROCI_UD_H
#define ROCI_UD_H

#ifndef ROCI_H
#error "include roci.h"
#endif

/* --- datagrams -------------------------------------------------------------------------- */

/** An address handle: the way to a peer, or to a multicast group. The fields are read-only. */
struct roci_ah {
	struct roci_context *context; /**< its session */
	struct roci_pd *pd;	      /**< of which its QPs must be, too */
};

/** Bytes that precede the payload of a datagram in its receive buffer (UD-05). */
#define ROCI_GRH_LEN 40

/**
 * What lies there, as it came in: the GRH of RoCEv1, the IPv6 header of RoCEv2, or behind 20 bytes
 * of zeroes its IPv4 header (UD-06, UD-07). roci_init_ah_from_wc() tells which.
 */
struct roci_grh_area {
	uint8_t raw[ROCI_GRH_LEN]; /**< the bytes */
};

/**
 * Makes an address handle (UD-15). The MAC address of the peer is looked up now, and followed
 * while the handle lives. A multicast GID, an IPv4-mapped one or one that begins with 0xFF, makes
 * one for that group.
 * @param pd    whose QPs may use it
 * @param attr  is_global must be 1
 * @return the handle, or NULL with errno EINVAL (no such port or GID, families that differ, sl
 * above 7, is_global 0), EHOSTUNREACH, ENETUNREACH or ETIMEDOUT (the peer's MAC address could not
 * be found: ETH-12), EDQUOT or ENOSPC (too many).
 */
ROCI_API struct roci_ah *roci_create_ah(struct roci_pd *pd, const struct roci_ah_attr *attr);

/**
 * Fills in what an answer to a datagram needs (UD-11).
 * @param ctx   the session
 * @param port  that it came in on, from 1
 * @param wc    its completion; ROCI_WC_GRH must be set
 * @param area  the first bytes of its receive buffer
 * @param attr  filled in: to the sender, from the GID that it was sent to; from the first GID that
 *              suits, when that was a group
 * @return 0; EINVAL: no datagram; EADDRNOTAVAIL: the port has no such GID any more.
 */
ROCI_API int roci_init_ah_from_wc(struct roci_context *ctx, uint32_t port, const struct roci_wc *wc,
	const struct roci_grh_area *area, struct roci_ah_attr *attr);

/**
 * As roci_init_ah_from_wc(), by what roci_poll_cq_net() says of the datagram: which header it has
 * need not be guessed, and the answer comes from the entry of the sender's VLAN. An address may be
 * on several VLANs, as a link-local one is on those of one netdev; without @p net the first entry
 * that has it is taken. The MAC address is looked up as for any handle, for a frame may tell a
 * wrong one.
 * @param ctx   the session
 * @param port  that it came in on, from 1
 * @param wc    its completion; ROCI_WC_GRH must be set
 * @param net   what belongs to it; NULL: not known
 * @param area  the first bytes of its receive buffer
 * @param attr  receives the address vector
 * @return as roci_init_ah_from_wc().
 */
ROCI_API int roci_init_ah_from_wc_net(struct roci_context *ctx, uint32_t port,
	const struct roci_wc *wc, const struct roci_wc_net *net, const struct roci_grh_area *area,
	struct roci_ah_attr *attr);

/**
 * Makes an address handle for an answer: roci_init_ah_from_wc() and roci_create_ah().
 * @param pd    whose QPs may use it
 * @param port  that the datagram came in on, from 1
 * @param wc    its completion
 * @param area  the first bytes of its receive buffer
 * @return the handle, or NULL with errno as of these two.
 */
ROCI_API struct roci_ah *roci_create_ah_from_wc(struct roci_pd *pd, uint32_t port,
	const struct roci_wc *wc, const struct roci_grh_area *area);

/**
 * Destroys @p ah. What has been posted with it is sent all the same (UD-16).
 * @param ah  the handle
 * @return 0 or an errno value.
 */
ROCI_API int roci_destroy_ah(struct roci_ah *ah);

/**
 * Has @p qp receive what is sent to a multicast group on its port, what this machine sends to it
 * included (MC-08). The kernel joins the group on the port's netdev and on its VLANs', by IGMP or
 * MLD (MC-03); what comes on any of these is received, and roci_poll_cq_net() tells the VLAN. To
 * attach once more changes nothing (MC-05).
 * @param qp     of type UD, not in RESET
 * @param group  begins with 0xFF, or is an IPv4-mapped multicast address (MC-01)
 * @return 0; EINVAL: another type or state, or no multicast GID; EDQUOT or ENOSPC: too many.
 */
ROCI_API int roci_attach_mcast(struct roci_qp *qp, const union roci_gid *group);

/**
 * Ends that. A QP that is attached cannot be destroyed (MC-06).
 * @param qp     the QP
 * @param group  that it attached to
 * @return 0, or EINVAL: it is not attached to @p group (MC-05).
 */
ROCI_API int roci_detach_mcast(struct roci_qp *qp, const union roci_gid *group);

#endif
