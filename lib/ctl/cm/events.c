/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts events of lib/cm for programs. Must not call lib/cm, which is the caller. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/events.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "refuse.h"
#include "session/failures.h"
#include "session/quota.h"
#include "session/session.h"

static void copy_private(struct abi_cm_param *p, const uint8_t *data, size_t len)
{
	if (len > sizeof(p->private_data))
		len = sizeof(p->private_data);
	p->private_len = (uint16_t)len;
	memcpy(p->private_data, data, len);
}

/* Depths from the receiver's view: the requests that the peer initiates are those we respond to
 * (CM-22). */
static void req_param(const uint8_t *mad, struct abi_cm_param *p)
{
	*p = (struct abi_cm_param){.qpn = (uint32_t)cm_get(mad, CM_F_REQ_QPN),
		.responder_resources = (uint8_t)cm_get(mad, CM_F_REQ_INIT_DEPTH),
		.initiator_depth = (uint8_t)cm_get(mad, CM_F_REQ_RESP_RES),
		.flow_control = (uint8_t)cm_get(mad, CM_F_REQ_FLOW_CONTROL),
		.retry_count = (uint8_t)cm_get(mad, CM_F_REQ_RETRY),
		.rnr_retry_count = (uint8_t)cm_get(mad, CM_F_REQ_RNR_RETRY),
		.srq = (uint8_t)cm_get(mad, CM_F_REQ_SRQ)};
}

static void rep_param(const uint8_t *mad, bool extended, struct abi_cm_param *p)
{
	*p = (struct abi_cm_param){.qpn = cm_rep_qpn(mad, extended),
		.responder_resources = (uint8_t)cm_get(mad, CM_F_REP_INIT_DEPTH),
		.initiator_depth = (uint8_t)cm_get(mad, CM_F_REP_RESP_RES),
		.flow_control = (uint8_t)cm_get(mad, CM_F_REP_FLOW_CONTROL),
		.rnr_retry_count = (uint8_t)cm_get(mad, CM_F_REP_RNR_RETRY),
		.srq = (uint8_t)cm_get(mad, CM_F_REP_SRQ)};
}

/* Also records the sentence for `show errors`. */
static void log_failure(const struct cm_note *n, const char *cause, const char *rule)
{
	const struct failed_request f = {.session = n->id->channel->session,
		.qpn = n->id->qpn,
		.cause = cause,
		.rule = rule,
		.text = n->event.why};

	failure_request(n->id->all->ctl, &f);
}

static void raise_with(struct cm_id *id, const struct cm_event *e, uint32_t type, int32_t status)
{
	struct cm_note *n = note_new(id, type, status);

	if (!n)
		return;
	if (e->type == CM_EV_REP)
		rep_param(e->mad, id->qp_type == ABI_QPT_XRC_SEND, &n->event.param);
	if (type == ABI_CM_REJECTED) {
		explain_rejected(id, e->reason, n->event.why, sizeof(n->event.why));
		log_failure(n, "rejected", "CM-26");
	}
	if (e->private_data)
		copy_private(&n->event.param, e->private_data, e->private_len);
	note_raise(n);
}

/* --- new connections -------------------------------------------------------------------------- */

static void take_addresses(struct cm_id *id, const struct cm_id *listener, const struct cma_hdr *h)
{
	id->local = listener->local;
	id->local.family = id->remote.family = h->family;
	memcpy(id->local.ip, h->dst, 16);
	id->remote.port = h->src_port;
	memcpy(id->remote.ip, h->src, 16);
}

/* An IPv4 wildcard serves only IPv4, and an IPv6 wildcard with AFONLY only IPv6. */
static bool family_fits(const struct cm_id *listener, const struct cma_hdr *h)
{
	return listener->local.family == h->family ||
	       (listener->local.family == 6 && !listener->afonly);
}

/* lib/cm refuses other types. */
static uint8_t qp_type_asked(const struct cm_event *e)
{
	if (e->type == CM_EV_SIDR_REQ)
		return ABI_QPT_UD;
	switch (cm_get(e->mad, CM_F_REQ_TRANSPORT)) {
	case CM_TRANSPORT_RC:
		return ABI_QPT_RC;
	case CM_TRANSPORT_UC:
		return ABI_QPT_UC;
	default:
		return ABI_QPT_XRC_RECV;
	}
}

/* @return 0, or the reason to refuse a request to @p l, which may be NULL. */
static enum cm_rej unfit(const struct cm_id *l, const struct cm_event *e, struct cma_hdr *h)
{
	if (!l || e->private_len < CMA_HDR_LEN || !cma_read(h, e->private_data) ||
		!family_fits(l, h))
		return CM_REJ_INVALID_SERVICE_ID;
	if (l->qp_type != qp_type_asked(e))
		return CM_REJ_CONSUMER; /* as in Linux */
	if (gsi_pkey_index(l->all->ctl, e->path) < 0)
		return CM_REJ_INVALID_GID; /* as in Linux: there is no reason for P_Keys */
	return 0;
}

void id_answered(struct cm_id *id)
{
	if (id->unanswered)
		quota_give_one(id->channel->session, CTL_CM_REQUESTS);
	id->unanswered = false;
}

uint32_t id_sender(const struct cm_id *id)
{
	return id->channel->session->peer.uid + 1; /* no user has the number -1 */
}

/* The charge of a request, to the user of the listener, in addition to its id. */
static const struct charge request_charge[] = {{CTL_CONNECTIONS, 1}, {CTL_CM_REQUESTS, 1}};

static int charge_request(const struct cm_id *l, const struct cm_event *e, char *why)
{
	struct session *s = l->channel->session;

	if (e->over_share && !quota_has_little(s, CTL_CM_REQUESTS))
		return refuse(why, -EDQUOT,
			"this peer has too many unanswered requests: accept or reject some");
	return quota_take(s, request_charge, ARRAY_SIZE(request_charge), why);
}

/* @return a new id of the listener's user with its event, which is not raised yet, in @p n; NULL
 * with a sentence: no room. */
static struct cm_id *uncharged_id(const struct cm_id *l, struct cm_note **n, char *why)
{
	const struct abi_cm_create_id in = {.ps = l->ps, .qp_type = l->qp_type, .uid = l->uid};
	struct cm_id *id;

	if (id_create(l->channel, &in, &id, why))
		return NULL;
	*n = note_new(id, ABI_CM_CONNECT_REQUEST, 0);
	if (*n)
		return id;
	refuse_memory(why);
	id_destroy(id);
	return NULL;
}

/* The same, for a connection. It is charged first, because a peer can have any number refused. */
static struct cm_id *new_id(
	const struct cm_id *l, const struct cm_event *e, struct cm_note **n, char *why)
{
	struct cm_id *id;

	if (charge_request(l, e, why))
		return NULL;
	id = uncharged_id(l, n, why);
	if (!id) {
		quota_give(l->channel->session, request_charge, ARRAY_SIZE(request_charge));
		return NULL;
	}
	id->unanswered = true;
	id->parent = l->handle;
	id->path = *e->path;
	id->has_path = true;
	id->conn = e->id;
	id->state = ID_CONNECT;
	id->tos = l->tos;
	return id;
}

/* The peer is sent only "no resources". Its address is omitted because records are grouped by text:
 * forged addresses would evict the user's other records. */
static void log_refusal(const struct cm_id *l, const char *why)
{
	char text[ABI_WHY_MAX];
	const struct failed_request f = {
		.session = l->channel->session, .cause = "refused", .rule = "CM-12", .text = text};

	snprintf(text, sizeof(text), "a peer's request to port %u was refused: %s", l->local.port,
		why);
	failure_request(l->all->ctl, &f);
}

static enum cm_rej on_request(struct connections *all, const struct cm_event *e)
{
	struct cm_id *l = handle_get(&all->ids, (uint32_t)e->cookie), *id;
	struct cma_hdr h;
	enum cm_rej reason = unfit(l, e, &h);
	char why[ABI_SENTENCE_MAX];
	struct cm_note *n;

	if (reason)
		return reason;
	id = new_id(l, e, &n, why);
	if (!id) {
		log_refusal(l, why);
		return CM_REJ_NO_RESOURCES;
	}
	take_addresses(id, l, &h);
	all->fresh = id;
	id->request = n;
	list_del(&n->of);
	list_push(&l->events, &n->of);
	n->counts = l;
	n->event.uid = l->uid;
	n->event.listener = l->handle;
	if (e->type == CM_EV_REQ) {
		req_param(e->mad, &n->event.param);
		id->resp_res = n->event.param.responder_resources;
		id->init_depth = n->event.param.initiator_depth;
	}
	copy_private(&n->event.param, e->private_data + CMA_HDR_LEN, e->private_len - CMA_HDR_LEN);
	note_raise(n);
	return 0;
}

/* --- connections with a program --------------------------------------------------------------- */

static void on_sidr_rep(struct cm_id *id, const struct cm_event *e)
{
	struct cm_note *n;

	n = note_new(id, e->reason ? ABI_CM_UNREACHABLE : ABI_CM_ESTABLISHED, (int32_t)e->reason);
	if (!n)
		return;
	if (e->reason) { /* the name that Linux uses */
		explain_no_service(id, e->reason, n->event.why, sizeof(n->event.why));
		log_failure(n, "rejected", "CM-31");
		copy_private(&n->event.param, e->private_data, e->private_len);
		note_raise(n);
		return;
	}
	n->event.param.qpn = (uint32_t)cm_get(e->mad, CM_F_SIDR_REP_QPN);
	n->event.param.qkey = (uint32_t)cm_get(e->mad, CM_F_SIDR_REP_QKEY);
	copy_private(&n->event.param, e->private_data, e->private_len);
	id_ah(id, &n->event.ah);
	note_raise(n);
}

static void on_unreachable(struct cm_id *id, const struct cm_event *e)
{
	struct cm_note *n = note_new(id, ABI_CM_UNREACHABLE, -ETIMEDOUT);

	if (!n)
		return;
	explain_unreachable(id, e->reason, n->event.why, sizeof(n->event.why));
	log_failure(n, "unreachable", "CM-17");
	note_raise(n);
}

/* As in Linux, the status says whether the peer answered the DREQ. */
static void on_disconnected(struct cm_id *id, const struct cm_event *e)
{
	id->disconnected = true;
	id_raise(id, ABI_CM_DISCONNECTED, !e->mad && e->reason == CM_DREQ ? -ETIMEDOUT : 0, NULL);
}

/* Tells the program of @p id. */
static void on_event(struct cm_id *id, const struct cm_event *e)
{
	switch (e->type) {
	case CM_EV_REP:
		raise_with(id, e, ABI_CM_CONNECT_RESPONSE, 0);
		break;
	case CM_EV_ESTABLISHED:
		id_raise(id, ABI_CM_ESTABLISHED, 0, NULL);
		break;
	case CM_EV_REJECTED:
		raise_with(id, e, ABI_CM_REJECTED, (int32_t)e->reason);
		break;
	case CM_EV_UNREACHABLE:
		on_unreachable(id, e);
		break;
	case CM_EV_DISCONNECTED:
		on_disconnected(id, e);
		break;
	case CM_EV_TIMEWAIT_EXIT: /* as in Linux, not after a REJ */
		if (id->disconnected)
			id_raise(id, ABI_CM_TIMEWAIT_EXIT, 0, NULL);
		break;
	default:
		on_sidr_rep(id, e);
	}
}

enum cm_rej connections_event(void *arg, const struct cm_event *e)
{
	struct connections *all = arg;
	struct cm_id *id;

	if (e->type == CM_EV_REQ || e->type == CM_EV_SIDR_REQ)
		return on_request(all, e);
	id = handle_get(&all->ids, (uint32_t)e->cookie);
	if (!id || id->conn != e->id || id->channel->session->closing)
		return 0;
	id_answered(id);
	/* A request that no program has read must be released completely: it has left the backlog,
	 * so a peer could otherwise use up the quota of the listener's user. */
	if (e->type == CM_EV_REJECTED && id->request)
		all->withdrawn = id;
	else
		on_event(id, e);
	return 0;
}
