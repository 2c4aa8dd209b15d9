/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that change a connection's state. */
#include <errno.h>
#include <string.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "qp.h"
#include "refuse.h"
#include "session/message.h"
#include "session/quota.h"
#include "session/session.h"
#include "worker.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

#define QKEY_RDMA_UDP	 0x01234567u
#define SIDR_REP_PRIVATE 136u
#define RETRY_MAX	 7u  /* 3 bits; of RNR retries: no limit */
#define PACKET_LIFE	 16u /* of RoCE, as in Linux: 0.27 s */

static uint64_t service_id(const struct cm_id *id, uint16_t port)
{
	return (uint64_t)id->ps << 16 | port;
}

static int wrong_state(struct reply *r, const char *before)
{
	return refuse(r->why, -EINVAL, "the id is in the wrong state: %s first", before);
}

/* --- listening -------------------------------------------------------------------------------- */

static int bind_any(struct cm_id *id, struct reply *r)
{
	const struct abi_cm_addr any = {.family = 4, .ip = {[10] = 0xFF, 0xFF}}; /* as Linux */

	return id->bound ? 0 : id_bind(id, &any, r->why);
}

/* As in Linux, a loopback address stands for all of its family. The wildcard of IPv6 includes IPv4,
 * unless AFONLY: then another listener may have IPv4. */
static const uint8_t *listening_at(const struct cm_id *id)
{
	static const uint8_t any4[16] = {[10] = 0xFF, 0xFF}, any6[16];

	if (addr_has_device(&id->local))
		return id->path.local;
	if (id->local.family == 4)
		return any4;
	return id->afonly ? any6 : NULL;
}

/* Starts to listen, or takes nothing. */
static int listen_at(struct cm_id *id, uint32_t backlog, char why[ABI_SENTENCE_MAX])
{
	struct session *s = id->channel->session;
	int err = quota_take_one(s, CTL_LISTENERS, why);

	if (err)
		return err;
	err = cm_listen(id->all->cm, service_id(id, id->local.port), listening_at(id), backlog,
		id->handle, &id->listener);
	if (!err) {
		id->state = ID_LISTEN;
		id_enlist(id);
		return 0;
	}
	quota_give_one(s, CTL_LISTENERS);
	return refuse(why, err,
		err == -EADDRINUSE
			? "a program already listens on port %u: end it, or choose another"
			: "no room for another listener on port %u: end some",
		id->local.port);
}

int cmd_cm_listen(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_listen in;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (id->state != ID_IDLE)
		return wrong_state(r, "create another one");
	err = bind_any(id, r);
	if (!err)
		err = id_check_listen(id, r->why);
	if (err)
		return err;
	if (!in.backlog || in.backlog > CM_BACKLOG_DEFAULT)
		in.backlog = CM_BACKLOG_DEFAULT;
	in.backlog = RTE_MAX(in.backlog, CM_BACKLOG_MIN);
	return listen_at(id, in.backlog, r->why);
}

/* --- connecting ------------------------------------------------------------------------------- */

/* A program may use only QPs of its own process; the CM and the device may be different sessions of
 * it. */
static int check_qp(const struct cm_id *id, const struct abi_cm_param *p, struct reply *r)
{
	const struct session *s = id->channel->session;
	const struct qp_obj *o = find_qp(s->ctl, p->qpn);

	if (o && o->session->peer.uid == s->peer.uid && o->session->peer.pid == s->peer.pid)
		return 0;
	return refuse(r->why, -EINVAL, "QP 0x%x does not belong to this program", p->qpn);
}

static int check_private(uint32_t len, uint32_t max, struct reply *r)
{
	if (len <= max)
		return 0;
	return refuse(r->why, -EINVAL, "%u bytes of private data are too many: %u is the maximum",
		len, max);
}

/* Writes the header of the RDMA IP CM service, then the program's data (CM-29). */
static size_t with_header(const struct cm_id *id, const struct abi_cm_param *p, uint8_t *to)
{
	struct cma_hdr h = {.family = id->remote.family, .src_port = id->local.port};

	memcpy(h.src, id->path.local, 16);
	memcpy(h.dst, id->path.remote, 16);
	cma_write(to, &h);
	memcpy(to + CMA_HDR_LEN, p->private_data, p->private_len);
	return CMA_HDR_LEN + p->private_len;
}

static uint8_t mtu_code(uint32_t bytes)
{
	uint8_t code = 1;

	while (code < 5 && 256u << code <= bytes)
		code++;
	return code;
}

uint8_t id_packet_life(const struct cm_id *id)
{
	return (uint8_t)(id->ack_timeout > 1 ? id->ack_timeout - 1u : PACKET_LIFE);
}

static uint8_t transport_of(const struct cm_id *id)
{
	switch (id->qp_type) {
	case ABI_QPT_UC:
		return CM_TRANSPORT_UC;
	case ABI_QPT_XRC_SEND:
	case ABI_QPT_XRC_RECV:
		return CM_TRANSPORT_EXTENDED;
	default:
		return CM_TRANSPORT_RC;
	}
}

static struct cm_param param_of(const struct cm_id *id, const struct abi_cm_param *p)
{
	const struct port *port = &id->all->ctl->dp->ports->port[id->path.port];

	return (struct cm_param){.qpn = p->qpn,
		.psn = id->psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.retry_count = RTE_MIN(p->retry_count, RETRY_MAX), /* as Linux */
		.rnr_retry = RTE_MIN(p->rnr_retry_count, RETRY_MAX),
		.mtu = mtu_code(atomic_load_explicit(&port->active_mtu, memory_order_relaxed)),
		.transport = transport_of(id),
		.packet_life = id_packet_life(id),
		.flow_control = p->flow_control,
		.srq = p->srq};
}

static int connect_stream(struct cm_id *id, const struct abi_cm_param *in, const uint8_t *data,
	size_t len, struct reply *r)
{
	struct cm_param p = param_of(id, in);
	int err = check_qp(id, in, r);

	if (err)
		return err;
	id->qpn = in->qpn;
	p.private_data = data;
	p.private_len = len;
	return cm_connect(id->all->cm, &id->path, service_id(id, id->remote.port), &p, id->handle,
		&id->conn, loop_now_ns());
}

static int connect_datagrams(struct cm_id *id, const uint8_t *data, size_t len)
{
	return cm_sidr(id->all->cm, &id->path, service_id(id, id->remote.port), data, len,
		id->handle, &id->conn, loop_now_ns());
}

int cmd_cm_connect(struct cm_id *id, const struct request *q, struct reply *r)
{
	uint8_t data[CMA_HDR_LEN + ABI_CM_PRIVATE_MAX];
	struct session *s = id->channel->session;
	struct abi_cm_connect in;
	size_t len;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (id->state != ID_ROUTE)
		return wrong_state(r, "resolve address and route");
	err = check_private(in.param.private_len, id_is_datagram(id) ? 180 : 56, r);
	if (!err)
		err = quota_take_one(s, CTL_CONNECTIONS, r->why);
	if (err)
		return err;
	len = with_header(id, &in.param, data);
	id->path.sender = id_sender(id);
	id->resp_res = in.param.responder_resources;
	id->init_depth = in.param.initiator_depth;
	if (id_is_datagram(id))
		err = connect_datagrams(id, data, len);
	else
		err = connect_stream(id, &in.param, data, len, r);
	if (err) {
		quota_give_one(s, CTL_CONNECTIONS);
		return r->why[0] ? err
				 : refuse(r->why, err, "rocid has no room for another connection");
	}
	id->state = ID_CONNECT;
	id->active = true;
	return 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

static int failed(int err, struct reply *r)
{
	if (!err)
		return 0;
	return refuse(r->why, err == -ENOENT ? -EINVAL : err,
		"the connection has ended or was answered already: wait for its next event");
}

static int accept_datagrams(struct cm_id *id, const struct abi_cm_param *p, struct reply *r)
{
	int err = check_private(p->private_len, SIDR_REP_PRIVATE, r);

	if (!err)
		err = check_qp(id, p, r);
	if (err)
		return err;
	return failed(cm_sidr_answer(id->all->cm, id->conn, CM_SIDR_SUCCESS, p->qpn,
			      p->qkey ? p->qkey : QKEY_RDMA_UDP, p->private_data, p->private_len,
			      loop_now_ns()),
		r);
}

static int accept_stream(struct cm_id *id, const struct abi_cm_param *in, struct reply *r)
{
	struct cm_param p = param_of(id, in);
	int err = check_private(in->private_len, 196, r);

	if (!err)
		err = check_qp(id, in, r);
	if (err)
		return err;
	p.private_data = in->private_data;
	p.private_len = in->private_len;
	id->qpn = in->qpn;
	return failed(cm_accept(id->all->cm, id->conn, &p, id->handle, loop_now_ns()), r);
}

int cmd_cm_accept(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_accept in;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (!id->conn)
		return wrong_state(r, "wait for a connection");
	err = check_private(in.param.private_len, ABI_CM_PRIVATE_MAX, r);
	if (err)
		return err;
	if (id->active) {
		err = cm_rtu(id->all->cm, id->conn, in.param.private_data, in.param.private_len,
			loop_now_ns());
		return failed(err, r);
	}
	err = id_is_datagram(id) ? accept_datagrams(id, &in.param, r)
				 : accept_stream(id, &in.param, r);
	if (!err) {
		id->uid = in.uid;
		id_answered(id);
	}
	return err;
}

/* CM-08: only rocid itself uses the other reasons. */
static bool is_of_programs(unsigned reason)
{
	return !reason || reason == CM_REJ_CONSUMER || reason == CM_REJ_VENDOR_OPTION;
}

int cmd_cm_reject(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_reject in;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (!id->conn)
		return wrong_state(r, "wait for a connection");
	if (!is_of_programs(in.reason))
		return refuse(r->why, -EINVAL, "a program must reject with reason %u or %u, not %u",
			CM_REJ_CONSUMER, CM_REJ_VENDOR_OPTION, in.reason);
	err = check_private(in.private_len, id_is_datagram(id) ? SIDR_REP_PRIVATE : 148, r);
	if (err)
		return err;
	err = cm_reject(id->all->cm, id->conn, in.reason ? in.reason : CM_REJ_CONSUMER,
		in.private_data, in.private_len, loop_now_ns());
	if (!err)
		id_answered(id);
	return failed(err, r);
}

/* Takes back a REP without an answer: the program waits for the event. As in Linux, ending a
 * connection twice is no error. */
static void withdraw(struct cm_id *id, uint64_t now)
{
	if (!cm_reject(id->all->cm, id->conn, CM_REJ_CONSUMER, NULL, 0, now) && !id->unanswered)
		id_raise(id, ABI_CM_DISCONNECTED, 0, NULL);
}

int cmd_cm_disconnect(struct cm_id *id, const struct request *q, struct reply *r)
{
	uint64_t now = loop_now_ns();

	if (!id->conn)
		return wrong_state(r, "connect");
	if (cm_disconnect(id->all->cm, id->conn, NULL, 0, now))
		withdraw(id, now);
	id_answered(id);
	return 0;
}

int cmd_cm_notify(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_notify in;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (!id->conn)
		return wrong_state(r, "connect");
	if (in.event != ABI_EVENT_COMM_EST)
		return refuse(r->why, -EINVAL, "event %u is not supported: use COMM_EST", in.event);
	err = cm_established(id->all->cm, id->conn, loop_now_ns());
	return err == -EISCONN ? 0 : failed(err, r);
}
