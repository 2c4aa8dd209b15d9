/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rib.h
 * A netdev of IP over InfiniBand (RFC 4391, lib/ipoib) on a RoCE port: a tap of the kernel, and a
 * UD queue pair of a session with rocid, whose limits, captures and injected faults are those of
 * any program. Two threads: one moves packets; the other creates address handles and follows the
 * groups that the kernel joins on the netdev, which may block.
 */
#ifndef RIB_H
#define RIB_H

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>

#define RIB_MTU_DEFAULT 2044u /* RFC 4391 7: path MTU 2048 less the header (IPB-13) */
#define RIB_MTU_MAX	4092u
#define RIB_MTU_MIN	252u
#define RIB_SAID	256u

struct rib;

struct rib_config {
	char name[IFNAMSIZ]; /* of the netdev */
	const char *socket;  /* of rocid; outlives the netdev */
	uint32_t port;	     /* from 1 */
	uint16_t pkey;	     /* of the link; in the port's table */
	uint16_t mtu;	     /* of IP */
};

/**
 * Starts the threads. The netdev appears when the port has a link-local GID and a path MTU that
 * carries @p cfg's, and has joined the broadcast group (IPB-11); otherwise stderr says what is
 * missing.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int rib_start(struct rib **out, const struct rib_config *cfg, char *why, unsigned why_size);

/** Asks the threads to end. Any thread; NULL is allowed. */
void rib_ask_to_stop(struct rib *r);

/** Waits for the threads to end and removes the netdev. Until then rocid must serve their session
 * or have closed it.
 */
void rib_destroy(struct rib *r);

const struct rib_config *rib_config_of(const struct rib *r);

/** The netdev as administrators see it. */
struct rib_view {
	char name[IFNAMSIZ]; /* configured; the netdev may have been renamed */
	bool up;	     /* it has a QP and its netdev */
	uint32_t qpn;
	uint8_t gid[16];
	uint32_t mtu;	   /* last MTU of the netdev that the port can carry */
	uint32_t neighs;   /* entries of the table of neighbours */
	uint32_t bridged;  /* IP addresses of other hosts on its bridge */
	uint32_t groups;   /* that the kernel joined */
	uint32_t missing;  /* of these, groups that are not received: too many, or refused */
	uint32_t sessions; /* opened so far: each has its own QPN */
	uint64_t tap_full; /* frames that the kernel did not accept */
	/** The last sentence on stderr: what the port lacks, or an MTU that was reset; or "". */
	char said[RIB_SAID];
};

/** Copies the view and the IPOIB_COUNTS counters of lib/ipoib, which may be slightly out of date.
 * Any thread. */
void rib_look(struct rib *r, struct rib_view *view, uint64_t *counts);

#endif
