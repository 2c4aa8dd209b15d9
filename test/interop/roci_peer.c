/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer program's transport on <roci.h>: our side of the interop runs. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <roci.h>

#include "xport.h"

#define PORT_NUM 1

struct xport {
	const struct options *opt;
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_mr *target_mr, *local_mr;
	struct memory mem;
	struct endpoint local;
	uint32_t remote_rkey;
};

/* The library says why. */
static int complain(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, roci_last_error());
	return -1;
}

static int open_device(struct xport *x)
{
	x->ctx = roci_open(x->opt->device);
	return x->ctx ? 0 : complain("cannot open a session");
}

static struct roci_mr *memory(struct xport *x, uint8_t **mem, size_t len, int access)
{
	struct roci_mr *mr = roci_alloc_mr(x->pd, len, access);

	if (mr)
		*mem = mr->addr;
	else
		complain("cannot allocate memory");
	return mr;
}

static int make_objects(struct xport *x, size_t local_len)
{
	struct roci_qp_init_attr init = {
		.size = sizeof(init),
		.qp_type = ROCI_QPT_RC,
		.cap = {.max_send_wr = x->opt->depth,
			.max_recv_wr = x->opt->depth,
			.max_send_sge = x->opt->sge,
			.max_recv_sge = x->opt->sge,
			.max_inline_data = x->opt->inline_max},
	};

	x->pd = roci_alloc_pd(x->ctx);
	if (!x->pd)
		return complain("cannot allocate a protection domain");
	x->target_mr = memory(x, &x->mem.target, x->opt->target_len,
		ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_WRITE);
	x->local_mr = memory(x, &x->mem.local, local_len, ROCI_ACCESS_LOCAL_WRITE);
	if (!x->target_mr || !x->local_mr)
		return -1;
	x->cq = roci_create_cq(x->ctx, (int)(2 * x->opt->depth), NULL, NULL, 0);
	if (!x->cq)
		return complain("cannot create a completion queue");
	init.send_cq = x->cq;
	init.recv_cq = x->cq;
	x->qp = roci_create_qp(x->pd, &init);
	if (!x->qp)
		return complain("cannot create a queue pair");
	return 0;
}

static int to_init(struct xport *x)
{
	struct roci_qp_attr attr = {
		.size = sizeof(attr),
		.qp_state = ROCI_QPS_INIT,
		.port_num = PORT_NUM,
		.qp_access_flags = ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_WRITE,
	};
	int err = roci_modify_qp(x->qp, &attr,
		ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS);

	return err ? complain("cannot bring the queue pair to INIT") : 0;
}

static int fill_endpoint(struct xport *x)
{
	struct roci_port_attr port = {.size = sizeof(port)};
	struct roci_gid_entry gid = {.size = sizeof(gid)};
	unsigned active;

	if (roci_query_port(x->ctx, PORT_NUM, &port))
		return complain("cannot query the port");
	if (roci_query_gid(x->ctx, PORT_NUM, (uint32_t)x->opt->gid_index, &gid))
		return complain("cannot query the GID");
	active = roci_mtu_bytes(port.active_mtu);
	if (x->opt->mtu > active) {
		fprintf(stderr, "--mtu %u: the port's active MTU is %u\n", x->opt->mtu, active);
		return -1;
	}
	x->local = (struct endpoint){
		.qpn = x->qp->qp_num,
		.psn = (uint32_t)plan_random((uint64_t)time(NULL), (uint64_t)getpid()) & 0xffffff,
		.mtu = x->opt->mtu,
		.rd = x->opt->rd_atomic,
		.va = (uintptr_t)x->mem.target,
		.rkey = x->target_mr->rkey,
		.len = x->opt->target_len,
	};
	memcpy(x->local.gid, gid.gid.raw, 16);
	return 0;
}

struct xport *xport_open(
	const struct options *opt, size_t local_len, struct endpoint *local, struct memory *mem)
{
	struct xport *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->opt = opt;
	if (open_device(x) || make_objects(x, local_len) || to_init(x) || fill_endpoint(x)) {
		xport_close(x);
		return NULL;
	}
	*local = x->local;
	*mem = x->mem;
	return x;
}

int xport_connect(struct xport *x, const struct endpoint *remote)
{
	uint32_t mtu = remote->mtu < x->local.mtu ? remote->mtu : x->local.mtu;
	uint8_t rd = (uint8_t)(remote->rd < x->local.rd ? remote->rd : x->local.rd);
	struct roci_qp_attr attr = {
		.size = sizeof(attr),
		.qp_state = ROCI_QPS_RTR,
		.path_mtu = (enum roci_mtu)roci_mtu_of_bytes(mtu),
		.dest_qp_num = remote->qpn,
		.rq_psn = remote->psn,
		.max_dest_rd_atomic = rd,
		.min_rnr_timer = (uint8_t)x->opt->min_rnr,
		.ah_attr = {.is_global = 1,
			.port_num = PORT_NUM,
			.grh = {.sgid_index = (uint8_t)x->opt->gid_index, .hop_limit = 64}},
	};
	int err;

	memcpy(attr.ah_attr.grh.dgid.raw, remote->gid, 16);
	err = roci_modify_qp(x->qp, &attr,
		ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN |
			ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER);
	if (err)
		return complain("cannot bring the queue pair to RTR");
	attr.qp_state = ROCI_QPS_RTS;
	attr.sq_psn = x->local.psn;
	attr.max_rd_atomic = rd;
	attr.timeout = (uint8_t)x->opt->timeout;
	attr.retry_cnt = (uint8_t)x->opt->retry;
	attr.rnr_retry = (uint8_t)x->opt->rnr_retry;
	err = roci_modify_qp(x->qp, &attr,
		ROCI_QP_STATE | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY |
			ROCI_QP_SQ_PSN | ROCI_QP_MAX_QP_RD_ATOMIC);
	if (err)
		return complain("cannot bring the queue pair to RTS");
	x->remote_rkey = remote->rkey;
	return 0;
}

static void make_sges(struct xport *x, size_t slot, const struct piece pieces[], unsigned n,
	struct roci_sge sges[])
{
	for (unsigned i = 0; i < n; i++)
		sges[i] = (struct roci_sge){
			.addr = (uintptr_t)x->mem.local + slot + pieces[i].off,
			.length = pieces[i].len,
			.lkey = x->local_mr->lkey,
		};
}

int xport_post_recv(
	struct xport *x, uint64_t id, size_t slot, const struct piece pieces[], unsigned n)
{
	struct roci_sge sges[PLAN_MAX_SGE];
	struct roci_recv_wr wr = {.wr_id = id, .sg_list = sges, .num_sge = (int)n};
	int err;

	make_sges(x, slot, pieces, n, sges);
	err = roci_post_recv(x->qp, &wr, NULL);
	return err ? complain("cannot post a receive") : 0;
}

int xport_post(struct xport *x, const struct op *op, enum op_kind kind, uint64_t id, size_t slot,
	const struct piece pieces[], unsigned n, uint64_t remote_va, bool signaled)
{
	static const enum roci_wr_opcode opcode[OP_KINDS] = {
		[OP_SEND] = ROCI_WR_SEND,
		[OP_SEND_IMM] = ROCI_WR_SEND_WITH_IMM,
		[OP_WRITE] = ROCI_WR_RDMA_WRITE,
		[OP_WRITE_IMM] = ROCI_WR_RDMA_WRITE_WITH_IMM,
		[OP_READ] = ROCI_WR_RDMA_READ,
	};
	struct roci_sge sges[PLAN_MAX_SGE];
	struct roci_send_wr wr = {
		.wr_id = id,
		.sg_list = sges,
		.num_sge = (int)n,
		.opcode = opcode[kind],
		.send_flags = signaled ? ROCI_SEND_SIGNALED : 0,
		.imm_data = htonl(op->imm),
		.wr.rdma = {.remote_addr = remote_va, .rkey = x->remote_rkey},
	};
	int err;

	if (kind != OP_READ && x->opt->inline_max && op->len <= x->opt->inline_max)
		wr.send_flags |= ROCI_SEND_INLINE;
	if (x->opt->solicited && op_kind_takes_recv(kind))
		wr.send_flags |= ROCI_SEND_SOLICITED;
	make_sges(x, slot, pieces, n, sges);
	err = roci_post_send(x->qp, &wr, NULL);
	return err ? complain("cannot post a request") : 0;
}

int xport_poll(struct xport *x, struct done done[], int n)
{
	struct roci_wc wc[16];

	n = roci_poll_cq(x->cq, n < 16 ? n : 16, wc);
	if (n < 0)
		return complain("cannot poll the completion queue");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != ROCI_WC_SUCCESS) {
			fprintf(stderr, "work request %llu completed with %s (%d)\n",
				(unsigned long long)wc[i].wr_id, roci_wc_status_str(wc[i].status),
				wc[i].status);
			return -1;
		}
		done[i] = (struct done){
			.id = wc[i].wr_id,
			.recv = (wc[i].opcode & ROCI_WC_RECV) != 0,
			.has_imm = (wc[i].wc_flags & ROCI_WC_WITH_IMM) != 0,
			.imm = ntohl(wc[i].imm_data),
			.byte_len = wc[i].byte_len,
		};
	}
	return n;
}

void xport_close(struct xport *x)
{
	if (x->qp)
		roci_destroy_qp(x->qp);
	if (x->cq)
		roci_destroy_cq(x->cq);
	if (x->local_mr)
		roci_dereg_mr(x->local_mr);
	if (x->target_mr)
		roci_dereg_mr(x->target_mr);
	if (x->pd)
		roci_dealloc_pd(x->pd);
	if (x->ctx)
		roci_close(x->ctx);
	free(x);
}
