/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame.h
 * Bytes of a received frame -> struct pkt. Checks everything that can be checked without
 * knowing a QP: Ethernet, VLAN, IP or GRH, UDP, BTH, lengths (CA17-1..21, CA17-24, VAL-01
 * first part). The ICRC is checked later, by the worker that owns the QP (decision 0000.3).
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drop.h"
#include "pkt.h"

/**
 * Parses @p len bytes at @p frame, which begins with the Ethernet header and has no FCS. Does not
 * touch @p p->port, @p p->queue and @p p->source_qp. Never reads beyond @p len.
 * @return DROP_NONE and a filled @p p, or the reason for the drop. A reserved opcode of a class
 * that a QP may have (RC, UC, UD, XRC) is accepted, with op->name NULL and no extended header,
 * because a QP must answer it (VAL-05).
 */
enum drop frame_parse(struct pkt *p, const uint8_t *frame, size_t len);

/** @return true when the frame's EtherType or UDP port is RoCE's: a cheap check for port filters
 *  that leave other frames to the kernel. Reads at most @p len bytes. */
bool frame_is_roce(const uint8_t *frame, size_t len);

/** Writes the source and destination GID of @p p (IPv4 as ::ffff:a.b.c.d, CA17 17.4.1.1). */
void frame_gids(const struct pkt *p, uint8_t sgid[16], uint8_t dgid[16]);

#endif
