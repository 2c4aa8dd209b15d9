/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows, SEND with invalidate, FLUSH and ATOMIC WRITE as a program uses them, over a link
 * that loses and doubles packets. End 1 opens a part of its memory for a while, end 0 fills it and
 * closes it again; who comes too late, or by another QP, is refused.
 */
#include <err.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "pair.h"

#define SIZE   65536u
#define ROUNDS 200u
#define KEY_AT 0u    /* the key in a message, at both ends */
#define OPEN   4096u /* where windows begin */
#define PIECE  3000u /* more than one packet */
#define RIGHTS (ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_FLUSH_GLOBAL)

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static uint8_t *mem(const struct end *e, size_t offset)
{
	return (uint8_t *)e->mr->addr + offset;
}

static struct roci_wc wait_any(struct end *e)
{
	time_t until = time(NULL) + 120; /* far above any pause of the machine */
	struct roci_wc wc;
	int n;

	while ((n = roci_poll_cq(e->cq, 1, &wc)) == 0) {
		if (time(NULL) > until)
			errx(1, "no completion");
		sched_yield();
	}
	must(n == 1, "poll");
	return wc;
}

static struct roci_wc wait_for(struct end *e, enum roci_wc_opcode opcode)
{
	struct roci_wc wc = wait_any(e);

	if (wc.status)
		errx(1, "opcode %d: %s: %s", opcode, roci_wc_status_str(wc.status),
			roci_qp_error(e->qp));
	if (wc.opcode != opcode)
		errx(1, "completion of opcode %d instead of %d", wc.opcode, opcode);
	return wc;
}

static void post(struct end *e, struct roci_send_wr *wr)
{
	wr->send_flags |= ROCI_SEND_SIGNALED;
	must(!roci_post_send(e->qp, wr, NULL), "post");
}

static void post_recv(struct end *e)
{
	struct roci_sge sge = {(uintptr_t)mem(e, KEY_AT), 8, e->mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	must(!roci_post_recv(e->qp, &wr, NULL), "receive");
}

static struct roci_mw_bind_info part(const struct end *e, uint64_t offset, uint64_t length)
{
	return (struct roci_mw_bind_info){.mr = e->mr,
		.addr = (uintptr_t)mem(e, offset),
		.length = length,
		.mw_access_flags = RIGHTS};
}

/* proves MW-13: the key goes out after the bind, and is good when it arrives. */
static uint32_t open_window(struct end e[2], struct roci_mw *mw, uint32_t key, uint64_t offset)
{
	struct roci_send_wr bind = {.opcode = ROCI_WR_BIND_MW,
		.bind_mw = {.mw = mw, .rkey = key, .bind_info = part(&e[1], offset, PIECE)}};

	post_recv(&e[0]);
	memcpy(mem(&e[1], KEY_AT), &key, sizeof(key));
	post(&e[1], &bind);
	pair_post(&e[1], &e[0], ROCI_WR_SEND, KEY_AT, sizeof(key));
	wait_for(&e[0], ROCI_WC_RECV);
	wait_for(&e[1], ROCI_WC_BIND_MW);
	wait_for(&e[1], ROCI_WC_SEND);
	memcpy(&key, mem(&e[0], KEY_AT), sizeof(key));
	return key;
}

static void post_rdma(
	struct end e[2], enum roci_wr_opcode op, uint32_t key, uint64_t at, uint32_t len)
{
	struct roci_sge sge = {(uintptr_t)mem(&e[0], OPEN), len, e[0].mr->lkey};
	struct roci_send_wr wr = {.opcode = op,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = (uintptr_t)mem(&e[1], at), .rkey = key}};

	post(&e[0], &wr);
}

static void post_flush(struct end e[2], uint32_t key, uint64_t at, uint32_t len)
{
	struct roci_send_wr wr = {.opcode = ROCI_WR_FLUSH,
		.wr.flush = {.remote_addr = (uintptr_t)mem(&e[1], at),
			.rkey = key,
			.length = len,
			.type = ROCI_FLUSH_GLOBAL,
			.level = len ? ROCI_FLUSH_RANGE : ROCI_FLUSH_MR}};

	post(&e[0], &wr);
}

/* proves INV-02: by the peer, with the message that says so; or by its owner. */
static void close_window(struct end e[2], uint32_t key, unsigned how)
{
	struct roci_send_wr inv = {.opcode = ROCI_WR_SEND_WITH_INV, .invalidate_rkey = key};
	struct roci_wc wc;

	if (how % 4 == 3) {
		inv.opcode = ROCI_WR_LOCAL_INV;
		post(&e[1], &inv);
		wait_for(&e[1], ROCI_WC_LOCAL_INV);
		return;
	}
	post_recv(&e[1]);
	post(&e[0], &inv);
	wc = wait_for(&e[1], ROCI_WC_RECV);
	if (!(wc.wc_flags & ROCI_WC_WITH_INV) || wc.invalidated_rkey != key)
		errx(1, "key 0x%x was invalidated instead of 0x%x", wc.invalidated_rkey, key);
	wait_for(&e[0], ROCI_WC_SEND);
}

static void expect_bytes(const uint8_t *p, size_t n, uint8_t value, const char *what)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != value)
			errx(1, "%s: byte %zu is %u instead of %u", what, i, p[i], value);
}

static void use_windows(struct end e[2])
{
	struct roci_mw *mw = roci_alloc_mw(e[1].pd, ROCI_MW_TYPE_2);
	uint32_t key;

	must(mw != NULL, "window");
	key = mw->rkey;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t at = OPEN + i * 64;

		memset(mem(&e[0], OPEN), (int)i + 1, PIECE);
		key = open_window(e, mw, i % 3 ? roci_inc_rkey(key) : key, at);
		post_rdma(e, ROCI_WR_RDMA_WRITE, key, at, PIECE);
		post_flush(e, key, at, i % 2 ? PIECE : 0);
		post_rdma(e, ROCI_WR_ATOMIC_WRITE, key, at + 8, 8);
		wait_for(&e[0], ROCI_WC_RDMA_WRITE);
		wait_for(&e[0], ROCI_WC_FLUSH);
		expect_bytes(mem(&e[1], at), PIECE, (uint8_t)(i + 1), "a flushed WRITE");
		wait_for(&e[0], ROCI_WC_ATOMIC_WRITE);
		close_window(e, key, i);
		expect_bytes(mem(&e[1], at + PIECE), 64, 0, "after the window");
	}
	must(!roci_dealloc_mw(mw), "free a window");
}

/* The access of end 0 by @p key must be refused: both QPs fail, and are connected again. */
static void expect_refused(struct end e[2], uint32_t key, uint64_t at, const char *what)
{
	struct roci_wc wc;

	post_rdma(e, ROCI_WR_RDMA_WRITE, key, at, 8);
	wc = wait_any(&e[0]);
	if (wc.status != ROCI_WC_REM_ACCESS_ERR)
		errx(1, "%s: %s", what, roci_wc_status_str(wc.status));
	printf("%s: %s\n", what, roci_qp_error(e[1].qp));
	for (int i = 0; i < 2; i++) {
		struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RESET};

		must(!roci_modify_qp(e[i].qp, &attr, ROCI_QP_STATE), "RESET");
	}
	pair_connect(e, ROCI_MTU_1024);
}

static void refuse_late_ones(struct end e[2])
{
	struct roci_mw *mw = roci_alloc_mw(e[1].pd, ROCI_MW_TYPE_2);
	struct end other[2];
	uint32_t key;

	must(mw != NULL, "window");
	key = open_window(e, mw, mw->rkey, OPEN);
	pair_share(other, e, 64, ROCI_MTU_1024);
	expect_refused(other, key, OPEN, "by another QP"); /* proves MW-09 */
	pair_close(other);
	expect_refused(e, key, OPEN - 8, "before the window"); /* proves MW-12 */
	/* RESET does not unbind it */
	post_rdma(e, ROCI_WR_RDMA_WRITE, key, OPEN, 8);
	wait_for(&e[0], ROCI_WC_RDMA_WRITE);
	close_window(e, key, 0);
	expect_refused(e, key, OPEN, "after the invalidation"); /* proves INV-04 */
	must(!roci_dealloc_mw(mw), "free a window");
}

/* proves MW-05, MW-09: for all QPs, until it is bound anew. */
static void use_type_1(struct end e[2])
{
	struct roci_mw *mw = roci_alloc_mw(e[1].pd, ROCI_MW_TYPE_1);
	struct roci_mw_bind bind = {
		.send_flags = ROCI_SEND_SIGNALED, .bind_info = part(&e[1], OPEN, 64)};
	struct end other[2];
	uint32_t old;

	must(mw != NULL, "window");
	must(!roci_bind_mw(e[1].qp, mw, &bind), "bind");
	wait_for(&e[1], ROCI_WC_BIND_MW);
	pair_share(other, e, 64, ROCI_MTU_1024);
	post_rdma(other, ROCI_WR_RDMA_WRITE, mw->rkey, OPEN, 64);
	wait_for(&other[0], ROCI_WC_RDMA_WRITE);
	old = mw->rkey;
	bind.bind_info = part(&e[1], OPEN + 64, 64);
	must(!roci_bind_mw(e[1].qp, mw, &bind), "bind again");
	wait_for(&e[1], ROCI_WC_BIND_MW);
	expect_refused(other, old, OPEN, "by the key before");
	post_rdma(other, ROCI_WR_RDMA_WRITE, mw->rkey, OPEN + 64, 64);
	wait_for(&other[0], ROCI_WC_RDMA_WRITE);
	bind.bind_info = (struct roci_mw_bind_info){0};
	must(!roci_bind_mw(e[1].qp, mw, &bind), "unbind");
	wait_for(&e[1], ROCI_WC_BIND_MW);
	expect_refused(other, mw->rkey, OPEN + 64, "unbound");
	pair_close(other);
	must(!roci_dealloc_mw(mw), "free a window");
}

/* proves MR-05; and the error sentences for a program's mistakes. */
static void mistakes(struct end e[2])
{
	struct roci_mw *mw = roci_alloc_mw(e[1].pd, ROCI_MW_TYPE_1);
	struct roci_mr *mr =
		roci_alloc_mr(e[1].pd, 4096, ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_MW_BIND);
	struct roci_mw_bind bind = {.send_flags = ROCI_SEND_SIGNALED,
		.bind_info = {mr, 0, 64, ROCI_ACCESS_REMOTE_WRITE}};
	struct roci_wc wc;

	must(mw && mr, "objects");
	bind.bind_info.addr = (uintptr_t)mr->addr;
	must(!roci_bind_mw(e[1].qp, mw, &bind), "bind");
	wait_for(&e[1], ROCI_WC_BIND_MW);
	if (roci_dereg_mr(mr) != EBUSY)
		errx(1, "a region went although a window is bound to it");
	printf("dereg: %s\n", roci_last_error());
	must(!roci_dealloc_mw(mw), "free a bound window");
	must(!roci_dereg_mr(mr), "free its region");
	if (roci_alloc_mr(e[1].pd, 4096, ROCI_ACCESS_FLUSH_PERSISTENT) || errno != EOPNOTSUPP)
		errx(1, "memory that would survive a power failure");
	printf("persistence: %s\n", roci_last_error());
	mw = roci_alloc_mw(e[1].pd, ROCI_MW_TYPE_1);
	must(mw != NULL, "window");
	bind.bind_info = part(&e[1], SIZE - 8, 64); /* proves MW-08 */
	must(!roci_bind_mw(e[1].qp, mw, &bind), "bind");
	wc = wait_any(&e[1]);
	if (wc.status != ROCI_WC_MW_BIND_ERR) /* proves MW-11 */
		errx(1, "a bind beyond the region: %s", roci_wc_status_str(wc.status));
	printf("bind: %s\n", roci_qp_error(e[1].qp));
	must(!roci_dealloc_mw(mw), "free a window");
}

int main(int argc, char **argv)
{
	struct end e[2];

	if (argc < 2)
		errx(2, "use: windows SOCKET");
	pair_open(e, argv[1], SIZE, ROCI_MTU_1024);
	use_windows(e);
	refuse_late_ones(e);
	use_type_1(e);
	mistakes(e);
	printf("%u windows, each opened, filled, closed\n", ROUNDS);
	pair_close(e);
	return 0;
}
