/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file gso/sock.h
 * A packet socket that sends and receives super-frames of the kernel (PACKET_VNET_HDR), with a
 * receive ring in memory (TPACKET_V2): polling it costs no system call.
 */
#ifndef GSO_SOCK_H
#define GSO_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <linux/virtio_net.h>
#include "gso/run.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* Linux 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

struct gsosock {
	int fd;	     /* negative: none, and the reason (a negative errno) */
	bool queues; /* long frames are queued at the socket too; otherwise all fit in a slot */
	uint32_t slot, block_slots;
	uint8_t *ring;
	size_t size; /* of the ring, bytes */
	/* The slot that the kernel fills next, its block, and slots left in that. */
	uint8_t *next, *block;
	uint32_t left;
};

/** Bytes that a slot has of each frame that it does not hold: its headers up to the PSN. */
#define GSOSOCK_SEEN (GSO_HEAD_MAX + BTH_HLEN)

/** A frame in a slot. `data` is not trusted. */
struct gsosock_frame {
	const uint8_t *data;
	uint32_t len;
	bool whole;	   /* all of it is in the slot; otherwise at least GSOSOCK_SEEN bytes */
	bool queued;	   /* it must be read from the socket: gsosock_read() */
	uint8_t gso_type;  /* VIRTIO_NET_HDR_GSO_... */
	uint16_t gso_size; /* of a super-frame */
	bool tagged;	   /* the kernel stripped a VLAN tag */
	uint16_t vlan;	   /* its TCI */
	bool to_us;	   /* its destination MAC is the netdev's */
};

/** @return the description, for the kernel, of a super-frame with headers of @p head bytes and
 * parts of @p size. */
struct virtio_net_hdr gsosock_run(uint16_t head, uint16_t size);

/**
 * Makes socket @p s->fd, which is AF_PACKET and not bound, receive RoCE frames of netdev @p netdev,
 * except those that this machine sends. Without a socket, this fails with the error in s->fd.
 * @param fanout  NULL: a single socket. Otherwise several sockets share the frames, by flow; the
 * first finds -1 and stores the group's number there.
 * @param why     receives a sentence that says what to do when this fails
 * @return 0 or a negative errno; gsosock_close() in both cases.
 */
int gsosock_open(struct gsosock *s, const char *netdev, int *fanout, char *why, unsigned why_size);

/** Whether IPv6 packets with a Destination Options header are received as well; initially not.
 *  @return 0 or a negative errno */
int gsosock_options(const struct gsosock *s, bool on);

void gsosock_close(struct gsosock *s);

/** @return whether the kernel has put a frame into the next slot, which @p f then describes. */
bool gsosock_look(const struct gsosock *s, struct gsosock_frame *f);

/**
 * Reads the frame of @p len bytes that the next slot says is queued, into @p io from its second
 * element on; the first is for this function. Call it once for each such frame, even to discard
 * the frame.
 * @return whether it has that length. The caller compares its first bytes with those in the slot.
 */
bool gsosock_read(const struct gsosock *s, struct iovec *io, unsigned n, uint32_t len);

/** Returns the next slot to the kernel. */
void gsosock_release(struct gsosock *s);

/** @return whether no slot holds a frame. Any thread. */
bool gsosock_empty(const struct gsosock *s);

/** @return frames that found no slot since the last call. */
uint32_t gsosock_missed(const struct gsosock *s);

#endif
