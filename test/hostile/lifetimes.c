/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lifetimes SOCKET [CYCLES]
 *
 * When DEREG_MR or DESTROY_QP is answered, the memory is the program's again (decision 0000.4).
 * Under full traffic from both sides a region is deregistered, or a QP destroyed; at that moment
 * the program fills its pages with a pattern, and while the rest of the packets arrives looks at
 * them: nothing changes there, and nothing of the pattern comes out at the other end. Thousands of
 * times.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"

#define MESSAGE	 20000u /* bytes: twenty packets, so that some are always under way */
#define REQUESTS 24u	/* in flight, each direction */
#define SIZE	 65536u
#define LOOKS	 6u
#define ROUNDS	 8u   /* of the worker, at least, between two looks */
#define CAUGHT	 100u /* cycles that had something to catch, of each kind */
#define AGAIN	 10u  /* times as many cycles as asked for, until there were so many */

/* Two queue pairs, each with a region of its own to give back; QP 0 has region 0. */
struct way {
	const char *name;
	int dereg;   /* this region, -1: none */
	int destroy; /* this QP, -1: none */
};

static const struct way ways[] = {
	{"DEREG_MR of what is read from", 0, -1},
	{"DEREG_MR of what is written to", 1, -1},
	{"DESTROY_QP of the one that asks", -1, 0},
	{"DESTROY_QP of the one that is asked", -1, 1},
};

/* The first contents of the regions; the patterns that they are reused with are above 0x7F. */
static const uint8_t old[2] = {0x22, 0x33};

struct cycle {
	struct raw s;
	struct raw_cq cq;
	struct raw_mr mr[2];
	struct raw_qp qp[2];
	unsigned completed;
};

/* Sums over all cycles, to see that there was something to catch. */
static unsigned long cut, touched;

static void open_cycle(struct cycle *c)
{
	struct abi_create_qp in = raw_qp_request(&c->s, &c->cq, 64);

	c->completed = 0;
	for (int i = 0; i < 2; i++) {
		raw_mr(&c->s, &c->mr[i], SIZE, 0, DUO_ACCESS);
		memset(c->mr[i].mem, old[i], SIZE);
		raw_qp(&c->s, &c->qp[i], &c->cq, &in);
	}
	raw_connect_qps(&c->qp[0], &c->qp[1], DUO_ACCESS);
}

static void close_cycle(struct cycle *c, const struct way *w)
{
	struct abi_cqe cqe;

	for (int i = 0; i < 2; i++) {
		if (w->destroy == i)
			raw_qp_unmap(&c->qp[i]);
		else
			raw_qp_free(&c->qp[i]);
		if (w->dereg != i)
			raw_must(&c->s, ABI_DEREG_MR, &c->mr[i].handle, 4, NULL, 0);
		raw_mr_free(&c->mr[i]);
	}
	while (raw_poll(&c->cq, &cqe))
		;
}

/* SENDs, WRITEs and READs from both ends at once, all over both regions. */
static void post_all(struct cycle *c, unsigned n)
{
	static const unsigned op[] = {ABI_WR_RDMA_WRITE, ABI_WR_SEND, ABI_WR_RDMA_READ};

	for (unsigned i = 0; i < REQUESTS; i++)
		for (int k = 0; k < 2; k++) {
			const struct raw_mr *mine = &c->mr[k], *theirs = &c->mr[!k];
			size_t at = i % 3 * MESSAGE;
			struct abi_sge sge = {(uintptr_t)mine->mem + at, MESSAGE, mine->key};

			raw_post_recv(&c->qp[k], i, sge);
			raw_request(&c->qp[k], op[(n + i * (unsigned)k) % ARRAY_SIZE(op)], i, sge,
				(uintptr_t)theirs->mem + at, theirs->key);
		}
}

/* Lets some of it happen: as many completions as chance says. */
static void let_run(struct cycle *c, struct random *r)
{
	unsigned n = (unsigned)random_below(r, REQUESTS);
	struct abi_cqe cqe;

	for (; c->completed < n; c->completed++)
		must(raw_wait(&c->cq, &cqe) && !cqe.status, "a request within its rights failed");
}

static bool changed(const struct raw_mr *mr, uint8_t from)
{
	for (size_t i = 0; i < SIZE; i++)
		if (mr->mem[i] != from)
			return true;
	return false;
}

static void give_back(struct cycle *c, const struct way *w)
{
	if (w->dereg >= 0)
		raw_must(&c->s, ABI_DEREG_MR, &c->mr[w->dereg].handle, 4, NULL, 0);
	else
		raw_must(&c->s, ABI_DESTROY_QP, &c->qp[w->destroy].r.handle, 4, NULL, 0);
}

/* Commands that the worker answers: so many rounds of it have passed. */
static void let_packets_arrive(struct cycle *c, const struct way *w)
{
	const struct raw_qp *qp = &c->qp[w->destroy == 0];
	struct abi_qp_attr attr;

	for (unsigned i = 0; i < ROUNDS; i++)
		raw_must(&c->s, ABI_QUERY_QP, &qp->r.handle, 4, &attr, sizeof(attr));
}

static void one(struct cycle *c, struct random *r, unsigned n)
{
	const struct way *w = &ways[n % ARRAY_SIZE(ways)];
	int mine = w->dereg >= 0 ? w->dereg : w->destroy;
	uint8_t pattern = (uint8_t)(0x80 | n % 127);
	struct abi_cqe cqe;

	open_cycle(c);
	post_all(c, n);
	let_run(c, r);
	touched += changed(&c->mr[mine], old[mine]);
	give_back(c, w);
	memset(c->mr[mine].mem, pattern, SIZE);
	while (raw_poll(&c->cq, &cqe))
		c->completed += !cqe.status;
	cut += c->completed < 2 * REQUESTS;
	for (unsigned look = 0; look < LOOKS; look++) {
		let_packets_arrive(c, w);
		if (changed(&c->mr[mine], pattern))
			errx(1, "cycle %u: somebody wrote after %s had returned", n, w->name);
		if (memchr(c->mr[!mine].mem, pattern, SIZE))
			errx(1, "cycle %u: somebody read after %s had returned", n, w->name);
	}
	close_cycle(c, w);
}

int main(int argc, char **argv)
{
	const char *cycles = getenv("LIFETIMES_CYCLES");
	unsigned long count = cycles ? strtoul(cycles, NULL, 0) : 2000;
	struct arena arena = {.socket = argc > 1 ? argv[1] : NULL};
	struct random r = {20};
	unsigned long enough;
	struct cycle c;
	unsigned n = 0;

	if (argc < 2)
		errx(2, "use: lifetimes SOCKET");
	raw_open(&c.s, arena.socket);
	raw_cq(&c.s, &c.cq, 512, ABI_NO_HANDLE);
	/* How much is done by then is the scheduler's choice: on a busy machine it takes more. */
	enough = count / 10 < CAUGHT ? count / 10 : CAUGHT;
	for (; n < count || (n < AGAIN * count && (touched < enough || cut < enough)); n++)
		one(&c, &r, n);
	printf("%u cycles: in %lu the memory had been used, in %lu requests were cut off\n", n,
		touched, cut);
	must(touched >= enough && cut >= enough, "there was too little traffic to cut off");
	raw_close(&c.s);
	return 0;
}
