/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes to the device: a header and the arguments of one command. */
#include <errno.h>
#include <string.h>
#include "ucma.h"
#include "verbs.h"

/* GET_OPTION has no handler, as in the kernel. */
static int (*const commands[])(const struct ucma_command *c) = {
	[RDMA_USER_CM_CMD_CREATE_ID] = ucma_create_id,
	[RDMA_USER_CM_CMD_DESTROY_ID] = ucma_destroy_id,
	[RDMA_USER_CM_CMD_BIND_IP] = ucma_bind_ip,
	[RDMA_USER_CM_CMD_RESOLVE_IP] = ucma_resolve_ip,
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = ucma_resolve_route,
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = ucma_query_route,
	[RDMA_USER_CM_CMD_CONNECT] = ucma_connect,
	[RDMA_USER_CM_CMD_LISTEN] = ucma_listen,
	[RDMA_USER_CM_CMD_ACCEPT] = ucma_accept,
	[RDMA_USER_CM_CMD_REJECT] = ucma_reject,
	[RDMA_USER_CM_CMD_DISCONNECT] = ucma_disconnect,
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = ucma_init_qp_attr,
	[RDMA_USER_CM_CMD_GET_EVENT] = ucma_get_event,
	[RDMA_USER_CM_CMD_GET_OPTION] = NULL,
	[RDMA_USER_CM_CMD_SET_OPTION] = ucma_set_option,
	[RDMA_USER_CM_CMD_NOTIFY] = ucma_notify,
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = ucma_join_ip_mcast,
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = ucma_leave_mcast,
	[RDMA_USER_CM_CMD_MIGRATE_ID] = ucma_migrate_id,
	[RDMA_USER_CM_CMD_QUERY] = ucma_query,
	[RDMA_USER_CM_CMD_BIND] = ucma_bind,
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = ucma_resolve_addr,
	[RDMA_USER_CM_CMD_JOIN_MCAST] = ucma_join_mcast,
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

int ucma_command(struct ucma_file *f, int fd, const void *buf, size_t len)
{
	struct rdma_ucm_cmd_hdr h;
	struct ucma_command c = {.file = f, .fd = fd};

	if (len < sizeof(h))
		return EINVAL;
	memcpy(&h, buf, sizeof(h));
	if (h.cmd >= COMMANDS || h.in + sizeof(h) > len)
		return EINVAL;
	if (!commands[h.cmd])
		return ENOSYS;
	c.in = (const uint8_t *)buf + sizeof(h);
	c.in_len = h.in;
	c.out_len = h.out;
	return commands[h.cmd](&c);
}

int ucma_call(const struct ucma_command *c, uint32_t type, const void *body, size_t len,
	void *reply, size_t reply_len)
{
	int err = roci_cm_call(c->file->session->roci, type, body, len, reply, reply_len, NULL);

	return err == EAGAIN ? err : explain("librdmacm", err);
}

int ucma_arguments(const struct ucma_command *c, void *to, size_t size, size_t need)
{
	if (c->in_len < need)
		return EINVAL;
	memset(to, 0, size);
	memcpy(to, c->in, c->in_len < size ? c->in_len : size);
	return 0;
}

int ucma_respond(
	const struct ucma_command *c, uint64_t to, const void *resp, size_t size, size_t need)
{
	if (c->out_len < need)
		return ENOSPC;
	memcpy((void *)(uintptr_t)to, resp, c->out_len < size ? c->out_len : size);
	return 0;
}
