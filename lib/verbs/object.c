/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of a context: ibv_close_device() destroys those that are left. */
#include "verbs.h"

void object_enter(struct ibv_context *c, enum object_kind kind, struct object *o)
{
	struct context *ctx = context_of(c);

	pthread_mutex_lock(&ctx->lock);
	list_push(&ctx->objects[kind], &o->node);
	pthread_mutex_unlock(&ctx->lock);
}

void object_leave(struct ibv_context *c, struct object *o)
{
	struct context *ctx = context_of(c);

	pthread_mutex_lock(&ctx->lock);
	list_del(&o->node);
	pthread_mutex_unlock(&ctx->lock);
}

static void destroy(enum object_kind kind, struct list *node)
{
	struct object *o = container_of(node, struct object, node);

	switch (kind) {
	case OBJECT_QP:
		ibv_destroy_qp(&container_of(o, struct qp, object)->pub);
		break;
	case OBJECT_SRQ:
		ibv_destroy_srq(&container_of(o, struct srq, object)->pub);
		break;
	case OBJECT_AH:
		ibv_destroy_ah(&container_of(o, struct ah, object)->pub);
		break;
	case OBJECT_MW:
		verbs_dealloc_mw(&container_of(o, struct mw, object)->pub);
		break;
	case OBJECT_MR:
		ibv_dereg_mr(&container_of(o, struct mr, object)->pub);
		break;
	case OBJECT_CQ:
		ibv_destroy_cq(&container_of(o, struct cq, object)->pub);
		break;
	case OBJECT_CHANNEL:
		ibv_destroy_comp_channel(&container_of(o, struct channel, object)->pub);
		break;
	case OBJECT_XRCD:
		verbs_close_xrcd(&container_of(o, struct xrcd, object)->pub);
		break;
	case OBJECT_PARENT_DOMAIN:
	case OBJECT_PD:
		ibv_dealloc_pd(&container_of(o, struct pd, object)->pub);
		break;
	case OBJECT_TD:
		verbs_dealloc_td(&container_of(o, struct td, object)->pub);
		break;
	case OBJECT_KINDS:
		break;
	}
}

void objects_destroy(struct context *ctx)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		struct list *l = &ctx->objects[kind];

		while (!list_empty(l)) {
			struct list *first = l->next;

			destroy((enum object_kind)kind, first);
			if (l->next == first) /* it cannot be destroyed: leak it */
				list_del(first);
		}
	}
}
