/* SPDX-License-Identifier: BSD-3-Clause */
/* A REQ: for a new connection, a known one or a stale one (IBA 12.9.8.3). */
#include <string.h>
#include "cm_impl.h"

/* CM-13 */
static void again(struct cm_rx *rx, struct cm_conn *c)
{
	if (!cm_answers(rx, c))
		return;
	switch (c->state) {
	case CM_REQ_RCVD: /* as in Linux: the program needs longer */
		cm_send_mra(rx->cm, c);
		break;
	case CM_REJECTED:
		cm_keep_answer(rx->cm, c, rx->now);
		cm_send(rx->cm, c);
		break;
	case CM_MRA_REQ_SENT:
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		cm_send(rx->cm, c);
		break;
	case CM_TIMEWAIT:
		cm_refuse(rx, CM_REJ_STALE_CONN, CM_NAMED_REQ, c->remote_id, 0);
		break;
	default:
		break; /* answered long ago */
	}
}

/* CM-14: the peer starts over with a QP that is connected in our view. If it still has its half of
 * an established connection, a DREQ ends that (IBA 12.9.8.3.1). */
void cm_stale(struct cm_rx *rx, struct cm_conn *old)
{
	switch (old->state) {
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		cm_timewait(rx->cm, old, rx->now);
		cm_event(rx->cm, old, CM_EV_DISCONNECTED, CM_REJ_STALE_CONN, NULL);
		break;
	case CM_ESTABLISHED:
		cm_send_dreq(rx->cm, old, NULL, 0, rx->now);
		break;
	default:
		break;
	}
}

static bool stale(struct cm_rx *rx, uint64_t guid, uint32_t qpn, uint32_t remote_id)
{
	struct cm_conn *old = cm_index_find(rx->cm, CM_BY_REMOTE_QPN, guid, qpn, rx->from);

	if (!old)
		return false;
	cm_refuse(rx, CM_REJ_STALE_CONN, CM_NAMED_REQ, remote_id, 0);
	cm_stale(rx, old);
	return true;
}

/* Whether the peer reuses the ID of an old REQ for a different one, which is not a duplicate. Only
 * the answer to the old REQ is kept, so QPN and PSN decide. */
static bool begins_anew(const struct cm_rx *rx, const struct cm_conn *c)
{
	return (c->state == CM_TIMEWAIT || c->state == CM_REJECTED) &&
	       (cm_get(rx->mad, CM_F_REQ_QPN) != c->remote_qpn ||
		       cm_get(rx->mad, CM_F_REQ_PSN) != c->remote_psn);
}

/* CM-29, CM-30: the destination address of a REQ; that of the packet if there is no CMA header. The
 * header's addresses must be those of the packet, because the program learns them as its peer's and
 * its own. A peer has no others to send: its GID is its address, by RoCEv1 too. */
bool cm_addressed(const struct cm_rx *rx, enum cm_field f, uint64_t service_id, uint8_t dst[16])
{
	struct cma_hdr h;

	memcpy(dst, rx->from->local, 16);
	if (!cma_is_ip(service_id))
		return true;
	if (!cma_read(&h, cm_bytes(rx->mad, f, NULL)))
		return false;
	return !memcmp(h.src, rx->from->remote, sizeof(h.src)) &&
	       !memcmp(h.dst, rx->from->local, sizeof(h.dst));
}

/* @return 0, or the reason to refuse a REQ whether or not anybody listens. */
static enum cm_rej malformed(const struct cm_rx *rx)
{
	uint64_t mtu = cm_get(rx->mad, CM_F_REQ_MTU), type = cm_get(rx->mad, CM_F_REQ_TRANSPORT);

	if (!cm_get(rx->mad, CM_F_REQ_LOCAL_ID))
		return CM_REJ_INVALID_COMM_ID;
	if (type == CM_TRANSPORT_RD ||
		(type == CM_TRANSPORT_EXTENDED && cm_get(rx->mad, CM_F_REQ_EXTENDED) != 1))
		return CM_REJ_INVALID_TRANSPORT;
	if (mtu < 1 || mtu > 5)
		return CM_REJ_INVALID_MTU;
	return 0;
}

static bool has_alternate(const uint8_t *mad)
{
	static const uint8_t none[16];

	return memcmp(cm_bytes(mad, CM_F_REQ_ALT_LOCAL_GID, NULL), none, sizeof(none)) ||
	       memcmp(cm_bytes(mad, CM_F_REQ_ALT_REMOTE_GID, NULL), none, sizeof(none));
}

/* LIDs are ignored (CM-07). */
static void take(struct cm_conn *c, const uint8_t *mad)
{
	c->tid = mad_tid(mad);
	c->remote_id = (uint32_t)cm_get(mad, CM_F_REQ_LOCAL_ID);
	c->guid = cm_get(mad, CM_F_REQ_GUID);
	c->remote_qpn = (uint32_t)cm_get(mad, CM_F_REQ_QPN);
	c->remote_psn = (uint32_t)cm_get(mad, CM_F_REQ_PSN);
	/* The peer's initiator depth limits our responder resources, and vice versa (CM-22). */
	c->resp_res = (uint8_t)cm_get(mad, CM_F_REQ_INIT_DEPTH);
	c->init_depth = (uint8_t)cm_get(mad, CM_F_REQ_RESP_RES);
	c->mtu = (uint8_t)cm_get(mad, CM_F_REQ_MTU);
	c->retry_count = (uint8_t)cm_get(mad, CM_F_REQ_RETRY);
	c->rnr_retry = (uint8_t)cm_get(mad, CM_F_REQ_RNR_RETRY);
	c->ack_timeout = (uint8_t)cm_get(mad, CM_F_REQ_ACK_TIMEOUT);
	c->remote_timeout = (uint8_t)cm_get(mad, CM_F_REQ_LOCAL_TIMEOUT);
	c->own_timeout = (uint8_t)cm_get(mad, CM_F_REQ_REMOTE_TIMEOUT);
	c->max_retries = (uint8_t)cm_get(mad, CM_F_REQ_MAX_RETRIES);
	c->remote_srq = cm_get(mad, CM_F_REQ_SRQ);
	c->alternate = has_alternate(mad);
	c->extended = cm_get(mad, CM_F_REQ_TRANSPORT) == CM_TRANSPORT_EXTENDED;
	c->path.pkey = (uint16_t)cm_get(mad, CM_F_REQ_PKEY);
	c->path.tclass = cm_get(mad, CM_F_REQ_TCLASS) & CM_DSCP;
	c->path.hop_limit = (uint8_t)cm_get(mad, CM_F_REQ_HOP_LIMIT);
	c->path.flow_label = (uint32_t)cm_get(mad, CM_F_REQ_FLOW_LABEL);
}

/* @return 0, or the reason to refuse it. */
static enum cm_rej welcome(struct cm_rx *rx, uint32_t listener)
{
	struct cm_listener *l = &rx->cm->listener[listener];
	struct cm_conn *c = cm_alloc(rx->cm, rx->from, l->cookie);
	enum cm_rej reason;

	if (!c) {
		l->refused++;
		return CM_REJ_NO_RESOURCES;
	}
	take(c, rx->mad);
	cm_label_request(rx->cm, c, rx->mad);
	c->state = CM_REQ_RCVD;
	cm_index_add(rx->cm, c, CM_BY_REMOTE_ID);
	cm_index_add(rx->cm, c, CM_BY_REMOTE_QPN);
	cm_half_add(rx->cm, c, listener);
	reason = cm_event(rx->cm, c, CM_EV_REQ, 0, rx->mad);
	if (reason) /* SEC-03 */
		cm_undo(rx->cm, c, listener);
	return reason;
}

/* CM-12: a REQ without a listener leaves no state, even if we are connecting to the same peer
 * (CM-33). */
void cm_rx_req(struct cm_rx *rx)
{
	uint64_t guid = cm_get(rx->mad, CM_F_REQ_GUID), sid = cm_get(rx->mad, CM_F_REQ_SERVICE_ID);
	uint32_t id = (uint32_t)cm_get(rx->mad, CM_F_REQ_LOCAL_ID), listener = CM_NONE;
	struct cm_conn *known = cm_index_find(rx->cm, CM_BY_REMOTE_ID, guid, id, rx->from);
	enum cm_rej reason = malformed(rx);
	struct cm_listener *l;
	uint8_t dst[16];

	if (known && begins_anew(rx, known)) {
		cm_index_del(rx->cm, known, CM_BY_REMOTE_ID);
	} else if (known) {
		again(rx, known);
		return;
	}
	if (!reason && !cm_addressed(rx, CM_F_REQ_PRIVATE, sid, dst))
		reason = CM_REJ_CONSUMER;
	l = reason ? NULL : cm_listener_find(rx->cm, sid, dst, &listener);
	if (!reason && !l)
		reason = CM_REJ_INVALID_SERVICE_ID;
	if (!reason && stale(rx, guid, (uint32_t)cm_get(rx->mad, CM_F_REQ_QPN), id))
		return;
	if (!reason && !cm_half_room(rx->cm, l, rx->from)) {
		reason = CM_REJ_NO_RESOURCES;
		l->refused++;
	}
	if (!reason)
		reason = welcome(rx, listener);
	if (reason)
		cm_refuse(rx, reason, CM_NAMED_REQ, id, 0);
}
