/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file share.h
 * Standing beside the kernel on one of its netdevs (design.md 1, "share"): an AF_PACKET port
 * sees copies of the frames, so the kernel must be kept from answering those for port 4791
 * with ICMP "port unreachable".
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include "limits.h"

/** Ethernet MTU up to which share_create()'s frames reach: the netdev's may rise to it. */
#define SHARE_MTU_MAX (MBUF_ROOM - 256u)

/**
 * Makes an AF_PACKET ethdev on netdev @p netdev.
 * @param queues  one for each worker
 * @param ethdev  receives the port id
 * @param why     receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int share_create(
	const char *netdev, uint16_t queues, uint16_t *ethdev, char *why, unsigned why_size);

/** Removes an ethdev that share_create() made and that is closed. */
void share_remove(const char *netdev);

/** The rings of a packet socket in memory, once more than the driver has them there. */
struct share_rings {
	uint8_t *rx, *tx;
	unsigned frames; /* of each, MBUF_ROOM bytes apart, of TPACKET_V2 */
};

/**
 * Maps the rings of @p fd, a socket of a device that share_create() made. The socket lives no
 * shorter than this.
 * @return false when it cannot be done.
 */
bool share_map(struct share_rings *r, int fd);

void share_unmap(const struct share_rings *r);

/** Sockets that take UDP port 4791 of a netdev away from the kernel. */
struct share_guard {
	int fd[2]; /* IPv4, IPv6; -1: none */
};

/**
 * Binds port 4791 of @p netdev, both protocols, to sockets that drop every datagram before it
 * is queued. The netdev's other ports are the kernel's as before.
 * @param whole  they take super-frames (gso.h) as they are: the kernel would cut each first, to
 *               drop the parts
 * @param why    receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int share_guard(
	struct share_guard *g, const char *netdev, bool whole, char *why, unsigned why_size);

/** Gives the port back to the kernel. */
void share_unguard(struct share_guard *g);

/** The guards of the VLAN netdevs on top of one. */
struct share_vlans {
	unsigned count;
	uint32_t ifindex[PORT_VLAN_MAX];
	struct share_guard guard[PORT_VLAN_MAX];
};

/**
 * Has @p v guard the @p n netdevs @p ifindex and no others; what it guards already stays guarded
 * all the time.
 * @param why  receives a sentence that says what to do when one cannot be guarded; the others are
 * @return 0 or a negative errno.
 */
int share_guard_vlans(
	struct share_vlans *v, const uint32_t *ifindex, unsigned n, char *why, unsigned why_size);

#endif
