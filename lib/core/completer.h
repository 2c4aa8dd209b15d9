/* SPDX-License-Identifier: BSD-3-Clause */
/** @file completer.h  RC completer: ACKs, NAKs and READ responses -> completions. */
#ifndef COMPLETER_H
#define COMPLETER_H

#include <stdbool.h>
#include <stdint.h>
#include "drop.h"

struct core;
struct pkt;
struct qp;
struct send_wqe;

/** Handles a response packet after the checks of ICRC, addresses and QP state.
 *  @return 0 or the reason for the drop. */
enum drop completer_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** All packets built for @p qp, which is not reliable, have left: completes the WQEs that end with
 *  them (UC-03). */
void completer_sent(struct core *c, struct qp *qp, uint64_t now);

/** The memory that packet @p psn of @p qp, which is not reliable, was to carry faulted: its WQE
 *  fails after those of the earlier packets, which have left, are complete (UC-11). */
void completer_source_fault(struct core *c, struct qp *qp, uint32_t psn, uint64_t now);

/** The local ACK timer fired (REQ-24). */
void completer_timeout(struct core *c, struct qp *qp, uint64_t now);

/** The timer of timers_gap() fired: the retransmitted READ still lacks responses (REQ-38). */
void completer_gap(struct core *c, struct qp *qp, uint64_t now);

/** A WQE has a status: completes what is done at the head of the queue, and fails the WQE that
 *  cannot be executed at its turn, now or later (REQ-12, REQ-18). */
void completer_settle(struct core *c, struct qp *qp, uint64_t now);

/** Restarts both retry counters from the QP's attributes: after progress (REQ-27, REQ-31), or
 *  because the attributes changed (QPS-10). */
void completer_reload_retries(struct qp *qp);

/** Completer part of RTR -> RTS. */
void completer_start(struct qp *qp, uint32_t psn);

/** RESET: nothing is outstanding; call it after requester_reset(). */
void completer_reset(struct qp *qp);

/** Completes the oldest WQE of an ERR QP's send queue with WR_FLUSH_ERR.
 *  @return false when the queue is empty. */
bool completer_flush_one(struct core *c, struct qp *qp, uint64_t now);

/** @return true when every request that was started is complete (SQD). */
bool completer_drained(const struct qp *qp);

/** Puts @p len bytes at offset @p off of the message of @p w where its SGEs say (REQ-45).
 *  @return 0 or a completion status. */
uint8_t completer_place(struct core *c, struct qp *qp, struct send_wqe *w, uint32_t off,
	const uint8_t *data, uint32_t len);

/** All packets up to req.psn are acknowledged, without an ACK: direct.c delivered them.
 *  @param complete  they end the oldest WQE */
void completer_delivered(struct core *c, struct qp *qp, bool complete, uint64_t now);

/** The same for the oldest WQE, an ATOMIC that returned @p orig. The peer has executed it, so if
 *  @p orig cannot be stored in its memory, it fails here. */
void completer_fetched(struct core *c, struct qp *qp, uint64_t orig, uint64_t now);

/** Completes the WQEs from the oldest on, as long as they are plain and @p psn acknowledges them:
 *  completer_run.c. */
void completer_run(struct core *c, struct qp *qp, uint32_t psn);

/** Receives the first of the @p n (BURST at most) packets @p pkt, the first of which is for @p qp,
 * as long as each is the only response of the next READ, which just succeeds: completer_run.c.
 *  @return how many; none is dropped. */
unsigned completer_run_reads(
	struct core *c, struct qp *qp, const struct pkt *pkt, unsigned n, uint64_t now);

/** Memory of the oldest WQE, a READ of one SGE, faulted under the payload of @p pkt, its response.
 */
void completer_read_fault(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** The oldest @p n requests, of one packet each, are complete, and una has moved. */
void completer_progress(struct core *c, struct qp *qp, unsigned n, uint64_t now);

#endif
