/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups. librdmacm attaches the QP when the event names the group. */
#include <errno.h>
#include <string.h>
#include "ucma.h"
#include "verbs.h"

struct membership {
	uint32_t id;
	uint64_t uid;
	uint64_t response;
	bool send_only;
	const void *addr;
	size_t len;
	bool exact;
};

static int join(const struct ucma_command *c, const struct membership *m)
{
	struct abi_cm_join body = {.id = m->id, .send_only = m->send_only};
	struct rdma_ucm_create_id_resp resp;
	struct abi_handle_reply made;
	struct ucma_group *g;
	struct ucma_id *id;
	int err = ucma_address_read(&body.addr, m->addr, m->len, m->exact);

	if (!err && c->out_len < sizeof(resp))
		err = ENOSPC;
	if (err)
		return err;
	err = ucma_id_missing(c->file, m->id);
	if (err)
		return err;
	id = ucma_id_find(m->id);
	g = ucma_group_add(id, m->uid);
	if (!g)
		return ENOMEM;
	body.uid = g->handle;
	err = ucma_call(c, ABI_CM_JOIN, &body, sizeof(body), &made, sizeof(made));
	if (err) {
		ucma_group_remove(g);
		return err;
	}
	g->rocid = made.handle;
	resp.id = g->handle;
	return ucma_respond(c, m->response, &resp, sizeof(resp), sizeof(resp));
}

int ucma_join_ip_mcast(const struct ucma_command *c)
{
	struct rdma_ucm_join_ip_mcast in;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));
	const struct membership m = {
		in.id, in.uid, in.response, false, &in.addr, sizeof(in.addr), false};

	return err ? err : join(c, &m);
}

int ucma_join_mcast(const struct ucma_command *c)
{
	struct rdma_ucm_join_mcast in;
	struct membership m;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && (in.addr_size > sizeof(in.addr) || in.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED))
		err = EINVAL;
	if (err)
		return err;
	m = (struct membership){in.id, in.uid, in.response,
		in.join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, &in.addr, in.addr_size,
		true};
	return join(c, &m);
}

int ucma_leave_mcast(const struct ucma_command *c)
{
	struct rdma_ucm_destroy_id in;
	struct rdma_ucm_destroy_id_resp resp;
	struct abi_handle body;
	struct ucma_group *g;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && c->out_len < sizeof(resp))
		err = ENOSPC;
	if (err)
		return err;
	g = ucma_group_of(c->file, in.id);
	if (!g)
		return ENOENT;
	body = (struct abi_handle){.handle = g->rocid};
	err = ucma_call(c, ABI_CM_LEAVE, &body, sizeof(body), NULL, 0);
	if (err && err != EIO)
		return err;
	resp.events_reported = g->reported;
	ucma_group_remove(g);
	return ucma_respond(c, in.response, &resp, sizeof(resp), sizeof(resp));
}
