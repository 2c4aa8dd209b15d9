/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and events. Events refer to the program's own objects. */
#include <stdlib.h>
#include "verbs.h"

_Static_assert((int)IBV_EVENT_SQ_DRAINED == ROCI_EVENT_SQ_DRAINED &&
		       (int)IBV_EVENT_DEVICE_FATAL == ROCI_EVENT_DEVICE_FATAL &&
		       (int)IBV_EVENT_QP_LAST_WQE_REACHED == ROCI_EVENT_QP_LAST_WQE_REACHED &&
		       (int)IBV_EVENT_GID_CHANGE == ROCI_EVENT_GID_CHANGE,
	"enum ibv_event_type");

VERBS_API struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	struct channel *ch = calloc(1, sizeof(*ch));

	if (ch)
		ch->roci = roci_create_channel(context_of(c)->roci);
	if (!ch || !ch->roci) {
		free(ch);
		return explain_null("ibv_create_comp_channel", errno);
	}
	ch->pub = (struct ibv_comp_channel){.context = c, .fd = ch->roci->fd};
	object_enter(c, OBJECT_CHANNEL, &ch->object);
	return &ch->pub;
}

VERBS_API int ibv_destroy_comp_channel(struct ibv_comp_channel *p)
{
	struct channel *ch = (struct channel *)p;
	int err = roci_destroy_channel(ch->roci);

	if (err)
		return explain("ibv_destroy_comp_channel", err);
	object_leave(p->context, &ch->object);
	free(ch);
	return 0;
}

VERBS_API int ibv_get_cq_event(
	struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct roci_cq *roci;
	void *user;
	int err = roci_get_cq_event(((struct channel *)channel)->roci, &roci, &user);

	if (err) {
		errno = err;
		return -1;
	}
	*cq = &((struct cq *)user)->pub;
	*cq_context = (*cq)->cq_context;
	return 0;
}

VERBS_API void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (nevents)
		roci_ack_cq_events(cq_of(cq)->roci, nevents);
}

static void convert(const struct roci_async_event *r, struct ibv_async_event *e)
{
	e->event_type = (enum ibv_event_type)r->event_type;
	switch (r->event_type) {
	case ROCI_EVENT_CQ_ERR:
		e->element.cq = &((struct cq *)r->element.cq->user_data)->pub;
		break;
	case ROCI_EVENT_QP_FATAL:
	case ROCI_EVENT_QP_REQ_ERR:
	case ROCI_EVENT_QP_ACCESS_ERR:
	case ROCI_EVENT_COMM_EST:
	case ROCI_EVENT_SQ_DRAINED:
	case ROCI_EVENT_QP_LAST_WQE_REACHED:
		e->element.qp = &((struct qp *)r->element.qp->user_data)->pub;
		break;
	case ROCI_EVENT_SRQ_ERR:
	case ROCI_EVENT_SRQ_LIMIT_REACHED:
		e->element.srq = &((struct srq *)r->element.srq->user_data)->pub;
		break;
	default:
		e->element.cq = NULL;
		e->element.port_num = (int)r->element.port_num;
	}
}

VERBS_API int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	struct roci_async_event r = {.size = sizeof(r)};
	int err = roci_get_async_event(context_of(c)->roci, &r);

	if (err) {
		errno = err;
		return -1;
	}
	convert(&r, event);
	return 0;
}

VERBS_API void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct roci_async_event r = {
		.size = sizeof(r), .event_type = (enum roci_event_type)event->event_type};

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		r.element.cq = cq_of(event->element.cq)->roci;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		r.element.qp = qp_of(event->element.qp)->roci;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		r.element.srq = srq_of(event->element.srq)->roci;
		break;
	default:
		return; /* ports and the device are never destroyed */
	}
	roci_ack_async_event(&r);
}
