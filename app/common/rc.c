/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include "rc.h"

#define HOP_LIMIT 64
#define RNR_TIMER 12 /* 0.64 ms, as perftest's */
#define RETRIES	  7
#define FOR_EVER  7 /* RNR NAKs */

int rc_init(struct roci_qp *qp, uint8_t port, int access)
{
	struct roci_qp_attr attr = {
		.size = sizeof(attr),
		.qp_state = ROCI_QPS_INIT,
		.port_num = port,
		.qp_access_flags = access,
	};

	return roci_modify_qp(qp, &attr,
		ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS);
}

struct roci_ah_attr rc_address(const struct rc_path *path)
{
	return (struct roci_ah_attr){.is_global = 1,
		.port_num = path->port,
		.sl = path->sl,
		.grh = {.dgid = path->peer_gid,
			.sgid_index = path->gid_index,
			.traffic_class = path->traffic_class,
			.flow_label = path->flow_label,
			.hop_limit = HOP_LIMIT}};
}

/* Attributes that only responders need, and attributes that only requesters need (QPS-07,
 * XRC-07). */
static bool answers(const struct roci_qp *qp)
{
	return qp->qp_type == ROCI_QPT_RC || qp->qp_type == ROCI_QPT_XRC_RECV;
}

static bool asks(const struct roci_qp *qp)
{
	return qp->qp_type == ROCI_QPT_RC || qp->qp_type == ROCI_QPT_XRC_SEND;
}

static int to_rtr(struct roci_qp *qp, const struct rc_path *path)
{
	struct roci_qp_attr attr = {
		.size = sizeof(attr),
		.qp_state = ROCI_QPS_RTR,
		.path_mtu = path->mtu,
		.dest_qp_num = path->peer_qpn,
		.rq_psn = path->peer_psn,
		.max_dest_rd_atomic = path->rd_atomic,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = rc_address(path),
	};
	int mask =
		ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN;

	if (answers(qp))
		mask |= ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER;
	return roci_modify_qp(qp, &attr, mask);
}

static int to_rts(struct roci_qp *qp, const struct rc_path *path)
{
	struct roci_qp_attr attr = {
		.size = sizeof(attr),
		.qp_state = ROCI_QPS_RTS,
		.sq_psn = path->psn,
		.max_rd_atomic = path->rd_atomic,
		.timeout = path->timeout,
		.retry_cnt = RETRIES,
		.rnr_retry = FOR_EVER,
	};
	int mask = ROCI_QP_STATE | ROCI_QP_SQ_PSN;

	if (asks(qp) || answers(qp))
		mask |= ROCI_QP_TIMEOUT;
	if (asks(qp))
		mask |= ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC;
	return roci_modify_qp(qp, &attr, mask);
}

int rc_connect(struct roci_qp *qp, const struct rc_path *path)
{
	int err = to_rtr(qp, path);

	return err ? err : to_rts(qp, path);
}
