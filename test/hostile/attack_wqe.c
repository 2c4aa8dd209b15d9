/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests that no library would post: wrong in each field, and changing while rocid looks. */
#include <err.h>
#include <pthread.h>
#include <string.h>
#include "attack.h"
#include "bits.h"

#define OWN   0x5A /* fills the attacker's memory: nothing else may ever arrive */
#define HALF  (DUO_MEMORY / 2)
#define NOKEY 0xFFFFFF00u

static void only_own_bytes(const struct duo *d)
{
	for (size_t i = HALF; i < DUO_MEMORY; i++)
		if (d->mr.mem[i] && d->mr.mem[i] != OWN)
			errx(1, "byte %zu came from elsewhere: 0x%02x", i, d->mr.mem[i]);
}

struct bad {
	const char *what;
	unsigned opcode, count, flags;
	uint64_t addr; /* offset from the region, or absolute when the key is another */
	uint32_t length;
	uint32_t length2; /* of the second SGE */
	uint32_t key;	  /* 0: the region's */
	uint8_t status;
};

static const struct bad bads[] = {
	{"three SGEs of two", ABI_WR_SEND, 3, 0, 0, 8, 8, 0, ABI_WC_LOC_QP_OP_ERR},
	{"255 SGEs", ABI_WR_SEND, 255, 0, 0, 8, 8, 0, ABI_WC_LOC_QP_OP_ERR},
	{"65535 SGEs", ABI_WR_RDMA_WRITE, 65535, 0, 0, 8, 8, 0, ABI_WC_LOC_QP_OP_ERR},
	{"65 inline bytes of 64", ABI_WR_SEND, 65, ABI_WQE_INLINE, 0, 0, 0, 0,
		ABI_WC_LOC_QP_OP_ERR},
	{"65535 inline bytes", ABI_WR_SEND, 65535, ABI_WQE_INLINE, 0, 0, 0, 0,
		ABI_WC_LOC_QP_OP_ERR},
	{"an inline READ", ABI_WR_RDMA_READ, 8, ABI_WQE_INLINE, 0, 0, 0, 0, ABI_WC_LOC_QP_OP_ERR},
	/* the SGE of an atomic lies where others have their second */
	{"an atomic without room", ABI_WR_ATOMIC_CMP_AND_SWP, 1, 0, 0, 8, 0, 0, ABI_WC_LOC_LEN_ERR},
	{"an atomic of 9 bytes", ABI_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 8, 9, 0, ABI_WC_LOC_LEN_ERR},
	{"an atomic of two SGEs", ABI_WR_ATOMIC_CMP_AND_SWP, 2, 0, 0, 8, 8, 0,
		ABI_WC_LOC_QP_OP_ERR},
	{"an inline atomic", ABI_WR_ATOMIC_FETCH_AND_ADD, 8, ABI_WQE_INLINE, 0, 0, 0, 0,
		ABI_WC_LOC_QP_OP_ERR},
	{"a bind of what is no window", ABI_WR_BIND_MW, 1, 0, 0, 8, 0, 0, ABI_WC_MW_BIND_ERR},
	{"an invalidation of what is no window", ABI_WR_LOCAL_INV, 1, 0, 0, 8, 0, 0,
		ABI_WC_MW_BIND_ERR},
	{"an ATOMIC WRITE of 4 bytes", ABI_WR_ATOMIC_WRITE, 1, 0, 0, 4, 0, 0, ABI_WC_LOC_LEN_ERR},
	{"opcode 13", 13, 1, 0, 0, 8, 0, 0, ABI_WC_LOC_QP_OP_ERR},
	{"opcode 255", 255, 1, 0, 0, 8, 0, 0, ABI_WC_LOC_QP_OP_ERR},
	{"one byte beyond the region", ABI_WR_SEND, 1, 0, DUO_MEMORY - 7, 8, 0, 0,
		ABI_WC_LOC_PROT_ERR},
	{"one byte before it", ABI_WR_SEND, 1, 0, -1ull, 8, 0, 0, ABI_WC_LOC_PROT_ERR},
	{"2^32 - 1 bytes", ABI_WR_SEND, 1, 0, 0, UINT32_MAX, 0, 0, ABI_WC_LOC_PROT_ERR},
	{"two halves of 2^32", ABI_WR_SEND, 2, 0, 0, 1u << 31, 1u << 31, 0, ABI_WC_LOC_PROT_ERR},
	{"a sum that wraps to 8", ABI_WR_SEND, 2, 0, 0, UINT32_MAX, 9, 0, ABI_WC_LOC_PROT_ERR},
	{"the end of the address space", ABI_WR_SEND, 1, 0, -9ull, 8, 0, NOKEY,
		ABI_WC_LOC_PROT_ERR},
	{"an address that wraps", ABI_WR_SEND, 1, 0, -4ull, 8, 0, NOKEY, ABI_WC_LOC_PROT_ERR},
	{"key 0", ABI_WR_SEND, 1, 0, 0, 8, 0, 1, ABI_WC_LOC_PROT_ERR},
};

static void post_bad(struct duo *d, const struct bad *b)
{
	struct abi_sge sge[300] = {{0}};
	struct abi_wqe *e = raw_wqe(&d->qp[0], d->qp[0].posted);
	uint32_t key = b->key ? b->key : d->mr.key;

	for (unsigned i = 0; i < 2; i++)
		sge[i] = (struct abi_sge){
			(uintptr_t)d->mr.mem + b->addr, i ? b->length2 : b->length, key};
	if (b->key == NOKEY)
		sge[0].addr = b->addr;
	e->wr_id = 1;
	e->remote_addr = (uintptr_t)d->mr.mem + HALF;
	e->rkey = d->mr.key;
	memcpy(e->sge, sge, 2 * sizeof(sge[0]));
	atomic_store_explicit((_Atomic uint32_t *)&e->ctl,
		ABI_WQE_CTL(b->opcode, b->count, b->flags | ABI_WQE_SIGNALED) |
			abi_phase(d->qp[0].posted, d->qp[0].r.sq_depth),
		memory_order_release);
	d->qp[0].posted++;
	raw_ring(&d->qp[0]);
}

/* Each kind of nonsense is its own completion in error, and nothing reaches the peer. */
static void fields(struct arena *a)
{
	struct abi_cqe cqe;
	struct duo d;

	duo_open(&d, a);
	memset(d.mr.mem, OWN, HALF);
	for (unsigned i = 0; i < ARRAY_SIZE(bads); i++) {
		int status;

		raw_post_recv(&d.qp[1], 9, duo_sge(&d, HALF, HALF));
		post_bad(&d, &bads[i]);
		status = duo_status(&d, &d.qp[0]);
		if (status != bads[i].status)
			errx(1, "%s: status %d, not %u", bads[i].what, status, bads[i].status);
		must(!raw_poll(&d.cq, &cqe), "the peer heard of a request that failed");
		only_own_bytes(&d);
		duo_reset(&d);
	}
	/* Without bytes no key is looked at, and an entry within its rights still works. */
	raw_post_recv(&d.qp[1], 9, duo_sge(&d, HALF, HALF));
	raw_request(&d.qp[0], ABI_WR_SEND, 2, (struct abi_sge){1, 0, 12345}, 0, 0);
	must(duo_status(&d, &d.qp[0]) == 0, "an empty SEND failed");
	duo_close(&d);
}

/* --- double fetch --------------------------------------------------------------------- */

struct flipper {
	pthread_t thread;
	atomic_bool stop;
	struct random random;
	const struct arena *arena;
	struct duo *d;
};

/* Rewrites posted entries: what was checked must be what is used. */
static void *flip(void *arg)
{
	struct flipper *f = arg;
	const struct victim *v = f->arena->victim;

	while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
		struct abi_wqe *e = raw_wqe(&f->d->qp[0], (uint32_t)random_next(&f->random));
		volatile struct abi_wqe *w = e;
		volatile struct abi_recv_wqe *r =
			raw_recv_wqe(&f->d->qp[1], (uint32_t)random_next(&f->random));

		switch (random_below(&f->random, 8)) {
		case 0:
			w->ctl = (w->ctl & 0xFFFF) | (uint32_t)random_below(&f->random, 4) << 16;
			break;
		case 1:
			w->ctl ^= ABI_WQE_FENCE;
			break;
		case 2:
			w->ctl = (w->ctl & ~0xFF00u) | (uint32_t)random_below(&f->random, 6) << 8;
			break;
		case 3:
			w->sge[0].length = (uint32_t)random_next(&f->random);
			break;
		case 4:
			w->sge[0].lkey = v->key[random_next(&f->random) & 1];
			w->sge[0].addr = v->addr[0];
			break;
		case 5:
			w->sge[0].lkey = f->d->mr.key;
			w->sge[0].addr = (uintptr_t)f->d->mr.mem;
			w->sge[0].length = 2000;
			break;
		case 6:
			w->rkey = v->key[1];
			break;
		default:
			r->sge[0].length = (uint32_t)random_below(&f->random, HALF);
			r->ctl = (r->ctl & 0xFFFF) | (uint32_t)random_below(&f->random, 3) << 16;
		}
	}
	return NULL;
}

static bool failed(struct duo *d)
{
	struct abi_cqe cqe;
	bool bad = false;

	while (raw_poll(&d->cq, &cqe))
		bad |= cqe.status != 0;
	return bad;
}

static void double_fetch(struct arena *a)
{
	struct flipper f = {.arena = a, .random = {random_next(&a->random) | 1}};
	struct duo d;

	duo_open(&d, a);
	f.d = &d;
	memset(d.mr.mem, OWN, HALF);
	must(!pthread_create(&f.thread, NULL, flip, &f), "no thread");
	for (unsigned i = 0; i < 300 * a->effort; i++) {
		for (unsigned k = 0; k < 16; k++) {
			raw_post_recv(&d.qp[1], k, duo_sge(&d, HALF, 4096));
			raw_request(&d.qp[0], k & 1 ? ABI_WR_SEND : ABI_WR_RDMA_WRITE, k,
				duo_sge(&d, 0, 2000), (uintptr_t)d.mr.mem + HALF, d.mr.key);
		}
		only_own_bytes(&d);
		if (failed(&d) || i % 16 == 15)
			duo_reset(&d);
	}
	atomic_store(&f.stop, true);
	pthread_join(f.thread, NULL);
	only_own_bytes(&d);
	duo_close(&d);
}

/* Whole entries at random, with marks that make them count. */
static void random_entries(struct arena *a)
{
	struct duo d;

	duo_open(&d, a);
	memset(d.mr.mem, OWN, HALF);
	for (unsigned i = 0; i < 400 * a->effort; i++) {
		for (unsigned k = 0; k < 8; k++) {
			struct raw_qp *qp = &d.qp[random_next(&a->random) & 1];
			struct abi_wqe *e = raw_wqe(qp, qp->posted);
			uint32_t ctl = (uint32_t)random_next(&a->random);

			random_fill(&a->random, (uint8_t *)e + 4, qp->r.sq_stride - 4);
			if (ctl & 1 << 30) /* so that some get beyond the first check */
				ctl &= 0x000105DE;
			atomic_store_explicit((_Atomic uint32_t *)&e->ctl,
				(ctl & ~1u) | abi_phase(qp->posted, qp->r.sq_depth),
				memory_order_release);
			qp->posted++;
			raw_ring(qp);
		}
		if (failed(&d) || i % 8 == 7)
			duo_reset(&d);
	}
	duo_close(&d);
}

const struct attack attacks_wqe[] = {
	{"wrong fields", fields},
	{"entries that change while they are read", double_fetch},
	{"random entries", random_entries},
	{NULL, NULL},
};
