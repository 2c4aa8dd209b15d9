/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "memory.h"

void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

void peer_open(struct end e[2], const char *socket, size_t size)
{
	pair_open(e, socket, size, ROCI_MTU_1024);
}

static void run(struct end *peer, struct roci_send_wr *wr)
{
	time_t until = time(NULL) + 120; /* far above any pause of the machine */
	struct roci_wc wc;
	int n;

	must(roci_post_send(peer->qp, wr, NULL) == 0, "post");
	while ((n = roci_poll_cq(peer->cq, 1, &wc)) == 0) {
		if (time(NULL) > until)
			errx(1, "no completion");
		sched_yield();
	}
	must(n == 1, "poll");
	if (wc.status)
		errx(1, "%s: %s", roci_wc_status_str(wc.status), roci_qp_error(peer->qp));
}

static void transfer(struct end e[2], struct roci_mr *mr, const void *addr, size_t len,
	enum roci_wr_opcode opcode)
{
	struct roci_sge sge = {
		.addr = (uintptr_t)e[1].mr->addr, .length = (uint32_t)len, .lkey = e[1].mr->lkey};
	struct roci_send_wr wr = {.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = ROCI_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)addr, .rkey = mr->rkey}};

	run(&e[1], &wr);
}

void peer_reads(struct end e[2], struct roci_mr *mr, const void *addr, size_t len)
{
	const uint8_t *got = e[1].mr->addr, *own = addr;

	for (size_t at = 0; at < len;) {
		size_t n = len - at < e[1].mr->length ? len - at : e[1].mr->length;

		transfer(e, mr, own + at, n, ROCI_WR_RDMA_READ);
		for (size_t i = 0; i < n; i++)
			if (got[i] != own[at + i])
				errx(1, "byte %zu of %zu: the peer reads %02x, the program %02x",
					at + i, len, got[i], own[at + i]);
		at += n;
	}
}

void peer_writes(struct end e[2], struct roci_mr *mr, void *addr, size_t len, unsigned seed)
{
	const volatile uint8_t *own = addr;
	uint8_t *buf = e[1].mr->addr;

	for (size_t at = 0; at < len;) {
		size_t n = len - at < e[1].mr->length ? len - at : e[1].mr->length;

		for (size_t i = 0; i < n; i++)
			buf[i] = pattern(seed, at + i);
		transfer(e, mr, (uint8_t *)addr + at, n, ROCI_WR_RDMA_WRITE);
		at += n;
	}
	for (size_t i = 0; i < len; i++)
		if (own[i] != pattern(seed, i))
			errx(1, "byte %zu of %zu: the peer wrote %02x, the program reads %02x", i,
				len, pattern(seed, i), own[i]);
}

void both_ways(struct end e[2], struct roci_mr *mr, void *addr, size_t len, unsigned seed)
{
	volatile uint8_t *own = addr;

	peer_reads(e, mr, addr, len);
	peer_writes(e, mr, addr, len, seed);
	for (size_t i = 0; i < len; i++)
		own[i] = pattern(seed + 1, i);
	peer_reads(e, mr, addr, len);
}
