/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that change a connection's state, and the attributes of its QP. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "ucma.h"
#include "verbs.h"

static int read_param(const struct rdma_ucm_conn_param *in, struct abi_cm_param *to)
{
	if (in->private_data_len > ABI_CM_PRIVATE_MAX)
		return EINVAL;
	*to = (struct abi_cm_param){.qpn = in->qp_num,
		.qkey = in->qkey,
		.responder_resources = in->responder_resources,
		.initiator_depth = in->initiator_depth,
		.flow_control = in->flow_control,
		.retry_count = in->retry_count,
		.rnr_retry_count = in->rnr_retry_count,
		.srq = in->srq,
		.private_len = in->private_data_len};
	memcpy(to->private_data, in->private_data, in->private_data_len);
	return 0;
}

int ucma_listen(const struct ucma_command *c)
{
	struct rdma_ucm_listen in;
	struct abi_cm_listen body;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (err)
		return err;
	/* programs pass a negative number for "many" */
	body = (struct abi_cm_listen){
		.id = in.id, .backlog = in.backlog > INT32_MAX ? 0 : in.backlog};
	return ucma_call(c, ABI_CM_LISTEN, &body, sizeof(body), NULL, 0);
}

/* The ECE fields are a later addition, and no ECE options are exchanged. */
int ucma_connect(const struct ucma_command *c)
{
	struct rdma_ucm_connect in;
	struct abi_cm_connect body = {0};
	int err = ucma_arguments(c, &in, sizeof(in), offsetof(struct rdma_ucm_connect, ece));

	if (!err && !in.conn_param.valid)
		err = EINVAL;
	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (!err)
		err = read_param(&in.conn_param, &body.param);
	if (err)
		return err;
	body.id = in.id;
	return ucma_call(c, ABI_CM_CONNECT, &body, sizeof(body), NULL, 0);
}

/* Without parameters, the active side sends the RTU. With them, the id gets its uid. */
int ucma_accept(const struct ucma_command *c)
{
	struct rdma_ucm_accept in;
	struct abi_cm_accept body = {0};
	int err = ucma_arguments(c, &in, sizeof(in), offsetof(struct rdma_ucm_accept, ece));

	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (!err && in.conn_param.valid)
		err = read_param(&in.conn_param, &body.param);
	if (err)
		return err;
	body.id = in.id;
	err = ucma_call(c, ABI_CM_ACCEPT, &body, sizeof(body), NULL, 0);
	if (!err && in.conn_param.valid)
		ucma_id_find(in.id)->uid = in.uid;
	return err;
}

#define REJ_VENDOR_OPTION 35
#define REJ_CONSUMER	  28

int ucma_reject(const struct ucma_command *c)
{
	struct rdma_ucm_reject in;
	struct abi_cm_reject body = {0};
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && ((in.reason && in.reason != REJ_CONSUMER && in.reason != REJ_VENDOR_OPTION) ||
			    in.private_data_len > ABI_CM_PRIVATE_MAX))
		err = EINVAL;
	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (err)
		return err;
	body.id = in.id;
	body.reason = in.reason;
	body.private_len = in.private_data_len;
	memcpy(body.private_data, in.private_data, in.private_data_len);
	return ucma_call(c, ABI_CM_REJECT, &body, sizeof(body), NULL, 0);
}

int ucma_disconnect(const struct ucma_command *c)
{
	struct rdma_ucm_disconnect in;
	struct abi_handle body;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (err)
		return err;
	body = (struct abi_handle){.handle = in.id};
	return ucma_call(c, ABI_CM_DISCONNECT, &body, sizeof(body), NULL, 0);
}

int ucma_notify(const struct ucma_command *c)
{
	struct rdma_ucm_notify in;
	struct abi_cm_notify body;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (err)
		return err;
	body = (struct abi_cm_notify){.id = in.id,
		.event = in.event == IBV_EVENT_COMM_EST ? ABI_EVENT_COMM_EST : UINT32_MAX};
	return ucma_call(c, ABI_CM_NOTIFY, &body, sizeof(body), NULL, 0);
}

/* --- attributes ------------------------------------------------------------------------------- */

void ucma_ah_to_kern(const struct abi_ah_attr *a, struct ib_uverbs_ah_attr *to)
{
	*to = (struct ib_uverbs_ah_attr){.grh.flow_label = a->flow_label,
		.grh.sgid_index = a->sgid_index,
		.grh.hop_limit = a->hop_limit,
		.grh.traffic_class = a->traffic_class,
		.sl = a->sl,
		.is_global = a->is_global,
		.port_num = a->port};
	memcpy(to->grh.dgid, a->dgid, 16);
}

/* States, access flags and masks have the values of verbs; the MTU is in bytes. */
static void attr_to_kern(const struct abi_cm_qp_attr *in, struct ib_uverbs_qp_attr *to)
{
	const struct abi_qp_attr *a = &in->attr;

	*to = (struct ib_uverbs_qp_attr){.qp_attr_mask = in->mask,
		.qp_state = a->qp_state,
		.path_mtu = a->path_mtu ? (uint32_t)__builtin_ctz(a->path_mtu) - 7 : 0,
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qpn,
		.qp_access_flags = a->access_flags,
		.pkey_index = a->pkey_index,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.port_num = a->port,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry};
	ucma_ah_to_kern(&a->ah, &to->ah_attr);
}

int ucma_init_qp_attr(const struct ucma_command *c)
{
	struct rdma_ucm_init_qp_attr in;
	struct abi_cm_init_qp_attr body;
	struct ib_uverbs_qp_attr resp;
	struct abi_cm_qp_attr attr;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && c->out_len < sizeof(resp))
		err = ENOSPC;
	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (err)
		return err;
	body = (struct abi_cm_init_qp_attr){.id = in.id, .state = in.qp_state};
	err = ucma_call(c, ABI_CM_INIT_QP_ATTR, &body, sizeof(body), &attr, sizeof(attr));
	if (err)
		return err;
	attr_to_kern(&attr, &resp);
	return ucma_respond(c, in.response, &resp, sizeof(resp), sizeof(resp));
}
