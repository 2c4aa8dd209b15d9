/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, each with its own session. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "verbs.h"

/* ROCI_POLL: spin, yield or auto; auto yields if this program may use fewer CPUs than rocid's
 * workers plus two. */
static bool should_yield(struct roci_context *c)
{
	const char *how = secure_getenv("ROCI_POLL");
	cpu_set_t cpus;

	if (how && !strcmp(how, "spin"))
		return false;
	if (how && !strcmp(how, "yield"))
		return true;
	if (how && *how && strcmp(how, "auto"))
		explain_as("ROCI_POLL", EINVAL, "unknown value %s: use spin, yield or auto", how);
	return !sched_getaffinity(0, sizeof(cpus), &cpus) &&
	       (unsigned)CPU_COUNT(&cpus) < roci_workers(c) + 2;
}

static void set_up(struct context *ctx, struct device *d, struct roci_context *roci)
{
	struct ibv_context *c = &ctx->v.context;

	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		list_init(&ctx->objects[kind]);
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&c->mutex, NULL);
	ctx->roci = roci;
	ctx->yields = should_yield(roci);
	ctx->v.sz = sizeof(ctx->v);
	context_set_ops(&ctx->v);
	c->device = &device_hold(d)->pub;
	c->cmd_fd = roci->cmd_fd;
	c->async_fd = roci->async_fd;
	c->num_comp_vectors = 1;
	c->abi_compat = __VERBS_ABI_IS_EXTENDED;
}

VERBS_API struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct device *d = (struct device *)device;
	struct context *ctx = calloc(1, sizeof(*ctx));
	struct roci_context *roci = ctx ? roci_open(d->socket) : NULL;

	if (!roci) {
		free(ctx);
		return explain_null("ibv_open_device", errno);
	}
	set_up(ctx, d, roci);
	return &ctx->v.context;
}

/* Succeeds even if the program still has objects, as with the kernel. */
VERBS_API int ibv_close_device(struct ibv_context *c)
{
	struct context *ctx = context_of(c);

	roci_abandon(ctx->roci);
	objects_destroy(ctx);
	roci_close(ctx->roci);
	device_release((struct device *)c->device);
	pthread_mutex_destroy(&c->mutex);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
	return 0;
}

void context_set_ops(struct verbs_context *v)
{
	struct ibv_context_ops *ops = &v->context.ops;

	ops->alloc_mw = verbs_alloc_mw;
	ops->bind_mw = verbs_bind_mw;
	ops->dealloc_mw = verbs_dealloc_mw;
	ops->poll_cq = verbs_poll_cq;
	ops->req_notify_cq = verbs_req_notify_cq;
	ops->post_srq_recv = verbs_post_srq_recv;
	ops->post_send = verbs_post_send;
	ops->post_recv = verbs_post_recv;
	v->query_port = verbs_query_port;
	v->advise_mr = verbs_advise_mr;
	v->query_rt_values = verbs_query_rt_values;
	v->alloc_null_mr = verbs_alloc_null_mr;
	v->modify_qp_rate_limit = verbs_modify_qp_rate_limit;
	v->alloc_parent_domain = verbs_alloc_parent_domain;
	v->dealloc_td = verbs_dealloc_td;
	v->alloc_td = verbs_alloc_td;
	v->modify_cq = verbs_modify_cq;
	v->create_cq_ex = verbs_create_cq_ex;
	v->query_device_ex = verbs_query_device_ex;
	v->open_qp = verbs_open_qp;
	v->create_qp_ex = verbs_create_qp_ex;
	v->get_srq_num = verbs_get_srq_num;
	v->create_srq_ex = verbs_create_srq_ex;
	v->open_xrcd = verbs_open_xrcd;
	v->close_xrcd = verbs_close_xrcd;
}
