/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file merge.h
 * TCP segments that follow one another, as one frame for the kernel, which it would have to put
 * together otherwise: what kernels call generic receive offload. Nothing is copied: the pieces stay
 * where they arrived. A router can cut the frame into the very same packets again (but
 * for IDs of IPv4, which mean nothing with DF: RFC 6864).
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
 * Takes a frame whose checksums it finds right.
 * @return false: it is not TCP that can be merged, or does not follow what is there. merge_finish()
 * first; then it may be the first of others, or goes to the kernel by itself.
 */
bool merge_take(struct merge *m, uint8_t *frame, uint32_t len);

/** Makes one frame of the pieces. @param h  what to say beside it */
void merge_finish(struct merge *m, struct virtio_net_hdr *h);

#endif
