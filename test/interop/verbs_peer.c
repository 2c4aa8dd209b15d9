/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer program's transport on stock libibverbs; runs where a kernel device is. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xport.h"

#define PORT_NUM 1

struct xport {
	const struct options *opt;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *target_mr, *local_mr;
	struct memory mem;
	struct endpoint local;
	uint32_t remote_rkey;
};

/* Verbs functions return NULL or -1 with errno, or the error number itself. */
static int complain(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	return -1;
}

static int open_device(struct xport *x)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (struct ibv_device **d = list; d && *d; d++) {
		if (x->opt->device && strcmp(ibv_get_device_name(*d), x->opt->device))
			continue;
		x->ctx = ibv_open_device(*d);
		break;
	}
	if (list)
		ibv_free_device_list(list);
	if (x->ctx)
		return 0;
	fprintf(stderr, "no RDMA device%s%s: see ibv_devices\n", x->opt->device ? " " : "",
		x->opt->device ? x->opt->device : "");
	return -1;
}

static struct ibv_mr *memory(struct xport *x, uint8_t **mem, size_t len, int access)
{
	struct ibv_mr *mr = NULL;
	void *p = NULL;

	if (!posix_memalign(&p, (size_t)sysconf(_SC_PAGESIZE), len)) {
		memset(p, 0, len);
		mr = ibv_reg_mr(x->pd, p, len, access);
		if (!mr)
			complain("cannot register memory", errno);
	}
	*mem = p;
	return mr;
}

static int make_objects(struct xport *x, size_t local_len)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = x->opt->depth,
			.max_recv_wr = x->opt->depth,
			.max_send_sge = x->opt->sge,
			.max_recv_sge = x->opt->sge,
			.max_inline_data = x->opt->inline_max},
	};

	x->pd = ibv_alloc_pd(x->ctx);
	if (!x->pd)
		return complain("cannot allocate a protection domain", errno);
	x->target_mr = memory(x, &x->mem.target, x->opt->target_len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	x->local_mr = memory(x, &x->mem.local, local_len, IBV_ACCESS_LOCAL_WRITE);
	if (!x->target_mr || !x->local_mr)
		return -1;
	x->cq = ibv_create_cq(x->ctx, (int)(2 * x->opt->depth), NULL, NULL, 0);
	if (!x->cq)
		return complain("cannot create a completion queue", errno);
	init.send_cq = x->cq;
	init.recv_cq = x->cq;
	x->qp = ibv_create_qp(x->pd, &init);
	if (!x->qp)
		return complain("cannot create a queue pair", errno);
	return 0;
}

static int to_init(struct xport *x)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT_NUM,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	int err = ibv_modify_qp(
		x->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	return err ? complain("cannot bring the queue pair to INIT", err) : 0;
}

static int fill_endpoint(struct xport *x)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	unsigned active;

	if (ibv_query_port(x->ctx, PORT_NUM, &port))
		return complain("cannot query the port", errno);
	if (ibv_query_gid(x->ctx, PORT_NUM, x->opt->gid_index, &gid))
		return complain("cannot query the GID: see ibv_devinfo -v", errno);
	active = 128u << port.active_mtu;
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
	memcpy(x->local.gid, gid.raw, 16);
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

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 128u << (code + 1) <= bytes)
		code++;
	return code;
}

int xport_connect(struct xport *x, const struct endpoint *remote)
{
	uint32_t mtu = remote->mtu < x->local.mtu ? remote->mtu : x->local.mtu;
	uint8_t rd = (uint8_t)(remote->rd < x->local.rd ? remote->rd : x->local.rd);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(mtu),
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
	err = ibv_modify_qp(x->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (err)
		return complain("cannot bring the queue pair to RTR", err);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = x->local.psn;
	attr.max_rd_atomic = rd;
	attr.timeout = (uint8_t)x->opt->timeout;
	attr.retry_cnt = (uint8_t)x->opt->retry;
	attr.rnr_retry = (uint8_t)x->opt->rnr_retry;
	err = ibv_modify_qp(x->qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		return complain("cannot bring the queue pair to RTS", err);
	x->remote_rkey = remote->rkey;
	return 0;
}

static void make_sges(struct xport *x, size_t slot, const struct piece pieces[], unsigned n,
	struct ibv_sge sges[])
{
	for (unsigned i = 0; i < n; i++)
		sges[i] = (struct ibv_sge){
			.addr = (uintptr_t)x->mem.local + slot + pieces[i].off,
			.length = pieces[i].len,
			.lkey = x->local_mr->lkey,
		};
}

int xport_post_recv(
	struct xport *x, uint64_t id, size_t slot, const struct piece pieces[], unsigned n)
{
	struct ibv_sge sges[PLAN_MAX_SGE];
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = sges, .num_sge = (int)n};
	int err;

	make_sges(x, slot, pieces, n, sges);
	err = ibv_post_recv(x->qp, &wr, &bad);
	return err ? complain("cannot post a receive", err) : 0;
}

int xport_post(struct xport *x, const struct op *op, enum op_kind kind, uint64_t id, size_t slot,
	const struct piece pieces[], unsigned n, uint64_t remote_va, bool signaled)
{
	static const enum ibv_wr_opcode opcode[OP_KINDS] = {
		[OP_SEND] = IBV_WR_SEND,
		[OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[OP_WRITE] = IBV_WR_RDMA_WRITE,
		[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[OP_READ] = IBV_WR_RDMA_READ,
	};
	struct ibv_sge sges[PLAN_MAX_SGE];
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = id,
			.sg_list = sges,
			.num_sge = (int)n,
			.opcode = opcode[kind],
			.send_flags = signaled ? IBV_SEND_SIGNALED : 0,
			.imm_data = htonl(op->imm),
			.wr.rdma = {.remote_addr = remote_va, .rkey = x->remote_rkey},
		};
	int err;

	if (kind != OP_READ && x->opt->inline_max && op->len <= x->opt->inline_max)
		wr.send_flags |= IBV_SEND_INLINE;
	if (x->opt->solicited && op_kind_takes_recv(kind))
		wr.send_flags |= IBV_SEND_SOLICITED;
	make_sges(x, slot, pieces, n, sges);
	err = ibv_post_send(x->qp, &wr, &bad);
	return err ? complain("cannot post a request", err) : 0;
}

int xport_poll(struct xport *x, struct done done[], int n)
{
	struct ibv_wc wc[16];

	n = ibv_poll_cq(x->cq, n < 16 ? n : 16, wc);
	if (n < 0)
		return complain("cannot poll the completion queue", -n);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "work request %llu completed with %s (%d)\n",
				(unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status),
				wc[i].status);
			return -1;
		}
		done[i] = (struct done){
			.id = wc[i].wr_id,
			.recv = (wc[i].opcode & IBV_WC_RECV) != 0,
			.has_imm = (wc[i].wc_flags & IBV_WC_WITH_IMM) != 0,
			.imm = ntohl(wc[i].imm_data),
			.byte_len = wc[i].byte_len,
		};
	}
	return n;
}

void xport_close(struct xport *x)
{
	if (x->qp)
		ibv_destroy_qp(x->qp);
	if (x->cq)
		ibv_destroy_cq(x->cq);
	if (x->local_mr)
		ibv_dereg_mr(x->local_mr);
	if (x->target_mr)
		ibv_dereg_mr(x->target_mr);
	if (x->pd)
		ibv_dealloc_pd(x->pd);
	if (x->ctx)
		ibv_close_device(x->ctx);
	free(x->mem.local);
	free(x->mem.target);
	free(x);
}
