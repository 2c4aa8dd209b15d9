/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cut.h
 * Frames of the kernel whose checksums, and whose TCP segments, are left to the netdev: segments of
 * the netdev's MTU (IPB-13) with right checksums. The kernel describes a frame by struct
 * virtio_net_hdr (virtio 1.2, 5.1.6).
 */
#ifndef IPOIB_CUT_H
#define IPOIB_CUT_H

#include <stdbool.h>
#include <stdint.h>

struct virtio_net_hdr;

/** A frame that is being cut. */
struct cut {
	uint8_t *frame;
	uint32_t len;
	uint32_t head;	 /* octets before the payload; the whole frame if it is not segmented */
	uint32_t l4;	 /* where TCP begins */
	uint32_t pseudo; /* sum of its pseudo-header without the length, not folded */
	uint32_t at;	 /* payload that has left */
	uint32_t each;	 /* payload of a segment */
	uint32_t sent;	 /* segments that have left */
	bool done;	 /* all of it has left */
};

/**
 * Checks a frame, and completes its checksum unless it will be segmented.
 * @param mtu  of the netdev: no segment has a longer IP packet
 * @return false: the header contradicts the frame, which is to be dropped.
 */
bool cut_begin(
	struct cut *c, const struct virtio_net_hdr *h, uint8_t *frame, uint32_t len, uint32_t mtu);

/**
 * Writes the next frame.
 * @param room  at @p to
 * @return its length; 0: there is none, or it is longer than @p room.
 */
uint32_t cut_next(struct cut *c, uint8_t *to, uint32_t room);

#endif
