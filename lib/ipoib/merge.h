/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file merge.h
 * Merges consecutive TCP segments into one frame for the kernel, as generic receive offload does.
 * Nothing is copied: the pieces stay where they arrived. A router can cut the frame into the same
 * packets again, except for the IDs of IPv4, which mean nothing with DF (RFC 6864).
 */
#ifndef IPOIB_MERGE_H
#define IPOIB_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#define MERGE_MAX 64u

struct virtio_net_hdr;

struct merge_piece {
	uint8_t *at;
	uint32_t len;
};

/** Segments of one flow. */
struct merge {
	uint32_t n;	   /* pieces; 0: none. The first is a whole frame, the others payload */
	uint32_t len;	   /* of all */
	uint32_t head, l4; /* in the first: octets before the payload; where TCP begins */
	uint32_t each;	   /* payload of a segment */
	uint32_t next;	   /* sequence number that continues */
	bool closed;	   /* nothing can follow */
	struct merge_piece piece[MERGE_MAX];
};

/**
 * Takes a frame if its checksums are correct. @return false: it is not TCP that can be merged, or
 * does not follow the previous pieces. Then call merge_finish(); the frame may begin the next
 * merge, or goes to the kernel unmerged.
 */
bool merge_take(struct merge *m, uint8_t *frame, uint32_t len);

/** Completes the frame. @param h  receives its virtio header */
void merge_finish(struct merge *m, struct virtio_net_hdr *h);

#endif
