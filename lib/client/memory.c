/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains, memory of roci_alloc_mem(), memory regions. rocid maps the file of an MR:
 * that of roci_alloc_mem(), or the one where lib/arena puts or finds other memory.
 */
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "client.h"
#include "arena.h"
#include "roci_private.h"

#define HUGE_PAGE (2ul << 20)

/** An allocation of roci_alloc_mem(), in the tree context.memory. */
struct memory {
	uintptr_t addr;
	size_t length; /* whole pages */
	int fd;
	uint32_t mrs; /* number of MRs that use it */
};

struct mr {
	struct roci_mr pub;
	uint32_t handle;
	struct memory *memory;	 /* from roci_alloc_mem(), */
	struct arena_hold *hold; /* or any other; one of the two is NULL */
	bool owns_memory;	 /* from roci_alloc_mr() */
	uint64_t iova;
	int access;
};

_Static_assert((int)ROCI_ACCESS_LOCAL_WRITE == ABI_ACCESS_LOCAL_WRITE &&
		       (int)ROCI_ACCESS_REMOTE_WRITE == ABI_ACCESS_REMOTE_WRITE &&
		       (int)ROCI_ACCESS_REMOTE_READ == ABI_ACCESS_REMOTE_READ &&
		       (int)ROCI_ACCESS_REMOTE_ATOMIC == ABI_ACCESS_REMOTE_ATOMIC &&
		       (int)ROCI_ACCESS_MW_BIND == ABI_ACCESS_MW_BIND &&
		       (int)ROCI_ACCESS_ZERO_BASED == ABI_ACCESS_ZERO_BASED &&
		       (int)ROCI_ACCESS_FLUSH_GLOBAL == ABI_ACCESS_FLUSH_GLOBAL &&
		       (int)ROCI_ACCESS_FLUSH_PERSISTENT == ABI_ACCESS_FLUSH_PERSIST,
	"access flags");

struct roci_pd *roci_alloc_pd(struct roci_context *c)
{
	struct context *ctx = context_of(c);
	struct abi_handle_reply r;
	struct pd *pd = calloc(1, sizeof(*pd));
	int err = pd ? 0
		     : fail_const(ENOMEM, "out of memory for a protection domain: free some memory "
					  "and try again");

	if (!err)
		err = call_plain(ctx, ABI_ALLOC_PD, NULL, 0, &r, sizeof(r));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->pub.context = c;
	pd->handle = r.handle;
	pthread_mutex_lock(&ctx->lock);
	ctx->pds++;
	pthread_mutex_unlock(&ctx->lock);
	return &pd->pub;
}

int roci_dealloc_pd(struct roci_pd *p)
{
	struct pd *pd = (struct pd *)p;
	struct context *ctx = context_of(p->context);
	int err = call_destroy(ctx, ABI_DEALLOC_PD, pd->handle);

	if (err)
		return err;
	pthread_mutex_lock(&ctx->lock);
	ctx->pds--;
	pthread_mutex_unlock(&ctx->lock);
	free(pd);
	return 0;
}

/* --- memory --------------------------------------------------------------------------- */

/* Overlapping ranges compare equal: a 1-byte range finds the range that contains it. */
static int compare(const void *a, const void *b)
{
	const struct memory *x = a;
	const struct memory *y = b;

	if (x->addr + x->length <= y->addr)
		return -1;
	return x->addr >= y->addr + y->length;
}

/* context.lock is held */
static struct memory *memory_at(struct context *ctx, const void *addr)
{
	struct memory key = {.addr = (uintptr_t)addr, .length = 1};
	struct memory **found = tfind(&key, &ctx->memory, compare);

	return found ? *found : NULL;
}

static void memory_release(void *arg)
{
	struct memory *m = arg;

	munmap((void *)m->addr, m->length);
	close(m->fd);
	free(m);
}

void memory_free_all(struct context *ctx)
{
	tdestroy(ctx->memory, memory_release);
	ctx->memory = NULL;
}

static int make_memfd(size_t length)
{
	int fd = memfd_create("roci", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -fail(errno,
			"cannot allocate memory: %s; raise the limit of open files "
			"or use fewer allocations",
			strerror(errno));
	if (ftruncate(fd, (off_t)length) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		int err = fail(
			errno, "cannot allocate %zu bytes of memory: %s", length, strerror(errno));

		close(fd);
		return -err;
	}
	return fd;
}

/* Maps the memfd, aligned so that huge pages can back it if it is large enough. */
static void *map_aligned(int fd, size_t length)
{
	size_t room = length >= HUGE_PAGE ? length + HUGE_PAGE : length;
	uint8_t *base =
		mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *addr = base;

	if (base == MAP_FAILED)
		return NULL;
	if (room > length)
		addr = (uint8_t *)(((uintptr_t)base + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	if (mmap(addr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		MAP_FAILED) {
		munmap(base, room);
		return NULL;
	}
	if (addr > base)
		munmap(base, (size_t)(addr - base));
	if (addr + length < base + room)
		munmap(addr + length, (size_t)(base + room - addr) - length);
	madvise(addr, length, MADV_HUGEPAGE); /* a hint: many kernels ignore it for memfds */
	return addr;
}

static int memory_new(size_t length, struct memory **out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct memory *m = NULL;
	void *addr;

	if (length == 0 || length > SIZE_MAX / 4)
		return fail(EINVAL,
			"cannot allocate %zu bytes: the length must be 1 or more and fit the "
			"address space",
			length);
	length = (length + page - 1) & ~(page - 1);
	m = calloc(1, sizeof(*m));
	if (!m)
		return fail_const(ENOMEM,
			"out of memory to record an allocation: free some memory and try again");
	m->fd = make_memfd(length);
	if (m->fd < 0) {
		int err = -m->fd;

		free(m);
		return err;
	}
	addr = map_aligned(m->fd, length);
	if (!addr) {
		int err = fail(errno, "cannot map %zu bytes: %s", length, strerror(errno));

		close(m->fd);
		free(m);
		return err;
	}
	m->addr = (uintptr_t)addr;
	m->length = length;
	*out = m;
	return 0;
}

static int memory_alloc(struct context *ctx, size_t length, struct memory **out)
{
	void *node;
	int err = memory_new(length, out);

	if (err)
		return err;
	pthread_mutex_lock(&ctx->lock);
	node = tsearch(*out, &ctx->memory, compare);
	pthread_mutex_unlock(&ctx->lock);
	if (!node) {
		memory_release(*out);
		return fail_const(ENOMEM,
			"out of memory to record an allocation: free some memory and try again");
	}
	return 0;
}

void *roci_alloc_mem(struct roci_context *ctx, size_t length)
{
	struct memory *m = NULL;
	int err = memory_alloc(context_of(ctx), length, &m);

	if (err) {
		errno = err;
		return NULL;
	}
	return (void *)m->addr;
}

int roci_free_mem(struct roci_context *c, void *addr)
{
	struct context *ctx = context_of(c);
	struct memory *m;
	uint32_t mrs = 0;

	pthread_mutex_lock(&ctx->lock);
	m = memory_at(ctx, addr);
	if (m && m->addr != (uintptr_t)addr)
		m = NULL;
	if (m)
		mrs = m->mrs;
	if (m && !mrs)
		tdelete(m, &ctx->memory, compare);
	pthread_mutex_unlock(&ctx->lock);
	if (!m)
		return fail(EINVAL, "%p is not an address that roci_alloc_mem() returned", addr);
	if (mrs)
		return fail(EBUSY, "%u MRs use the memory at %p: deregister them first", mrs, addr);
	memory_release(m);
	return 0;
}

int roci_madvise(void *addr, size_t len, int advice)
{
	return arena_madvise((uintptr_t)addr, len, advice);
}

void *roci_mremap(void *old, size_t old_len, size_t new_len, int flags, void *to)
{
	return arena_mremap(old, old_len, new_len, flags, to);
}

/* --- memory regions ------------------------------------------------------------------- */

/* Counts an MR in the allocation that contains the whole range.  @return NULL: there is none. */
static struct memory *memory_hold(struct context *ctx, const void *addr, size_t length)
{
	uintptr_t a = (uintptr_t)addr;
	struct memory *m;

	pthread_mutex_lock(&ctx->lock);
	m = memory_at(ctx, addr);
	if (m && length <= m->length && a - m->addr <= m->length - length)
		m->mrs++;
	else
		m = NULL;
	pthread_mutex_unlock(&ctx->lock);
	return m;
}

static void memory_let_go(struct context *ctx, struct memory *m)
{
	pthread_mutex_lock(&ctx->lock);
	m->mrs--;
	pthread_mutex_unlock(&ctx->lock);
}

static int ask_for_arena(void *arg, bool huge)
{
	struct abi_get_arena in = {.page = huge ? HUGE_PAGE : 0};
	int fd;
	int err = call_for_fd(arg, ABI_GET_ARENA, &in, sizeof(in), NULL, 0, &fd);

	return err ? -err : fd;
}

static int ask_for_userfaultfd(void *arg)
{
	int fd;
	int err = call_for_fd(arg, ABI_GET_USERFAULTFD, NULL, 0, NULL, 0, &fd);

	return err ? -err : fd;
}

/* Finds or creates the file that has the memory of @p mr. */
static int mr_hold(struct context *ctx, struct mr *mr, int access)
{
	const struct arena_source source = {
		.memfd = ask_for_arena,
		.uffd = ask_for_userfaultfd,
		.arg = ctx,
	};
	char why[ARENA_WHY_MAX];
	int err;

	mr->memory = memory_hold(ctx, mr->pub.addr, mr->pub.length);
	if (mr->memory)
		return 0;
	err = arena_take(&source, (uintptr_t)mr->pub.addr, mr->pub.length,
		access & ROCI_ACCESS_LOCAL_WRITE, &mr->hold, why);
	return err ? fail(err, "%s", why) : 0;
}

static void mr_let_go(struct context *ctx, struct mr *mr)
{
	if (mr->memory)
		memory_let_go(ctx, mr->memory);
	if (mr->hold)
		arena_release(mr->hold);
}

_Static_assert(sizeof(struct abi_piece) == sizeof(struct arena_piece) &&
		       offsetof(struct abi_piece, length) == offsetof(struct arena_piece, len) &&
		       (int)ABI_WRITERS_UFFD_ROCID == ARENA_WRITERS_UFFD_ROCID &&
		       (int)ABI_WRITERS_SIGNALS == ARENA_WRITERS_SIGNALS,
	"pieces are copied without conversion");

/* A REG_MR, and the pieces of its memory. */
struct reg_request {
	struct {
		uint32_t handle;
		uint32_t reserved;
	} rereg;	      /* REREG_MR begins here */
	struct abi_reg_mr mr; /* REG_MR */
	struct abi_piece piece[ABI_PIECES_MAX];
};

_Static_assert(sizeof(struct reg_request) == sizeof(struct abi_rereg_mr) +
						     ABI_PIECES_MAX * sizeof(struct abi_piece) &&
		       offsetof(struct reg_request, mr) == offsetof(struct abi_rereg_mr, reg),
	"REREG_MR");

/* @return the length of a REG_MR in bytes, 0: too many pieces. */
static size_t put_pieces(struct reg_request *q, const struct mr *mr)
{
	const struct arena_hold *h = mr->hold;

	if (!h) {
		q->mr.fd_off = (uintptr_t)mr->pub.addr - mr->memory->addr;
		return sizeof(q->mr);
	}
	q->mr.fd_off = h->piece[0].off;
	q->mr.writers = arena_writers();
	if (h->npieces == 1)
		return sizeof(q->mr);
	if (h->npieces > ABI_PIECES_MAX)
		return 0;
	q->mr.npieces = h->npieces;
	memcpy(q->piece, h->piece, h->npieces * sizeof(h->piece[0]));
	return sizeof(q->mr) + h->npieces * sizeof(h->piece[0]);
}

/* Registers @p mr, or applies it to the region @p handle. */
static int reg_call(
	struct context *ctx, struct mr *mr, uint64_t iova, int access, const uint32_t *handle)
{
	struct reg_request body = {.mr = {
					   .pd = ((struct pd *)mr->pub.pd)->handle,
					   .access = (uint32_t)access,
					   .iova = iova,
					   .length = mr->pub.length,
				   }};
	size_t len = put_pieces(&body, mr);
	struct abi_reg_mr_reply r;
	struct call c;
	int err;

	if (!len)
		return fail(EOPNOTSUPP,
			"the memory consists of %u pieces that were moved or registered "
			"separately, but a region can have %u: register its parts, or register the "
			"whole before any part",
			mr->hold->npieces, (unsigned)ABI_PIECES_MAX);
	if (handle) {
		body.rereg.handle = *handle;
		len += sizeof(body.rereg);
	}
	c = (struct call){.type = handle ? ABI_REREG_MR : ABI_REG_MR,
		.body = handle ? (void *)&body.rereg : &body.mr,
		.body_len = len,
		.fd = mr->memory ? mr->memory->fd : mr->hold->fd,
		.reply = &r,
		.reply_len = sizeof(r)};
	err = call(ctx, &c);
	/* rocid counts all pages of the arena, also those that were freed. */
	if (err == EDQUOT && mr->hold && arena_reclaim())
		err = call(ctx, &c);
	if (mr->hold)
		arena_sent(mr->hold);
	if (err)
		return err;
	mr->handle = r.handle;
	mr->pub.lkey = r.lkey;
	mr->pub.rkey = r.rkey;
	return 0;
}

struct roci_mr *roci_reg_mr_iova(
	struct roci_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct context *ctx = context_of(pd->context);
	struct mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (!mr) {
		errno = fail_const(ENOMEM,
			"out of memory for a memory region: free some memory and try again");
		return NULL;
	}
	mr->pub.context = pd->context;
	mr->pub.pd = pd;
	mr->pub.addr = addr;
	mr->pub.length = length;
	err = mr_hold(ctx, mr, access);
	if (!err) {
		err = reg_call(ctx, mr, iova, access, NULL);
		if (err)
			mr_let_go(ctx, mr);
	}
	mr->iova = iova;
	mr->access = access;
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->pub;
}

struct roci_mr *roci_reg_mr(struct roci_pd *pd, void *addr, size_t length, int access)
{
	/* MR-03: addresses of a zero-based region are offsets. */
	uint64_t iova = access & ROCI_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;

	return roci_reg_mr_iova(pd, addr, length, iova, access);
}

struct roci_mr *roci_alloc_mr(struct roci_pd *pd, size_t length, int access)
{
	void *addr = roci_alloc_mem(pd->context, length);
	struct roci_mr *mr = addr ? roci_reg_mr(pd, addr, length, access) : NULL;

	if (mr) {
		((struct mr *)mr)->owns_memory = true;
	} else if (addr) {
		int err = errno;

		roci_free_mem(pd->context, addr);
		errno = err;
	}
	return mr;
}

int roci_rereg_mr(
	struct roci_mr *p, int flags, struct roci_pd *pd, void *addr, size_t length, int access)
{
	struct mr *mr = (struct mr *)p, next = *mr;
	struct context *ctx = context_of(p->context);
	int err;

	if (flags & ~7 || !flags || mr->owns_memory ||
		(flags & ROCI_REREG_MR_CHANGE_PD && (!pd || pd->context != p->context)))
		return fail_const(EINVAL,
			"roci_rereg_mr() needs flags of enum roci_rereg_mr_flags, a PD of the MR's "
			"context, and an MR that is not from roci_alloc_mr()");
	next.memory = NULL;
	next.hold = NULL;
	if (flags & ROCI_REREG_MR_CHANGE_PD)
		next.pub.pd = pd;
	if (flags & ROCI_REREG_MR_CHANGE_ACCESS)
		next.access = access;
	if (flags & ROCI_REREG_MR_CHANGE_TRANSLATION) {
		next.pub.addr = addr;
		next.pub.length = length;
		next.iova = next.access & ROCI_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	}
	err = mr_hold(ctx, &next, next.access);
	if (err)
		return err;
	err = reg_call(ctx, &next, next.iova, next.access, &mr->handle);
	mr_let_go(ctx, err ? &next : mr);
	if (!err)
		*mr = next;
	return err;
}

int roci_dereg_mr(struct roci_mr *p)
{
	struct mr *mr = (struct mr *)p;
	struct context *ctx = context_of(p->context);
	uint32_t others;
	int err;

	pthread_mutex_lock(&ctx->lock);
	others = mr->owns_memory ? mr->memory->mrs - 1 : 0;
	pthread_mutex_unlock(&ctx->lock);
	if (others)
		return fail(EBUSY,
			"%u other MRs use the memory of this one, which would be freed: "
			"deregister them first",
			others);
	err = call_destroy(ctx, ABI_DEREG_MR, mr->handle);
	if (err)
		return err;
	mr_let_go(ctx, mr);
	if (mr->owns_memory)
		err = roci_free_mem(p->context, p->addr);
	free(mr);
	return err;
}
