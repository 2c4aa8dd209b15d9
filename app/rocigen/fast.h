/* SPDX-License-Identifier: BSD-3-Clause */
/** @file fast.h  Fast CNPs, and what may be wrong with them. */
#ifndef FAST_H
#define FAST_H

#include "fast_cnp.h"

/** Room for fast_write(). */
#define FAST_MAX (FAST_CNP_FRAME_MAX + 2048u)

enum fast_fault {
	FAST_GOOD,
	FAST_PADDED,	/* good: as much padding as the header has room for */
	FAST_SHORT,	/* the option lacks a byte of the address */
	FAST_LONG,	/* it has one more */
	FAST_TWICE,	/* two options */
	FAST_UNKNOWN,	/* an option of another type */
	FAST_NONE,	/* padding only */
	FAST_OVERRUN,	/* an option that is longer than the header */
	FAST_BEYOND,	/* a header that is longer than the packet */
	FAST_OPCODE,	/* no CNP */
	FAST_ICRC,	/* a wrong ICRC */
	FAST_IP4,	/* over IPv4 */
	FAST_AFTER_UDP, /* the header follows UDP */
	FAST_FAULTS,
};

/** @return the name of @p fault for arguments, NULL beyond the last. */
const char *fast_fault_name(unsigned fault);

/** Writes @p s with @p fault, but otherwise correct lengths and ICRC, to @p frame, which has room
 * for FAST_MAX bytes. @return the length of the frame */
size_t fast_write(uint8_t *frame, const struct fast_cnp_spec *s, enum fast_fault fault);

#endif
