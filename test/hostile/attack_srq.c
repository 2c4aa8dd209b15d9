/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared receive queue whose program writes what it likes into it, while messages come and rocid
 * copies it into another ring. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"

#define DEPTH 16u
#define SENDS 24u

struct queue {
	struct abi_create_srq_reply r;
	uint8_t *region;
};

static void make(struct raw *s, struct queue *q)
{
	struct abi_create_srq in = {.pd = s->pd,
		.max_wr = DEPTH,
		.max_sge = 2,
		.xrcd = ABI_NO_HANDLE,
		.cq = ABI_NO_HANDLE};
	int fd = -1;

	must(!raw_call(s, ABI_CREATE_SRQ, &in, sizeof(in), -1, &q->r, sizeof(q->r), &fd, 1),
		"no SRQ");
	q->region = mmap(NULL, q->r.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(q->region != MAP_FAILED, "the SRQ cannot be mapped");
	close(fd);
}

struct scribbler {
	pthread_t thread;
	struct random random;
	struct queue *q;
	_Atomic bool stop;
};

/* Marks, counts and keys that change between two looks, an index that jumps. */
static void *scribble(void *arg)
{
	struct scribbler *f = arg;
	struct abi_queue *head = (struct abi_queue *)f->q->region;

	while (!atomic_load(&f->stop)) {
		uint32_t at = random_below(&f->random, DEPTH) * f->q->r.stride;
		struct abi_recv_wqe *w = (void *)(f->q->region + f->q->r.ring_off + at);
		uint32_t jump = random_below(&f->random, 4 * DEPTH);

		atomic_store((_Atomic uint32_t *)&w->ctl, (uint32_t)random_next(&f->random));
		if (random_below(&f->random, 8))
			jump = DEPTH / 2; /* else no message would get far */
		atomic_store(&head->producer, atomic_load(&head->consumer) + jump);
		if (!random_below(&f->random, 64))
			atomic_store(&head->consumer, (uint32_t)random_next(&f->random));
	}
	return NULL;
}

/* Entries that are good to begin with. */
static void fill(struct duo *d, struct queue *q)
{
	for (uint32_t i = 0; i < DEPTH; i++) {
		struct abi_recv_wqe *w =
			(void *)(q->region + q->r.ring_off + (size_t)i * q->r.stride);

		w->wr_id = i;
		w->sge[0] = duo_sge(d, i * 64, 64);
		atomic_store((_Atomic uint32_t *)&w->ctl, ABI_WQE_CTL(0, 1, 0) | ABI_WQE_PHASE);
	}
	atomic_store(&((struct abi_queue *)q->region)->producer, DEPTH);
}

static void one_queue(struct arena *a, struct duo *d)
{
	struct abi_create_qp in = raw_qp_request(&d->s, &d->cq, DUO_DEPTH);
	struct abi_modify_srq larger = {.mask = ABI_SRQ_MAX_WR | ABI_SRQ_LIMIT, .limit = 2};
	struct scribbler f = {.random = {random_next(&a->random) | 1}};
	struct raw_qp from, to;
	struct abi_cqe cqe;
	struct queue q;

	make(&d->s, &q);
	fill(d, &q);
	raw_qp(&d->s, &from, &d->cq, &in);
	in.srq = q.r.handle;
	raw_qp(&d->s, &to, &d->cq, &in);
	raw_connect_qps(&from, &to, DUO_ACCESS);
	f.q = &q;
	must(!pthread_create(&f.thread, NULL, scribble, &f), "no thread");
	for (unsigned i = 0; i < SENDS; i++)
		raw_request(&from, ABI_WR_SEND, i, duo_sge(d, 4096, 48), 0, 0);
	larger.handle = q.r.handle;
	for (larger.max_wr = 2 * DEPTH; larger.max_wr <= 8 * DEPTH; larger.max_wr *= 2) {
		int fd = -1; /* what was in the ring may be more than fits: any answer will do */

		raw_call(&d->s, ABI_MODIFY_SRQ, &larger, sizeof(larger), -1, NULL, 0, &fd, 1);
		if (fd >= 0)
			close(fd);
		raw_poll(&d->cq, &cqe);
	}
	must(raw_call(&d->s, ABI_DESTROY_SRQ, &q.r.handle, 4, -1, NULL, 0, NULL, 0) < 0,
		"an SRQ that is used was destroyed");
	raw_qp_free(&to);
	raw_qp_free(&from);
	atomic_store(&f.stop, true);
	pthread_join(f.thread, NULL);
	raw_must(&d->s, ABI_DESTROY_SRQ, &q.r.handle, 4, NULL, 0);
	munmap(q.region, q.r.region_size);
	while (raw_poll(&d->cq, &cqe))
		;
}

static void scribbled(struct arena *a)
{
	struct duo d;

	duo_open(&d, a);
	for (unsigned i = 0; i < 30 * a->effort; i++)
		one_queue(a, &d);
	duo_close(&d);
}

const struct attack attacks_srq[] = {
	{"a shared receive queue that changes under rocid", scribbled},
	{NULL, NULL},
};
