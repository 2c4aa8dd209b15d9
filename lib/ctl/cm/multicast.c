/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups by address. The program attaches its QP itself. */
#include <errno.h>
#include <string.h>
#include "cm/connections.h"
#include "cm/id.h"
#include "config/parts.h"
#include "refuse.h"
#include "session/message.h"
#include "session/session.h"
#include "verbs/av.h"

#define QKEY_RDMA_UDP 0x01234567u
#define QPN_MULTICAST 0xFFFFFFu

/* The event tells all that the program needs; rocid keeps the number alone. */
int cmd_cm_join(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_handle_reply out;
	struct abi_cm_join in;
	struct cm_note *n;
	struct cm_id *id;
	int err;

	memcpy(&in, q->body, sizeof(in));
	id = id_named(s, in.id, r);
	if (!id)
		return -EINVAL;
	if (!id->has_path)
		return refuse(
			r->why, -EINVAL, "the id has no device: bind it or resolve an address");
	if (av_is_unicast(in.addr.ip))
		return refuse(r->why, -EINVAL, "the address is none of a multicast group");
	err = id_may_raise(id, r->why);
	if (err)
		return err;
	n = note_new(id, ABI_CM_MULTICAST_JOIN, 0);
	if (!n)
		return refuse(r->why, -ENOMEM, "rocid is out of memory");
	n->event.uid = in.uid;
	n->event.param.qpn = QPN_MULTICAST;
	n->event.param.qkey = QKEY_RDMA_UDP;
	id_ah(id, &n->event.ah);
	memcpy(n->event.ah.dgid, in.addr.ip, 16);
	out.handle = id->handle;
	note_raise(n);
	reply_body(r, &out, sizeof(out));
	return 0;
}

int cmd_cm_leave(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_handle in;

	memcpy(&in, q->body, sizeof(in));
	return id_named(s, in.handle, r) ? 0 : -EINVAL;
}
