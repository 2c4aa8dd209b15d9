/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of a QP: memory, reset, error, flush. Commands are in qp_modify.c. */
#include "completer.h"
#include "named.h"
#include "pacing.h"
#include "qp_impl.h"
#include "qp_table.h"
#include "requester.h"
#include "responder.h"
#include "timers.h"
#include "ud_impl.h"

#define ALIGN_UP(v) (((v) + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1))

/* Stride of the private send queue: the struct and its SGEs or inline bytes. */
static size_t private_stride(const struct qp_config *cfg)
{
	size_t body = cfg->sq.max_sge * sizeof(struct abi_sge);

	if (body < cfg->max_inline)
		body = cfg->max_inline;
	if (cfg->type == ABI_QPT_XRC_SEND)
		body += sizeof(uint32_t); /* wqe_srqn() */
	if (abi_is_datagram(cfg->type))
		body = ((body + 15) & ~(size_t)15) + UD_WQE_PATH;
	return ALIGN_UP(sizeof(struct send_wqe) + body);
}

size_t qp_size(const struct qp_config *cfg)
{
	return ALIGN_UP(sizeof(struct qp)) + private_stride(cfg) * cfg->sq.depth +
	       ALIGN_UP(sizeof(struct resp_res) * RD_ATOMIC_MAX) + ALIGN_UP(sizeof(struct limiter));
}

/* VAL-04: the types of one service share its opcodes (XRC-01). */
static uint8_t opcode_class_of(uint8_t type)
{
	switch (type) {
	case ABI_QPT_UC:
		return OPC_UC;
	case ABI_QPT_UD:
	case ABI_QPT_GSI:
		return OPC_UD;
	case ABI_QPT_XRC_SEND:
	case ABI_QPT_XRC_RECV:
		return OPC_XRC;
	default:
		return OPC_RC;
	}
}

struct qp *qp_init(void *mem, const struct qp_config *cfg)
{
	struct qp *qp = mem;
	uint8_t *p = (uint8_t *)mem + ALIGN_UP(sizeof(struct qp));

	if (!cfg->sq.depth || (cfg->sq.depth & (cfg->sq.depth - 1)))
		return NULL;
	memset(qp, 0, sizeof(*qp));
	qp->qpn = cfg->qpn;
	qp->pd = cfg->pd;
	qp->handle = cfg->handle;
	qp->type = cfg->type;
	qp->opc = opcode_class_of(cfg->type);
	qp->reliable = qp->opc == OPC_RC || qp->opc == OPC_XRC;
	qp->sq_sig_all = cfg->sq_sig_all;
	qp->session = cfg->session;
	atomic_init(&qp->owner, QPN_WORKER(cfg->qpn));
	qp->queue = PKT_NO_QUEUE;
	qp->send_lane = cfg->send_lane;
	qp->recv_lane = cfg->recv_lane;
	qp->sq = cfg->sq;
	qp->rq = cfg->rq;
	qp->srq = cfg->srq;
	qp->xrc.xrcd = cfg->xrcd;
	qp->xrc.follows = cfg->type == ABI_QPT_XRC_RECV && !cfg->pd;
	qp->sq.next = 0;
	qp->rq.next = 0;
	qp->max_inline = cfg->max_inline;
	qp->window_max = cfg->window ? cfg->window : WINDOW_DEFAULT;
	qp->sq_slot_size = (uint16_t)private_stride(cfg);
	qp->sq_private = p;
	qp->resp.res = (struct resp_res *)(p + private_stride(cfg) * cfg->sq.depth);
	qp->limiter = (struct limiter *)((uint8_t *)qp->resp.res +
					 ALIGN_UP(sizeof(struct resp_res) * RD_ATOMIC_MAX));
	pacing_init(qp);
	qp->state = ABI_QPS_RESET;
	qp->gsi_port = cfg->gsi_port;
	qp_set_defaults(qp);
	list_init(&qp->ready);
	list_init(&qp->urgent);
	list_init(&qp->troubled);
	wheel_timer_init(&qp->timer);
	window_init(&qp->win, qp->window_max);
	return qp;
}

void qp_error(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->state == ABI_QPS_ERR)
		return;
	qp->state = ABI_QPS_ERR;
	cause_publish(qp, now);
	timers_stop(c, qp);
	pacing_cancel(c, qp);
	responder_error(qp);
	/* Later posts must be flushed too (QPS-20), so both queues must ring. */
	if (qp->rq.depth)
		atomic_store_explicit(&qp->rq.shared->need_doorbell, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* before the flush reads the rings */
	qp_make_ready(c, qp);
}

void qp_send_error(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->reliable || (qp->state != ABI_QPS_RTS && qp->state != ABI_QPS_SQD)) {
		qp_error(c, qp, now);
		return;
	}
	qp->state = ABI_QPS_SQE; /* UC-11 */
	pacing_cancel(c, qp);
	cause_publish(qp, now);
	atomic_thread_fence(memory_order_seq_cst); /* before the flush reads the ring */
	qp_make_ready(c, qp);
}

void qp_check_drained(struct core *c, struct qp *qp)
{
	if (qp->state == ABI_QPS_SQD && qp->attr.en_sqd_async_notify && completer_drained(qp))
		qp_event(c, qp, ABI_EVENT_SQ_DRAINED); /* EVT-02, QPS-19 */
}

/* QPS-20, CQ-10: each queue in post order. */
bool qp_flush(struct core *c, struct qp *qp, unsigned max, uint64_t now)
{
	if (unlikely(!named_recalled(c, qp)))
		return true;
	while (max && (completer_flush_one(c, qp, now) ||
			      (qp->state == ABI_QPS_ERR && responder_flush_one(c, qp, now))))
		max--;
	return max == 0;
}
