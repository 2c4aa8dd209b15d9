/* SPDX-License-Identifier: BSD-3-Clause */
/** @file ecn.h  What a congested switch does to a packet (RFC 3168). */
#ifndef ECN_H
#define ECN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Sets "congestion experienced" in the IP header of @p frame, whose first @p len bytes are
 *  there, and mends the checksum of IPv4. A frame that is not ECN-capable stays as it is.
 *  @return whether the frame carries the mark now. */
bool ecn_mark(uint8_t *frame, size_t len);

#endif
