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

/** An address handle: the path to a peer, or to a multicast group. The members are read-only. */
struct roci_ah {
	struct roci_context *context; /**< its session */
	struct roci_pd *pd;	      /**< its PD, the same as that of its QPs */
};

/** Bytes that precede the payload of a datagram in its receive buffer (UD-05). */
#define ROCI_GRH_LEN 40

/**
 * The bytes before the payload, as received: the GRH of RoCEv1; the IPv6 header of RoCEv2, or 20
 * zero bytes and its IPv4 header (UD-06, UD-07). roci_init_ah_from_wc() tells them apart.
 */
struct roci_grh_area {
	uint8_t raw[ROCI_GRH_LEN]; /**< the bytes */
};

/**
 * Creates an address handle (UD-15). The MAC address of the peer is looked up now, and tracked
 * while the handle exists. A multicast GID, either IPv4-mapped or beginning with 0xFF, makes a
 * handle for that group.
 * @param pd    its QPs may use the handle
 * @param attr  is_global must be 1
 * @return the handle, or NULL with errno EINVAL (no such port or GID, different families, sl above
 * 7, is_global 0), EHOSTUNREACH, ENETUNREACH or ETIMEDOUT (the peer's MAC address could not be
 * found: ETH-12), EDQUOT or ENOSPC (too many).
 */
ROCI_API struct roci_ah *roci_create_ah(struct roci_pd *pd, const struct roci_ah_attr *attr);

/**
 * Fills in an address vector for the reply to a datagram (UD-11).
 * @param ctx   the session
 * @param port  the port that it arrived at, from 1
 * @param wc    its completion; ROCI_WC_GRH must be set
 * @param area  the first bytes of its receive buffer
 * @param attr  filled in: to the sender, from the GID that it was sent to; if that was a group,
 * from
 *              the first suitable GID
 * @return 0; EINVAL: not a datagram; EADDRNOTAVAIL: the port does not have that GID any more.
 */
ROCI_API int roci_init_ah_from_wc(struct roci_context *ctx, uint32_t port, const struct roci_wc *wc,
	const struct roci_grh_area *area, struct roci_ah_attr *attr);

/**
 * Like roci_init_ah_from_wc(), but with the details from roci_poll_cq_net(): the type of the header
 * need not be guessed, and the reply uses the entry of the sender's VLAN. An address may be on
 * several VLANs, as a link-local one is on those of one netdev; without @p net the first entry with
 * the address is used. The MAC address is looked up as for any handle, because that of a frame may
 * be wrong.
 * @param ctx   the session
 * @param port  the port that it arrived at, from 1
 * @param wc    its completion; ROCI_WC_GRH must be set
 * @param net   the details of @p wc; NULL: unknown
 * @param area  the first bytes of its receive buffer
 * @param attr  receives the address vector
 * @return as roci_init_ah_from_wc().
 */
ROCI_API int roci_init_ah_from_wc_net(struct roci_context *ctx, uint32_t port,
	const struct roci_wc *wc, const struct roci_wc_net *net, const struct roci_grh_area *area,
	struct roci_ah_attr *attr);

/**
 * Creates an address handle for a reply: roci_init_ah_from_wc() and roci_create_ah().
 * @param pd    its QPs may use the handle
 * @param port  the port that the datagram arrived at, from 1
 * @param wc    its completion
 * @param area  the first bytes of its receive buffer
 * @return the handle, or NULL with errno as for these two.
 */
ROCI_API struct roci_ah *roci_create_ah_from_wc(struct roci_pd *pd, uint32_t port,
	const struct roci_wc *wc, const struct roci_grh_area *area);

/**
 * Destroys @p ah. Requests already posted with it are still sent (UD-16).
 * @param ah  the handle
 * @return 0 or an errno value.
 */
ROCI_API int roci_destroy_ah(struct roci_ah *ah);

/**
 * Attaches @p qp to a multicast group: it receives datagrams sent to the group on its port,
 * including those of this machine (MC-08). The kernel joins the group on the port's netdev and on
 * its VLAN netdevs, by IGMP or MLD (MC-03); datagrams that arrive on any of these are received, and
 * roci_poll_cq_net() returns the VLAN. Attaching again has no effect (MC-05).
 * @param qp     of type UD, not in RESET
 * @param group  begins with 0xFF, or is an IPv4-mapped multicast address (MC-01)
 * @return 0; EINVAL: wrong type or state, or not a multicast GID; EDQUOT or ENOSPC: too many.
 */
ROCI_API int roci_attach_mcast(struct roci_qp *qp, const union roci_gid *group);

/**
 * Detaches @p qp from a group. A QP that is attached to one cannot be destroyed (MC-06).
 * @param qp     the QP
 * @param group  the group
 * @return 0, or EINVAL: it is not attached to @p group (MC-05).
 */
ROCI_API int roci_detach_mcast(struct roci_qp *qp, const union roci_gid *group);

#endif
