/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file gso/run.h
 * Converts many RoCEv2 frames of one flow to one frame of the kernel (UDP segmentation, Linux'
 * UDP_SEGMENT), and back. Bytes only: no socket, no DPDK.
 *
 * The kernel cuts the UDP payload of such a super-frame into parts of the same length, the last may
 * be shorter, and gives each the headers of the whole: lengths and checksums recomputed, the IPv4
 * identification incremented for each (RFC 6864 leaves it to the sender). Each part is the BTH to
 * ICRC of one frame. The ICRC covers the identification (IP4-17), not the checksums: so the parts
 * equal the sealed frames, whoever cuts them, as long as the identifications of the frames increase
 * by one.
 */
#ifndef GSO_RUN_H
#define GSO_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include "headers.h"
#include "limits.h"

/** Bytes of the longest headers of a frame that can be part of a run: no VLAN tag. */
#define GSO_HEAD_MAX (ETH_HLEN + IP6_HLEN + UDP_HLEN)
/** Bytes of the longest super-frame that is received: the maximum of the IP length (IPv6, which
 * does not count its own header). */
#define GSO_FRAME_MAX (ETH_HLEN + IP6_HLEN + 65535u)
/** Bytes of the longest that we send: eight frames of path MTU 4096. The receiver starts with it
 * while we build the next; twice the length makes long messages slower, and streams no faster. */
#define GSO_RUN_BYTES (GSO_HEAD_MAX + 8u * (PATH_MTU_MAX + 64u))
/** Frames per super-frame: the kernel's UDP_MAX_SEGMENTS since 6.8, and half of it before. */
#define GSO_RUN_MAX 64u
/** Frames per received super-frame. */
#define GSO_SEGMENTS_MAX 128u

/** @return bytes up to the end of the UDP header of a RoCEv2 frame without VLAN tag, IP options and
 * extension headers whose lengths and IPv4 checksum are correct; 0 for all others. */
uint16_t gso_head(const uint8_t *frame, uint32_t len);

/** Frames that can be sent as one. */
struct gso_run {
	const uint8_t *first;
	uint32_t bytes;	    /* of the super-frame so far */
	uint32_t first_len; /* of the first frame, bytes */
	uint16_t head;	    /* bytes of Ethernet, IP and UDP header */
	uint16_t count;	    /* frames */
	bool closed;	    /* the last is shorter: none can follow */
};

/**
 * Begins a run with the frame of @p len bytes at @p frame, which stays where it is.
 * @return false if it must be sent singly: it is not an untagged RoCEv2 frame with a UDP checksum
 * of 0 whose lengths and IPv4 checksum are correct. A run would correct those of a wrong frame.
 */
bool gso_begin(struct gso_run *r, const uint8_t *frame, uint32_t len);

/** Adds the next frame. @return false, and @p r is unchanged, if it does not belong to this run. */
bool gso_add(struct gso_run *r, const uint8_t *frame, uint32_t len);

/** @return the UDP payload of each frame except the last, bytes. */
uint16_t gso_size(const struct gso_run *r);

/** Writes the headers of the super-frame, r->head bytes, at @p head: its UDP checksum is the sum of
 * the pseudo header, which the kernel continues (CHECKSUM_PARTIAL). */
void gso_write_head(const struct gso_run *r, uint8_t head[GSO_HEAD_MAX]);

/** A super-frame that is being cut. */
struct gso_split {
	const uint8_t *frame;
	uint32_t at;   /* next byte of its UDP payload, from the frame's first */
	uint32_t left; /* bytes of it */
	uint16_t head;
	uint16_t size;
	uint16_t id; /* of the next frame, IPv4 */
	uint16_t csum_base;
};

/**
 * Begins to cut the super-frame of @p len bytes at @p frame, which stays where it is meanwhile.
 * Nothing of it is trusted.
 * @param size  UDP payload of each part, from the kernel
 * @param room  bytes that gso_split_next() may write
 * @return false if it is not such a frame, its lengths contradict each other, or a part is longer
 * than @p room.
 */
bool gso_split_begin(
	struct gso_split *s, const uint8_t *frame, uint32_t len, uint16_t size, uint32_t room);

/** @return how many frames are left. */
static inline uint32_t gso_split_count(const struct gso_split *s)
{
	return (s->left + s->size - 1) / s->size;
}

/** @return bytes of the next frame after its headers. */
static inline uint32_t gso_split_payload(const struct gso_split *s)
{
	return s->left < s->size ? s->left : s->size;
}

/** Writes the headers of the next frame, with UDP checksum 0, at @p out, where its payload is
 * already. A frame must be left. @return the bytes of the frame. */
uint32_t gso_split_head(struct gso_split *s, uint8_t *out);

/** Writes the whole next frame at @p out. @return as gso_split_head(). */
uint32_t gso_split_next(struct gso_split *s, uint8_t *out);

#endif
