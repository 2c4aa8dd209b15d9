/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast: which QP gets the packets of which group (A17.5.6). MLIDs do not exist (VRB-01). */
#include <errno.h>
#include <string.h>
#include "mcast.h"
#include "verbs/command.h"

/* The QP that a request names, which must be a datagram QP with a port (MC-01). */
static struct qp_obj *find_qp_obj(
	struct session *s, const struct abi_mcast *in, struct reply *r, uint32_t *port, int *err)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP};
	struct qp_obj *o = handle_get(&s->qps, in->qp);
	char text[GID_TEXT];

	*err = -EINVAL;
	if (!o) {
		refuse(r->why, 0, "there is no QP %u", in->qp);
		return NULL;
	}
	if (o->qp->type != ABI_QPT_UD) {
		refuse(r->why, 0, "multicast is for QPs of type UD: this one is another");
		return NULL;
	}
	if (!gid_is_multicast(in->mgid)) {
		refuse(r->why, 0,
			"%s is no multicast GID: it must begin with ff, or be an IPv4 multicast "
			"address in its mapped form",
			gid_text(in->mgid, text));
		return NULL;
	}
	cmd.qp = o->qp;
	*err = worker_call(s->ctl->dp->worker[o->worker], &cmd);
	if (!*err && !cmd.attr.port) {
		*err = -EINVAL;
		refuse(r->why, 0, "a QP in RESET has no port yet: move it to INIT first");
	}
	*port = cmd.attr.port - 1u;
	return *err ? NULL : o;
}

int cmd_attach_mcast(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_mcast in;
	struct qp_obj *o;
	uint32_t port;
	int err;

	memcpy(&in, q->body, sizeof(in));
	o = find_qp_obj(s, &in, r, &port, &err);
	return o ? group_attach(s->ctl, o, port, in.mgid, r->why) : err;
}

int cmd_detach_mcast(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_mcast in;
	struct qp_obj *o;
	char text[GID_TEXT];

	memcpy(&in, q->body, sizeof(in));
	o = handle_get(&s->qps, in.qp);
	if (!o)
		return refuse(r->why, -EINVAL, "there is no QP %u", in.qp);
	if (!group_detach(s->ctl, o, in.mgid))
		return 0;
	return refuse(r->why, -EINVAL, "the QP is not attached to multicast group %s",
		gid_text(in.mgid, text));
}
