/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts 64-byte WRITEs, the last of them signaled, and polls the completion in one of four ways,
 * for cost_test.py, which counts the instructions of the function of that name.
 *
 *   verbs_cost SOCKET post_list|post_ex|poll_list|poll_ex WRS
 */
#include "fixture.h"

#define ROUNDS	128
#define WRS_MAX 16

static struct end e[2];
static int wrs;

__attribute__((noinline)) static void post_list(void)
{
	struct ibv_sge sge = {(uintptr_t)e[0].buf, 64, e[0].mr->lkey};
	struct ibv_send_wr wr[WRS_MAX], *bad;

	for (int i = 0; i < wrs; i++) {
		wr[i].wr_id = 7;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = i + 1 < wrs ? 0 : IBV_SEND_SIGNALED;
		wr[i].wr.rdma.remote_addr = (uintptr_t)e[1].buf;
		wr[i].wr.rdma.rkey = e[1].mr->rkey;
		wr[i].next = i + 1 < wrs ? &wr[i + 1] : NULL;
	}
	CHECK(!ibv_post_send(e[0].qp, wr, &bad));
}

__attribute__((noinline)) static void post_ex(void)
{
	struct ibv_qp_ex *x = e[0].ex;

	ibv_wr_start(x);
	for (int i = 0; i < wrs; i++) {
		x->wr_id = 7;
		x->wr_flags = i + 1 < wrs ? 0 : IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(x, e[1].mr->rkey, (uintptr_t)e[1].buf);
		ibv_wr_set_sge(x, e[0].mr->lkey, (uintptr_t)e[0].buf, 64);
	}
	CHECK(!ibv_wr_complete(x));
}

__attribute__((noinline)) static void poll_list(void)
{
	struct ibv_wc wc;

	CHECK(ibv_poll_cq(e[0].cq, 1, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 7 && wc.opcode == IBV_WC_RDMA_WRITE);
}

__attribute__((noinline)) static void poll_ex(void)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)e[0].cq;
	struct ibv_poll_cq_attr attr = {0};

	CHECK(!ibv_start_poll(cq, &attr));
	CHECK(cq->status == IBV_WC_SUCCESS && cq->wr_id == 7 &&
		ibv_wc_read_opcode(cq) == IBV_WC_RDMA_WRITE);
	ibv_end_poll(cq);
}

/* Polls find it at once. */
static void wait_for_completion(void)
{
	struct ibv_cq *cq;
	void *ignored;

	CHECK(!ibv_get_cq_event(e[0].channel, &cq, &ignored));
	ibv_ack_cq_events(cq, 1);
}

int main(int argc, char **argv)
{
	bool post, poll;

	CHECK(argc > 3);
	post = !strcmp(argv[2], "post_ex");
	poll = !strcmp(argv[2], "poll_ex");
	wrs = atoi(argv[3]);
	pair_open(e, &(struct recipe){.type = IBV_QPT_RC, .extended = true, .cq_ex = true});
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(!ibv_req_notify_cq(e[0].cq, 0));
		post ? post_ex() : post_list();
		wait_for_completion();
		poll ? poll_ex() : poll_list();
	}
	pair_close(e);
	return 0;
}
