/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deaths MODE: programs on the verbs API whose peer, or whose rocid, dies.
 *
 * target: prints "QPN RKEY ADDRESS" of memory that may be written, reads the number of the QP that
 *   writes it, says "ready", and lives until it is killed.
 * writer: prints its QPN, reads a target's line, says "ready" and writes to it until that fails,
 *   while another pair of its own continues. Says "bereft STATUS".
 * renews: writes between two ends of its own until rocid dies, takes all apart, and does the same
 *   with the next rocid. Says "ready DESCRIPTORS MAPPINGS" each time.
 */
#include <unistd.h>
#include "fixture.h"

#define TIMEOUT	 16 /* 0.27 s, eight times */
#define OWN	 32 /* writes of its own after the failure */
#define PAUSE_US 20000

static const struct recipe rc = {.type = IBV_QPT_RC};

static void post_write(struct end *from, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)from->buf, BUF_SIZE, from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {addr, rkey}};
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(from->qp, &wr, &bad));
}

/* @return the status, or -1 where the CQ has ended. */
static int wait_for_one(struct end *e)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0)
		;
	return n < 0 ? -1 : (int)wc.status;
}

/* Another QP beside the one of the pair. */
static struct ibv_qp *create_other(struct end *e)
{
	struct ibv_qp_init_attr attr = {.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &attr);

	CHECK(qp);
	return qp;
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void target(void)
{
	struct ibv_qp *qp;
	struct end e[2];
	unsigned peer;

	pair_open(e, &rc);
	qp = create_other(&e[0]);
	printf("%u %u %llu\n", qp->qp_num, e[0].mr->rkey, (unsigned long long)(uintptr_t)e[0].buf);
	fflush(stdout);
	CHECK(scanf("%u", &peer) == 1);
	to_rts(&e[0], qp, peer, &e[1]);
	say_ready();
	for (;;)
		pause();
}

static void writer(void)
{
	struct end e[2];
	struct ibv_qp *own, *other;
	unsigned long long addr;
	unsigned qpn, rkey;
	int status;

	pair_open(e, &rc);
	e[1].timeout = TIMEOUT;
	own = e[1].qp;
	other = create_other(&e[1]);
	printf("%u\n", other->qp_num);
	fflush(stdout);
	CHECK(scanf("%u %u %llu", &qpn, &rkey, &addr) == 3);
	to_rts(&e[1], other, qpn, &e[0]);
	say_ready();
	do {
		e[1].qp = other;
		post_write(&e[1], addr, rkey);
		status = wait_for_one(&e[1]);
		e[1].qp = own;
		post_write(&e[1], (uintptr_t)e[0].buf, e[0].mr->rkey);
		CHECK(wait_for_one(&e[1]) == IBV_WC_SUCCESS);
	} while (status == IBV_WC_SUCCESS);
	for (int i = 0; i < OWN; i++) {
		post_write(&e[1], (uintptr_t)e[0].buf, e[0].mr->rkey);
		CHECK(wait_for_one(&e[1]) == IBV_WC_SUCCESS);
	}
	printf("bereft %s\n", ibv_wc_status_str((enum ibv_wc_status)status));
	CHECK(!ibv_destroy_qp(other));
	pair_close(e);
}

static void wait_for_rocid(void)
{
	int n = 0;

	while (!n) {
		struct ibv_device **list = ibv_get_device_list(&n);

		CHECK(list);
		ibv_free_device_list(list);
		usleep(PAUSE_US);
	}
}

static void see_fatal(struct ibv_context *context)
{
	struct ibv_async_event event;

	do {
		CHECK(!ibv_get_async_event(context, &event));
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);
}

static void renew(void)
{
	struct end e[2];
	int status;

	wait_for_rocid();
	pair_open(e, &rc);
	printf("ready %u %u\n", count_entries("/proc/self/fd"),
		count_entries("/proc/self/map_files"));
	fflush(stdout);
	do {
		post_write(&e[0], (uintptr_t)e[1].buf, e[1].mr->rkey);
		status = wait_for_one(&e[0]);
	} while (status == IBV_WC_SUCCESS);
	CHECK(status == IBV_WC_WR_FLUSH_ERR || status == -1);
	see_fatal(e[0].context);
	pair_close(e);
}

int main(int argc, char *argv[])
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "target"))
		target();
	else if (!strcmp(mode, "writer"))
		writer();
	else
		while (!strcmp(mode, "renews"))
			renew();
	return !strcmp(mode, "writer") ? 0 : 2;
}
