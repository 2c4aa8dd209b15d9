/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer program's transport on stock libibverbs; runs where a kernel device is. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "xport.h"

#define PORT_NUM 1
/* soft-RoCE hands out the kernel's bit, which verbs calls IBV_WC_IP_CSUM_OK (doc/soft-roce.md). */
#define RXE_WC_WITH_INV (1 << 2)
#define REMOTE_ACCESS	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct xport {
	const struct options *opt;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq; /* --srq */
	struct ibv_ah *ah;   /* --ud: to the peer */
	struct ibv_mw *mw;   /* --mw: over the target memory */
	uint32_t mw_rkey;    /* its latest */
	struct ibv_mr *target_mr, *local_mr;
	struct memory mem;
	struct endpoint local, remote;
	uint32_t remote_qpn; /* --ud: of the datagrams */
	bool attached;	     /* --mcast */
	int member;	     /* --mcast: the socket by which the kernel is in the group */
	size_t grh_off;	     /* --ud: where in the local memory the GRHs of the receives are put */
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

/* The GRH of a datagram gets an SGE of its own, before those of the message. */
static unsigned recv_sges(const struct xport *x)
{
	return x->opt->sge + x->opt->ud;
}

static int make_qp(struct xport *x)
{
	struct ibv_qp_init_attr init = {
		.qp_type = x->opt->uc	? IBV_QPT_UC
			   : x->opt->ud ? IBV_QPT_UD
					: IBV_QPT_RC,
		.send_cq = x->cq,
		.recv_cq = x->cq,
		.srq = x->srq,
		.cap = {.max_send_wr = x->opt->depth,
			.max_recv_wr = x->srq ? 0 : x->opt->depth,
			.max_send_sge = x->opt->sge,
			.max_recv_sge = x->srq ? 0 : recv_sges(x),
			.max_inline_data = x->opt->inline_max},
	};

	x->qp = ibv_create_qp(x->pd, &init);
	return x->qp ? 0 : complain("cannot create a queue pair", errno);
}

static int make_srq(struct xport *x)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = x->opt->depth, .max_sge = recv_sges(x)},
	};

	x->srq = ibv_create_srq(x->pd, &init);
	return x->srq ? 0 : complain("cannot create a shared receive queue", errno);
}

static int make_mw(struct xport *x)
{
	x->mw = ibv_alloc_mw(x->pd, x->opt->mw == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (!x->mw)
		return complain("cannot allocate a memory window", errno);
	x->mw_rkey = x->mw->rkey;
	return 0;
}

static int make_objects(struct xport *x, size_t local_len)
{
	/* With a window its rkey is the only one. */
	int access = x->opt->mw ? IBV_ACCESS_MW_BIND : REMOTE_ACCESS;

	x->pd = ibv_alloc_pd(x->ctx);
	if (!x->pd)
		return complain("cannot allocate a protection domain", errno);
	x->grh_off = local_len;
	if (x->opt->ud)
		local_len += (size_t)x->opt->depth * GRH_LEN;
	x->target_mr =
		memory(x, &x->mem.target, x->opt->target_len, IBV_ACCESS_LOCAL_WRITE | access);
	x->local_mr = memory(x, &x->mem.local, local_len, IBV_ACCESS_LOCAL_WRITE);
	if (!x->target_mr || !x->local_mr)
		return -1;
	x->cq = ibv_create_cq(x->ctx, (int)(2 * x->opt->depth), NULL, NULL, 0);
	if (!x->cq)
		return complain("cannot create a completion queue", errno);
	if ((x->opt->srq && make_srq(x)) || (x->opt->mw && make_mw(x)))
		return -1;
	return make_qp(x);
}

static int to_init(struct xport *x)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT_NUM,
		.qp_access_flags = x->opt->uc ? IBV_ACCESS_REMOTE_WRITE : REMOTE_ACCESS,
		.qkey = UD_QKEY,
	};
	int err = ibv_modify_qp(x->qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(x->opt->ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));

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
	x->member = -1;
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

/* soft-RoCE leaves it to the RDMA CM, or to whoever attaches, that the kernel joins the group: what
 * comes for another is dropped before it sees it. */
static int join_ip(struct xport *x, const union ibv_gid *group)
{
	struct ibv_gid_entry gid;
	struct group_req req = {0};
	struct sockaddr_in *v4 = (void *)&req.gr_group;
	struct sockaddr_in6 *v6 = (void *)&req.gr_group;
	bool is_v6 = group->raw[0] == 0xff;

	if (ibv_query_gid_ex(x->ctx, PORT_NUM, (uint32_t)x->opt->gid_index, &gid, 0))
		return complain("cannot query the GID's netdev", errno);
	req.gr_interface = gid.ndev_ifindex;
	if (is_v6) {
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_addr, group->raw, 16);
	} else {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, group->raw + 12, 4);
	}
	x->member = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	if (x->member < 0 || setsockopt(x->member, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP,
				     MCAST_JOIN_GROUP, &req, sizeof(req)))
		return complain("cannot join the group", errno);
	return 0;
}

/* The driver sends to the group, the follower is in it. */
static int join(struct xport *x, union ibv_gid *group)
{
	int err;

	group_of(x->local.gid, group->raw);
	x->remote_qpn = UD_MULTICAST_QPN;
	if (x->opt->driver)
		return 0;
	err = ibv_attach_mcast(x->qp, group, 0);
	if (err)
		return complain("cannot attach to the group", err);
	x->attached = true;
	return join_ip(x, group);
}

static int connect_ud(struct xport *x)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct ibv_ah_attr ah = {
		.is_global = 1,
		.port_num = PORT_NUM,
		.grh = {.sgid_index = (uint8_t)x->opt->gid_index, .hop_limit = 64},
	};
	int err = ibv_modify_qp(x->qp, &attr, IBV_QP_STATE);

	if (err)
		return complain("cannot bring the queue pair to RTR", err);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = x->local.psn;
	err = ibv_modify_qp(x->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err)
		return complain("cannot bring the queue pair to RTS", err);
	x->remote_qpn = x->remote.qpn;
	memcpy(ah.grh.dgid.raw, x->remote.gid, 16);
	if (x->opt->mcast && join(x, &ah.grh.dgid))
		return -1;
	x->ah = ibv_create_ah(x->pd, &ah);
	return x->ah ? 0 : complain("cannot create an address handle", errno);
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
	int rc_rtr = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	int rc_rts = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
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
	err = ibv_modify_qp(x->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			(x->opt->uc ? 0 : rc_rtr));
	if (err)
		return complain("cannot bring the queue pair to RTR", err);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = x->local.psn;
	attr.max_rd_atomic = rd;
	attr.timeout = (uint8_t)x->opt->timeout;
	attr.retry_cnt = (uint8_t)x->opt->retry;
	attr.rnr_retry = (uint8_t)x->opt->rnr_retry;
	err = ibv_modify_qp(x->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (x->opt->uc ? 0 : rc_rts));
	if (err)
		return complain("cannot bring the queue pair to RTS", err);
	return 0;
}

static struct ibv_sge sge_of(const struct xport *x, size_t off, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)x->mem.local + off, len, x->local_mr->lkey};
}

static void make_sges(struct xport *x, size_t slot, const struct piece pieces[], unsigned n,
	struct ibv_sge sges[])
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
	struct ibv_sge sges[PLAN_MAX_SGE + 1];
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = sges};
	int err;

	if (x->opt->ud)
		sges[wr.num_sge++] = sge_of(x, grh_at(x, id), GRH_LEN);
	make_sges(x, slot, pieces, n, sges + wr.num_sge);
	wr.num_sge += (int)n;
	err = x->srq ? ibv_post_srq_recv(x->srq, &wr, &bad) : ibv_post_recv(x->qp, &wr, &bad);
	return err ? complain("cannot post a receive", err) : 0;
}

int xport_post(struct xport *x, const struct op *op, enum op_kind kind, uint64_t id, size_t slot,
	const struct piece pieces[], unsigned n, const struct remote *to, bool signaled)
{
	static const enum ibv_wr_opcode opcode[OP_KINDS] = {
		[OP_SEND] = IBV_WR_SEND,
		[OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[OP_WRITE] = IBV_WR_RDMA_WRITE,
		[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[OP_READ] = IBV_WR_RDMA_READ,
		[OP_CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[OP_SEND_INV] = IBV_WR_SEND_WITH_INV,
	};
	struct ibv_sge sges[PLAN_MAX_SGE];
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = sges,
					 .num_sge = (int)n,
					 .opcode = opcode[kind],
					 .send_flags = signaled ? IBV_SEND_SIGNALED : 0,
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
		wr.send_flags |= IBV_SEND_INLINE;
	if (x->opt->solicited && op_kind_takes_recv(kind))
		wr.send_flags |= IBV_SEND_SOLICITED;
	make_sges(x, slot, pieces, n, sges);
	err = ibv_post_send(x->qp, &wr, &bad);
	return err ? complain("cannot post a request", err) : 0;
}

static int complain_wc(const struct ibv_wc *wc)
{
	fprintf(stderr, "work request %llu completed with %s (%d)\n", (unsigned long long)wc->wr_id,
		ibv_wc_status_str(wc->status), wc->status);
	return -1;
}

/* A datagram says who sent it, in its completion and in the bytes before it. */
static int check_sender(const struct xport *x, const struct ibv_wc *wc)
{
	if (wc->byte_len >= GRH_LEN && wc->wc_flags & IBV_WC_GRH && wc->src_qp == x->remote.qpn &&
		grh_is_from(x->mem.local + grh_at(x, wc->wr_id), x->remote.gid))
		return 0;
	fprintf(stderr, "datagram of %u bytes from QP 0x%x, flags 0x%x: not the peer's\n",
		wc->byte_len, wc->src_qp, wc->wc_flags);
	return -1;
}

int xport_poll(struct xport *x, struct done done[], int n)
{
	struct ibv_wc wc[16];

	n = ibv_poll_cq(x->cq, n < 16 ? n : 16, wc);
	if (n < 0)
		return complain("cannot poll the completion queue", -n);
	for (int i = 0; i < n; i++) {
		bool recv = wc[i].status == IBV_WC_SUCCESS && wc[i].opcode & IBV_WC_RECV;

		if (wc[i].status != IBV_WC_SUCCESS)
			return complain_wc(&wc[i]);
		if (recv && x->opt->ud && check_sender(x, &wc[i]))
			return -1;
		done[i] = (struct done){
			.id = wc[i].wr_id,
			.recv = recv,
			.has_imm = (wc[i].wc_flags & IBV_WC_WITH_IMM) != 0,
			.imm = ntohl(wc[i].imm_data),
			.byte_len = wc[i].byte_len - (recv && x->opt->ud ? GRH_LEN : 0),
			.has_inv = (wc[i].wc_flags & (IBV_WC_WITH_INV | RXE_WC_WITH_INV)) != 0,
			.inv_rkey = wc[i].invalidated_rkey,
		};
	}
	return n;
}

/* The completion of the only request that is outstanding. */
static int wait_wc(struct xport *x, struct ibv_wc *wc)
{
	time_t end = time(NULL) + x->opt->wait_s;
	int n;

	while (!(n = ibv_poll_cq(x->cq, 1, wc))) {
		if (time(NULL) > end) {
			fprintf(stderr, "no completion for %u s\n", x->opt->wait_s);
			return -1;
		}
		usleep(50);
	}
	return n == 1 ? 0 : complain("cannot poll the completion queue", -n);
}

static int bind_type1(struct xport *x, uint32_t *rkey)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = x->target_mr,
			.addr = (uintptr_t)x->mem.target,
			.length = x->opt->target_len,
			.mw_access_flags = REMOTE_ACCESS},
	};
	struct ibv_wc wc;
	int err = ibv_bind_mw(x->qp, x->mw, &bind);

	if (err)
		return complain("cannot post a bind", err);
	if (wait_wc(x, &wc))
		return -1;
	*rkey = x->mw->rkey;
	return wc.status == IBV_WC_SUCCESS ? 0 : complain_wc(&wc);
}

static int do_locally(struct xport *x, struct ibv_send_wr *wr)
{
	struct ibv_wc wc;
	struct ibv_send_wr *bad;
	int err;

	wr->send_flags = IBV_SEND_SIGNALED;
	err = ibv_post_send(x->qp, wr, &bad);
	if (err)
		return complain("cannot post a bind or an invalidation", err);
	if (wait_wc(x, &wc))
		return -1;
	return wc.status == IBV_WC_SUCCESS ? 0 : complain_wc(&wc);
}

int xport_bind(struct xport *x, bool bound, uint32_t *rkey)
{
	uint32_t next = ibv_inc_rkey(x->mw_rkey);
	struct ibv_send_wr inv = {
		.opcode = IBV_WR_LOCAL_INV,
		.invalidate_rkey = x->mw_rkey,
	};
	struct ibv_send_wr bind = {
		.opcode = IBV_WR_BIND_MW,
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
	x->mw->rkey = x->mw_rkey = next;
	*rkey = next;
	return 0;
}

int xport_refused(struct xport *x)
{
	struct ibv_wc wc;

	if (wait_wc(x, &wc))
		return -1;
	return wc.status == IBV_WC_REM_ACCESS_ERR ? 0 : complain_wc(&wc);
}

static void leave(struct xport *x)
{
	union ibv_gid group;

	group_of(x->local.gid, group.raw);
	ibv_detach_mcast(x->qp, &group, 0);
	if (x->member >= 0)
		close(x->member);
}

void xport_close(struct xport *x)
{
	/* First: soft-RoCE waits 50 s for a QP that a window is bound to. */
	if (x->mw)
		ibv_dealloc_mw(x->mw);
	if (x->attached)
		leave(x);
	if (x->qp)
		ibv_destroy_qp(x->qp);
	if (x->ah)
		ibv_destroy_ah(x->ah);
	if (x->srq)
		ibv_destroy_srq(x->srq);
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
