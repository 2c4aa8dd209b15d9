/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mcast.h
 * Multicast GIDs and groups (IBA 10.5; MC-01..08): the queue pairs attached to each group at each
 * port. The control thread changes a group by replacing it; workers walk the table between two
 * quiescent states.
 */
#ifndef MCAST_H
#define MCAST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "limits.h"
#include "path.h"

struct mcast_table;
struct qp;

/** @return whether @p gid is that of a group: an IPv6 multicast address, or an IPv4 one in its
 *  mapped form (MC-01). */
bool gid_is_multicast(const uint8_t gid[16]);

/** Computes the destination MAC of frames to group @p mgid (MC-02, MC-07; RFC 1112 6.4, RFC 2464
 *  7). */
void mcast_mac(uint8_t mac[6], const uint8_t mgid[16]);

/** An attached QP (MC-04). */
struct mcast_member {
	struct qp *qp;
	uint32_t session; /* number of the session that owns it */
	uint32_t serial;  /* increases with each attachment in the daemon: identifies this one */
};

/** Immutable, except for `next`, until the end of the grace period after its removal. */
struct mcast_group {
	_Atomic(struct mcast_group *) next; /* in the same bucket */
	uint8_t mgid[16];
	uint32_t port; /* index */
	uint32_t n;
	/** Grouped by session, in the order of their serials. */
	struct mcast_member member[];
};

/** @return the bucket of @p mgid. */
uint32_t mcast_bucket(const struct mcast_table *t, const uint8_t mgid[16]);

/** @return group @p mgid at port @p port, or NULL: no QP is attached to it there. */
const struct mcast_group *mcast_find(
	const struct mcast_table *t, const uint8_t mgid[16], uint32_t port);

/** Replaces @p old in @p t by @p group, or adds it when @p old is NULL; a NULL @p group removes @p
 *  old, which is the caller's after a grace period. Control thread. */
void mcast_replace(struct mcast_table *t, struct mcast_group *old, struct mcast_group *group);

#endif
