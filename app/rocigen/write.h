/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file write.h
 * A packet from its fields: the inverse of frame_parse(), for any opcode of the table.
 */
#ifndef WRITE_H
#define WRITE_H

#include "path.h"

/** Room for the longest packet that IP allows, and its Ethernet header. */
#define WRITE_MAX 66000u

/**
 * Writes the packet that @p p describes: op, the fields of its headers and payload_len count; pad,
 * lengths, IPv4 checksum and ICRC are derived from them.
 * @param path  leads from the sender to the receiver
 * @return the length of the frame
 */
size_t packet_write(
	uint8_t *frame, const struct path *path, const struct pkt *p, const uint8_t *payload);

/** Writes the correct ICRC at the end of the packet of @p len bytes whose L3 header is at @p l3. */
void packet_seal(uint8_t *l3, unsigned net, size_t len);

#endif
