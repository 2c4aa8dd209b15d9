/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups by address. The program attaches its QP itself. */
#include <errno.h>
#include <string.h>
#include "cm/id.h"
#include "headers.h"
#include "mcast.h"
#include "refuse.h"
#include "session/message.h"
#include "session/session.h"

#define QKEY_RDMA_UDP 0x01234567u /* MC-09 */
#define QPN_MULTICAST 0xFFFFFFu

/* The MGID of an address: for IPv4 over RoCEv1, as Linux forms it, an IPv6 group of global scope.
 */
static void mgid_of(uint8_t mgid[16], const struct abi_cm_addr *a, uint8_t net)
{
	memcpy(mgid, a->ip, 16);
	if (a->family == 4 && net == NET_ROCEV1) {
		mgid[0] = 0xFF;
		mgid[1] = 0x0E;
	}
}

/* The event carries everything that the program needs; rocid keeps only the number. */
int cmd_cm_join(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_handle_reply out;
	struct abi_cm_join in;
	struct cm_note *n;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (!id->has_path)
		return refuse(
			r->why, -EINVAL, "the id has no device: bind it or resolve an address");
	if (!id_is_datagram(id))
		return refuse(r->why, -EINVAL, "only ids of UDP and IPoIB can join groups");
	err = addr_check(&in.addr, -EINVAL, r->why);
	if (err)
		return err;
	if (!gid_is_multicast(in.addr.ip))
		return refuse(r->why, -EINVAL, "the address is not a multicast address");
	err = note_asked(id, ABI_CM_MULTICAST_JOIN, &n, r->why);
	if (err)
		return err;
	n->event.uid = in.uid;
	n->event.param.qpn = QPN_MULTICAST;
	n->event.param.qkey = QKEY_RDMA_UDP;
	id_ah(id, &n->event.ah);
	mgid_of(n->event.ah.dgid, &in.addr, id->path.net);
	out.handle = id->handle;
	note_raise(n);
	reply_body(r, &out, sizeof(out));
	return 0;
}

int cmd_cm_leave(struct cm_id *id, const struct request *q, struct reply *r)
{
	return 0;
}
