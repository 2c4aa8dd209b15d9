/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks by number: QPs, sessions, timers and doorbells that all want something at once. */
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "bits.h"
#include "crowd.h"

static struct crowd crowd;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Connects the QPs with nobody. */
static void point_nowhere(struct crowd *c)
{
	for (unsigned i = 0; i < c->n; i++) {
		c->qp[i].impatient = true;
		must(!raw_rts(&c->qp[i], 1, 0xABCDE, 2, DUO_ACCESS), "RTS");
	}
}

/* All time out in the same moment, and fail. */
static void time_outs(struct arena *a)
{
	const struct crowd_spec spec = {
		.n = 1500, .cqs = 1, .depth = 16, .sges = 1, .memory = 65536};
	unsigned failed = 0;

	crowd_open(&crowd, a, &spec);
	for (unsigned round = 0; round < a->effort; round++) {
		struct abi_sge sge = crowd_sge(&crowd, 0, 64);
		uint64_t until = now_ms() + 1000 * RAW_PATIENCE_S;

		point_nowhere(&crowd);
		for (unsigned i = 0; i < crowd.n; i++)
			crowd_post(&crowd.qp[i], ABI_WR_SEND, &sge, 1, 0, 0);
		for (failed = 0; failed < crowd.n && now_ms() < until; usleep(1000))
			failed += crowd_drain(&crowd);
		must(failed == crowd.n, "requests to nobody complete with an error");
		for (unsigned i = 0; i < crowd.n; i++)
			must(!raw_state(&crowd.qp[i], ABI_QPS_RESET), "RESET");
	}
	crowd_close(&crowd);
}

/* Sessions that ring all of their doorbells without end, and have nothing to send. */
static void bells(struct arena *a)
{
	static struct raw s[100];
	uint64_t until = now_ms() + 500 * a->effort;
	unsigned n = 0;

	while (n < ARRAY_SIZE(s) && raw_try_open(&s[n], a->socket))
		n++;
	must(n > ARRAY_SIZE(s) / 2, "sessions");
	while (now_ms() < until)
		for (unsigned i = 0; i < n; i++)
			memset(s[i].region + s[i].hello.doorbell_off, 0xFF,
				s[i].hello.workers * s[i].hello.doorbell_stride);
	for (unsigned i = 0; i < n; i++)
		raw_close(&s[i]);
}

/* QPs with full queues that fail together, a CQ each that is armed, and nobody who looks. */
static void failures(struct arena *a)
{
	const struct crowd_spec spec = {
		.n = 600, .cqs = 600, .channel = true, .depth = 64, .sges = 2, .memory = 65536};

	crowd_open(&crowd, a, &spec);
	crowd_pair(&crowd);
	for (unsigned round = 0; round < 3 * a->effort; round++) {
		const struct abi_sge sge = crowd_sge(&crowd, 0, 4096);

		for (unsigned i = 0; i < crowd.n; i++) {
			struct abi_cq *head = (struct abi_cq *)crowd.cq[i].region;

			atomic_fetch_add(&head->arm, ABI_CQ_ARM_STEP);
			atomic_fetch_or(&head->arm, ABI_CQ_ARM_ANY);
			for (unsigned k = 0; k < 64; k++)
				raw_post_recv(&crowd.qp[i], k, sge);
			for (unsigned k = 0; k < 64; k++)
				crowd_post(&crowd.qp[i], ABI_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)crowd.mr.mem, crowd.mr.key ^ (k == 5));
		}
		usleep(100000);
		crowd_drain(&crowd);
		for (unsigned i = 0; i < crowd.n; i++)
			must(!raw_state(&crowd.qp[i], ABI_QPS_RESET), "RESET");
		crowd_drain(&crowd);
		crowd_pair(&crowd);
	}
	crowd_close(&crowd);
}

/* Private copies of long queues, all written, that go in one end. */
static void long_queues(struct arena *a)
{
	const struct crowd_spec spec = {.n = 64,
		.cqs = 1,
		.depth = 16384,
		.sges = 16,
		.memory = 65536,
		.cq_depth = 1u << 20};

	for (unsigned round = 0; round < a->effort; round++) {
		struct abi_sge sge[16];

		crowd_open(&crowd, a, &spec);
		for (unsigned i = 0; i < ARRAY_SIZE(sge); i++)
			sge[i] = crowd_sge(&crowd, i, 1);
		for (unsigned i = 0; i < crowd.n; i++) {
			struct raw_qp *qp = &crowd.qp[i];

			must(!raw_rts(qp, 1, 0xABCDE, 2, DUO_ACCESS), "RTS");
			for (unsigned k = 0; k < qp->r.sq_depth; k++)
				crowd_post(qp, ABI_WR_RDMA_WRITE, sge, 16, 0, 0);
			must(!raw_state(qp, ABI_QPS_ERR), "ERR"); /* which takes them all */
			raw_ring(qp);
		}
		for (unsigned n = 0, i = 0; n < crowd.n * 16384 && i < 100000; i++) {
			usleep(100);
			n += crowd_drain(&crowd);
		}
		crowd_close(&crowd);
	}
}

const struct attack attacks_crowds[] = {
	{"QPs that time out together", time_outs},
	{"sessions that ring without work", bells},
	{"QPs that fail together, armed", failures},
	{"the end of long queues", long_queues},
	{NULL, NULL},
};
