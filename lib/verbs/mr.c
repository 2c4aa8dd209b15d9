/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions. */
#include <stdlib.h>
#include <sys/mman.h>
#include "verbs.h"

#define ACCESS_KNOWN                                                                    \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |    \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
		ROCI_ACCESS_FLUSH_GLOBAL | ROCI_ACCESS_FLUSH_PERSISTENT)

/* @return libroci's access flags, or a negative errno. Optional flags may be ignored; libroci does
 * not need the HUGETLB hint. */
static int access_to_roci(struct ibv_context *c, unsigned int access)
{
	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	access &= ~(unsigned)IBV_ACCESS_HUGETLB;
	if (access & IBV_ACCESS_ON_DEMAND)
		return -refused_as(c, "ibv_reg_mr", EOPNOTSUPP,
			"on-demand paging is not supported: register without "
			"IBV_ACCESS_ON_DEMAND; nothing is pinned anyway");
	if (access & ~(unsigned)ACCESS_KNOWN)
		return -refused_as(c, "ibv_reg_mr", EINVAL, "unknown access flags %#x",
			access & ~(unsigned)ACCESS_KNOWN);
	return (int)access;
}

/* Wraps a registered region in an ibv_mr; NULL with errno. */
static struct ibv_mr *mr_wrap(
	struct ibv_pd *pd, struct roci_mr *roci, void *addr, size_t length, int access)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	if (!mr) {
		roci_dereg_mr(roci);
		errno = ENOMEM;
		return NULL;
	}
	mr->roci = roci;
	mr->access = access;
	mr->pub = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = roci->lkey,
		.lkey = roci->lkey,
		.rkey = roci->rkey,
	};
	object_enter(pd->context, OBJECT_MR, &mr->object);
	return &mr->pub;
}

static struct ibv_mr *reg(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int flags)
{
	int access = access_to_roci(pd->context, flags);
	struct roci_mr *roci;

	if (access < 0) {
		errno = -access;
		return NULL;
	}
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	roci = roci_reg_mr_iova(pd_of(pd)->roci, addr, length, iova, access);
	if (!roci)
		return refused_null(pd->context, "ibv_reg_mr", errno);
	return mr_wrap(pd, roci, addr, length, (int)access);
}

VERBS_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

VERBS_API struct ibv_mr *ibv_reg_mr_iova(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return reg(pd, addr, length, iova, (unsigned)access);
}

VERBS_API struct ibv_mr *ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return reg(pd, addr, length, iova, access);
}

VERBS_API struct ibv_mr *ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)offset, (void)length, (void)iova, (void)fd, (void)access;
	errno = refused_as(pd->context, "ibv_reg_dmabuf_mr", EOPNOTSUPP,
		"device memory cannot be registered: register host memory and copy through it");
	return NULL;
}

static int rereg(
	struct ibv_mr *p, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct mr *mr = (struct mr *)p;
	int err = roci_rereg_mr(mr->roci, flags, pd ? pd_of(pd)->roci : NULL, addr, length, access);

	if (err)
		return refused(p->context, "ibv_rereg_mr", err);
	p->lkey = mr->roci->lkey;
	p->rkey = mr->roci->rkey;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		p->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		p->addr = addr;
		p->length = length;
	}
	return 0;
}

VERBS_API int ibv_rereg_mr(
	struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	int rights = flags & IBV_REREG_MR_CHANGE_ACCESS
			     ? access_to_roci(mr->context, (unsigned)access)
			     : 0;

	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED ||
		(flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!length || !addr)) ||
		(flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != mr->context)))
		rights = -EINVAL;
	if (rights < 0) {
		errno = -rights;
		return IBV_REREG_MR_ERR_INPUT;
	}
	/* if the change fails, rocid leaves the region unchanged */
	return rereg(mr, flags, pd, addr, length, rights) ? IBV_REREG_MR_ERR_INPUT : 0;
}

VERBS_API int ibv_dereg_mr(struct ibv_mr *p)
{
	struct mr *mr = (struct mr *)p;
	int err = roci_dereg_mr(mr->roci);

	if (err)
		return explain("ibv_dereg_mr", err);
	object_leave(p->context, &mr->object);
	free(mr);
	return 0;
}

/* Refused: reads must return zeros while writes succeed, which needs memory of any length. */
struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd)
{
	errno = refused_as(pd->context, "ibv_alloc_null_mr", EOPNOTSUPP,
		"null regions are not supported: register memory that receives the data to be "
		"ignored");
	return NULL;
}

/* @return the region that contains all of @p sge, or NULL; context.lock is held. */
static struct mr *find(struct context *ctx, const struct ibv_pd *pd, const struct ibv_sge *sge)
{
	struct list *l = &ctx->objects[OBJECT_MR];

	for (struct list *n = l->next; n != l; n = n->next) {
		struct mr *mr = container_of(n, struct mr, object.node);
		uint64_t from = (uintptr_t)mr->pub.addr;

		if (mr->pub.lkey == sge->lkey &&
			pd_of(mr->pub.pd)->roci == pd_of((struct ibv_pd *)pd)->roci &&
			sge->addr >= from && sge->addr - from <= mr->pub.length &&
			sge->length <= mr->pub.length - (sge->addr - from))
			return mr;
	}
	return NULL;
}

/* Populates the pages, as a prefetch of an on-demand region does. */
static int prefetch(const struct ibv_sge *sge, bool write)
{
	uintptr_t from = sge->addr & ~4095ul;
	uintptr_t to = (sge->addr + sge->length + 4095) & ~4095ul;

	if (madvise((void *)from, to - from, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) &&
		errno == EFAULT)
		return EFAULT;
	return 0; /* an old kernel does not support it: the first access is slower, no more */
}

int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	struct ibv_sge *sg_list, uint32_t num_sge)
{
	struct context *ctx = context_of(pd->context);
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;

	if ((unsigned)advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return refused_as(pd->context, "ibv_advise_mr", EOPNOTSUPP,
			"advice %u is unknown: only prefetching is supported", (unsigned)advice);
	if (!num_sge || flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		return EINVAL;
	for (uint32_t i = 0; i < num_sge; i++) {
		struct mr *mr;
		int access = 0;
		int err;

		pthread_mutex_lock(&ctx->lock);
		mr = find(ctx, pd, &sg_list[i]);
		if (mr)
			access = mr->access;
		pthread_mutex_unlock(&ctx->lock);
		if (!mr)
			return ENOENT;
		if (write && !(access & IBV_ACCESS_LOCAL_WRITE))
			return EPERM;
		if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			continue;
		err = prefetch(&sg_list[i], write);
		if (err)
			return err;
	}
	return 0;
}
