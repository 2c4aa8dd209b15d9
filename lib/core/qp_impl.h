/* SPDX-License-Identifier: BSD-3-Clause */
/** @file qp_impl.h  A QP inside the core: its rings, WQEs, readiness, errors and completions. */
#ifndef QP_IMPL_H
#define QP_IMPL_H

#include <string.h>
#include "bits.h"
#include "core.h"
#include "expect.h"
#include "opcode.h"
#include "qp.h"

/** Prefetches the lines of @p qp that a response needs. With thousands of QPs no cache holds
 *  them. */
static inline void qp_prefetch_response(const struct qp *qp)
{
	__builtin_prefetch(qp);
	__builtin_prefetch(&qp->req);
	__builtin_prefetch(&qp->comp);
	__builtin_prefetch(&qp->sq);
	__builtin_prefetch(&qp->ready); /* observe_queue() */
}

/** The same for a turn. */
static inline void qp_prefetch(const struct qp *qp)
{
	qp_prefetch_response(qp);
	__builtin_prefetch(&qp->path);
	__builtin_prefetch(&qp->urgent); /* responder_owes() */
}

/** The same for a packet that it receives. */
static inline void qp_prefetch_rx(const struct qp *qp, const struct opcode *op)
{
	__builtin_prefetch(&qp->expect);
	if (op->response) {
		qp_prefetch_response(qp);
		return;
	}
	__builtin_prefetch(qp);
	__builtin_prefetch(&qp->path);
	__builtin_prefetch(&qp->ready); /* observe_queue(), tx_call */
	__builtin_prefetch(&qp->urgent);
	if (op->kind == KIND_WRITE)
		return;
	__builtin_prefetch(&qp->rq);
	__builtin_prefetch(&qp->resp.cqes);
}

/** Sets the attributes and the path that a QP has in RESET. */
static inline void qp_set_defaults(struct qp *qp)
{
	memset(&qp->attr, 0, sizeof(qp->attr));
	memset(&qp->path, 0, sizeof(qp->path));
	qp->path.vid = UINT16_MAX; /* matches no packet */
	expect_nothing(&qp->expect);
	qp->attr.port = qp->gsi_port;
	if (qp->opc == OPC_UD)
		qp->mtu_shift = (uint8_t)__builtin_ctz(PATH_MTU_MAX); /* one packet per message */
}

/** @return number of packets of a message of @p len bytes (REQ-01); an empty one takes one
 *  (REQ-02). */
static inline uint32_t qp_packets(const struct qp *qp, uint32_t len)
{
	uint32_t mtu = 1u << qp->mtu_shift;

	return len ? (uint32_t)(((uint64_t)len + mtu - 1) >> qp->mtu_shift) : 1;
}

/** @return true when the current core_tx() call has built a packet of @p qp. It is not sealed yet,
 *  so the inline data of its WQE must stay in place: no slot may be reused. */
static inline bool qp_built_now(const struct core *c, const struct qp *qp)
{
	return qp->tx_call == c->tx_call;
}

/** Adds @p qp to the QPs that core_tx() visits, unless it waits for its departure. */
void qp_make_ready(struct core *c, struct qp *qp);

/** @p qp owes an ACK or a NAK, which leaves before packets of requests and READ responses. */
void qp_make_urgent(struct core *c, struct qp *qp);

/** The opposite: @p qp goes to RESET, or leaves the core. */
static inline void qp_undo_urgent(struct qp *qp)
{
	list_del(&qp->urgent);
}

/** Removes @p qp from the QPs that core_tx() visits; harmless when it is not among them. */
void qp_make_idle(struct core *c, struct qp *qp);

/** The path of @p qp has changed: if it is ready, its packets may now leave by another egress. */
void qp_rerouted(struct core *c, struct qp *qp);

/** @return the egress by which a packet to @p dest_qpn along @p p leaves. */
static inline unsigned path_egress(const struct core *c, const struct path *p, uint32_t dest_qpn)
{
	return unlikely(p->local) ? EGRESS_LOCAL(core_owner(c, dest_qpn)) : EGRESS_PORT(p->port);
}

static inline bool egress_is_open(const struct core *c, unsigned egress)
{
	return c->open >> egress & 1;
}

/** Moves @p qp to ERR because of an event on the wire or in memory; core_tx() flushes its queues in
 *  bounded steps. Packets that the responder owes are still sent if a fatal NAK is the reason
 * (RSP-22). */
void qp_error(struct core *c, struct qp *qp, uint64_t now);

/** The oldest send WQE of @p qp has failed and is complete: as qp_error(), but an unreliable QP
 *  only goes to SQE, which flushes the send queue and keeps the receive queue working (UC-11). */
void qp_send_error(struct core *c, struct qp *qp, uint64_t now);

/** The local ACK timer of @p qp fired: asks the control thread to probe its neighbour. */
void qp_late(struct core *c, const struct qp *qp);

/** Queues an async event for the owner of @p qp. */
void qp_event(struct core *c, struct qp *qp, uint32_t type);

/** Queues an async event for the owner of @p srq. */
void srq_event(struct core *c, struct srq *srq, uint32_t type);

/** Discards the events of @p qp that have not been taken. */
void qp_events_forget(struct qp *qp);

/** @p qp has come from another core: takes over its events. */
void qp_events_take(struct core *c, struct qp *qp);

/** Raises SQ_DRAINED when @p qp is in SQD, nothing is outstanding and its owner asked for the event
 *  (QPS-19). Called where that may just have become true; since no request starts in SQD, this
 *  happens once. */
void qp_check_drained(struct core *c, struct qp *qp);

/** CORE_CMD_GIVE_QP: gives @p qp to @p worker. @return 0, or -EPERM: it is not ours. */
int qp_give(struct core *c, struct qp *qp, uint16_t worker, uint64_t now);

/** CORE_CMD_TAKE_QP: continues where the last owner stopped.  @return as qp_give(). */
int qp_take(struct core *c, struct qp *qp);

/** Starts a grace period.  @return its number, not 0. */
static inline uint32_t core_grace_begin(struct core *c)
{
	if (!++c->grace_begun)
		c->grace_begun++;
	return c->grace_begun;
}

static inline bool core_grace_over(const struct core *c, uint32_t number)
{
	return (int32_t)(c->grace_ended - number) >= 0;
}

/** Flushes at most @p max WQEs of an ERR QP, or of the send queue of one in SQE.
 * @return true when more are left. */
bool qp_flush(struct core *c, struct qp *qp, unsigned max, uint64_t now);

#endif
