/* SPDX-License-Identifier: BSD-3-Clause */
/** @file ecn.h  How a congested switch marks a packet (RFC 3168). */
#ifndef ECN_H
#define ECN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Sets "congestion experienced" in the IP header of @p frame, of which the first @p len bytes are
 *  present, and updates the IPv4 checksum. Leaves a frame unchanged that is not ECN-capable.
 *  @return whether the frame carries the mark now. */
bool ecn_mark(uint8_t *frame, size_t len);

#endif
