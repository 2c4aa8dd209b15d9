/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <sched.h>
#include <time.h>
#include "pair.h"

#define DEPTH 64
#define REMOTE_ACCESS                                                                     \
	(ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC | \
		ROCI_ACCESS_FLUSH_GLOBAL)
#define ACK_TIMEOUT 14	/* 67 ms */
#define WAIT_S	    120 /* for a completion: far above any pause of the machine */

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void make_qp(struct end *e, struct roci_srq *srq, int depth, unsigned work)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC, .srq = srq};

	must((e->cq = roci_create_cq(e->ctx, depth, NULL, e->channel, 0)) != NULL, "CQ");
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	init.cap = (struct roci_qp_cap){work, work, 1, 1, 0};
	must((e->qp = roci_create_qp(e->pd, &init)) != NULL, "QP");
}

void end_open_deep(struct end *e, const char *socket, size_t size, unsigned depth)
{
	const int access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_MW_BIND | REMOTE_ACCESS;

	*e = (struct end){0};
	must((e->ctx = roci_open(socket)) != NULL, "rocid");
	must((e->pd = roci_alloc_pd(e->ctx)) != NULL, "PD");
	must((e->mr = roci_alloc_mr(e->pd, size, access)) != NULL, "memory");
	must((e->channel = roci_create_channel(e->ctx)) != NULL, "channel");
	make_qp(e, NULL, (int)(2 * depth), depth);
}

void end_open(struct end *e, const char *socket, size_t size)
{
	end_open_deep(e, socket, size, DEPTH);
}

void end_to_init(struct end *e, uint8_t port)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_INIT};

	attr.port_num = port;
	attr.qp_access_flags = REMOTE_ACCESS;
	must(!roci_modify_qp(e->qp, &attr,
		     ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
		"QP to INIT");
}

/* Entry @p index of the port's GID table; 0: the first that is not link-local. */
static struct roci_gid_entry find_gid(const struct end *e, uint8_t port, uint32_t index)
{
	struct roci_gid_entry gid = {.size = sizeof(gid)};

	must(!(index ? roci_query_gid(e->ctx, port, index, &gid)
		     : roci_find_gid(e->ctx, port, NULL, &gid)),
		"GID");
	return gid;
}

struct end_address end_address(const struct end *e, uint8_t port)
{
	return (struct end_address){
		.gid = find_gid(e, port, 0).gid,
		.qpn = e->qp->qp_num,
		.rkey = e->mr->rkey,
		.addr = (uintptr_t)e->mr->addr,
	};
}

void end_to_rts(struct end *e, uint8_t port, const struct end_address *peer,
	const struct end_tuning *tuning)
{
	struct roci_gid_entry local = find_gid(e, port, tuning->gid);
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RTR};

	attr.path_mtu = tuning->mtu;
	attr.dest_qp_num = peer->qpn;
	attr.rq_psn = peer->qpn;
	attr.sq_psn = e->qp->qp_num;
	attr.max_rd_atomic = 16;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 1;
	attr.timeout = tuning->timeout;
	attr.retry_cnt = tuning->retry_cnt;
	attr.rnr_retry = 7;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = port;
	attr.ah_attr.grh.dgid = peer->gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)local.gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	must(!roci_modify_qp(e->qp, &attr,
		     ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
			     ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
		"QP to RTR");
	attr.qp_state = ROCI_QPS_RTS;
	must(!roci_modify_qp(e->qp, &attr,
		     ROCI_QP_STATE | ROCI_QP_SQ_PSN | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT |
			     ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC),
		"QP to RTS");
}

void pair_connect(struct end e[2], enum roci_mtu mtu)
{
	const struct end_tuning tuning = {.mtu = mtu, .timeout = ACK_TIMEOUT, .retry_cnt = 7};
	struct end_address address[2] = {end_address(&e[0], 1), end_address(&e[1], 2)};

	end_to_init(&e[0], 1);
	end_to_init(&e[1], 2);
	end_to_rts(&e[0], 1, &address[1], &tuning);
	end_to_rts(&e[1], 2, &address[0], &tuning);
}

void pair_open(struct end e[2], const char *socket, size_t size, enum roci_mtu mtu)
{
	const struct place place[2] = {{socket, 1, 0}, {socket, 2, 0}};

	pair_open_at(e, place, size, mtu, ACK_TIMEOUT);
}

void pair_open_at(struct end e[2], const struct place place[2], size_t size, enum roci_mtu mtu,
	uint8_t timeout)
{
	for (int i = 0; i < 2; i++)
		end_open(&e[i], place[i].socket, size);
	pair_connect_at(e, place, mtu, timeout);
}

void pair_connect_at(
	struct end e[2], const struct place place[2], enum roci_mtu mtu, uint8_t timeout)
{
	struct end_tuning tuning = {.mtu = mtu, .timeout = timeout, .retry_cnt = 7};
	struct end_address address[2];

	for (int i = 0; i < 2; i++) {
		end_to_init(&e[i], place[i].port);
		address[i] = end_address(&e[i], place[i].port);
		address[i].gid = find_gid(&e[i], place[i].port, place[i].gid).gid;
	}
	for (int i = 0; i < 2; i++) {
		tuning.gid = place[i].gid;
		end_to_rts(&e[i], place[i].port, &address[!i], &tuning);
	}
}

void end_close(struct end *e)
{
	must(!roci_destroy_qp(e->qp), "destroy the QP");
	must(!roci_destroy_cq(e->cq), "destroy the CQ");
	if (e->shares)
		return;
	must(!roci_destroy_channel(e->channel), "destroy the channel");
	must(!roci_dereg_mr(e->mr), "deregister");
	must(!roci_dealloc_pd(e->pd), "free the PD");
	must(!roci_close(e->ctx), "close");
}

void pair_share(struct end e[2], const struct end base[2], int depth, enum roci_mtu mtu)
{
	pair_share_srq(e, base, NULL, depth, mtu);
}

void pair_share_srq(struct end e[2], const struct end base[2], struct roci_srq *srq, int depth,
	enum roci_mtu mtu)
{
	for (int i = 0; i < 2; i++) {
		e[i] = base[i];
		e[i].shares = 1;
		make_qp(&e[i], i == 1 ? srq : NULL, depth, DEPTH);
	}
	pair_connect(e, mtu);
}

void pair_close(struct end e[2])
{
	end_close(&e[0]);
	end_close(&e[1]);
}

void pair_post(struct end *from, const struct end *to, enum roci_wr_opcode opcode, size_t offset,
	uint32_t length)
{
	struct roci_sge sge = {(uintptr_t)from->mr->addr + offset, length, from->mr->lkey};
	struct roci_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};

	wr.send_flags = ROCI_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)to->mr->addr + offset;
	wr.wr.rdma.rkey = to->mr->rkey;
	must(!roci_post_send(from->qp, &wr, NULL), "post");
}

void pair_post_atomic(struct end *from, const struct end *to, enum roci_wr_opcode opcode,
	const struct pair_atomic *a)
{
	struct roci_sge sge = {(uintptr_t)from->mr->addr + a->answer, 8, from->mr->lkey};
	struct roci_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};

	wr.send_flags = ROCI_SEND_SIGNALED;
	wr.wr.atomic.remote_addr = (uintptr_t)to->mr->addr + a->word;
	wr.wr.atomic.rkey = to->mr->rkey;
	wr.wr.atomic.compare_add = a->compare_add;
	wr.wr.atomic.swap = a->swap;
	must(!roci_post_send(from->qp, &wr, NULL), "post");
}

void pair_wait(struct end *e)
{
	time_t until = time(NULL) + WAIT_S;
	struct roci_wc wc;
	int n;

	while ((n = roci_poll_cq(e->cq, 1, &wc)) == 0) {
		if (time(NULL) > until)
			errx(1, "no completion within %d s", WAIT_S);
		sched_yield();
	}
	must(n > 0, "poll");
	if (wc.status != ROCI_WC_SUCCESS)
		errx(1, "a work request failed: %s: %s", roci_wc_status_str(wc.status),
			roci_qp_error(e->qp));
}
