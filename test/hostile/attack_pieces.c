/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is dear to touch: many pieces, none of which is there. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bits.h"
#include "crowd.h"

#define PAGE  4096u
#define SGES  16u
#define PAGES (64u * SGES * 64) /* of the region: 256 MB */

static struct crowd crowd;

struct puncher {
	pthread_t thread;
	atomic_bool stop;
	const struct raw_mr *mr;
	size_t step; /* bytes that are punched at once */
	bool fill;   /* before: every page */
};

static void *punch(void *arg)
{
	struct puncher *p = arg;
	const struct raw_mr *mr = p->mr;

	for (size_t at = 0; !atomic_load_explicit(&p->stop, memory_order_relaxed); at += p->step) {
		off_t from = (off_t)(at % mr->size);

		if (p->fill)
			fallocate(mr->fd, 0, from, (off_t)p->step);
		fallocate(mr->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, (off_t)p->step);
	}
	return NULL;
}

static void begin(struct puncher *p, const struct raw_mr *mr, size_t step, bool fill)
{
	*p = (struct puncher){.mr = mr, .step = step, .fill = fill};
	must(!pthread_create(&p->thread, NULL, punch, p), "no thread");
}

static void end(struct puncher *p)
{
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
}

/* Messages of 16 pieces, each a few bytes in a page of its own, gathered and scattered, over memory
 * that is given back again and again. */
static void tiny_pieces(struct arena *a)
{
	const struct crowd_spec spec = {
		.n = 64, .cqs = 1, .depth = 64, .sges = SGES, .memory = (size_t)PAGES * PAGE};
	struct abi_sge sge[SGES];
	struct puncher p;

	crowd_open(&crowd, a, &spec);
	crowd_pair(&crowd);
	begin(&p, &crowd.mr, 16u << 20, false);
	for (unsigned round = 0; round < 200 * a->effort; round++) {
		for (unsigned i = 0; i < crowd.n; i++) {
			struct raw_qp *qp = &crowd.qp[i];

			if (raw_sq_room(qp) < 2)
				continue;
			for (unsigned k = 0; k < SGES; k++)
				sge[k] = crowd_sge(&crowd, random_below(&a->random, PAGES) * PAGE,
					1 + 60 * (k == 7));
			crowd_post(qp, ABI_WR_RDMA_WRITE, sge, SGES,
				(uintptr_t)crowd.mr.mem +
					random_below(&a->random, PAGES - 1) * PAGE,
				crowd.mr.key);
			crowd_post(qp, ABI_WR_RDMA_READ, sge, SGES,
				(uintptr_t)crowd.mr.mem +
					random_below(&a->random, PAGES - 1) * PAGE,
				crowd.mr.key);
		}
		crowd_drain(&crowd);
		usleep(200);
	}
	end(&p);
	crowd_close(&crowd);
}

/* READs of two gigabytes from a region that is nowhere, of many QPs. */
static void long_reads(struct arena *a)
{
	const size_t quarter = (size_t)sysconf(_SC_PHYS_PAGES) / 4 * PAGE; /* a user has half */
	const size_t most = 1ul << 31;
	const struct crowd_spec spec = {.n = 64,
		.cqs = 1,
		.depth = 64,
		.sges = 1,
		.memory = quarter < most ? quarter : most};

	crowd_open(&crowd, a, &spec);
	crowd_pair(&crowd);
	for (unsigned i = 0; i < crowd.n; i++)
		for (unsigned k = 0; k < 16; k++) {
			struct abi_sge sge = crowd_sge(&crowd, 0, (uint32_t)spec.memory);

			crowd_post(&crowd.qp[i], ABI_WR_RDMA_READ, &sge, 1, (uintptr_t)crowd.mr.mem,
				crowd.mr.key);
		}
	usleep(300000 * a->effort);
	crowd_close(&crowd);
}

/* A page fault waits for a hole that is being punched around it, however large that is: the kernel
 * does, and nothing that rocid could do about it is known (doc/security.md, "Known limits"). */
static void large_holes(struct arena *a)
{
	const size_t size = (size_t)512 << 20;
	const struct crowd_spec spec = {.n = 2, .cqs = 1, .depth = 64, .sges = 1, .memory = size};
	struct puncher p;

	crowd_open(&crowd, a, &spec);
	crowd_pair(&crowd);
	begin(&p, &crowd.mr, size, true);
	for (unsigned i = 0; i < 20000 * a->effort; i++) {
		struct abi_sge sge = crowd_sge(&crowd, random_below(&a->random, size - 8), 8);

		if (raw_sq_room(&crowd.qp[0]))
			crowd_post(&crowd.qp[0], ABI_WR_RDMA_WRITE, &sge, 1,
				(uintptr_t)crowd.mr.mem + random_below(&a->random, size - 8),
				crowd.mr.key);
		crowd_drain(&crowd);
		usleep(20);
	}
	end(&p);
	crowd_close(&crowd);
}

const struct attack attacks_pieces[] = {
	{"tiny pieces of memory that is not there", tiny_pieces},
	{"READs of two gigabytes of nothing", long_reads},
	{NULL, NULL},
};

const struct attack attacks_open[] = {
	{"holes of half a gigabyte", large_holes},
	{NULL, NULL},
};
