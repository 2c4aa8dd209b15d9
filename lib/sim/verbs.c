/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "abi_wqe.h"
#include "core.h"
#include "core_command.h"
#include "path.h"
#include "qp.h"
#include "verbs.h"

int verbs_modify(struct core *c, struct qp *qp, uint32_t mask, const struct abi_qp_attr *attr,
	const struct path_spec *path, uint64_t now)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP, .qp = qp, .mask = mask, .attr = *attr};
	int rc;

	if (path) {
		cmd.path = *path;
		cmd.sgid = *path->sgid;
	}
	do {
		rc = core_cmd(c, &cmd, now);
		if (rc == -EAGAIN && core_grace_wanted(c)) /* its only core is between two calls */
			core_grace_end(c, core_grace_wanted(c));
	} while (rc == -EAGAIN);
	return rc;
}

static bool is_datagram(const struct qp *qp)
{
	return qp->type == ABI_QPT_UD || qp->type == ABI_QPT_GSI;
}

static bool is_responder(const struct qp *qp)
{
	return qp->type == ABI_QPT_RC || qp->type == ABI_QPT_XRC_RECV;
}

static bool is_requester(const struct qp *qp)
{
	return qp->type == ABI_QPT_RC || qp->type == ABI_QPT_XRC_SEND;
}

int verbs_to_init(struct core *c, struct qp *qp, const struct abi_qp_attr *attr, uint64_t now)
{
	struct abi_qp_attr a = *attr;
	uint32_t mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX;

	mask |= is_datagram(qp) ? ABI_QP_QKEY : ABI_QP_ACCESS_FLAGS;
	if (qp->type != ABI_QPT_GSI)
		mask |= ABI_QP_PORT;
	a.qp_state = ABI_QPS_INIT;
	return verbs_modify(c, qp, mask, &a, NULL, now);
}

int verbs_to_rtr(struct core *c, struct qp *qp, const struct abi_qp_attr *attr,
	const struct path_spec *path, uint64_t now)
{
	struct abi_qp_attr a = *attr;
	uint32_t mask = ABI_QP_STATE;

	if (!is_datagram(qp))
		mask |= ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN;
	if (is_responder(qp))
		mask |= ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER;
	a.qp_state = ABI_QPS_RTR;
	return verbs_modify(c, qp, mask, &a, path, now);
}

int verbs_to_rts(struct core *c, struct qp *qp, const struct abi_qp_attr *attr, uint64_t now)
{
	struct abi_qp_attr a = *attr;
	uint32_t mask = ABI_QP_STATE | ABI_QP_SQ_PSN;

	if (is_requester(qp))
		mask |= ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_MAX_QP_RD_ATOMIC;
	if (is_requester(qp) || is_responder(qp))
		mask |= ABI_QP_TIMEOUT;
	a.qp_state = ABI_QPS_RTS;
	return verbs_modify(c, qp, mask, &a, NULL, now);
}

bool verbs_publish(
	uint8_t *slot, uint32_t ctl, uint32_t idx, uint32_t depth, struct abi_queue *shared)
{
	ctl = (ctl & ~ABI_WQE_PHASE) | abi_phase(idx, depth);
	atomic_store_explicit((_Atomic uint32_t *)slot, ctl, memory_order_release);
	atomic_store_explicit(&shared->producer, idx + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&shared->need_doorbell, memory_order_relaxed);
}

bool verbs_take(struct abi_cq_lane *lane, uint32_t depth, uint32_t *taken, struct abi_cqe *cqe)
{
	struct abi_cqe *slot = (struct abi_cqe *)(lane + 1) + (*taken & (depth - 1));
	uint32_t mark = atomic_load_explicit((_Atomic uint32_t *)&slot->mark, memory_order_acquire);

	if ((mark & 1) != abi_phase(*taken, depth))
		return false;
	*cqe = *slot;
	atomic_store_explicit(&lane->consumer, ++*taken, memory_order_release);
	return true;
}
