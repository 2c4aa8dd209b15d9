/* SPDX-License-Identifier: BSD-3-Clause */
#include "ud.h"

int ud_init(struct roci_qp *qp, uint8_t port, uint32_t qkey)
{
	const struct roci_qp_attr attr = {
		.size = sizeof(attr),
		.qp_state = ROCI_QPS_INIT,
		.port_num = port,
		.qkey = qkey,
	};

	return roci_modify_qp(
		qp, &attr, ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_QKEY);
}

int ud_start(struct roci_qp *qp, uint32_t psn)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RTR, .sq_psn = psn};
	int err = roci_modify_qp(qp, &attr, ROCI_QP_STATE);

	if (err)
		return err;
	attr.qp_state = ROCI_QPS_RTS;
	return roci_modify_qp(qp, &attr, ROCI_QP_STATE | ROCI_QP_SQ_PSN);
}

struct roci_ah *ud_peer(
	struct roci_pd *pd, uint8_t port, uint8_t gid_index, const union roci_gid *gid)
{
	const struct roci_ah_attr attr = {
		.grh = {.dgid = *gid, .sgid_index = gid_index, .hop_limit = 64},
		.is_global = 1,
		.port_num = port,
	};

	return roci_create_ah(pd, &attr);
}
