/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of programs. */
#include <errno.h>
#include "cm_impl.h"

static struct cm_conn *owned(struct cm *cm, uint32_t id)
{
	struct cm_conn *c = cm_find(cm, id);

	return c && c->owned ? c : NULL;
}

/* --- the active side ------------------------------------------------------------------------- */

static void format_req(struct cm *cm, struct cm_conn *c, uint64_t sid, const struct cm_param *p)
{
	const struct {
		enum cm_field f;
		uint64_t v;
	} rows[] = {{CM_F_REQ_LOCAL_ID, c->id}, {CM_F_REQ_SERVICE_ID, sid},
		{CM_F_REQ_GUID, cm->conf.guid}, {CM_F_REQ_QKEY, p->qkey}, {CM_F_REQ_QPN, p->qpn},
		{CM_F_REQ_RESP_RES, c->extended ? 0 : p->responder_resources},
		{CM_F_REQ_INIT_DEPTH, p->initiator_depth},
		{CM_F_REQ_REMOTE_TIMEOUT, cm->conf.response_timeout},
		{CM_F_REQ_LOCAL_TIMEOUT, cm->conf.response_timeout},
		{CM_F_REQ_TRANSPORT, p->transport}, {CM_F_REQ_EXTENDED, c->extended},
		{CM_F_REQ_FLOW_CONTROL, p->flow_control}, {CM_F_REQ_PSN, p->psn},
		{CM_F_REQ_RETRY, c->extended ? 0 : p->retry_count},
		{CM_F_REQ_RNR_RETRY, c->extended ? 0 : p->rnr_retry}, {CM_F_REQ_PKEY, c->path.pkey},
		{CM_F_REQ_MTU, p->mtu}, {CM_F_REQ_MAX_RETRIES, cm->conf.max_retries},
		{CM_F_REQ_SRQ, p->srq && !c->extended},
		/* as Linux sends them (CM-07) */
		{CM_F_REQ_LOCAL_LID, 0xFFFF}, {CM_F_REQ_REMOTE_LID, 0xFFFF},
		{CM_F_REQ_FLOW_LABEL, c->path.flow_label}, {CM_F_REQ_TCLASS, c->path.tclass},
		{CM_F_REQ_HOP_LIMIT, c->path.hop_limit}, {CM_F_REQ_ACK_TIMEOUT, c->ack_timeout}};

	mad_begin(c->last, CM_REQ, c->tid);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		cm_put(c->last, rows[i].f, rows[i].v);
	cm_put_bytes(c->last, CM_F_REQ_LOCAL_GID, c->path.local, sizeof(c->path.local));
	cm_put_bytes(c->last, CM_F_REQ_REMOTE_GID, c->path.remote, sizeof(c->path.remote));
	cm_put_bytes(c->last, CM_F_REQ_PRIVATE, p->private_data, p->private_len);
}

static void keep(struct cm_conn *c, const struct cm_param *p)
{
	c->local_qpn = p->qpn & 0xFFFFFF;
	c->local_psn = p->psn & 0xFFFFFF;
	c->init_depth = p->initiator_depth;
	c->resp_res = p->responder_resources;
}

int cm_connect(struct cm *cm, const struct cm_path *path, uint64_t service_id,
	const struct cm_param *p, uint64_t cookie, uint32_t *id, uint64_t now)
{
	struct cm_conn *c;
	uint8_t life;

	if (!cm_private_fits(CM_REQ, p->private_data, p->private_len) || p->mtu < 1 || p->mtu > 5 ||
		p->transport > CM_TRANSPORT_EXTENDED || p->transport == CM_TRANSPORT_RD)
		return -EINVAL;
	c = cm_alloc(cm, path, cookie);
	if (!c)
		return -ENOMEM;
	keep(c, p);
	c->tid = cm_tid_next(cm, c->id);
	c->mtu = p->mtu;
	c->retry_count = p->retry_count;
	life = p->packet_life ? p->packet_life : cm->conf.packet_life;
	c->ack_timeout = cm_ack_timeout(cm->conf.ack_delay, life);
	c->remote_timeout = cm->conf.response_timeout;
	c->max_retries = cm->conf.max_retries;
	c->extended = p->transport == CM_TRANSPORT_EXTENDED;
	format_req(cm, c, service_id, p);
	c->state = CM_REQ_SENT;
	c->timeout = 2 * cm_time(life) + cm_time(c->remote_timeout);
	*id = c->id;
	cm_send_timed(cm, c, c->max_retries, now);
	return 0;
}

int cm_adopt(struct cm *cm, uint32_t id, uint64_t cookie, uint32_t sender)
{
	struct cm_conn *c = owned(cm, id);

	if (!c)
		return -ENOENT;
	c->cookie = cookie;
	c->path.sender = sender;
	return 0;
}

int cm_rtu(struct cm *cm, uint32_t id, const void *private_data, size_t len, uint64_t now)
{
	struct cm_conn *c = owned(cm, id);

	(void)now;
	if (!c)
		return -ENOENT;
	if ((c->state != CM_REP_RCVD && c->state != CM_MRA_REP_SENT) ||
		!cm_private_fits(CM_RTU, private_data, len))
		return -EINVAL;
	cm_format(c, c->last, CM_RTU);
	cm_put_bytes(c->last, CM_F_RTU_PRIVATE, private_data, len);
	c->state = CM_ESTABLISHED;
	cm_send(cm, c);
	return 0;
}

/* --- the passive side ----------------------------------------------------------------- */

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static void format_rep(struct cm *cm, struct cm_conn *c, const struct cm_param *p)
{
	const struct {
		enum cm_field f;
		uint64_t v;
	} rows[] = {{CM_F_REP_QKEY, p->qkey}, {c->extended ? CM_F_REP_EECN : CM_F_REP_QPN, p->qpn},
		{CM_F_REP_PSN, p->psn}, {CM_F_REP_RESP_RES, c->resp_res},
		{CM_F_REP_INIT_DEPTH, c->extended ? 0 : c->init_depth},
		{CM_F_REP_ACK_DELAY, cm->conf.ack_delay}, {CM_F_REP_FAILOVER, c->alternate},
		{CM_F_REP_FLOW_CONTROL, p->flow_control && !c->extended},
		{CM_F_REP_RNR_RETRY, p->rnr_retry}, {CM_F_REP_SRQ, p->srq || c->extended},
		{CM_F_REP_GUID, cm->conf.guid}};

	cm_format(c, c->last, CM_REP);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		cm_put(c->last, rows[i].f, rows[i].v);
	cm_put_bytes(c->last, CM_F_REP_PRIVATE, p->private_data, p->private_len);
}

int cm_accept(struct cm *cm, uint32_t id, const struct cm_param *p, uint64_t cookie, uint64_t now)
{
	struct cm_conn *c = owned(cm, id);
	uint8_t init_depth, resp_res;

	if (!c)
		return -ENOENT;
	if ((c->state != CM_REQ_RCVD && c->state != CM_MRA_REQ_SENT) ||
		!cm_private_fits(CM_REP, p->private_data, p->private_len))
		return -EINVAL;
	init_depth = smaller(c->init_depth, p->initiator_depth);
	resp_res = smaller(c->resp_res, p->responder_resources);
	keep(c, p);
	c->init_depth = init_depth;
	c->resp_res = resp_res;
	c->cookie = cookie;
	cm_half_del(cm, c);
	format_rep(cm, c, p);
	c->state = CM_REP_SENT;
	c->timeout = cm_time(c->remote_timeout);
	cm_send_timed(cm, c, c->max_retries, now);
	return 0;
}

/* --- either side ------------------------------------------------------------------------- */

/* A peer that got an MRA repeats its REQ that much later. */
static void reject_req(struct cm *cm, struct cm_conn *c, uint64_t now)
{
	uint64_t longer = c->state == CM_MRA_REQ_SENT ? cm_time(MRA_TIMEOUT) : 0;

	cm_half_del(cm, c);
	cm_index_del(cm, c, CM_BY_REMOTE_QPN); /* the peer may try again with this QP */
	c->state = CM_REJECTED;
	cm_keep_answer(cm, c, now + longer);
}

/* CM-26 */
int cm_reject(struct cm *cm, uint32_t id, enum cm_rej reason, const void *private_data, size_t len,
	uint64_t now)
{
	struct cm_conn *c = owned(cm, id);

	if (!c)
		return -ENOENT;
	if (!cm_private_fits(CM_REJ, private_data, len))
		return -EINVAL;
	switch (c->state) {
	case CM_SIDR_REQ_RCVD:
		return cm_sidr_answer(cm, id, CM_SIDR_REJECT, 0, 0, private_data,
			smaller(136, (uint8_t)len), now);
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
		cm_send_rej(cm, c, reason, CM_NAMED_REQ, private_data, len);
		reject_req(cm, c, now);
		return 0;
	case CM_REP_SENT: /* after accepting, the program gives up before the RTU */
	case CM_MRA_REP_RCVD:
		cm_send_rej(cm, c, reason, CM_NAMED_OTHER, private_data, len);
		cm_ended(cm, c);
		return 0;
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
		cm_send_rej(cm, c, reason, CM_NAMED_REP, private_data, len);
		cm_ended(cm, c);
		return 0;
	default:
		return -EINVAL;
	}
}

int cm_established(struct cm *cm, uint32_t id, uint64_t now)
{
	struct cm_conn *c = owned(cm, id);

	(void)now;
	if (!c)
		return -ENOENT;
	if (c->state == CM_ESTABLISHED)
		return -EISCONN;
	if (c->state != CM_REP_SENT && c->state != CM_MRA_REP_RCVD)
		return -EINVAL;
	c->state = CM_ESTABLISHED;
	wheel_cancel(&cm->wheel, &c->timer);
	cm_event(cm, c, CM_EV_ESTABLISHED, 0, NULL);
	return 0;
}

void cm_send_dreq(
	struct cm *cm, struct cm_conn *c, const void *private_data, size_t len, uint64_t now)
{
	c->tid = cm_tid_next(cm, c->id); /* CM-10 */
	cm_format(c, c->last, CM_DREQ);
	cm_put(c->last, CM_F_DREQ_QPN, c->remote_qpn);
	cm_put_bytes(c->last, CM_F_DREQ_PRIVATE, private_data, len);
	c->state = CM_DREQ_SENT;
	c->timeout = 2 * cm_time(cm->conf.packet_life) + cm_time(c->remote_timeout);
	cm_send_timed(cm, c, c->max_retries, now);
}

int cm_disconnect(struct cm *cm, uint32_t id, const void *private_data, size_t len, uint64_t now)
{
	struct cm_conn *c = owned(cm, id);

	if (!c)
		return -ENOENT;
	if (!cm_private_fits(CM_DREQ, private_data, len))
		return -EINVAL;
	switch (c->state) {
	case CM_ESTABLISHED:
		cm_send_dreq(cm, c, private_data, len, now);
		return 0;
	case CM_DREQ_RCVD:
		cm_format(c, c->last, CM_DREP);
		cm_put_bytes(c->last, CM_F_DREP_PRIVATE, private_data, len);
		cm_timewait(cm, c, now);
		cm_send(cm, c);
		return 0;
	default:
		return -EINVAL;
	}
}

int cm_destroy(struct cm *cm, uint32_t id, uint64_t now)
{
	struct cm_conn *c = owned(cm, id);

	if (!c)
		return -ENOENT;
	switch (c->state) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
		cm_send_rej(cm, c, CM_REJ_TIMEOUT, CM_NAMED_REQ, NULL, 0);
		cm_ended(cm, c);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_RCVD:
		cm_disconnect(cm, id, NULL, 0, now);
		break;
	case CM_SIDR_REQ_SENT:
		cm_ended(cm, c);
		break;
	default:
		cm_reject(cm, id, CM_REJ_CONSUMER, NULL, 0, now);
	}
	c->owned = false;
	if (c->state == CM_IDLE)
		cm_free(cm, c);
	else
		cm_keep(cm, c);
	return 0;
}
