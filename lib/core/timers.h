/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file timers.h
 * The timers of a QP. There are three, of which at most one runs:
 *
 *     - local ACK timer: runs while requests are outstanding, restarted by any progress; when it
 *   fires the requester goes back to the oldest unacknowledged PSN (REQ-22..24)
 *     - RNR timer: runs after an RNR NAK; nothing is sent until it fires (REQ-29, REQ-31)
 *     - gap timer, for a QP without ACK timer (timeout 0): runs while responses to a retransmitted
 *   READ are missing (REQ-38)
 *
 * They share one wheel timer. Restarting only moves comp.due; the wheel looks at it when the
 * earlier time expires, so the many restarts of a busy QP cost one store each.
 */
#ifndef TIMERS_H
#define TIMERS_H

#include <stdint.h>

struct core;
struct qp;

/** A request packet was sent: starts the ACK timer, if it does not run already. */
void timers_request_sent(struct core *c, struct qp *qp, uint64_t now);

/** Something was acknowledged: restarts the ACK timer, or stops it when nothing is outstanding. */
void timers_progress(struct core *c, struct qp *qp, uint64_t now);

/** Unacknowledged packets are sent again: the ACK timer starts with the first of them, and not
 *  while that waits for a closed port: no retry is charged for a packet that was not sent. */
void timers_went_back(struct qp *qp);

/** Handles an RNR NAK with timer code @p code. */
void timers_rnr_nak(struct core *c, struct qp *qp, unsigned code, uint64_t now);

/** A retransmitted READ has a gap again. Without an ACK timer, the gap timer gives the responses
 * that are on their way the time of code GAP_TIMEOUT to arrive (REQ-38). */
#define GAP_TIMEOUT 16u
void timers_gap(struct core *c, struct qp *qp, uint64_t now);

/** The QP leaves RTS: stops its timer. */
void timers_stop(struct core *c, struct qp *qp);

/** @return the local ACK timeout of code @p code (0..31) in nanoseconds, 0 for infinite
 *  (REQ-22). */
uint64_t timers_ack_timeout(unsigned code);

/** @return the delay of RNR timer code @p code (0..31) in microseconds (REQ-32). */
uint32_t timers_rnr_usec(unsigned code);

#endif
