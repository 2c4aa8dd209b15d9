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
 * @return true when its requester has nothing to build in this turn: the rest of what is posted
 * is for another turn. False when the rest needs frames, or nothing is posted.
 */
bool direct_turn(struct core *c, struct qp *qp, uint64_t now);

/**
 * Delivers the datagram @p w of @p qp, the next to be sent, if it is for a QP of this core that
 * takes it: direct_ud.c.
 * @return false when it is left to a frame
 */
bool direct_datagram(struct core *c, struct qp *qp, struct send_wqe *w, uint64_t now);

/**
 * Executes what is next in the ring of @p qp, as long as it is plain and succeeds: direct_run.c.
 * direct_turn() has found the two QPs fit for this path, and they stay so.
 * @param room  bytes that may be copied
 * @return what was used of it: see DIRECT_PIECE
 */
uint32_t direct_run(struct core *c, struct qp *qp, struct qp *peer, uint32_t room, uint64_t now);

#endif
