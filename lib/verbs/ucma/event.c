/* SPDX-License-Identifier: BSD-3-Clause */
/* Events. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "bits.h"
#include "ucma.h"
#include "verbs.h"

static void write_param(const struct abi_cm_param *in, struct rdma_ucm_conn_param *to)
{
	to->qp_num = in->qpn;
	to->qkey = in->qkey;
	to->private_data_len = (uint8_t)in->private_len;
	to->srq = in->srq;
	to->responder_resources = in->responder_resources;
	to->initiator_depth = in->initiator_depth;
	to->flow_control = in->flow_control;
	to->retry_count = in->retry_count;
	to->rnr_retry_count = in->rnr_retry_count;
	memcpy(to->private_data, in->private_data, in->private_len);
}

static void write_datagram_param(const struct abi_cm_event *in, struct rdma_ucm_ud_param *to)
{
	to->qp_num = in->param.qpn;
	to->qkey = in->param.qkey;
	to->private_data_len = (uint8_t)in->param.private_len;
	ucma_ah_to_kern(&in->ah, &to->ah_attr);
	memcpy(to->private_data, in->param.private_data, in->param.private_len);
}

/* A connection request counts as its listener's event; the new id has no uid before it is accepted.
 */
static int new_connection(const struct ucma_command *c, const struct abi_cm_event *e,
	struct rdma_ucm_event_resp *resp)
{
	struct ucma_id *listener = ucma_id_find(e->listener);
	const struct abi_handle gone = {.handle = e->id};

	if (!listener || !ucma_id_add(listener->file, e->id, 0, listener->qp_type)) {
		ucma_call(c, ABI_CM_DESTROY_ID, &gone, sizeof(gone), NULL, 0);
		return ENOMEM;
	}
	listener->reported++;
	resp->uid = listener->uid;
	return 0;
}

static int of_group(const struct ucma_command *c, const struct abi_cm_event *e,
	struct rdma_ucm_event_resp *resp)
{
	struct ucma_group *g = ucma_group_of(c->file, (uint32_t)e->uid);

	if (!g)
		return ENOENT;
	g->reported++;
	resp->uid = g->uid;
	resp->id = g->handle;
	return 0;
}

/* As in the kernel, events of an id that is not accepted yet are dropped; accepting it then fails.
 */
static int of_id(const struct abi_cm_event *e, struct rdma_ucm_event_resp *resp)
{
	struct ucma_id *id = ucma_id_find(e->id);

	if (!id || !id->uid)
		return ENOENT;
	id->reported++;
	resp->uid = id->uid;
	return 0;
}

static bool is_datagram(const struct abi_cm_event *e)
{
	const struct ucma_id *id = ucma_id_find(e->id);

	return e->event == ABI_CM_MULTICAST_JOIN || e->event == ABI_CM_MULTICAST_ERROR ||
	       (id && id->qp_type == ABI_QPT_UD);
}

/* @return 0, or ENOENT: the id or group no longer exists. */
static int translate(const struct ucma_command *c, const struct abi_cm_event *e,
	struct rdma_ucm_event_resp *resp)
{
	int err;

	memset(resp, 0, sizeof(*resp));
	resp->id = e->id;
	resp->event = e->event;
	resp->status = (uint32_t)e->status;
	if (e->event == ABI_CM_CONNECT_REQUEST)
		err = new_connection(c, e, resp);
	else if (e->event == ABI_CM_MULTICAST_JOIN || e->event == ABI_CM_MULTICAST_ERROR)
		err = of_group(c, e, resp);
	else
		err = of_id(e, resp);
	if (err)
		return err;
	if (is_datagram(e))
		write_datagram_param(e, &resp->param.ud);
	else
		write_param(&e->param, &resp->param.conn);
	if (e->why[0])
		explain_as("librdmacm", e->status < 0 ? -e->status : ECONNREFUSED, "%s", e->why);
	return 0;
}

/* After rocid has ended, each id gets DEVICE_REMOVAL once. */
static int next_removal(const struct ucma_file *f, struct rdma_ucm_event_resp *resp)
{
	const struct list *head = &f->ids;

	for (struct list *l = head->next; l != head; l = l->next) {
		struct ucma_id *id = container_of(l, struct ucma_id, node);

		if (id->removed || !id->uid)
			continue;
		id->removed = true;
		id->reported++;
		*resp = (struct rdma_ucm_event_resp){
			.uid = id->uid, .id = id->handle, .event = ABI_CM_DEVICE_REMOVAL};
		return 0;
	}
	return ENODEV;
}

int ucma_get_event(const struct ucma_command *c)
{
	const struct abi_handle body = {.handle = c->file->channel};
	const size_t need = offsetof(struct rdma_ucm_event_resp, reserved);
	struct rdma_ucm_get_event in;
	struct rdma_ucm_event_resp resp;
	struct abi_cm_event e;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && c->out_len < need)
		err = ENOSPC;
	if (err)
		return err;
	do {
		err = ucma_call(c, ABI_CM_GET_EVENT, &body, sizeof(body), &e, sizeof(e));
		if (!err && e.param.private_len > sizeof(e.param.private_data))
			err = EPROTO;
		if (!err)
			err = translate(c, &e, &resp);
	} while (err == ENOENT);
	if (err == EIO)
		err = next_removal(c->file, &resp);
	return err ? err : ucma_respond(c, in.response, &resp, sizeof(resp), need);
}
