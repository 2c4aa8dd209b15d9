/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC: programs that share a domain by a file. One has the target QPs, another an SRQ of its own in
 * the domain; messages of each initiator go to both, and complete where the SRQ does. Then an SRQ
 * of another domain is named.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pair.h"

#define QPS	 4
#define MESSAGES 400u /* of each QP */
#define SLOTS	 32
#define SLOT	 4096u
#define WAIT_S	 120 /* without any message */
#define PATIENT	 21  /* 8.6 s, seven times: workers share a busy machine */
#define LOSSY	 18  /* 1.1 s: where the link loses packets */

struct message {
	uint32_t qp;
	uint32_t number;
	uint32_t srq;
	uint8_t data[1500];
};

/* A program that receives. */
struct receiver {
	struct end at;
	struct roci_xrcd *xrcd;
	struct roci_srq *srq;
	uint32_t got[QPS]; /* number of the next message at least */
	uint32_t messages;
};

static uint8_t timeout = PATIENT;

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void open_end(struct end *e, const char *socket)
{
	*e = (struct end){0};
	must((e->ctx = roci_open(socket)) != NULL, "rocid");
	must((e->pd = roci_alloc_pd(e->ctx)) != NULL, "PD");
	must((e->mr = roci_alloc_mr(e->pd, SLOTS * SLOT, ROCI_ACCESS_LOCAL_WRITE)) != NULL, "MR");
	must((e->cq = roci_create_cq(e->ctx, 1024, NULL, NULL, 0)) != NULL, "CQ");
}

static struct roci_xrcd *open_domain(struct roci_context *ctx, int fd, int oflags)
{
	struct roci_xrcd_init_attr attr = {.size = sizeof(attr), .fd = fd, .oflags = oflags};

	return roci_open_xrcd(ctx, &attr);
}

static void post(struct receiver *r, unsigned slot)
{
	struct roci_sge sge = {(uintptr_t)r->at.mr->addr + slot * SLOT, SLOT, r->at.mr->lkey};
	struct roci_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	must(!roci_post_srq_recv(r->srq, &wr, NULL), "post");
}

static void open_receiver(struct receiver *r, const char *socket, int fd)
{
	struct roci_srq_init_attr attr = {.size = sizeof(attr), .max_wr = SLOTS, .max_sge = 1};

	open_end(&r->at, socket);
	must((r->xrcd = open_domain(r->at.ctx, fd, O_CREAT)) != NULL, "domain");
	attr.xrcd = r->xrcd;
	attr.cq = r->at.cq;
	must((r->srq = roci_create_srq(r->at.pd, &attr)) != NULL, "SRQ");
	for (unsigned i = 0; i < SLOTS; i++)
		post(r, i);
}

static void close_receiver(struct receiver *r)
{
	if (roci_close_xrcd(r->xrcd) != EBUSY || roci_destroy_cq(r->at.cq) != EBUSY)
		errx(1, "a domain or CQ in use could be destroyed");
	must(!roci_destroy_srq(r->srq), "destroy the SRQ");
	must(!roci_close_xrcd(r->xrcd), "close the domain");
	must(!roci_destroy_cq(r->at.cq) && !roci_dereg_mr(r->at.mr) && !roci_dealloc_pd(r->at.pd) &&
			!roci_close(r->at.ctx),
		"close");
}

static struct roci_qp *make_qp(struct end *e, enum roci_qp_type type, struct roci_xrcd *xrcd)
{
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.qp_type = type,
		.send_cq = e->cq,
		.cap = {16, 0, 1, 0, 0},
		.xrcd = xrcd};

	must((e->qp = roci_create_qp(e->pd, &init)) != NULL, "QP");
	return e->qp;
}

/* proves XRC-07: each type with the attributes that it takes. */
static void connect_end(struct end *e, uint8_t port, const struct end_address *peer)
{
	bool initiator = e->qp->qp_type == ROCI_QPT_XRC_SEND;
	struct roci_gid_entry gid = {.size = sizeof(gid)};
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RTR};
	int rtr = ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN;
	int rts = ROCI_QP_STATE | ROCI_QP_SQ_PSN | ROCI_QP_TIMEOUT;

	must(!roci_find_gid(e->ctx, port, NULL, &gid), "GID");
	attr.path_mtu = ROCI_MTU_1024;
	attr.dest_qp_num = peer->qpn;
	attr.rq_psn = 100;
	attr.sq_psn = 100;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	attr.timeout = timeout;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.ah_attr = (struct roci_ah_attr){.is_global = 1, .port_num = port};
	attr.ah_attr.grh.dgid = peer->gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)gid.gid_index;
	if (initiator)
		rts |= ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC;
	else
		rtr |= ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER;
	must(!roci_modify_qp(e->qp, &attr, rtr), "RTR");
	attr.qp_state = ROCI_QPS_RTS;
	must(!roci_modify_qp(e->qp, &attr, rts), "RTS");
}

static void connect_qps(struct end *a, struct end *b)
{
	struct end_address address[2] = {end_address(a, 1), end_address(b, 2)};

	end_to_init(a, 1);
	end_to_init(b, 2);
	connect_end(a, 1, &address[1]);
	connect_end(b, 2, &address[0]);
}

static void send_one(
	struct end *e, struct roci_qp *qp, unsigned i, uint32_t number, uint32_t srq, uint32_t srqn)
{
	uint8_t *at = (uint8_t *)e->mr->addr + (i * 8 + number % 8) * SLOT;
	struct message *m = (struct message *)at;
	struct roci_sge sge = {(uintptr_t)at, sizeof(*m), e->mr->lkey};
	struct roci_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = ROCI_WR_SEND};

	*m = (struct message){.qp = i, .number = number, .srq = srq};
	memset(m->data, (int)(i + number), sizeof(m->data));
	wr.send_flags = ROCI_SEND_SIGNALED;
	wr.qp_type.xrc.remote_srqn = srqn;
	must(!roci_post_send(qp, &wr, NULL), "send");
}

/* proves XRC-05: in the CQ of its SRQ, in the order of its QP. */
static void receive(struct receiver *r, uint32_t srq)
{
	struct roci_wc wc;
	int n;

	while ((n = roci_poll_cq(r->at.cq, 1, &wc)) == 1) {
		const struct message *m =
			(const void *)((const uint8_t *)r->at.mr->addr + wc.wr_id * SLOT);

		if (wc.status != ROCI_WC_SUCCESS || wc.byte_len != sizeof(*m))
			errx(1, "a receive: %s, %u bytes", roci_wc_status_str(wc.status),
				wc.byte_len);
		if (m->srq != srq || m->qp >= QPS || m->number < r->got[m->qp])
			errx(1, "message %u of QP %u for SRQ %u came to %u, where %u was due",
				m->number, m->qp, m->srq, srq, r->got[m->qp]);
		for (size_t i = 0; i < sizeof(m->data); i++)
			if (m->data[i] != (uint8_t)(m->qp + m->number))
				errx(1, "byte %zu is wrong", i);
		r->got[m->qp] = m->number + 1;
		r->messages++;
		post(r, (unsigned)wc.wr_id);
	}
	must(n == 0, "poll");
}

static void load(struct end *from, struct roci_qp *const qp[], struct receiver r[2])
{
	uint32_t sent[QPS] = {0}, done[QPS] = {0}, total = 0;
	time_t until = time(NULL) + WAIT_S;

	while (total < QPS * MESSAGES || r[0].messages + r[1].messages < total) {
		struct roci_wc wc;
		int n;

		for (unsigned i = 0; i < QPS; i++)
			for (; sent[i] < MESSAGES && sent[i] - done[i] < 8; sent[i]++) {
				uint32_t srq = (sent[i] * 7 + i) / 3 % 2;

				send_one(from, qp[i], i, sent[i], srq, r[srq].srq->srq_num);
			}
		for (uint32_t k = 0; k < 2; k++)
			receive(&r[k], k);
		n = roci_poll_cq(from->cq, 1, &wc);
		must(n >= 0, "poll");
		if (!n) {
			if (time(NULL) > until)
				errx(1, "no message within %d s, after %u", WAIT_S, total);
			sched_yield();
			continue;
		}
		until = time(NULL) + WAIT_S;
		if (wc.status != ROCI_WC_SUCCESS)
			errx(1, "a send: %s", roci_wc_status_str(wc.status));
		for (unsigned i = 0; i < QPS; i++)
			done[i] += qp[i]->qp_num == wc.qp_num;
		total++;
	}
	if (!r[0].messages || !r[1].messages)
		errx(1, "all came to one SRQ");
	printf("%u and %u messages\n", r[0].messages, r[1].messages);
}

/* proves XRC-04 */
static void wrong_domain(
	struct end *from, struct roci_qp *qp, const struct receiver *other, bool lossy)
{
	struct roci_wc wc;
	int n;

	send_one(from, qp, 0, MESSAGES, 0, other->srq->srq_num);
	while ((n = roci_poll_cq(from->cq, 1, &wc)) == 0)
		sched_yield();
	must(n == 1, "poll");
	/* A link may lose the NAK, and the target, which is in ERR then, is silent (RSP-22): its
	 * counter tells what it found. */
	if (wc.status != ROCI_WC_REM_INV_REQ_ERR && !(lossy && wc.status == ROCI_WC_RETRY_EXC_ERR))
		errx(1, "another domain's SRQ: %s", roci_wc_status_str(wc.status));
}

static void open_flags(struct roci_context *ctx, int fd, int fresh)
{
	if (open_domain(ctx, fd, O_CREAT | O_EXCL) || errno != EEXIST)
		errx(1, "O_EXCL opened a domain that is there");
	if (open_domain(ctx, fresh, 0) || errno != ENOENT)
		errx(1, "a domain that is not there was opened");
	if (open_domain(ctx, -1, 0) || errno != EINVAL)
		errx(1, "a domain without a file was opened, not made");
}

int main(int argc, char **argv)
{
	char name[2][32] = {"/tmp/roci-xrc-XXXXXX", "/tmp/roci-xrc-XXXXXX"};
	struct roci_qp *send[QPS], *recv[QPS];
	static struct receiver r[3];
	bool lossy = argc > 2;
	struct end from;
	int fd[2];

	if (argc < 2)
		errx(2, "use: xrc SOCKET [lossy]");
	if (lossy)
		timeout = LOSSY;
	for (int i = 0; i < 2; i++) {
		fd[i] = mkstemp(name[i]);
		if (fd[i] < 0 || unlink(name[i]))
			err(1, "%s", name[i]);
	}
	open_receiver(&r[0], argv[1], fd[0]);
	open_receiver(&r[1], argv[1], fd[0]);
	open_flags(r[0].at.ctx, fd[0], fd[1]);
	open_receiver(&r[2], argv[1], fd[1]);
	open_end(&from, argv[1]);
	for (unsigned i = 0; i < QPS; i++) {
		send[i] = make_qp(&from, ROCI_QPT_XRC_SEND, NULL);
		recv[i] = make_qp(&r[0].at, ROCI_QPT_XRC_RECV, r[0].xrcd);
		connect_qps(&from, &r[0].at);
	}
	load(&from, send, r);
	wrong_domain(&from, send[0], &r[2], lossy);
	for (unsigned i = 0; i < QPS; i++)
		must(!roci_destroy_qp(send[i]) && !roci_destroy_qp(recv[i]), "destroy a QP");
	for (unsigned i = 0; i < 3; i++)
		close_receiver(&r[i]);
	must(!roci_destroy_cq(from.cq) && !roci_dereg_mr(from.mr) && !roci_dealloc_pd(from.pd) &&
			!roci_close(from.ctx),
		"close");
	return 0;
}
