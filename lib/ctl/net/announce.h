/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/announce.h
 * Announces the new MAC of an address on the link. Linux does so only if arp_notify or ndisc_notify
 * is set, and its IPv6 requests carry only the link-local address: peers would continue to send to
 * the old MAC for most of a minute, longer than a queue pair retries. Control thread.
 */
#ifndef NET_ANNOUNCE_H
#define NET_ANNOUNCE_H

#include "net/gids.h"

/** @return a descriptor for announce_changes(), to be closed at shutdown, or -1, which limits
 *  announcements to IPv6. It stays open because closing a packet socket waits for an RCU grace
 *  period of the kernel, up to seconds. */
int announce_open(void);

/**
 * Sends a gratuitous ARP request (RFC 5227, 3), or an unsolicited neighbour advertisement (RFC
 * 4861, 7.2.6), for each kernel address of @p g that is new or whose MAC differs from @p before.
 * Best effort: it needs CAP_NET_RAW.
 */
void announce_changes(int fd, const struct gids *g, const struct gid_table *before);

#endif
