/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file direct.h
 * Messages between two QPs of one core, without frames: the payload is copied once, from memory to
 * memory, and both QPs are then as if its packets had been sent, executed and acknowledged. PSN
 * and MSN advance by the same numbers, so each message, and each part of a long one, may take
 * either path (decision 0101).
 *
 * Only messages that succeed take this path. A message that would end in a NAK, an error or a wait
 * is left to frames before any of it is executed; they run into the same problem, and record it.
 */
#ifndef DIRECT_H
#define DIRECT_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct qp;
struct send_wqe;

/**
 * Executes requests of @p qp, whose path is local, in place of a turn of its requester.
 * @return true when the requester has nothing to build in this turn: other posted requests wait for
 * another turn. False when the next request needs frames, or nothing is posted.
 */
bool direct_turn(struct core *c, struct qp *qp, uint64_t now);

/**
 * Delivers the datagram @p w of @p qp, the next to be sent, if it is for a QP of this core that
 * takes it: direct_ud.c.
 * @return false when it is left to a frame
 */
bool direct_datagram(struct core *c, struct qp *qp, struct send_wqe *w, uint64_t now);

/**
 * Executes the next requests in the ring of @p qp while they are plain and succeed: direct_run.c.
 * direct_turn() has checked that the two QPs can use this path, and nothing in a run changes that.
 * @param room  bytes that may be copied
 * @return how much of @p room was used: see DIRECT_PIECE
 */
uint32_t direct_run(struct core *c, struct qp *qp, struct qp *peer, uint32_t room, uint64_t now);

#endif
