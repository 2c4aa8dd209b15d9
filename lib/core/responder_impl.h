/* SPDX-License-Identifier: BSD-3-Clause */
/** @file responder_impl.h  Shared by the files of the RC responder's receive side. */
#ifndef RESPONDER_IMPL_H
#define RESPONDER_IMPL_H

#include <stdint.h>
#include "cause.h"

struct core;
struct pkt;
struct qp;
struct resp_res;

/** Result of a check or an execution. */
enum outcome {
	PASS,
	DONE, /* the packet was dealt with, or turned into a NAK */
	LOST, /* its payload cannot be read any more: named.h */
};

/** Refuses @p pkt: NAK Invalid Request or Remote Access Error, the event, then ERR (RSP-22).
 *  @return DONE */
enum outcome invalid_request(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum cause why, uint64_t now);
enum outcome access_error(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum cause why, uint64_t now);

/** Completes the receive in use with @p status and fails the QP; the NAK @p syndrome tells the
 *  requester. Either the receive WQE cannot take the data, which is its owner's fault (RSP-20,
 *  RSP-21), or a SEND invalidates a key that it must not. */
void responder_recv_failed(
	struct core *c, struct qp *qp, uint8_t status, uint8_t syndrome, uint64_t now);

/** Application memory faulted while @p pkt was executed. */
void memory_fault(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** Accepts a request with responses of its own, @p n packets for @p len bytes.
 *  @return its slot of the replay ring. */
struct resp_res *res_new(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint32_t n, uint32_t len);

/* responder_memory.c */
enum outcome execute_flush(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);
enum outcome execute_atomic_write(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);
/** Executes the invalidation that the SEND @p pkt asks for; its payload is in place. */
enum outcome execute_invalidate(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

#endif
