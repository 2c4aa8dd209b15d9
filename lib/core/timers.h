/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file timers.h
 * The timers of a QP. There are three, of which at most one runs:
 *
 *   - local ACK timer: runs while requests are outstanding, restarts with each progress;
 *     when it fires the requester goes back to the oldest unacknowledged PSN (REQ-22..24)
 *   - RNR timer: runs after an RNR NAK; until it fires nothing is sent (REQ-29, REQ-31)
 *   - gap timer, of a QP without ACK timer (timeout 0): runs while responses to a READ that was
 *     sent again are missing (REQ-38)
 *
 * They share one wheel timer. Restarting only moves comp.due; the wheel looks at it when the
 * earlier time comes round, so the many restarts of a busy QP cost a store each.
 */
#ifndef TIMERS_H
#define TIMERS_H

#include "qp.h"

/** A request packet was sent: the ACK timer runs from now on, if it does not already. */
void timers_request_sent(struct core *c, struct qp *qp, uint64_t now);

/** Something was acknowledged: restart the ACK timer, or stop it when nothing is left. */
void timers_progress(struct core *c, struct qp *qp, uint64_t now);

/** What was not acknowledged is sent again: the ACK timer runs from the first packet on, and not
 *  while that waits for a port which takes none: no retry is charged that was not sent. */
void timers_went_back(struct qp *qp);

/** An RNR NAK with timer code @p code was taken. */
void timers_rnr_nak(struct core *c, struct qp *qp, unsigned code, uint64_t now);

/** A READ that was sent again has a gap again. Where no ACK timer runs, one of its own gives what
 * was sent before the time of code GAP_TIMEOUT to arrive (REQ-38). */
#define GAP_TIMEOUT 16u
void timers_gap(struct core *c, struct qp *qp, uint64_t now);

/** The QP leaves RTS. */
void timers_stop(struct core *c, struct qp *qp);

/** @return nanoseconds of local ACK timeout code @p code (0..31), 0 for infinite (REQ-22). */
uint64_t timers_ack_timeout(unsigned code);

/** @return microseconds of RNR timer code @p code (0..31), REQ-32. */
uint32_t timers_rnr_usec(unsigned code);

#endif
