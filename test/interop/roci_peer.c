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
#define REMOTE_ACCESS \
	(ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_ATOMIC)

struct xport {
	const struct options *opt;
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_srq *srq; /* --srq */
	struct roci_ah *ah;   /* --ud: to the peer */
	struct roci_mw *mw;   /* --mw: over the target memory */
	uint32_t mw_rkey;     /* its latest */
	struct roci_mr *target_mr, *local_mr;
	struct memory mem;
	struct endpoint local, remote;
	uint32_t remote_qpn; /* --ud: of the datagrams */
	bool attached;	     /* --mcast */
	size_t grh_off;	     /* --ud: where in the local memory the GRHs of the receives are put */
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

/* The GRH of a datagram gets an SGE of its own, before those of the message. */
static unsigned recv_sges(const struct xport *x)
{
	return x->opt->sge + x->opt->ud;
}

static int make_qp(struct xport *x)
{
	struct roci_qp_init_attr init = {
		.size = sizeof(init),
		.qp_type = x->opt->uc	? ROCI_QPT_UC
			   : x->opt->ud ? ROCI_QPT_UD
					: ROCI_QPT_RC,
		.send_cq = x->cq,
		.recv_cq = x->cq,
		.srq = x->srq,
		.cap = {.max_send_wr = x->opt->depth,
			.max_recv_wr = x->srq ? 0 : x->opt->depth,
			.max_send_sge = x->opt->sge,
			.max_recv_sge = x->srq ? 0 : recv_sges(x),
			.max_inline_data = x->opt->inline_max},
	};

	x->qp = roci_create_qp(x->pd, &init);
	return x->qp ? 0 : complain("cannot create a queue pair");
}

static int make_srq(struct xport *x)
{
	struct roci_srq_init_attr init = {
		.size = sizeof(init),
		.max_wr = x->opt->depth,
		.max_sge = recv_sges(x),
	};

	x->srq = roci_create_srq(x->pd, &init);
	return x->srq ? 0 : complain("cannot create a shared receive queue");
}

static int make_mw(struct xport *x)
{
	x->mw = roci_alloc_mw(x->pd, x->opt->mw == 1 ? ROCI_MW_TYPE_1 : ROCI_MW_TYPE_2);
	if (!x->mw)
		return complain("cannot allocate a memory window");
	x->mw_rkey = x->mw->rkey;
	return 0;
}

static int make_objects(struct xport *x, size_t local_len)
{
	/* With a window its rkey is the only one. */
	int access = x->opt->mw ? ROCI_ACCESS_MW_BIND : REMOTE_ACCESS;

	x->pd = roci_alloc_pd(x->ctx);
	if (!x->pd)
		return complain("cannot allocate a protection domain");
	x->grh_off = local_len;
	if (x->opt->ud)
		local_len += (size_t)x->opt->depth * GRH_LEN;
	x->target_mr =
		memory(x, &x->mem.target, x->opt->target_len, ROCI_ACCESS_LOCAL_WRITE | access);
	x->local_mr = memory(x, &x->mem.local, local_len, ROCI_ACCESS_LOCAL_WRITE);
	if (!x->target_mr || !x->local_mr)
		return -1;
	x->cq = roci_create_cq(x->ctx, (int)(2 * x->opt->depth), NULL, NULL, 0);
	if (!x->cq)
		return complain("cannot create a completion queue");
	if ((x->opt->srq && make_srq(x)) || (x->opt->mw && make_mw(x)))
		return -1;
	return make_qp(x);
}

static int to_init(struct xport *x)
{
	struct roci_qp_attr attr = {
		.size = sizeof(attr),
		.qp_state = ROCI_QPS_INIT,
		.port_num = PORT_NUM,
		.qp_access_flags = x->opt->uc ? ROCI_ACCESS_REMOTE_WRITE : REMOTE_ACCESS,
		.qkey = UD_QKEY,
	};
	int err = roci_modify_qp(x->qp, &attr,
		ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT |
			(x->opt->ud ? ROCI_QP_QKEY : ROCI_QP_ACCESS_FLAGS));

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

/* The driver sends to the group, the follower is in it. */
static int join(struct xport *x, union roci_gid *group)
{
	int err;

	group_of(x->local.gid, group->raw);
	x->remote_qpn = UD_MULTICAST_QPN;
	if (x->opt->driver)
		return 0;
	err = roci_attach_mcast(x->qp, group);
	if (err)
		return complain("cannot attach to the group");
	x->attached = true;
	return 0;
}

static int connect_ud(struct xport *x)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RTR};
	struct roci_ah_attr ah = {
		.is_global = 1,
		.port_num = PORT_NUM,
		.grh = {.sgid_index = (uint8_t)x->opt->gid_index, .hop_limit = 64},
	};
	int err = roci_modify_qp(x->qp, &attr, ROCI_QP_STATE);

	if (err)
		return complain("cannot bring the queue pair to RTR");
	attr.qp_state = ROCI_QPS_RTS;
	attr.sq_psn = x->local.psn;
	err = roci_modify_qp(x->qp, &attr, ROCI_QP_STATE | ROCI_QP_SQ_PSN);
	if (err)
		return complain("cannot bring the queue pair to RTS");
	x->remote_qpn = x->remote.qpn;
	memcpy(ah.grh.dgid.raw, x->remote.gid, 16);
	if (x->opt->mcast && join(x, &ah.grh.dgid))
		return -1;
	x->ah = roci_create_ah(x->pd, &ah);
	return x->ah ? 0 : complain("cannot create an address handle");
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
	int rc_rtr = ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER;
	int rc_rts =
		ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC;
	int err;

	x->remote = *remote;
	if (x->opt->ud)
		return connect_ud(x);
	memcpy(attr.ah_attr.grh.dgid.raw, remote->gid, 16);
	if (x->opt->marks) {
		attr.ah_attr.grh.traffic_class = MARK_TCLASS;
		attr.ah_attr.grh.flow_label = MARK_LABEL;
		attr.ah_attr.grh.hop_limit = MARK_HOPS;
		attr.ah_attr.sl = MARK_SL;
	}
	err = roci_modify_qp(x->qp, &attr,
		ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN |
			(x->opt->uc ? 0 : rc_rtr));
	if (err)
		return complain("cannot bring the queue pair to RTR");
	attr.qp_state = ROCI_QPS_RTS;
	attr.sq_psn = x->local.psn;
	attr.max_rd_atomic = rd;
	attr.timeout = (uint8_t)x->opt->timeout;
	attr.retry_cnt = (uint8_t)x->opt->retry;
	attr.rnr_retry = (uint8_t)x->opt->rnr_retry;
	err = roci_modify_qp(
		x->qp, &attr, ROCI_QP_STATE | ROCI_QP_SQ_PSN | (x->opt->uc ? 0 : rc_rts));
	if (err)
		return complain("cannot bring the queue pair to RTS");
	return 0;
}

static struct roci_sge sge_of(const struct xport *x, size_t off, uint32_t len)
{
	return (struct roci_sge){(uintptr_t)x->mem.local + off, len, x->local_mr->lkey};
}

static void make_sges(struct xport *x, size_t slot, const struct piece pieces[], unsigned n,
	struct roci_sge sges[])
{
	for (unsigned i = 0; i < n; i++)
		sges[i] = sge_of(x, slot + pieces[i].off, pieces[i].len);
}

static size_t grh_at(const struct xport *x, uint64_t id)
{
	return x->grh_off + id % x->opt->depth * GRH_LEN;
}

int xport_post_recv(
	struct xport *x, uint64_t id, size_t slot, const struct piece pieces[], unsigned n)
{
	struct roci_sge sges[PLAN_MAX_SGE + 1];
	struct roci_recv_wr wr = {.wr_id = id, .sg_list = sges};
	int err;

	if (x->opt->ud)
		sges[wr.num_sge++] = sge_of(x, grh_at(x, id), GRH_LEN);
	make_sges(x, slot, pieces, n, sges + wr.num_sge);
	wr.num_sge += (int)n;
	err = x->srq ? roci_post_srq_recv(x->srq, &wr, NULL) : roci_post_recv(x->qp, &wr, NULL);
	return err ? complain("cannot post a receive") : 0;
}

int xport_post(struct xport *x, const struct op *op, enum op_kind kind, uint64_t id, size_t slot,
	const struct piece pieces[], unsigned n, const struct remote *to, bool signaled)
{
	static const enum roci_wr_opcode opcode[OP_KINDS] = {
		[OP_SEND] = ROCI_WR_SEND,
		[OP_SEND_IMM] = ROCI_WR_SEND_WITH_IMM,
		[OP_WRITE] = ROCI_WR_RDMA_WRITE,
		[OP_WRITE_IMM] = ROCI_WR_RDMA_WRITE_WITH_IMM,
		[OP_READ] = ROCI_WR_RDMA_READ,
		[OP_CMP_SWAP] = ROCI_WR_ATOMIC_CMP_AND_SWP,
		[OP_FETCH_ADD] = ROCI_WR_ATOMIC_FETCH_AND_ADD,
		[OP_SEND_INV] = ROCI_WR_SEND_WITH_INV,
	};
	struct roci_sge sges[PLAN_MAX_SGE];
	struct roci_send_wr wr = {
		.wr_id = id,
		.sg_list = sges,
		.num_sge = (int)n,
		.opcode = opcode[kind],
		.send_flags = signaled ? ROCI_SEND_SIGNALED : 0,
		.imm_data = htonl(op->imm),
		.wr.rdma = {.remote_addr = to->va, .rkey = to->rkey},
	};
	int err;

	if (op_kind_is_atomic(kind)) {
		wr.wr.atomic.remote_addr = to->va;
		wr.wr.atomic.rkey = to->rkey;
		wr.wr.atomic.compare_add = op->compare_add;
		wr.wr.atomic.swap = op->swap;
	}
	if (kind == OP_SEND_INV)
		wr.invalidate_rkey = to->rkey;
	if (x->opt->ud) {
		wr.wr.ud.ah = x->ah;
		wr.wr.ud.remote_qpn = x->remote_qpn;
		wr.wr.ud.remote_qkey = UD_QKEY;
	}
	if (kind != OP_READ && !op_kind_is_atomic(kind) && x->opt->inline_max &&
		op->len <= x->opt->inline_max)
		wr.send_flags |= ROCI_SEND_INLINE;
	if (x->opt->solicited && op_kind_takes_recv(kind))
		wr.send_flags |= ROCI_SEND_SOLICITED;
	make_sges(x, slot, pieces, n, sges);
	err = roci_post_send(x->qp, &wr, NULL);
	return err ? complain("cannot post a request") : 0;
}

static int complain_wc(const struct roci_wc *wc)
{
	fprintf(stderr, "work request %llu completed with %s (%d)\n", (unsigned long long)wc->wr_id,
		roci_wc_status_str(wc->status), wc->status);
	return -1;
}

/* A datagram says who sent it, in its completion and in the bytes before it. */
static int check_sender(const struct xport *x, const struct roci_wc *wc)
{
	if (wc->byte_len >= GRH_LEN && wc->wc_flags & ROCI_WC_GRH && wc->src_qp == x->remote.qpn &&
		grh_is_from(x->mem.local + grh_at(x, wc->wr_id), x->remote.gid))
		return 0;
	fprintf(stderr, "datagram of %u bytes from QP 0x%x, flags 0x%x: not the peer's\n",
		wc->byte_len, wc->src_qp, wc->wc_flags);
	return -1;
}

int xport_poll(struct xport *x, struct done done[], int n)
{
	struct roci_wc wc[16];

	n = roci_poll_cq(x->cq, n < 16 ? n : 16, wc);
	if (n < 0)
		return complain("cannot poll the completion queue");
	for (int i = 0; i < n; i++) {
		bool recv = wc[i].status == ROCI_WC_SUCCESS && wc[i].opcode & ROCI_WC_RECV;

		if (wc[i].status != ROCI_WC_SUCCESS)
			return complain_wc(&wc[i]);
		if (recv && x->opt->ud && check_sender(x, &wc[i]))
			return -1;
		done[i] = (struct done){
			.id = wc[i].wr_id,
			.recv = recv,
			.has_imm = (wc[i].wc_flags & ROCI_WC_WITH_IMM) != 0,
			.imm = ntohl(wc[i].imm_data),
			.byte_len = wc[i].byte_len - (recv && x->opt->ud ? GRH_LEN : 0),
			.has_inv = (wc[i].wc_flags & ROCI_WC_WITH_INV) != 0,
			.inv_rkey = wc[i].invalidated_rkey,
		};
	}
	return n;
}

/* The completion of the only request that is outstanding. */
static int wait_wc(struct xport *x, struct roci_wc *wc)
{
	time_t end = time(NULL) + x->opt->wait_s;
	int n;

	while (!(n = roci_poll_cq(x->cq, 1, wc))) {
		if (time(NULL) > end) {
			fprintf(stderr, "no completion for %u s\n", x->opt->wait_s);
			return -1;
		}
		usleep(50);
	}
	return n == 1 ? 0 : complain("cannot poll the completion queue");
}

static int bind_type1(struct xport *x, uint32_t *rkey)
{
	struct roci_mw_bind bind = {
		.send_flags = ROCI_SEND_SIGNALED,
		.bind_info = {.mr = x->target_mr,
			.addr = (uintptr_t)x->mem.target,
			.length = x->opt->target_len,
			.mw_access_flags = REMOTE_ACCESS},
	};
	struct roci_wc wc;
	int err = roci_bind_mw(x->qp, x->mw, &bind);

	if (err)
		return complain("cannot post a bind");
	if (wait_wc(x, &wc))
		return -1;
	*rkey = x->mw->rkey;
	return wc.status == ROCI_WC_SUCCESS ? 0 : complain_wc(&wc);
}

static int do_locally(struct xport *x, struct roci_send_wr *wr)
{
	struct roci_wc wc;
	int err;

	wr->send_flags = ROCI_SEND_SIGNALED;
	err = roci_post_send(x->qp, wr, NULL);
	if (err)
		return complain("cannot post a bind or an invalidation");
	if (wait_wc(x, &wc))
		return -1;
	return wc.status == ROCI_WC_SUCCESS ? 0 : complain_wc(&wc);
}

int xport_bind(struct xport *x, bool bound, uint32_t *rkey)
{
	uint32_t next = roci_inc_rkey(x->mw_rkey);
	struct roci_send_wr inv = {
		.opcode = ROCI_WR_LOCAL_INV,
		.invalidate_rkey = x->mw_rkey,
	};
	struct roci_send_wr bind = {
		.opcode = ROCI_WR_BIND_MW,
		.bind_mw = {.mw = x->mw,
			.rkey = next,
			.bind_info = {.mr = x->target_mr,
				.addr = (uintptr_t)x->mem.target,
				.length = x->opt->target_len,
				.mw_access_flags = REMOTE_ACCESS}},
	};

	if (x->opt->mw == 1)
		return bind_type1(x, rkey);
	if ((bound && do_locally(x, &inv)) || do_locally(x, &bind))
		return -1;
	x->mw_rkey = next;
	*rkey = next;
	return 0;
}

int xport_refused(struct xport *x)
{
	struct roci_wc wc;

	if (wait_wc(x, &wc))
		return -1;
	return wc.status == ROCI_WC_REM_ACCESS_ERR ? 0 : complain_wc(&wc);
}

static void leave(struct xport *x)
{
	union roci_gid group;

	group_of(x->local.gid, group.raw);
	roci_detach_mcast(x->qp, &group);
}

void xport_close(struct xport *x)
{
	if (x->attached)
		leave(x);
	if (x->qp)
		roci_destroy_qp(x->qp);
	if (x->ah)
		roci_destroy_ah(x->ah);
	if (x->srq)
		roci_destroy_srq(x->srq);
	if (x->mw)
		roci_dealloc_mw(x->mw);
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
