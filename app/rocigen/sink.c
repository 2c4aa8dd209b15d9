/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rocisink SOCKET PORT GID PEER-GID QPS PSN [v1|busy]: queue pairs for rocigen or Pktgen to send
 * to. They expect packets from PEER-GID, beginning with PSN, and accept WRITEs to one region and
 * SENDs to posted receives. With `busy` each has a request of its own in flight, which nobody
 * answers. Prints their addresses as a line of JSON and runs until standard input ends.
 */
#include <err.h>
#include <poll.h>
#include <roci.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "address.h"
#include "json_line.h"
#include "number.h"
#include "row.h"

#define MEMORY	 (1u << 20)
#define RECEIVE	 16384u /* bytes of a receive */
#define RECEIVES 8192u	/* of all QPs together */
#define QPS_MAX	 1024u
#define LOOK_MS	 1
#define GIDS	 128u

static struct roci_cq *cq;
static struct roci_mr *mr;
static struct roci_qp *qp[QPS_MAX];
static unsigned nqps, each; /* receives per QP */
static int busy;

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static uint32_t number_of(const char *name, const char *text)
{
	uint64_t number;

	if (!parse_number(text, UINT32_MAX, &number))
		errx(2, "%s must be a number, not %s", name, text);
	return (uint32_t)number;
}

static union roci_gid gid_of(const char *text)
{
	union roci_gid gid;

	if (!gid_of_text(gid.raw, text))
		errx(2, "%s is not an IP address", text);
	return gid;
}

static uint32_t find_gid(struct roci_context *ctx, uint32_t port, const char *text, int v1)
{
	union roci_gid gid = gid_of(text);
	struct roci_gid_entry e = {.size = sizeof(e)};

	for (uint32_t i = 0; i < GIDS; i++)
		if (!roci_query_gid(ctx, port, i, &e) &&
			!memcmp(e.gid.raw, gid.raw, sizeof(gid.raw)) &&
			(e.gid_type == ROCI_GID_TYPE_ROCE_V1) == v1)
			return i;
	errx(1, "port %u has no GID %s%s: see `rocictl show gids`", port, text,
		v1 ? ", RoCEv1" : "");
}

static void post_receive(struct roci_qp *to)
{
	struct roci_sge sge = {(uintptr_t)mr->addr, RECEIVE, mr->lkey};
	struct roci_recv_wr wr = {.wr_id = (uintptr_t)to, .sg_list = &sge, .num_sge = 1};

	must(!roci_post_recv(to, &wr, NULL), "receive");
}

static struct roci_qp *make_qp(struct roci_pd *pd, uint32_t port, uint32_t gid_index,
	const union roci_gid *peer, uint32_t psn)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_INIT};
	struct roci_qp *q;

	init.send_cq = init.recv_cq = cq;
	init.cap = (struct roci_qp_cap){1, each, 1, 1, 0};
	must((q = roci_create_qp(pd, &init)) != NULL, "QP");
	attr.port_num = (uint8_t)port;
	attr.qp_access_flags = ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ;
	must(!roci_modify_qp(q, &attr,
		     ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
		"QP to INIT");
	for (unsigned i = 0; i < each; i++)
		post_receive(q);
	attr.qp_state = ROCI_QPS_RTR;
	attr.path_mtu = ROCI_MTU_4096;
	attr.dest_qp_num = 2;
	attr.rq_psn = psn;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = (uint8_t)port;
	attr.ah_attr.grh.dgid = *peer;
	attr.ah_attr.grh.sgid_index = (uint8_t)gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	must(!roci_modify_qp(q, &attr,
		     ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
			     ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
		"QP to RTR");
	attr.qp_state = ROCI_QPS_RTS; /* distinguishes ACKs of requests from useless ones */
	attr.timeout = busy ? 0 : 14; /* 0: the request stays in flight */
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	must(!roci_modify_qp(q, &attr,
		     ROCI_QP_STATE | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY |
			     ROCI_QP_SQ_PSN | ROCI_QP_MAX_QP_RD_ATOMIC),
		"QP to RTS");
	return q;
}

static void send_one(struct roci_qp *from)
{
	struct roci_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND, .sg_list = &sge, .num_sge = 1};

	must(!roci_post_send(from, &wr, NULL), "send");
}

static void print(void)
{
	json_t *numbers = json_array();
	struct row r;

	for (unsigned i = 0; i < nqps; i++)
		json_array_append_new(numbers, json_integer(qp[i]->qp_num));
	row_begin(&r);
	put_int(&r, "rkey", mr->rkey);
	put_int(&r, "va", (int64_t)(uintptr_t)mr->addr);
	put_int(&r, "bytes", MEMORY);
	put_json(&r, "qpn", numbers);
	json_line(row_end(&r));
}

/* Sleeps meanwhile: the CPU is for the measured processes. */
static void serve(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct roci_wc wc[64];
	char c;
	int n;

	while (poll(&input, 1, LOOK_MS) == 0 || read(STDIN_FILENO, &c, 1) > 0)
		while ((n = roci_poll_cq(cq, 64, wc)) > 0)
			for (int i = 0; i < n; i++)
				if (wc[i].status == ROCI_WC_SUCCESS)
					post_receive((struct roci_qp *)(uintptr_t)wc[i].wr_id);
}

int main(int argc, char *argv[])
{
	const int access =
		ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ;
	struct roci_context *ctx;
	struct roci_pd *pd;
	uint32_t port, psn, gid_index;
	union roci_gid peer;

	if (argc < 7 || argc > 8)
		errx(2, "usage: rocisink SOCKET PORT GID PEER-GID QPS PSN [v1|busy]");
	port = number_of("PORT", argv[2]);
	peer = gid_of(argv[4]);
	nqps = number_of("QPS", argv[5]);
	psn = number_of("PSN", argv[6]);
	if (!nqps || nqps > QPS_MAX)
		errx(2, "QPS must be 1 to %u", QPS_MAX);
	each = RECEIVES / nqps;
	busy = argc == 8 && !strcmp(argv[7], "busy");
	must((ctx = roci_open(argv[1])) != NULL, "rocid");
	gid_index = find_gid(ctx, port, argv[3], argc == 8 && !busy);
	must((pd = roci_alloc_pd(ctx)) != NULL, "PD");
	must((mr = roci_alloc_mr(pd, MEMORY, access)) != NULL, "memory");
	must((cq = roci_create_cq(ctx, (int)(2 * RECEIVES), NULL, NULL, 0)) != NULL, "CQ");
	for (unsigned i = 0; i < nqps; i++)
		qp[i] = make_qp(pd, port, gid_index, &peer, psn);
	for (unsigned i = 0; busy && i < nqps; i++)
		send_one(qp[i]);
	print();
	serve();
	for (unsigned i = 0; i < nqps; i++)
		must(!roci_destroy_qp(qp[i]), "destroy the QP");
	must(!roci_destroy_cq(cq) && !roci_dereg_mr(mr) && !roci_dealloc_pd(pd) && !roci_close(ctx),
		"end");
	return 0;
}
