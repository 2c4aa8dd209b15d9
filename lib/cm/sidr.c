/* SPDX-License-Identifier: BSD-3-Clause */
/* Service ID resolution for datagrams (IBA 12.11; CM-31). */
#include <errno.h>
#include "cm_impl.h"

static void answer(uint8_t *mad, uint64_t tid, uint32_t request, uint64_t service_id,
	enum cm_sidr_status status)
{
	mad_begin(mad, CM_SIDR_REP, tid);
	cm_put(mad, CM_F_SIDR_REP_ID, request);
	cm_put(mad, CM_F_SIDR_REP_STATUS, status);
	cm_put(mad, CM_F_SIDR_REP_SERVICE_ID, service_id);
}

static void refuse(struct cm_rx *rx, enum cm_sidr_status status)
{
	uint8_t mad[MAD_LEN];

	if (!cm_stranger(rx))
		return;
	answer(mad, mad_tid(rx->mad), (uint32_t)cm_get(rx->mad, CM_F_SIDR_REQ_ID),
		cm_get(rx->mad, CM_F_SIDR_REQ_SERVICE_ID), status);
	cm_transmit(rx->cm, rx->from, mad);
}

static bool room(struct cm_rx *rx, struct cm_listener *l, struct cm_conn **c)
{
	*c = cm_half_room(rx->cm, l, rx->from) ? cm_alloc(rx->cm, rx->from, l->cookie) : NULL;
	l->refused += !*c;
	return *c;
}

/* The peer reuses the ID of an answered request for another request. */
static bool begins_anew(const struct cm_rx *rx, const struct cm_conn *c)
{
	return c->state == CM_SIDR_DONE &&
	       (mad_tid(rx->mad) != c->tid ||
		       cm_get(rx->mad, CM_F_SIDR_REQ_SERVICE_ID) != c->service_id);
}

/* A request carries no GUID: its id and address identify it. */
void cm_rx_sidr_req(struct cm_rx *rx)
{
	uint32_t request = (uint32_t)cm_get(rx->mad, CM_F_SIDR_REQ_ID), listener = CM_NONE;
	uint64_t sid = cm_get(rx->mad, CM_F_SIDR_REQ_SERVICE_ID);
	struct cm_conn *c = cm_index_find(rx->cm, CM_BY_REQUEST, 0, request, rx->from);
	struct cm_listener *l = NULL;
	uint8_t dst[16];

	if (c && begins_anew(rx, c)) {
		cm_index_del(rx->cm, c, CM_BY_REQUEST);
	} else if (c) {
		if (cm_answers(rx, c) && c->state == CM_SIDR_DONE) {
			cm_keep_answer(rx->cm, c, rx->now);
			cm_send(rx->cm, c);
		}
		return;
	}
	if (cm_addressed(rx, CM_F_SIDR_REQ_PRIVATE, sid, dst))
		l = cm_listener_find(rx->cm, sid, dst, &listener);
	if (!l || !room(rx, l, &c)) {
		refuse(rx, l ? CM_SIDR_REJECT : CM_SIDR_UNSUPPORTED);
		return;
	}
	c->tid = mad_tid(rx->mad);
	c->remote_id = request;
	c->service_id = sid;
	c->path.pkey = (uint16_t)cm_get(rx->mad, CM_F_SIDR_REQ_PKEY);
	c->state = CM_SIDR_REQ_RCVD;
	cm_index_add(rx->cm, c, CM_BY_REQUEST);
	cm_half_add(rx->cm, c, listener);
	if (!cm_event(rx->cm, c, CM_EV_SIDR_REQ, 0, rx->mad))
		return;
	cm_undo(rx->cm, c, listener);
	refuse(rx, CM_SIDR_REJECT);
}

void cm_rx_sidr_rep(struct cm_rx *rx)
{
	struct cm_conn *c = cm_find(rx->cm, (uint32_t)cm_get(rx->mad, CM_F_SIDR_REP_ID));

	if (!c || c->state != CM_SIDR_REQ_SENT || !cm_same_peer(c, rx->from)) {
		cm_ignored(rx);
		return;
	}
	cm_event(rx->cm, c, CM_EV_SIDR_REP, (unsigned)cm_get(rx->mad, CM_F_SIDR_REP_STATUS),
		rx->mad);
	cm_ended(rx->cm, c);
}

int cm_sidr(struct cm *cm, const struct cm_path *path, uint64_t service_id,
	const void *private_data, size_t len, uint64_t cookie, uint32_t *id, uint64_t now)
{
	struct cm_conn *c;

	if (!cm_private_fits(CM_SIDR_REQ, private_data, len))
		return -EINVAL;
	c = cm_alloc(cm, path, cookie);
	if (!c)
		return -ENOMEM;
	c->tid = cm_tid_next(cm, c->id);
	mad_begin(c->last, CM_SIDR_REQ, c->tid);
	cm_put(c->last, CM_F_SIDR_REQ_ID, c->id);
	cm_put(c->last, CM_F_SIDR_REQ_PKEY, path->pkey);
	cm_put(c->last, CM_F_SIDR_REQ_SERVICE_ID, service_id);
	cm_put_bytes(c->last, CM_F_SIDR_REQ_PRIVATE, private_data, len);
	c->state = CM_SIDR_REQ_SENT;
	c->timeout = cm_time(cm->conf.response_timeout); /* as Linux */
	*id = c->id;
	cm_send_timed(cm, c, cm->conf.max_retries, now);
	return 0;
}

int cm_sidr_answer(struct cm *cm, uint32_t id, enum cm_sidr_status status, uint32_t qpn,
	uint32_t qkey, const void *private_data, size_t len, uint64_t now)
{
	struct cm_conn *c = cm_find(cm, id);

	if (!c || !c->owned)
		return -ENOENT;
	if (c->state != CM_SIDR_REQ_RCVD || !cm_private_fits(CM_SIDR_REP, private_data, len))
		return -EINVAL;
	answer(c->last, c->tid, c->remote_id, c->service_id, status);
	if (status == CM_SIDR_SUCCESS) {
		cm_put(c->last, CM_F_SIDR_REP_QPN, qpn);
		cm_put(c->last, CM_F_SIDR_REP_QKEY, qkey);
	}
	cm_put_bytes(c->last, CM_F_SIDR_REP_PRIVATE, private_data, len);
	cm_half_del(cm, c);
	c->state = CM_SIDR_DONE;
	cm_keep_answer(cm, c, now);
	cm_send(cm, c);
	return 0;
}
