/* SPDX-License-Identifier: BSD-3-Clause */
/** @file responder_impl.h  Between the files of the RC responder's receive side. */
#ifndef RESPONDER_IMPL_H
#define RESPONDER_IMPL_H

#include "mw.h"
#include "responder.h"

/** How a check or an execution ends. */
enum verdict {
	PASS,
	DONE, /* the packet was dealt with, or turned into a NAK */
};

/** Refuses @p pkt by a NAK Invalid Request or Remote Access Error, the event, then ERR (RSP-22).
 *  @return DONE */
enum verdict invalid_request(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum cause why, uint64_t now);
enum verdict access_error(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum cause why, uint64_t now);

/** The receive in use completes with @p status, and the QP fails, which the NAK @p syndrome tells
 *  the requester: a receive WQE that cannot take the data, its owner's fault (RSP-20, RSP-21), or a
 *  SEND that invalidates what it must not. */
void responder_recv_failed(
	struct core *c, struct qp *qp, uint8_t status, uint8_t syndrome, uint64_t now);

/** Application memory faulted under @p pkt. */
void memory_fault(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** A request with responses of its own, @p n packets for @p len bytes, was accepted.
 *  @return its slot of the replay ring. */
struct resp_res *res_new(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint32_t n, uint32_t len);

/* responder_memory.c */
enum verdict execute_flush(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);
enum verdict execute_atomic_write(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);
/** What the SEND @p pkt invalidates; its data are in place. */
enum verdict execute_invalidate(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

#endif
