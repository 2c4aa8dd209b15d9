/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mcast.h
 * Multicast GIDs and groups (IBA 10.5; MC-01..08): which queue pairs have attached to a group at
 * a port. The control thread changes a group by putting a new one in its place; workers walk the
 * table between two quiescent states.
 */
#ifndef MCAST_H
#define MCAST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "hash.h"
#include "limits.h"
#include "path.h"

struct qp;

/** @return whether @p gid is a group's: an IPv6 multicast address, or an IPv4 one in its mapped
 *  form (MC-01). */
bool gid_is_multicast(const uint8_t gid[16]);

/** The MAC that the frames for group @p mgid go to (MC-02, MC-07; RFC 1112 6.4, RFC 2464 7). */
void mcast_mac(uint8_t mac[6], const uint8_t mgid[16]);

/** A QP that has attached (MC-04). */
struct mcast_member {
	struct qp *qp;
	uint32_t session; /* number of the session that owns it */
	uint32_t serial;  /* ascends with each attachment of the daemon: tells it from later ones */
};

/** Never changes between publication and the grace period after its withdrawal, but for `next`. */
struct mcast_group {
	_Atomic(struct mcast_group *) next; /* of the same bucket */
	uint8_t mgid[16];
	uint32_t port; /* index */
	uint32_t n;
	/** Those of one session stand together, in the order of their serials. */
	struct mcast_member member[];
};

#define MCAST_BUCKETS 256u

struct mcast_table {
	struct hash_seed seed; /* set before the first group: programs and peers choose MGIDs */
	_Atomic(struct mcast_group *) bucket[MCAST_BUCKETS];
};

/** @return the bucket of @p mgid. */
uint32_t mcast_bucket(const struct mcast_table *t, const uint8_t mgid[16]);

/** @return group @p mgid at port @p port, or NULL: nobody has attached to it there. */
const struct mcast_group *mcast_find(
	const struct mcast_table *t, const uint8_t mgid[16], uint32_t port);

/** Puts @p group into @p t in the place of @p old, or as a new one when that is NULL; a NULL
 *  @p group takes @p old out, which is the caller's after a grace period. Control thread. */
void mcast_replace(struct mcast_table *t, struct mcast_group *old, struct mcast_group *group);

#endif
