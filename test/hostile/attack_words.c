/* SPDX-License-Identifier: BSD-3-Clause */
/* Garbage in every word that is shared with rocid. */
#include <err.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "attack.h"
#include "bits.h"

/* A thread that writes where rocid reads, until it is stopped. */
struct scribbler {
	pthread_t thread;
	atomic_bool stop;
	atomic_ulong rounds;
	struct random random;
	uint8_t *base[4];
	size_t size[4];
	unsigned areas;
	bool ones; /* all bits of all words, not random words */
};

static void scribble_area(struct scribbler *w, unsigned i)
{
	volatile uint64_t *words = (volatile uint64_t *)w->base[i];
	size_t n = w->size[i] / 8;

	if (!w->ones) {
		words[random_below(&w->random, n)] = random_next(&w->random);
		return;
	}
	for (size_t k = n; k--;) /* backwards: rocid begins at the front */
		words[k] = UINT64_MAX;
}

static void *scribble(void *arg)
{
	struct scribbler *w = arg;

	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		for (unsigned i = 0; i < w->areas; i++)
			scribble_area(w, i);
		atomic_fetch_add_explicit(&w->rounds, 1, memory_order_relaxed);
	}
	return NULL;
}

static void start(struct scribbler *w, struct arena *a)
{
	w->random = (struct random){random_next(&a->random) | 1};
	must(!pthread_create(&w->thread, NULL, scribble, w), "no thread");
}

static void area(struct scribbler *w, uint8_t *base, size_t size)
{
	w->base[w->areas] = base;
	w->size[w->areas++] = size;
}

static void finish(struct scribbler *w)
{
	atomic_store(&w->stop, true);
	pthread_join(w->thread, NULL);
}

/* Waits for as many rounds of a scribbler: work, not time. */
static void let_it(struct scribbler *w, unsigned long rounds)
{
	struct timespec pause = {.tv_nsec = 1000000};

	while (atomic_load(&w->rounds) < rounds)
		nanosleep(&pause, NULL);
}

/* Heads, entries, marks, lanes, arm word, doorbells, epoch: all of it, all the time. The first
 * QP may have failed the second one before that is in RTS, but rarely. */
static void everything(struct arena *a)
{
	struct scribbler w = {0};
	unsigned connected = 0;
	struct duo d;

	duo_open(&d, a);
	area(&w, d.qp[0].region, d.qp[0].r.region_size);
	area(&w, d.qp[1].region, d.qp[1].r.region_size);
	area(&w, d.cq.region, d.cq.r.region_size);
	area(&w, d.s.region, d.s.hello.region_size);
	start(&w, a);
	for (unsigned i = 0; i < 40 * a->effort; i++) {
		let_it(&w, (i + 1) * 20000ul);
		for (int k = 0; k < 2; k++)
			must(!raw_state(&d.qp[k], ABI_QPS_RESET), "a QP does not go to RESET");
		connected += !raw_rts(&d.qp[0], 1, d.qp[1].r.qpn, 2, DUO_ACCESS) &&
			     !raw_rts(&d.qp[1], 2, d.qp[0].r.qpn, 1, DUO_ACCESS);
	}
	must(connected > 20 * a->effort, "few QPs go to RTS");
	finish(&w);
	duo_close(&d);
}

/* All doorbells of a session at once, for ever, many of which belong to QPs. */
static void doorbells(struct arena *a)
{
	enum {
		QPS = 300
	};
	static struct raw_qp qp[QPS];
	struct scribbler w = {.ones = true};
	struct abi_create_qp in;
	struct duo d;

	duo_open(&d, a);
	in = raw_qp_request(&d.s, &d.cq, 4);
	for (unsigned i = 0; i < QPS; i++)
		raw_qp(&d.s, &qp[i], &d.cq, &in);
	area(&w, d.s.region + d.s.hello.doorbell_off,
		d.s.hello.workers * d.s.hello.doorbell_stride);
	start(&w, a);
	let_it(&w, 200000ul * a->effort);
	finish(&w);
	duo_close(&d);
}

/* Every entry of every lap looks posted: queues that never run empty, in RTS and in ERR, where
 * each entry becomes a completion in a CQ that is always read. */
static void endless_queues(struct arena *a)
{
	struct duo d;
	struct abi_cqe cqe;

	duo_open(&d, a);
	raw_state(&d.qp[1], ABI_QPS_ERR);
	for (unsigned long n = 0; n < 400000ul * a->effort; n++) {
		struct raw_qp *qp = &d.qp[n & 1];
		struct abi_wqe *e = raw_wqe(qp, (uint32_t)(n >> 1));
		struct abi_recv_wqe *rq = raw_recv_wqe(qp, (uint32_t)(n >> 1));

		uint32_t mark = abi_phase((uint32_t)(n >> 1), DUO_DEPTH);

		((volatile struct abi_wqe *)e)->ctl = mark | ABI_WQE_SIGNALED;
		((volatile struct abi_recv_wqe *)rq)->ctl = mark;
		if (n % 64 == 0)
			raw_ring(qp);
		raw_poll(&d.cq, &cqe);
	}
	duo_close(&d);
}

/* Entries far beyond what the queue holds: laps overtake the worker. */
static void overrun(struct arena *a)
{
	struct duo d;

	duo_open(&d, a);
	for (unsigned i = 0; i < 20 * a->effort; i++) {
		for (unsigned k = 0; k < 10 * DUO_DEPTH; k++)
			raw_request(&d.qp[0], ABI_WR_RDMA_WRITE, k, duo_sge(&d, 0, 64),
				(uintptr_t)d.mr.mem, d.mr.key);
		for (unsigned k = 0; k < 10 * DUO_DEPTH; k++)
			raw_post_recv(&d.qp[0], k, duo_sge(&d, 0, 64));
		duo_reset(&d);
		d.qp[0].posted = atomic_load(&raw_sq(&d.qp[0])->consumer);
		d.qp[0].received = atomic_load(&raw_rq(&d.qp[0])->consumer);
	}
	duo_close(&d);
}

/* An arm word that never rests, with completions and a channel that nobody reads. */
static void arm_word(struct arena *a)
{
	struct abi_handle_reply ch;
	struct scribbler w = {0};
	struct abi_create_qp in;
	struct raw_qp qp[2];
	struct raw_cq cq;
	struct abi_cqe cqe;
	struct duo d;
	int fd;

	duo_open(&d, a);
	must(!raw_call(&d.s, ABI_CREATE_CHANNEL, NULL, 0, -1, &ch, sizeof(ch), &fd, 1),
		"no channel");
	raw_cq(&d.s, &cq, 256, ch.handle);
	in = raw_qp_request(&d.s, &cq, 16);
	for (int i = 0; i < 2; i++)
		raw_qp(&d.s, &qp[i], &cq, &in);
	raw_connect_qps(&qp[0], &qp[1], DUO_ACCESS);
	area(&w, cq.region, 8);
	start(&w, a);
	for (unsigned i = 0; i < 20000 * a->effort; i++) {
		raw_request(&qp[0], ABI_WR_RDMA_WRITE, i, duo_sge(&d, 0, 8), (uintptr_t)d.mr.mem,
			d.mr.key);
		must(raw_wait(&cq, &cqe) && !cqe.status, "a WRITE within its rights failed");
	}
	finish(&w);
	duo_close(&d);
}

const struct attack attacks_words[] = {
	{"garbage in every shared word", everything},
	{"all doorbells at once", doorbells},
	{"queues that never end", endless_queues},
	{"more entries than the queue has", overrun},
	{"an arm word that never rests", arm_word},
	{NULL, NULL},
};
