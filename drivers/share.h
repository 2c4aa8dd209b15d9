/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file share.h
 * Sharing a netdev with the kernel (decision 0000.1, "share"): an AF_PACKET port sees copies of the
 * frames, so the kernel must be kept from answering those for port 4791 with ICMP "port
 * unreachable".
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include "limits.h"

/** The largest Ethernet MTU for share_create()'s frames: the netdev's may rise to it. */
#define SHARE_MTU_MAX (MBUF_ROOM - 256u)

/**
 * Creates an AF_PACKET ethdev on netdev @p netdev.
 * @param queues  one for each worker
 * @param ethdev  receives the port id
 * @param why     receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int share_create(
	const char *netdev, uint16_t queues, uint16_t *ethdev, char *why, unsigned why_size);

/** Removes an ethdev that share_create() made and that is closed. */
void share_remove(const char *netdev);

/** A second mapping of a packet socket's rings, in addition to the driver's. */
struct share_rings {
	uint8_t *rx, *tx;
	unsigned frames; /* of each, MBUF_ROOM bytes apart, of TPACKET_V2 */
};

/**
 * Maps the rings of @p fd, a socket of a device that share_create() made. The socket must outlive
 * the mapping. @return false if it fails.
 */
bool share_map(struct share_rings *r, int fd);

void share_unmap(const struct share_rings *r);

/** Sockets that take UDP port 4791 of a netdev away from the kernel. */
struct share_guard {
	int fd[2]; /* IPv4, IPv6; -1: none */
};

/**
 * Binds port 4791 of @p netdev, both protocols, to sockets that drop every datagram before it is
 * queued. The kernel keeps the netdev's other ports.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int share_guard(struct share_guard *g, const char *netdev, char *why, unsigned why_size);

/** Makes the sockets of @p g accept whole super-frames (gso/run.h), which the kernel would
 * otherwise cut only to drop the parts. If it refuses, that only costs time. */
void share_guard_whole(const struct share_guard *g);

/** @return whether netdev @p netdev is a device of this machine or of its hypervisor, rather than
 *  one that a kernel invented, such as a veth. */
bool share_is_device(const char *netdev);

/** Returns the port to the kernel. */
void share_unguard(struct share_guard *g);

/** The guards of the VLAN netdevs on top of one. */
struct share_vlans {
	unsigned count;
	uint32_t ifindex[PORT_VLAN_MAX];
	struct share_guard guard[PORT_VLAN_MAX];
};

/**
 * Makes @p v guard the @p n netdevs @p ifindex and no others; netdevs that it already guards stay
 * guarded throughout. @param why receives a sentence that says what to do if one cannot be guarded;
 * the others are
 * @return 0 or a negative errno.
 */
int share_guard_vlans(
	struct share_vlans *v, const uint32_t *ifindex, unsigned n, char *why, unsigned why_size);

#endif
