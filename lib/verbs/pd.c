/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, thread domains, and parent domains, which combine the two. */
#include <stdlib.h>
#include "verbs.h"

static void *fail_null(int err)
{
	errno = err;
	return NULL;
}

VERBS_API struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	struct pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->roci = roci_alloc_pd(context_of(c)->roci);
	if (!pd || !pd->roci) {
		free(pd);
		return explain_null("ibv_alloc_pd", errno);
	}
	pd->pub.context = c;
	object_enter(c, OBJECT_PD, &pd->object);
	return &pd->pub;
}

static bool in_use(struct context *ctx, const uint32_t *users)
{
	bool used;

	pthread_mutex_lock(&ctx->lock);
	used = *users > 0;
	pthread_mutex_unlock(&ctx->lock);
	return used;
}

static void count(struct context *ctx, uint32_t *users, int step)
{
	pthread_mutex_lock(&ctx->lock);
	*users += (uint32_t)step;
	pthread_mutex_unlock(&ctx->lock);
}

VERBS_API int ibv_dealloc_pd(struct ibv_pd *p)
{
	struct context *ctx = context_of(p->context);
	struct pd *pd = pd_of(p);
	int err;

	if (in_use(ctx, &pd->users))
		return explain_as("ibv_dealloc_pd", EBUSY,
			"the PD still has parent domains: deallocate them first");
	if (pd->parent) {
		count(ctx, &pd->parent->users, -1);
		if (pd->td)
			count(ctx, &pd->td->users, -1);
	} else {
		err = roci_dealloc_pd(pd->roci);
		if (err)
			return explain("ibv_dealloc_pd", err);
	}
	object_leave(p->context, &pd->object);
	free(pd);
	return 0;
}

struct ibv_td *verbs_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr)
{
	struct td *td;

	if (attr->comp_mask)
		return fail_null(refused_as(c, "ibv_alloc_td", EOPNOTSUPP,
			"comp_mask %#x is not supported: set it to 0", attr->comp_mask));
	td = calloc(1, sizeof(*td));
	if (!td)
		return fail_null(ENOMEM);
	td->pub.context = c;
	object_enter(c, OBJECT_TD, &td->object);
	return &td->pub;
}

int verbs_dealloc_td(struct ibv_td *t)
{
	struct td *td = (struct td *)t;

	if (in_use(context_of(t->context), &td->users))
		return EBUSY;
	object_leave(t->context, &td->object);
	free(td);
	return 0;
}

/* Custom allocators are never called: queues are in rocid's memory. */
struct ibv_pd *verbs_alloc_parent_domain(
	struct ibv_context *c, struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct context *ctx = context_of(c);
	struct pd *pd, *parent;

	if (attr->comp_mask & ~known)
		return fail_null(EINVAL);
	if (!attr->pd || pd_of(attr->pd)->parent)
		return fail_null(EINVAL);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return fail_null(ENOMEM);
	parent = pd_of(attr->pd);
	pd->pub = (struct ibv_pd){.context = c, .handle = attr->pd->handle};
	pd->roci = parent->roci;
	pd->parent = parent;
	pd->td = (struct td *)attr->td;
	count(ctx, &parent->users, 1);
	if (pd->td)
		count(ctx, &pd->td->users, 1);
	object_enter(c, OBJECT_PARENT_DOMAIN, &pd->object);
	return &pd->pub;
}
