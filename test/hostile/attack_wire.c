/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that sends to another program's QPs, on the same port and with the same address, so
 * that only rocid can tell who is who. */
#include <string.h>
#include <time.h>
#include "attack.h"

#define FORGED 0x5A

/* Two QPs of a victim's that are connected by this daemon's own loop. */
struct pair {
	struct raw s;
	struct raw_cq cq;
	struct raw_mr mr;
	struct raw_qp qp[2];
};

static void pair_open(struct pair *p, const struct arena *a, uint8_t type)
{
	struct abi_create_qp in;

	raw_open(&p->s, a->socket);
	raw_cq(&p->s, &p->cq, 8 * DUO_DEPTH, ABI_NO_HANDLE);
	raw_mr(&p->s, &p->mr, DUO_MEMORY, 0, DUO_ACCESS);
	in = raw_qp_request(&p->s, &p->cq, DUO_DEPTH);
	in.type = type;
	for (int i = 0; i < 2; i++)
		raw_qp(&p->s, &p->qp[i], &p->cq, &in);
}

static void pair_connect(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		must(!raw_rts(&p->qp[i], 1, p->qp[!i].r.qpn, 1, DUO_ACCESS), "no connection");
}

static void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		raw_qp_unmap(&p->qp[i]);
	raw_mr_free(&p->mr);
	raw_close(&p->s);
}

static struct abi_sge sge_of(const struct pair *p, size_t at, uint32_t len)
{
	return (struct abi_sge){(uintptr_t)p->mr.mem + at, len, p->mr.key};
}

/* The victim works: a message of its own arrives, and is the only one that does. */
static void expect_own_message(struct pair *v)
{
	struct abi_cqe cqe;

	memset(v->mr.mem, 0x11, 64);
	raw_request(&v->qp[0], ABI_WR_SEND, 1, sge_of(v, 0, 64), 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		must(raw_wait(&v->cq, &cqe), "the victim's message does not arrive");
		must(cqe.status == ABI_WC_SUCCESS, "the victim's message failed");
	}
	must(v->mr.mem[4096] == 0x11, "a forged message took the victim's receive");
	must(!raw_poll(&v->cq, &cqe), "the victim has a completion too many");
	for (size_t i = 8192; i < 8192 + 64; i++)
		must(!v->mr.mem[i], "a forged WRITE landed");
}

/* Towards the victim's second QP, with the PSN that it expects from the first. */
static void connect_forger(struct raw_qp *qp, const struct pair *v)
{
	uint32_t own = qp->r.qpn;

	qp->r.qpn = v->qp[0].r.qpn; /* raw_rts() begins with it */
	must(!raw_rts(qp, 1, v->qp[1].r.qpn, 1, DUO_ACCESS), "no connection");
	qp->r.qpn = own;
}

/* With the victim's QPN, PSN and R_Key, which the program may well know. */
static void forge(struct arena *a, uint8_t type)
{
	struct pair v, f;
	struct abi_cqe cqe;

	pair_open(&v, a, type);
	pair_connect(&v);
	raw_post_recv(&v.qp[1], 2, sge_of(&v, 4096, 64));
	pair_open(&f, a, type);
	memset(f.mr.mem, FORGED, 64);
	for (int i = 0; i < 2; i++) {
		connect_forger(&f.qp[i], &v);
		raw_request(&f.qp[i], i ? ABI_WR_RDMA_WRITE : ABI_WR_SEND, 1, sge_of(&f, 0, 64),
			(uintptr_t)v.mr.mem + 8192, v.mr.key);
		must(raw_wait(&f.cq, &cqe), "a forged message does not complete");
	}
	expect_own_message(&v);
	pair_close(&f);
	pair_close(&v);
}

static void forge_rc(struct arena *a)
{
	forge(a, ABI_QPT_RC);
}

static void forge_uc(struct arena *a)
{
	forge(a, ABI_QPT_UC);
}

/* --- more than its peer's worker can take ---------------------------------------------- */

#define FLOOD_PAIRS  4u
#define FLOOD_MEMORY (1u << 20)
#define FLOOD_DEPTH  64u
#define FLOOD_MS     200u

/* Two QPs of different workers, if there are two. */
struct flood_pair {
	struct raw_qp from, to;
};

static void flood_open(struct flood_pair *f, struct raw *s, struct raw_cq *cq)
{
	struct abi_create_qp in = raw_qp_request(s, cq, FLOOD_DEPTH);

	in.type = ABI_QPT_UC;
	raw_qp(s, &f->from, cq, &in);
	raw_qp(s, &f->to, cq, &in);
	must(!raw_rts(&f->from, 1, f->to.r.qpn, 1, DUO_ACCESS), "no connection");
	must(!raw_rts(&f->to, 1, f->from.r.qpn, 1, DUO_ACCESS), "no connection");
}

/* A queue full of megabytes to write, without a completion or an ACK. */
static void flood_post(struct flood_pair *f, const struct raw_mr *mr)
{
	const struct abi_wqe w = {.ctl = ABI_WQE_CTL(ABI_WR_RDMA_WRITE, 1, 0),
		.remote_addr = (uintptr_t)mr->mem,
		.rkey = mr->key};
	const struct abi_sge sge = {(uintptr_t)mr->mem, FLOOD_MEMORY, mr->key};

	for (unsigned i = 0; i < FLOOD_DEPTH; i++)
		raw_post(&f->from, &w, &sge);
}

/* It posts once and sleeps, and its WRITEs come faster than the workers of their QPs can take
 * them. Nothing is lost for it: the test expects that rocid counted no full inbox. */
static void flood(struct arena *a)
{
	const struct timespec rest = {.tv_nsec = FLOOD_MS * 1000000L};
	struct flood_pair f[FLOOD_PAIRS];
	struct raw_cq cq;
	struct raw_mr mr;
	struct raw s;

	raw_open(&s, a->socket);
	raw_cq(&s, &cq, 64, ABI_NO_HANDLE);
	raw_mr(&s, &mr, FLOOD_MEMORY, 0, DUO_ACCESS);
	for (unsigned i = 0; i < FLOOD_PAIRS; i++)
		flood_open(&f[i], &s, &cq);
	for (unsigned i = 0; i < FLOOD_PAIRS; i++)
		flood_post(&f[i], &mr);
	for (unsigned i = 0; i < 10 * a->effort; i++)
		nanosleep(&rest, NULL);
	for (unsigned i = 0; i < FLOOD_PAIRS; i++) {
		raw_qp_unmap(&f[i].from);
		raw_qp_unmap(&f[i].to);
	}
	raw_mr_free(&mr);
	raw_close(&s);
}

const struct attack attacks_wire[] = {
	{"UC WRITEs that nobody waits for", flood},
	{"another program's connection, RC", forge_rc},
	{"another program's connection, UC", forge_uc},
	{NULL, NULL},
};
