/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first program: an RDMA WRITE to itself. It needs no second machine, because its peer is its
 * own queue pair. With a real peer, both sides exchange QP number, PSN and GID (and for WRITE and
 * READ an address and its rkey) by any means, for example a TCP connection: pingpong.c does.
 */
#include <roci.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int ok)
{
	if (ok)
		return;
	fprintf(stderr, "hello: %s\n", roci_last_error()); /* says what to do about it */
	exit(1);
}

int main(void)
{
	const int access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE;
	struct roci_context *ctx = roci_open(NULL); /* $ROCI_SOCKET, or /run/rocid/rocid.sock */
	check(ctx != NULL);
	struct roci_pd *pd = roci_alloc_pd(ctx);
	check(pd != NULL);
	struct roci_cq *cq = roci_create_cq(ctx, 16, NULL, NULL, 0);
	check(cq != NULL);
	struct roci_mr *mr = roci_alloc_mr(pd, 4096, access); /* memory that rocid can reach */
	check(mr != NULL);

	struct roci_qp_init_attr init = {.size = sizeof(init),
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = ROCI_QPT_RC,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct roci_qp *qp = roci_create_qp(pd, &init);
	check(qp != NULL);

	/* RESET -> INIT -> RTR (can receive) -> RTS (can send), as in verbs. */
	struct roci_gid_entry own = {.size = sizeof(own)};
	check(roci_find_gid(ctx, 1, NULL, &own) == 0);
	struct roci_qp_attr attr = {.size = sizeof(attr),
		.qp_state = ROCI_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access};
	check(roci_modify_qp(qp, &attr,
		      ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS) ==
		0);

	attr.qp_state = ROCI_QPS_RTR;
	attr.path_mtu = ROCI_MTU_1024;
	attr.dest_qp_num = qp->qp_num;	 /* the peer's QP number, */
	attr.rq_psn = 100;		 /* its first PSN */
	attr.ah_attr.grh.dgid = own.gid; /* and its GID */
	attr.ah_attr.grh.sgid_index = (uint8_t)own.gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	check(roci_modify_qp(qp, &attr,
		      ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
			      ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC |
			      ROCI_QP_MIN_RNR_TIMER) == 0);

	attr.qp_state = ROCI_QPS_RTS;
	attr.sq_psn = 100;
	attr.timeout = 14;  /* 67 ms without an answer: send again, */
	attr.retry_cnt = 7; /* seven times */
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	check(roci_modify_qp(qp, &attr,
		      ROCI_QP_STATE | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY |
			      ROCI_QP_SQ_PSN | ROCI_QP_MAX_QP_RD_ATOMIC) == 0);

	/* The message goes from the first half of the memory to the second. */
	char *memory = mr->addr;
	strcpy(memory, "Hello over RoCE");
	struct roci_sge sge = {.addr = (uintptr_t)memory, .length = 16, .lkey = mr->lkey};
	struct roci_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = ROCI_WR_RDMA_WRITE,
		.send_flags = ROCI_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)memory + 2048, .rkey = mr->rkey}};
	check(roci_post_send(qp, &wr, NULL) == 0);

	struct roci_wc wc;
	int n;
	while ((n = roci_poll_cq(cq, 1, &wc)) == 0)
		;
	check(n == 1);
	printf("%s: %s\n", roci_wc_status_str(wc.status), memory + 2048);
	return wc.status != ROCI_WC_SUCCESS;
}
