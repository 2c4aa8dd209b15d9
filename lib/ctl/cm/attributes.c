/* SPDX-License-Identifier: BSD-3-Clause */
/* A program's view of an id, and the attributes for its QP. */
#include <errno.h>
#include <string.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "net/net.h"
#include "refuse.h"
#include "session/message.h"
#include "session/session.h"
#include "worker.h"

#define QKEY_RDMA_UDP 0x01234567u

static uint8_t sgid_index(const struct cm_id *id)
{
	int i = gsi_sgid_index(id->all->ctl, &id->path);

	return i < 0 ? 0 : (uint8_t)i;
}

void id_ah(const struct cm_id *id, struct abi_ah_attr *ah)
{
	*ah = (struct abi_ah_attr){.sgid_index = sgid_index(id),
		.traffic_class = id->path.tclass,
		.hop_limit = id->path.hop_limit,
		.sl = id->path.tclass >> 5,
		.port = (uint8_t)(id->path.port + 1),
		.is_global = 1,
		.flow_label = id->path.flow_label};
	memcpy(ah->dgid, id->path.remote, 16);
}

int cmd_cm_query(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_query out = {0};
	const struct port *port;

	out.local = id->local;
	out.remote = id->remote;
	out.packet_life = id_packet_life(id);
	if (id->has_path) {
		port = &id->all->ctl->dp->ports->port[id->path.port];
		gid_of_mac((uint8_t *)out.sgid, id->all->ctl->net->port[0].mac);
		memcpy(&out.node_guid, out.sgid + 8, sizeof(out.node_guid));
		out.port = id->path.port + 1u;
		out.pkey = id->path.pkey;
		out.gid_index = sgid_index(id);
		memcpy(out.sgid, id->path.local, 16);
		memcpy(out.dgid, id->path.remote, 16);
		out.mtu = atomic_load_explicit(&port->active_mtu, memory_order_relaxed);
		out.flow_label = id->path.flow_label;
		out.traffic_class = id->path.tclass;
		out.hop_limit = id->path.hop_limit;
		out.sl = id->path.tclass >> 5;
		out.resolved = id->state == ID_ROUTE || id->state == ID_CONNECT;
	}
	reply_body(r, &out, sizeof(out));
	return 0;
}

/* --- attributes ------------------------------------------------------------------------------- */

static void to_init(const struct cm_id *id, struct abi_cm_qp_attr *a)
{
	int pkey = gsi_pkey_index(id->all->ctl, &id->path);

	a->attr.pkey_index = pkey < 0 ? 0 : (uint16_t)pkey;
	a->mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT;
	a->attr.port = (uint8_t)(id->path.port + 1);
	if (id_is_datagram(id)) {
		a->mask |= ABI_QP_QKEY;
		a->attr.qkey = QKEY_RDMA_UDP;
		return;
	}
	a->mask |= ABI_QP_ACCESS_FLAGS;
	if (!id->conn)
		return;
	a->attr.access_flags = ABI_ACCESS_REMOTE_WRITE;
	if (id->resp_res)
		a->attr.access_flags |= ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC;
}

/* CM-23, CM-24 */
static void to_rtr(const struct cm_id *id, const struct cm_qp_attr *c, struct abi_cm_qp_attr *a)
{
	a->mask = ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN;
	id_ah(id, &a->attr.ah);
	a->attr.path_mtu = 128u << c->path_mtu;
	a->attr.dest_qpn = c->dest_qpn;
	a->attr.rq_psn = id->psn;
	if (id->qp_type == ABI_QPT_UC)
		return;
	a->mask |= ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER;
	a->attr.max_dest_rd_atomic = c->max_dest_rd_atomic;
}

static void to_rts(const struct cm_id *id, const struct cm_qp_attr *c, struct abi_cm_qp_attr *a)
{
	a->mask = ABI_QP_STATE | ABI_QP_SQ_PSN;
	a->attr.sq_psn = c->sq_psn;
	if (id->qp_type == ABI_QPT_UC)
		return;
	a->mask |= ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_MAX_QP_RD_ATOMIC;
	a->attr.timeout = id->has_ack_timeout ? id->ack_timeout : c->timeout;
	a->attr.retry_cnt = c->retry_cnt;
	a->attr.rnr_retry = c->rnr_retry;
	a->attr.max_rd_atomic = c->max_rd_atomic;
}

int cmd_cm_init_qp_attr(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_qp_attr out = {0};
	struct abi_cm_init_qp_attr in;
	struct cm_qp_attr c = {0};
	int err = 0;

	memcpy(&in, q->body, sizeof(in));
	if (!id->has_path)
		return refuse(
			r->why, -EINVAL, "the id has no device: bind it or resolve an address");
	out.attr.qp_state = (uint8_t)in.state;
	if (in.state == ABI_QPS_INIT) {
		to_init(id, &out);
	} else if (in.state != ABI_QPS_RTR && in.state != ABI_QPS_RTS) {
		err = -EINVAL;
	} else if (id_is_datagram(id)) {
		out.mask = ABI_QP_STATE | (in.state == ABI_QPS_RTS ? ABI_QP_SQ_PSN : 0);
	} else {
		err = id->conn ? cm_qp_attr(id->all->cm, id->conn, &c) : -EINVAL;
		if (!err && in.state == ABI_QPS_RTR)
			to_rtr(id, &c, &out);
		else if (!err)
			to_rts(id, &c, &out);
	}
	if (err)
		return refuse(r->why, -EINVAL,
			"the peer's attributes are not known yet: wait for its REQ or "
			"REP");
	reply_body(r, &out, sizeof(out));
	return 0;
}

int cmd_cm_set_option(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_set_option in;

	memcpy(&in, q->body, sizeof(in));
	switch (in.option) {
	case ABI_CM_OPT_TOS:
		id->tos = (uint8_t)in.value;
		id->path.tclass = id->tos;
		return 0;
	case ABI_CM_OPT_REUSEADDR:
		if (id->bound && (id->state == ID_LISTEN || !in.value))
			return refuse(r->why, -EINVAL,
				"set REUSEADDR before the id listens, and clear it before the id "
				"is bound");
		id->reuse = in.value;
		return 0;
	case ABI_CM_OPT_AFONLY:
		if (id->state != ID_IDLE)
			return refuse(r->why, -EINVAL, "set AFONLY before the id listens");
		id->afonly = in.value;
		return 0;
	case ABI_CM_OPT_ACK_TIMEOUT:
		if (in.value > 31)
			return refuse(r->why, -EINVAL, "an ACK timeout must be from 0 to 31");
		if (id->qp_type != ABI_QPT_RC && id->qp_type != ABI_QPT_XRC_SEND)
			return refuse(r->why, -EINVAL, "only RC and XRC have an ACK timeout");
		id->ack_timeout = (uint8_t)in.value;
		id->has_ack_timeout = true;
		return 0;
	default:
		return refuse(r->why, -ENOSYS, "there is no option %u", in.option);
	}
}
