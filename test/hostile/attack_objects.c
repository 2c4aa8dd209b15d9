/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles that are another's, sizes that are absurd, and more objects than anybody needs. */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"

/* Messages that name an object, and the bytes of their bodies. */
static const struct {
	uint32_t type, len;
} naming[] = {
	{ABI_DEALLOC_PD, sizeof(struct abi_handle)},
	{ABI_DEREG_MR, sizeof(struct abi_handle)},
	{ABI_DESTROY_CHANNEL, sizeof(struct abi_handle)},
	{ABI_RESIZE_CQ, sizeof(struct abi_resize_cq)},
	{ABI_DESTROY_CQ, sizeof(struct abi_handle)},
	{ABI_MODIFY_QP, sizeof(struct abi_modify_qp)},
	{ABI_QUERY_QP, sizeof(struct abi_handle)},
	{ABI_DESTROY_QP, sizeof(struct abi_handle)},
};

/* The victims' handles mean nothing here, nor do random ones. */
static void foreign_handles(struct arena *a)
{
	const struct victim *v = a->victim;
	struct raw s;

	raw_open(&s, a->socket);
	raw_must(&s, ABI_DEALLOC_PD, &s.pd, sizeof(s.pd), NULL, 0);
	for (unsigned i = 0; i < 2000 * a->effort; i++) {
		const uint32_t known[] = {v->qp_handle, v->mr_handle, v->cq_handle, v->pd_handle, 0,
			UINT32_MAX, (uint32_t)random_next(&a->random),
			(uint32_t)random_below(&a->random, 1 << 18)};
		uint32_t body[24] = {known[i % ARRAY_SIZE(known)]};
		unsigned k = i / ARRAY_SIZE(known) % ARRAY_SIZE(naming);
		int status;

		body[1] = 64; /* a depth; a mask without attributes */
		status = raw_call(&s, naming[k].type, body, naming[k].len, -1, NULL, 0, NULL, 0);
		if (status != -EINVAL)
			errx(1, "message %u with handle %u: status %d", naming[k].type, body[0],
				status);
	}
	raw_close(&s);
}

/* Refusals that are made up, some of them of victims' QPs, with and without an end. */
static void made_up_reports(struct arena *a)
{
	struct raw s;

	raw_open(&s, a->socket);
	for (unsigned i = 0; i < 2000 * a->effort; i++) {
		struct abi_report r = {.qpn = i & 1 ? a->victim->qpn[i >> 1 & 1] : 0};
		bool ends = i & 2;

		for (unsigned k = 0; k < sizeof(r.sentence); k++)
			r.sentence[k] = (char)(1 + random_below(&a->random, 255));
		if (ends)
			r.sentence[1 + random_below(&a->random, sizeof(r.sentence) - 1)] = 0;
		must(raw_call(&s, ABI_REPORT, &r, sizeof(r), -1, NULL, 0, NULL, 0) ==
				(ends && !r.qpn ? 0 : -EINVAL),
			"a report is taken that should not be, or the other way round");
	}
	raw_close(&s);
}

static void absurd_sizes(struct arena *a)
{
	static const uint32_t sizes[] = {0, 1, 16384, 16385, 65536, 1u << 20, (1u << 20) + 1,
		1u << 31, (1u << 31) + 1, UINT32_MAX - 1, UINT32_MAX};
	struct raw_cq cq;
	struct raw s;

	raw_open(&s, a->socket);
	raw_cq(&s, &cq, 16, ABI_NO_HANDLE);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct abi_create_cq c = {.depth = sizes[i], .channel = ABI_NO_HANDLE};
		struct abi_resize_cq rc = {.handle = cq.r.handle, .depth = sizes[i]};
		int fd, status;

		status = raw_call(&s, ABI_CREATE_CQ, &c, sizeof(c), -1, NULL, 0, &fd, 1);
		must((status == 0) == (sizes[i] && sizes[i] <= 1u << 20), "CREATE_CQ's limits");
		close(fd);
		status = raw_call(&s, ABI_RESIZE_CQ, &rc, sizeof(rc), -1, NULL, 0, &fd, 1);
		must((status == 0) == (sizes[i] && sizes[i] <= 1u << 20), "RESIZE_CQ's limits");
		close(fd);
		for (unsigned field = 5; field < 11; field++) {
			uint32_t body[sizeof(struct abi_create_qp) / 4];
			struct abi_create_qp q = raw_qp_request(&s, &cq, 16);

			memcpy(body, &q, sizeof(q));
			body[field] = sizes[i];
			status = raw_call(
				&s, ABI_CREATE_QP, body, sizeof(body), -1, NULL, 0, &fd, 1);
			must(status == 0 || status == -EINVAL, "CREATE_QP's limits");
			close(fd);
		}
	}
	raw_close(&s);
}

/* --- as many as there are ------------------------------------------------------------- */

static bool full(int status)
{
	return status == -ENOSPC || status == -EDQUOT || status == -ENOMEM || status == -EMFILE;
}

/* Creates until rocid refuses.  @return how many there were. */
static unsigned fill(
	struct raw *s, uint32_t type, const void *body, size_t len, int fd, unsigned limit)
{
	uint8_t out[128];
	int fds[2], status = 0;
	unsigned n = 0;

	while (n < limit && !status) {
		status = raw_call(s, type, body, len, fd, out, sizeof(out), fds, 2);
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		n += !status;
	}
	if (status && !full(status))
		errx(1, "message %u, object %u: %d %s", type, n, status, s->why);
	return n;
}

/* All kinds to the quota, then the end, which others must not notice. Before that, something can
 * still be had by another session. */
static void until_the_quota(struct arena *a)
{
	for (unsigned i = 0; i < (ASAN ? 1 : 3) * a->effort; i++) {
		struct abi_create_cq c = {.depth = 1, .channel = ABI_NO_HANDLE};
		struct abi_reg_mr m = {.access = 1, .length = 4096};
		struct abi_create_qp q;
		struct raw_cq cq;
		struct raw s;
		struct duo other;
		int fd = raw_memfd(4096, 2 /* F_SEAL_SHRINK */);

		raw_open(&s, a->socket);
		raw_cq(&s, &cq, 16, ABI_NO_HANDLE);
		q = raw_qp_request(&s, &cq, 1);
		q.max_recv_wr = 0;
		m.pd = s.pd;
		fill(&s, ABI_ALLOC_PD, NULL, 0, -1, 100000);
		fill(&s, ABI_CREATE_CHANNEL, NULL, 0, -1, 100000);
		fill(&s, ABI_CREATE_QP, &q, sizeof(q), -1, 4000);
		fill(&s, ABI_CREATE_CQ, &c, sizeof(c), -1, 4000);
		fill(&s, ABI_REG_MR, &m, sizeof(m), fd, 8000);
		duo_open(&other, a);
		duo_close(&other);
		raw_close(&s);
		close(fd);
	}
}

/* Bytes to the quota, with the largest queues that there are. */
static void bytes_until_the_quota(struct arena *a)
{
	struct abi_create_cq c = {.depth = 1u << 20, .channel = ABI_NO_HANDLE};
	struct abi_create_qp q;
	struct raw_cq cq;
	struct raw s;

	raw_open(&s, a->socket);
	raw_cq(&s, &cq, 16, ABI_NO_HANDLE);
	q = raw_qp_request(&s, &cq, 16384);
	q.max_send_sge = q.max_recv_sge = 16;
	fill(&s, ABI_CREATE_QP, &q, sizeof(q), -1, 30);
	fill(&s, ABI_CREATE_CQ, &c, sizeof(c), -1, 1000);
	raw_close(&s);
}

/* Memory and descriptors run out in rocid itself. */
static void starved(struct arena *a)
{
	static const int resource[] = {RLIMIT_AS, RLIMIT_NOFILE};

	if (ASAN)
		return; /* the sanitizer itself ends a process that is out of memory */
	for (unsigned i = 0; i < ARRAY_SIZE(resource); i++) {
		struct rlimit old, tight = {.rlim_cur = 64};
		struct raw s;

		raw_open(&s, a->socket);
		must(!prlimit(a->rocid, resource[i], NULL, &old), "prlimit");
		if (resource[i] == RLIMIT_AS)
			tight.rlim_cur = 1 << 20; /* far below what is mapped: all fails */
		tight.rlim_max = old.rlim_max;
		must(!prlimit(a->rocid, resource[i], &tight, NULL), "prlimit");
		for (unsigned k = 0; k < 20; k++) {
			struct abi_create_cq c = {.depth = 1u << 16, .channel = ABI_NO_HANDLE};
			struct raw other;
			uint8_t out[64];
			int fd;

			raw_call(&s, ABI_CREATE_CQ, &c, sizeof(c), -1, out, 24, &fd, 1);
			close(fd);
			raw_call(&s, ABI_CREATE_CHANNEL, NULL, 0, -1, out, 4, &fd, 1);
			close(fd);
			raw_call(&s, ABI_ALLOC_PD, NULL, 0, -1, out, 4, NULL, 0);
			if (raw_try_open(&other, a->socket))
				raw_close(&other);
		}
		must(!prlimit(a->rocid, resource[i], &old, NULL), "prlimit");
		raw_close(&s);
		raw_open(&s, a->socket); /* and it recovers */
		raw_close(&s);
	}
}

/* --- kill ----------------------------------------------------------------------------- */

/* A program in some state or other, for ever. */
static void live(const struct arena *a, struct random r)
{
	for (;;) {
		unsigned n = 1 + (unsigned)random_below(&r, 30);
		struct duo d;

		duo_open(&d, a);
		for (unsigned i = 0; i < n; i++) {
			struct raw_qp *qp = &d.qp[random_next(&r) & 1];

			raw_post_recv(&d.qp[i & 1], i, duo_sge(&d, 0, 4096));
			raw_request(qp, (unsigned)random_below(&r, 5), i,
				duo_sge(&d, random_below(&r, DUO_MEMORY / 2), 20000),
				(uintptr_t)d.mr.mem + random_below(&r, DUO_MEMORY / 2), d.mr.key);
		}
		if (random_next(&r) & 1)
			raw_state(&d.qp[0], (uint8_t)random_below(&r, 8));
		duo_close(&d);
	}
}

/* kill -9 at any moment of a program's life, many times. */
static void killed(struct arena *a)
{
	enum {
		AT_ONCE = 4
	};

	for (unsigned i = 0; i < 50 * a->effort; i++) {
		pid_t pid[AT_ONCE];

		for (int k = 0; k < AT_ONCE; k++) {
			struct random r = {random_next(&a->random) | 1};

			pid[k] = fork();
			must(pid[k] >= 0, "no process");
			if (!pid[k])
				live(a, r);
		}
		usleep((useconds_t)random_below(&a->random, 20000));
		for (int k = 0; k < AT_ONCE; k++)
			kill(pid[k], SIGKILL);
		for (int k = 0; k < AT_ONCE; k++) {
			int status;

			waitpid(pid[k], &status, 0);
			must(WIFSIGNALED(status), "a program within its rights was refused");
		}
	}
}

const struct attack attacks_objects[] = {
	{"handles of others", foreign_handles},
	{"refusals that are made up", made_up_reports},
	{"absurd sizes", absurd_sizes},
	{"objects until the quota", until_the_quota},
	{"bytes until the quota", bytes_until_the_quota},
	{"kill -9", killed},
	{NULL, NULL},
};

const struct attack attacks_root[] = {
	{"rocid without memory, without descriptors", starved},
	{NULL, NULL},
};
