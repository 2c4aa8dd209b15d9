/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/announce.h
 * Tells the link which MAC an address has now. Linux does so only where arp_notify or ndisc_notify
 * is set, and for IPv6 its requests carry the link-local address only: peers would go on sending to
 * the old MAC for most of a minute, which is more than the retries of a queue pair. Control thread.
 */
#ifndef NET_ANNOUNCE_H
#define NET_ANNOUNCE_H

#include "net/gids.h"

/** @return a descriptor for announce_changes(), to be closed at the end, or -1: it then announces
 * IPv6 only. One for good, because closing a packet socket waits for the kernel's RCU, up to
 * seconds. */
int announce_open(void);

/**
 * Sends a gratuitous ARP request (RFC 5227, 3), or an unsolicited neighbour advertisement (RFC
 * 4861, 7.2.6), for each kernel address of @p g that is new or has another MAC than in @p before.
 * Best effort: it needs CAP_NET_RAW.
 */
void announce_changes(int fd, const struct gids *g, const struct gid_table *before);

#endif
