/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a known connection. One whose ids, QPN or address do not match changes nothing. A
 * duplicate or late one gets the answer of the first, or none (CM-34). */
#include <string.h>
#include "cm_impl.h"

#define O_LOCAL_ID  (MAD_DATA + 0)
#define O_REMOTE_ID (MAD_DATA + 4)

void cm_ignored(struct cm_rx *rx)
{
	rx->cm->count.ignored[mad_attr(rx->mad) - CM_REQ]++;
}

static void cm_duplicate(struct cm_rx *rx)
{
	rx->cm->count.duplicates[mad_attr(rx->mad) - CM_REQ]++;
}

/* Counts a duplicate. @return whether to answer it (SEC-03) */
bool cm_answers(struct cm_rx *rx, struct cm_conn *c)
{
	cm_duplicate(rx);
	if (c->answered == CM_ANSWERS)
		return false;
	c->answered++;
	return true;
}

/* CM-11: @return the connection that matches both ids and the address, or NULL. */
static struct cm_conn *conn_of(struct cm_rx *rx)
{
	struct cm_conn *c = cm_find(rx->cm, get_be32(rx->mad + O_REMOTE_ID));

	return c && c->remote_id == get_be32(rx->mad + O_LOCAL_ID) && cm_same_peer(c, rx->from)
		       ? c
		       : NULL;
}

/* --- MRA ------------------------------------------------------------------------------------ */

/* CM-18. Each MRA uses up one retry, so the wait is finite. */
static void rx_mra(struct cm_rx *rx)
{
	struct cm_conn *c = cm_find(rx->cm, get_be32(rx->mad + O_REMOTE_ID));
	uint64_t named = cm_get(rx->mad, CM_F_MRA_NAMED);
	uint64_t longer = cm_time((unsigned)cm_get(rx->mad, CM_F_MRA_TIMEOUT));

	if (!c || !cm_same_peer(c, rx->from)) {
		cm_ignored(rx);
	} else if (c->state == CM_REQ_SENT && named == CM_NAMED_REQ) {
		c->state = CM_MRA_REQ_RCVD;
		wheel_arm(&rx->cm->wheel, &c->timer, rx->now + longer + c->timeout);
	} else if (c->state == CM_REP_SENT && named == CM_NAMED_REP &&
		   c->remote_id == get_be32(rx->mad + O_LOCAL_ID)) {
		c->state = CM_MRA_REP_RCVD;
		wheel_arm(&rx->cm->wheel, &c->timer, rx->now + longer + c->timeout);
	} else if (c->state == CM_MRA_REQ_RCVD || c->state == CM_MRA_REP_RCVD) {
		cm_duplicate(rx);
	} else {
		cm_ignored(rx);
	}
}

/* --- REJ -------------------------------------------------------------------------------------- */

/* Finds the connection of a peer whose REQ timed out before it learned our id. */
static struct cm_conn *rejected_by_guid(struct cm_rx *rx)
{
	struct cm_conn *c;
	uint64_t guid = get_be64(cm_bytes(rx->mad, CM_F_REJ_ARI, NULL));

	if (get_be32(rx->mad + O_REMOTE_ID) || cm_get(rx->mad, CM_F_REJ_REASON) != CM_REJ_TIMEOUT ||
		cm_get(rx->mad, CM_F_REJ_ARI_LEN) < sizeof(guid))
		return NULL;
	c = cm_index_find(rx->cm, CM_BY_REMOTE_ID, guid, get_be32(rx->mad + O_LOCAL_ID), rx->from);
	/* A connected peer knows both ids, so a message with only one comes from another host
	 * (SEC-03). */
	return c && c->state < CM_ESTABLISHED ? c : NULL;
}

/* A peer that refuses a REQ at once has no id for it. */
static struct cm_conn *rejected(struct cm_rx *rx)
{
	struct cm_conn *c = cm_find(rx->cm, get_be32(rx->mad + O_REMOTE_ID));

	if (c && (c->state == CM_REQ_SENT || c->state == CM_MRA_REQ_RCVD))
		return cm_same_peer(c, rx->from) ? c : NULL;
	return conn_of(rx) ?: rejected_by_guid(rx);
}

/* A stale connection may still have packets under way from the peer to the QP, so its QPN rests
 * (IBA 12.9.8.3.1). */
static void end_rejected(struct cm_rx *rx, struct cm_conn *c, unsigned reason)
{
	cm_half_del(rx->cm, c);
	cm_event(rx->cm, c, CM_EV_REJECTED, reason, rx->mad);
	if (reason == CM_REJ_STALE_CONN)
		cm_timewait(rx->cm, c, rx->now);
	else
		cm_ended(rx->cm, c);
}

static void rx_rej(struct cm_rx *rx)
{
	unsigned reason = (unsigned)cm_get(rx->mad, CM_F_REJ_REASON);
	struct cm_conn *c = rejected(rx);

	switch (c ? c->state : CM_IDLE) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		end_rejected(rx, c, reason);
		break;
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		cm_timewait(rx->cm, c, rx->now);
		cm_event(rx->cm, c, CM_EV_REJECTED, reason, rx->mad);
		break;
	default:
		cm_ignored(rx);
	}
}

/* --- REP, RTU ------------------------------------------------------------------------- */

/* CM-22: never more than offered. */
static uint8_t smaller(uint64_t a, uint8_t b)
{
	return a < b ? (uint8_t)a : b;
}

static void take_rep(struct cm_conn *c, const uint8_t *mad)
{
	c->remote_id = (uint32_t)cm_get(mad, CM_F_REP_LOCAL_ID);
	c->guid = cm_get(mad, CM_F_REP_GUID);
	c->remote_qpn = cm_rep_qpn(mad, c->extended);
	c->remote_psn = (uint32_t)cm_get(mad, CM_F_REP_PSN);
	c->init_depth = smaller(cm_get(mad, CM_F_REP_RESP_RES), c->init_depth);
	c->resp_res = smaller(cm_get(mad, CM_F_REP_INIT_DEPTH), c->resp_res);
	c->rnr_retry = (uint8_t)cm_get(mad, CM_F_REP_RNR_RETRY);
	c->remote_srq = cm_get(mad, CM_F_REP_SRQ);
	c->ack_timeout =
		cm_ack_timeout((unsigned)cm_get(mad, CM_F_REP_ACK_DELAY), c->ack_timeout - 1u);
}

/* CM-13, CM-15: our RTU or MRA was lost. A peer never answers a REP with a REP. */
static void rep_again(struct cm_rx *rx, struct cm_conn *c)
{
	bool same = c->remote_id == get_be32(rx->mad + O_LOCAL_ID) && mad_attr(c->last) != CM_REP;

	if (same && (c->state == CM_ESTABLISHED || c->state == CM_MRA_REP_SENT)) {
		if (cm_answers(rx, c))
			cm_send(rx->cm, c);
	} else if (same && c->state == CM_REP_RCVD) { /* as in Linux: the program needs longer */
		cm_duplicate(rx);
		cm_send_mra(rx->cm, c);
	} else {
		cm_ignored(rx);
	}
}

/* CM-14. As in Linux, the REQ timer sends the REQ again, by when the old connection has ended. */
static bool stale_rep(struct cm_rx *rx, const struct cm_conn *c)
{
	struct cm_conn *old = cm_index_find(rx->cm, CM_BY_REMOTE_QPN,
		cm_get(rx->mad, CM_F_REP_GUID), cm_rep_qpn(rx->mad, c->extended), rx->from);

	if (!old)
		return false;
	cm_refuse(rx, CM_REJ_STALE_CONN, CM_NAMED_REP, get_be32(rx->mad + O_LOCAL_ID), c->id);
	cm_stale(rx, old);
	return true;
}

static void rx_rep(struct cm_rx *rx)
{
	uint32_t remote = get_be32(rx->mad + O_LOCAL_ID), id = get_be32(rx->mad + O_REMOTE_ID);
	struct cm_conn *c = cm_find(rx->cm, id);

	if (!c || c->state == CM_IDLE || !cm_same_peer(c, rx->from)) {
		cm_ignored(rx);
		cm_refuse(rx, CM_REJ_INVALID_COMM_ID, CM_NAMED_REP, remote, id);
	} else if ((c->state == CM_REQ_SENT || c->state == CM_MRA_REQ_RCVD) && remote) {
		if (stale_rep(rx, c))
			return;
		take_rep(c, rx->mad);
		c->state = CM_REP_RCVD;
		wheel_cancel(&rx->cm->wheel, &c->timer);
		cm_index_add(rx->cm, c, CM_BY_REMOTE_QPN);
		cm_event(rx->cm, c, CM_EV_REP, 0, rx->mad);
	} else {
		rep_again(rx, c);
	}
}

static void rx_rtu(struct cm_rx *rx)
{
	struct cm_conn *c = conn_of(rx);

	if (c && (c->state == CM_REP_SENT || c->state == CM_MRA_REP_RCVD)) {
		c->state = CM_ESTABLISHED;
		wheel_cancel(&rx->cm->wheel, &c->timer);
		cm_event(rx->cm, c, CM_EV_ESTABLISHED, 0, rx->mad);
	} else if (c && c->state == CM_ESTABLISHED) {
		cm_duplicate(rx);
	} else {
		cm_ignored(rx);
	}
}

/* --- DREQ, DREP ----------------------------------------------------------------------- */

/* Answers a DREQ, whether or not there is a connection (CM-19, CM-10). */
static void drep(struct cm_rx *rx)
{
	uint8_t mad[MAD_LEN];

	mad_begin(mad, CM_DREP, mad_tid(rx->mad));
	cm_put(mad, CM_F_DREP_LOCAL_ID, get_be32(rx->mad + O_REMOTE_ID));
	cm_put(mad, CM_F_DREP_REMOTE_ID, get_be32(rx->mad + O_LOCAL_ID));
	cm_transmit(rx->cm, rx->from, mad);
}

static void disconnected(struct cm_rx *rx, struct cm_conn *c)
{
	switch (c->state) {
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD: /* the RTU and the data were lost */
	case CM_ESTABLISHED:
		wheel_cancel(&rx->cm->wheel, &c->timer);
		c->state = CM_DREQ_RCVD;
		c->tid = mad_tid(rx->mad);
		cm_event(rx->cm, c, CM_EV_DISCONNECTED, 0, rx->mad);
		break;
	case CM_DREQ_SENT: /* both sides disconnect at once */
		drep(rx);
		cm_timewait(rx->cm, c, rx->now);
		cm_event(rx->cm, c, CM_EV_DISCONNECTED, 0, rx->mad);
		break;
	case CM_TIMEWAIT:
		if (cm_answers(rx, c))
			drep(rx);
		break;
	default:
		cm_duplicate(rx); /* DREQ_RCVD: the program has not answered yet */
	}
}

static void rx_dreq(struct cm_rx *rx)
{
	struct cm_conn *c = conn_of(rx);

	if (c && c->state != CM_IDLE) {
		/* CM-20 */
		if (cm_get(rx->mad, CM_F_DREQ_QPN) == c->local_qpn)
			disconnected(rx, c);
		else
			cm_ignored(rx);
	} else {
		cm_ignored(rx);
		if (cm_stranger(rx))
			drep(rx);
	}
}

static void rx_drep(struct cm_rx *rx)
{
	struct cm_conn *c = conn_of(rx);

	if (c && c->state == CM_DREQ_SENT) {
		cm_timewait(rx->cm, c, rx->now);
		cm_event(rx->cm, c, CM_EV_DISCONNECTED, 0, rx->mad);
	} else {
		cm_ignored(rx);
	}
}

/* --- LAP ------------------------------------------------------------------------------ */

/* CM-32, CM-08: alternate paths are not supported. */
static void rx_lap(struct cm_rx *rx)
{
	struct cm_conn *c = conn_of(rx);
	uint8_t mad[MAD_LEN];

	if (!c || c->state != CM_ESTABLISHED || cm_get(rx->mad, CM_F_LAP_QPN) != c->local_qpn ||
		!cm_stranger(rx)) {
		cm_ignored(rx);
		return;
	}
	mad_begin(mad, CM_APR, mad_tid(rx->mad));
	cm_put(mad, CM_F_APR_LOCAL_ID, c->id);
	cm_put(mad, CM_F_APR_REMOTE_ID, c->remote_id);
	cm_put(mad, CM_F_APR_STATUS, CM_APR_UNSUPPORTED);
	cm_transmit(rx->cm, &c->path, mad);
}

/* --- dispatch ------------------------------------------------------------------------- */

void cm_mad(struct cm *cm, const struct cm_path *from, const uint8_t *mad, size_t len, uint64_t now)
{
	static void (*const handler[CM_ATTRS])(struct cm_rx *) = {cm_rx_req, rx_mra, rx_rej, rx_rep,
		rx_rtu, rx_dreq, rx_drep, cm_rx_sidr_req, cm_rx_sidr_rep, rx_lap, cm_ignored};
	struct cm_rx rx = {cm, from, mad, now};
	enum mad_fault v = mad_check(mad, len);

	cm->count.bad[v]++;
	if (v != MAD_CM)
		return;
	cm->count.rx[mad_attr(mad) - CM_REQ]++;
	handler[mad_attr(mad) - CM_REQ](&rx);
}
