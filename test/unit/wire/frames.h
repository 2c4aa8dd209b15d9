/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frames.h
 * Valid frames for tests to damage, and a parse that detects when the parser reads too far.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include "drop.h"

/* Longest frame that frame_parse_at_edge() takes. */
#define FRAMES_EDGE_MAX 16384

struct frame {
	uint8_t b[512];
	size_t len;
	unsigned net;
	size_t l3;
	size_t udp; /* 0 for RoCEv1 */
	size_t bth;
};

/* An untagged frame with `tail` bytes of extended headers and payload, numbered from 1. */
struct frame frame_of(unsigned net, uint8_t opcode, size_t tail);

/* Puts a tag after the MAC addresses. */
void frame_tag(struct frame *f, uint16_t tpid, uint16_t tci);

/* Corrects the IPv4 header checksum. */
void frame_ip4_sum(struct frame *f);

/* IP or the GRH, and UDP, say `l4_len` bytes. */
void frame_set_l4_len(struct frame *f, uint16_t l4_len);

/* Parses a copy that ends where memory ends, checks its ICRC and reads its GIDs. Accepted
 * fields must lie within the frame. */
enum drop frame_parse_at_edge(const uint8_t *frame, size_t len);

#endif
