/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include "abi_fault.h"
#include "refuse.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/command.h"
#include "verbs/mr_obj.h"

void *object_named(const struct handles *h, uint32_t handle, const char *kind, struct reply *r)
{
	void *object = handle_get(h, handle);

	if (!object)
		refuse(r->why, -EINVAL, "there is no %s %u", kind, handle);
	return object;
}

void *object_of(const struct request *q, const struct handles *h, const char *kind, struct reply *r)
{
	struct abi_handle in;

	memcpy(&in, q->body, sizeof(in));
	return object_named(h, in.handle, kind, r);
}

struct command {
	const char *name;
	size_t min_body; /* of version 1; longer bodies are a newer client's */
	command_handler run;
};

/* If you add a message type to abi_ctl.h, it needs a row here, and a paragraph in doc/abi.md. */
static const struct command commands[ABI_MSG_TYPES] = {
	[ABI_HELLO] = {"hello", sizeof(struct abi_hello), cmd_hello},
	[ABI_QUERY_DEVICE] = {"query_device", 0, cmd_query_device},
	[ABI_QUERY_PORT] = {"query_port", sizeof(struct abi_query_port), cmd_query_port},
	[ABI_QUERY_GID] = {"query_gid", sizeof(struct abi_query_gid), cmd_query_gid},
	[ABI_QUERY_PKEY] = {"query_pkey", sizeof(struct abi_query_pkey), cmd_query_pkey},
	[ABI_ALLOC_PD] = {"alloc_pd", 0, cmd_alloc_pd},
	[ABI_DEALLOC_PD] = {"dealloc_pd", sizeof(struct abi_handle), cmd_dealloc_pd},
	[ABI_REG_MR] = {"reg_mr", offsetof(struct abi_reg_mr, npieces), cmd_reg_mr},
	[ABI_DEREG_MR] = {"dereg_mr", sizeof(struct abi_handle), cmd_dereg_mr},
	[ABI_ALLOC_MW] = {"alloc_mw", sizeof(struct abi_alloc_mw), cmd_alloc_mw},
	[ABI_DEALLOC_MW] = {"dealloc_mw", sizeof(struct abi_handle), cmd_dealloc_mw},
	[ABI_CREATE_CHANNEL] = {"create_channel", 0, cmd_create_channel},
	[ABI_DESTROY_CHANNEL] = {"destroy_channel", sizeof(struct abi_handle), cmd_destroy_channel},
	[ABI_CREATE_CQ] = {"create_cq", offsetof(struct abi_create_cq, flags), cmd_create_cq},
	[ABI_RESIZE_CQ] = {"resize_cq", sizeof(struct abi_resize_cq), cmd_resize_cq},
	[ABI_DESTROY_CQ] = {"destroy_cq", sizeof(struct abi_handle), cmd_destroy_cq},
	[ABI_CREATE_SRQ] = {"create_srq", sizeof(struct abi_create_srq), cmd_create_srq},
	[ABI_MODIFY_SRQ] = {"modify_srq", sizeof(struct abi_modify_srq), cmd_modify_srq},
	[ABI_QUERY_SRQ] = {"query_srq", sizeof(struct abi_handle), cmd_query_srq},
	[ABI_DESTROY_SRQ] = {"destroy_srq", sizeof(struct abi_handle), cmd_destroy_srq},
	[ABI_CREATE_AH] = {"create_ah", offsetof(struct abi_create_ah, flags), cmd_create_ah},
	[ABI_DESTROY_AH] = {"destroy_ah", sizeof(struct abi_handle), cmd_destroy_ah},
	[ABI_CREATE_QP] = {"create_qp", offsetof(struct abi_create_qp, port), cmd_create_qp},
	[ABI_MODIFY_QP] = {"modify_qp", sizeof(struct abi_modify_qp), cmd_modify_qp},
	[ABI_QUERY_QP] = {"query_qp", sizeof(struct abi_handle), cmd_query_qp},
	[ABI_LIMIT_QP] = {"limit_qp", sizeof(struct abi_limit_qp), cmd_limit_qp},
	[ABI_REPORT] = {"report", sizeof(struct abi_report), cmd_report},
	[ABI_DESTROY_QP] = {"destroy_qp", sizeof(struct abi_handle), cmd_destroy_qp},
	[ABI_ATTACH_MCAST] = {"attach_mcast", sizeof(struct abi_mcast), cmd_attach_mcast},
	[ABI_DETACH_MCAST] = {"detach_mcast", sizeof(struct abi_mcast), cmd_detach_mcast},
	[ABI_OPEN_XRCD] = {"open_xrcd", sizeof(struct abi_open_xrcd), cmd_open_xrcd},
	[ABI_CLOSE_XRCD] = {"close_xrcd", sizeof(struct abi_handle), cmd_close_xrcd},
	[ABI_EXPLAIN_QP] = {"explain_qp", sizeof(struct abi_handle), cmd_explain_qp},
	[ABI_INJECT_FAULT] = {"inject_fault", sizeof(struct abi_inject_fault), cmd_inject_fault},
	[ABI_QUERY_FAULT] = {"query_fault", sizeof(struct abi_fault_id), cmd_query_fault},
	[ABI_CLEAR_FAULT] = {"clear_fault", sizeof(struct abi_fault_id), cmd_clear_fault},
	[ABI_GET_ARENA] = {"get_arena", 0, cmd_get_arena},
	[ABI_GET_USERFAULTFD] = {"get_userfaultfd", 0, cmd_get_userfaultfd},
	[ABI_REREG_MR] = {"rereg_mr", sizeof(struct abi_rereg_mr), cmd_rereg_mr},
	[ABI_QUERY_GIDS] = {"query_gids", sizeof(struct abi_query_gids), cmd_query_gids},
	[ABI_PROBE] = {"probe", 0, cmd_probe},
	[ABI_GET_WAKE] = {"get_wake", sizeof(struct abi_get_wake), cmd_get_wake},
};

static bool takes_descriptor(uint32_t type)
{
	return type == ABI_REG_MR || type == ABI_REREG_MR || type == ABI_OPEN_XRCD;
}

static int run(struct session *s, const struct request *q, struct reply *r)
{
	const struct command *c;
	uint32_t type = q->msg.type;

	if (type >= ABI_MSG_TYPES || !commands[type].name)
		return refuse(r->why, -EPROTO,
			"message type %u is unknown to this rocid: use libroci of the same version",
			type);
	c = &commands[type];
	if (!s->greeted && type != ABI_HELLO && type != ABI_PROBE)
		return refuse(r->why, -EPROTO, "%s before hello: send hello first", c->name);
	if (q->body_len < c->min_body)
		return refuse(r->why, -EINVAL,
			"%s needs a body of %zu bytes, but has %zu: see doc/abi.md", c->name,
			c->min_body, q->body_len);
	return c->run(s, q, r);
}

const struct session_ops command_ops = {
	.run = run,
	.takes_descriptor = takes_descriptor,
	.give_up = mr_give_up,
	.release_some = session_release_some,
	.mr_faulted = mr_faulted,
};
