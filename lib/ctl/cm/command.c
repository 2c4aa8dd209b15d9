/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of abi_cm.h, dispatched before those of verbs. */
#include <errno.h>
#include "abi_cm.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "cm/manager.h"
#include "config/ctl_parts.h"
#include "refuse.h"
#include "session/message.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/command.h"

struct command {
	const char *name;
	size_t min_body; /* of version 1; longer bodies are a newer client's */
	/* Exactly one is set. A body begins with the handle of the channel or the id. */
	command_handler of_session;
	int (*of_channel)(struct cm_channel *ch, const struct request *q, struct reply *r);
	int (*of_id)(struct cm_id *id, const struct request *q, struct reply *r);
};

#define AT(type) [(type)-ABI_CM_OPEN]

/* If you add a message type to abi_cm.h, it needs a row here, and a paragraph in doc/abi.md. */
static const struct command commands[] = {
	AT(ABI_CM_OPEN) = {"cm_open", 0, .of_session = cmd_cm_open},
	AT(ABI_CM_CLOSE) = {"cm_close", sizeof(struct abi_handle), .of_channel = cmd_cm_close},
	AT(ABI_CM_CREATE_ID) = {"cm_create_id", sizeof(struct abi_cm_create_id),
		.of_channel = cmd_cm_create_id},
	AT(ABI_CM_DESTROY_ID) = {"cm_destroy_id", sizeof(struct abi_handle),
		.of_id = cmd_cm_destroy_id},
	AT(ABI_CM_MIGRATE_ID) = {"cm_migrate_id", sizeof(struct abi_cm_migrate),
		.of_id = cmd_cm_migrate_id},
	AT(ABI_CM_BIND) = {"cm_bind", sizeof(struct abi_cm_bind), .of_id = cmd_cm_bind},
	AT(ABI_CM_RESOLVE_ADDR) = {"cm_resolve_addr", sizeof(struct abi_cm_resolve_addr),
		.of_id = cmd_cm_resolve_addr},
	AT(ABI_CM_RESOLVE_ROUTE) = {"cm_resolve_route", sizeof(struct abi_cm_resolve_route),
		.of_id = cmd_cm_resolve_route},
	AT(ABI_CM_QUERY) = {"cm_query", sizeof(struct abi_handle), .of_id = cmd_cm_query},
	AT(ABI_CM_LISTEN) = {"cm_listen", sizeof(struct abi_cm_listen), .of_id = cmd_cm_listen},
	AT(ABI_CM_CONNECT) = {"cm_connect", sizeof(struct abi_cm_connect), .of_id = cmd_cm_connect},
	AT(ABI_CM_ACCEPT) = {"cm_accept", sizeof(struct abi_cm_accept), .of_id = cmd_cm_accept},
	AT(ABI_CM_REJECT) = {"cm_reject", sizeof(struct abi_cm_reject), .of_id = cmd_cm_reject},
	AT(ABI_CM_DISCONNECT) = {"cm_disconnect", sizeof(struct abi_handle),
		.of_id = cmd_cm_disconnect},
	AT(ABI_CM_INIT_QP_ATTR) = {"cm_init_qp_attr", sizeof(struct abi_cm_init_qp_attr),
		.of_id = cmd_cm_init_qp_attr},
	AT(ABI_CM_NOTIFY) = {"cm_notify", sizeof(struct abi_cm_notify), .of_id = cmd_cm_notify},
	AT(ABI_CM_SET_OPTION) = {"cm_set_option", sizeof(struct abi_cm_set_option),
		.of_id = cmd_cm_set_option},
	AT(ABI_CM_JOIN) = {"cm_join", sizeof(struct abi_cm_join), .of_id = cmd_cm_join},
	AT(ABI_CM_LEAVE) = {"cm_leave", sizeof(struct abi_handle), .of_id = cmd_cm_leave},
	AT(ABI_CM_GET_EVENT) = {"cm_get_event", sizeof(struct abi_handle),
		.of_channel = cmd_cm_get_event},
};

static int run_command(
	struct session *s, const struct command *c, const struct request *q, struct reply *r)
{
	struct cm_channel *ch;
	struct abi_handle in;
	struct cm_id *id;

	if (c->of_session)
		return c->of_session(s, q, r);
	memcpy(&in, q->body, sizeof(in));
	if (c->of_channel) {
		ch = channel_named(s, in.handle, r);
		return ch ? c->of_channel(ch, q, r) : -EINVAL;
	}
	id = id_named(s, in.handle, r);
	return id ? c->of_id(id, q, r) : -EINVAL;
}

static int run(struct session *s, const struct request *q, struct reply *r)
{
	uint32_t type = q->msg.type;
	const struct command *c;

	if (type < ABI_CM_OPEN || type > ABI_CM_GET_EVENT || !s->greeted)
		return command_ops.run(s, q, r);
	c = &commands[type - ABI_CM_OPEN];
	if (q->body_len < c->min_body)
		return refuse(r->why, -EINVAL,
			"%s needs a body of %zu bytes, but has %zu: see doc/abi.md", c->name,
			c->min_body, q->body_len);
	if (!s->ctl->connections->cm && type != ABI_CM_OPEN)
		return refuse(r->why, -EINVAL, "%s before cm_open: open a channel first", c->name);
	return run_command(s, c, q, r);
}

static bool takes_descriptor(uint32_t type)
{
	return command_ops.takes_descriptor(type);
}

static void give_up(struct session *s)
{
	struct connections *all = s->ctl->connections;

	channels_give_up(s);
	if (all->gsi.session == s) /* its memory faulted, or rocid is ending */
		all->gsi.session = NULL;
	command_ops.give_up(s);
}

/* Notifies the peers of its connections before its QPs are destroyed. */
static bool release_some(struct session *s)
{
	return channels_release_some(s) || command_ops.release_some(s);
}

static struct session *mr_faulted(void *mapping)
{
	return command_ops.mr_faulted(mapping);
}

const struct session_ops connection_ops = {
	.run = run,
	.takes_descriptor = takes_descriptor,
	.give_up = give_up,
	.release_some = release_some,
	.mr_faulted = mr_faulted,
};
