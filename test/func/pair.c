/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <sched.h>
#include <time.h>
#include "pair.h"

#define DEPTH  64
#define WAIT_S 120 /* for a completion: far above any pause of the machine */

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void end_open(struct end *e, const char *socket, size_t size)
{
	const int access =
		ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ;
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};

	must((e->ctx = roci_open(socket)) != NULL, "rocid");
	must((e->pd = roci_alloc_pd(e->ctx)) != NULL, "PD");
	must((e->mr = roci_alloc_mr(e->pd, size, access)) != NULL, "memory");
	must((e->channel = roci_create_channel(e->ctx)) != NULL, "channel");
	must((e->cq = roci_create_cq(e->ctx, 2 * DEPTH, NULL, e->channel, 0)) != NULL, "CQ");
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	init.cap = (struct roci_qp_cap){DEPTH, DEPTH, 1, 1, 0};
	must((e->qp = roci_create_qp(e->pd, &init)) != NULL, "QP");
}

static void to_init(struct end *e, uint8_t port)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_INIT};

	attr.port_num = port;
	attr.qp_access_flags = ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ;
	must(!roci_modify_qp(e->qp, &attr,
		     ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
		"QP to INIT");
}

static struct roci_gid_entry find_gid(const struct end *e, const struct place *at)
{
	struct roci_gid_entry entry = {.size = sizeof(entry)};

	if (at->gid == ANY_GID)
		must(!roci_find_gid(e->ctx, at->port, NULL, &entry), "GID");
	else
		must(!roci_query_gid(e->ctx, at->port, at->gid, &entry), "GID");
	return entry;
}

static void to_rts(struct end *e, const struct place *at, const struct end *peer,
	const struct place *peer_at, enum roci_mtu mtu)
{
	struct roci_gid_entry local = find_gid(e, at), remote = find_gid(peer, peer_at);
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RTR};

	attr.path_mtu = mtu;
	attr.dest_qp_num = peer->qp->qp_num;
	attr.rq_psn = peer->qp->qp_num;
	attr.sq_psn = e->qp->qp_num;
	attr.max_rd_atomic = 16;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 1;
	attr.timeout = at->timeout;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = at->port;
	attr.ah_attr.grh.dgid = remote.gid;
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

void pair_open_at(struct end e[2], const struct place at[2], size_t size, enum roci_mtu mtu)
{
	for (int i = 0; i < 2; i++) {
		end_open(&e[i], at[i].socket, size);
		to_init(&e[i], at[i].port);
	}
	to_rts(&e[0], &at[0], &e[1], &at[1], mtu);
	to_rts(&e[1], &at[1], &e[0], &at[0], mtu);
}

void pair_open(struct end e[2], const char *socket, size_t size, enum roci_mtu mtu)
{
	const struct place at[2] = {{socket, 1, ANY_GID, 14}, {socket, 2, ANY_GID, 14}};

	pair_open_at(e, at, size, mtu);
}

void pair_close(struct end e[2])
{
	for (int i = 0; i < 2; i++) {
		must(!roci_destroy_qp(e[i].qp), "destroy the QP");
		must(!roci_destroy_cq(e[i].cq), "destroy the CQ");
		must(!roci_destroy_channel(e[i].channel), "destroy the channel");
		must(!roci_dereg_mr(e[i].mr), "deregister");
		must(!roci_dealloc_pd(e[i].pd), "free the PD");
		must(!roci_close(e[i].ctx), "close");
	}
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
		errx(1, "a work request failed: %s", roci_wc_status_str(wc.status));
}
