/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file expect.h
 * The headers that are expected in packets from the peer of a connected QP. They hardly differ from
 * packet to packet, so most of a frame's headers are compared as a block, and only the fields that
 * vary are checked one by one.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pkt.h"

/** For expect_set(). */
struct expect_spec {
	const uint8_t *src_ip; /* the peer's, 4 bytes */
	const uint8_t *dst_ip; /* ours */
	const _Atomic uint64_t *mac;
	uint32_t dest_qp;
	uint16_t pkey;
	uint8_t opc;  /* enum opcode_class */
	uint8_t port; /* index */
};

void expect_set(struct expect *e, const struct expect_spec *s);

static inline void expect_nothing(struct expect *e)
{
	e->port = EXPECT_NOTHING;
}

/** @return whether the @p frame, EXPECT_MIN bytes or more, may have such headers: a cheap check
 *  that spares most other traffic the look-up of a QP. */
bool expect_may(const uint8_t *frame);

/** @return the DestQP of the @p frame, EXPECT_MIN bytes or more, if it has such headers. If not,
 *  any number. */
uint32_t expect_qpn(const uint8_t *frame);

/** @return the row of its opcode, likewise. */
const struct opcode *expect_opcode(const uint8_t *frame);

/**
 * Like frame_parse(), of a frame with the headers @p e.
 * @param p    its port is set
 * @param len  EXPECT_MIN or more
 * @return true: frame_parse() would accept the frame, and fill in @p p in the same way, except that
 * p->expected is @p e. false: frame_parse() has to decide.
 */
bool frame_expected(struct pkt *p, const uint8_t *frame, size_t len, const struct expect *e);

#endif
