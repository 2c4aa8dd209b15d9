/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file packet.h
 * The ports that --share opens on a netdev: DPDK's AF_PACKET port (share.h), or with --gso the one
 * that handles many frames at a time (gso/gso.h). Control thread.
 */
#ifndef PACKET_H
#define PACKET_H

#include "options.h"

struct daemon;
struct daemon_port;
struct gsoport;

/**
 * Opens netdev @p netdev.
 * @param ethdev  receives the port id
 * @param gso     receives the other objects that were created, for the port's `gso`
 * @return 0 or a negative errno with a sentence in @p why.
 */
int packet_create(struct daemon *d, const char *netdev, uint16_t *ethdev, struct gsoport **gso,
	char why[VALUE_MAX * 2]);

/** Sets what port_probe() cannot know of port @p p on netdev @p netdev: its netdev, and driver and
 * MAC if packet_create() made it of more than an ethdev. */
void packet_describe(struct daemon_port *p, const char *netdev);

/** Makes the sockets that guard the netdev of port @p p, which packet_create() made, accept whole
 * super-frames if the port does, and these are no harm (share_guard_whole()). */
void packet_guard(const struct daemon *d, const struct daemon_port *p);

/** Makes port @p i, whose ethdev port_open() has opened, carry frames. @return 0 or -ENOMEM. */
int packet_start(struct daemon *d, uint32_t i);

/** Call before the ethdev of port @p i is closed, which no worker uses any more. */
void packet_stop(struct daemon *d, uint32_t i);

/** Frees the objects of packet_create() for port @p i; its ethdev is closed. */
void packet_remove(struct daemon *d, uint32_t i);

/** @return whether the packet socket of port @p p receives nothing any more (gsoport_stuck()). */
bool packet_stuck(const struct daemon_port *p, uint64_t now_ms);

/** Checks for frames that the netdev refuses. @return milliseconds after which to do so again. */
int packet_look(struct daemon_port *p, uint64_t now_ms);

#endif
