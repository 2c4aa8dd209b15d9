/* SPDX-License-Identifier: BSD-3-Clause */
/** @file from_peer.h  Whether a packet comes from the peer of a connected QP. */
#ifndef FROM_PEER_H
#define FROM_PEER_H

#include "bits.h"
#include "path_match.h"
#include "qp.h"

/**
 * @return whether @p pkt comes from the peer of the connected @p qp. An address alone does not
 * prove that: all programs on this host share the port's own addresses, and anybody can forge one
 * in a frame. Between QPs of this daemon the source QP is known, and a peer that is one of them
 * does not send over the wire (SEC-03).
 */
static ALWAYS_INLINE bool qp_is_from_peer(const struct qp *qp, const struct pkt *pkt)
{
	if (!path_matches(&qp->path, pkt))
		return false;
	if (unlikely(pkt->queue == PKT_LOCAL))
		return pkt->source_qp == qp->attr.dest_qpn;
	return !qp->path.local;
}

#endif
