/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first program: two queue pairs send one message back and forth. One side starts without
 * an argument, the other with its host. Either side may be ibv_rc_pingpong on a machine with
 * an RDMA device.
 */
#include <err.h>
#include <roci.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "exchange.h"

#define PORT	1 /* of the device */
#define ANY	(-1ul)
#define RECV_ID 1
#define SEND_ID 2

static unsigned long size = 4096, mtu = 1024, depth = 500, iters = 1000, gid_index = ANY, check;
static struct roci_mr *mr; /* the message that is sent, then the one that is received */
static struct roci_cq *cq;
static struct roci_qp *qp;

/* Every failure of the library comes with a sentence. */
static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void make_qp(struct roci_context *ctx, struct roci_pd *pd)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_INIT};

	must((mr = roci_alloc_mr(pd, 2 * size + 1, ROCI_ACCESS_LOCAL_WRITE)) != NULL, "memory");
	memset(mr->addr, 0x7b, size); /* as ibv_rc_pingpong does, with a mark in each page: */
	for (unsigned long i = 0; check && i < size; i += 4096)
		((uint8_t *)mr->addr)[i] = 0;
	must((cq = roci_create_cq(ctx, depth + 1, NULL, NULL, 0)) != NULL, "CQ");
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct roci_qp_cap){1, depth, 1, 1, 0};
	must((qp = roci_create_qp(pd, &init)) != NULL, "QP");
	attr.port_num = PORT;
	must(!roci_modify_qp(qp, &attr,
		     ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
		"QP to INIT");
}

static void connect_qp(unsigned sgid_index, unsigned psn, const struct address *remote)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RTR};

	attr.path_mtu = (enum roci_mtu)roci_mtu_of_bytes(mtu);
	attr.dest_qp_num = remote->qpn;
	attr.rq_psn = remote->psn;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12; /* 0.64 ms */
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = PORT;
	attr.ah_attr.grh.dgid = remote->gid;
	attr.ah_attr.grh.sgid_index = sgid_index;
	attr.ah_attr.grh.hop_limit = 64;
	must(!roci_modify_qp(qp, &attr,
		     ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
			     ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
		"QP to RTR");
	attr.qp_state = ROCI_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = 14; /* 4.096 us * 2^14 = 67 ms */
	attr.retry_cnt = 7;
	attr.rnr_retry = 7; /* for ever */
	attr.max_rd_atomic = 1;
	must(!roci_modify_qp(qp, &attr,
		     ROCI_QP_STATE | ROCI_QP_SQ_PSN | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT |
			     ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC),
		"QP to RTS");
}

static void post_recv(unsigned long n)
{
	struct roci_sge sge = {(uintptr_t)mr->addr + size, size, mr->lkey};
	struct roci_recv_wr wr = {.wr_id = RECV_ID, .sg_list = &sge, .num_sge = 1};

	while (n--)
		must(!roci_post_recv(qp, &wr, NULL), "receive");
}

static void post_send(void)
{
	struct roci_sge sge = {(uintptr_t)mr->addr, size, mr->lkey};
	struct roci_send_wr wr = {.wr_id = SEND_ID, .sg_list = &sge, .num_sge = 1};

	wr.opcode = ROCI_WR_SEND;
	wr.send_flags = ROCI_SEND_SIGNALED;
	must(!roci_post_send(qp, &wr, NULL), "send");
}

/* With -c every byte must be the peer's; they are cleared for the next message. */
static void check_message(uint32_t length)
{
	uint8_t *data = (uint8_t *)mr->addr + size;

	if (length != size || (check && memcmp(data, mr->addr, size)))
		errx(1, "a message of %u bytes is not what was sent", length);
	if (check)
		memset(data, 0, size);
}

/* Sends whenever the last message has come in and the last send is complete. */
static void play(int begin)
{
	unsigned long sent = 0, received = 0;
	unsigned pending = begin ? SEND_ID | RECV_ID : RECV_ID;
	struct roci_wc wc;

	if (begin)
		post_send();
	while (sent < iters || received < iters) {
		int n = roci_poll_cq(cq, 1, &wc);

		must(n >= 0, "poll");
		if (n == 0) {
			sched_yield(); /* rocid may be waiting for this CPU */
			continue;
		}
		if (wc.status != ROCI_WC_SUCCESS)
			errx(1, "work request failed: %s", roci_wc_status_str(wc.status));
		if (wc.wr_id == RECV_ID) {
			check_message(wc.byte_len);
			post_recv(1);
			received++;
		} else {
			sent++;
		}
		pending &= ~(unsigned)wc.wr_id;
		if (sent < iters && !pending) {
			post_send();
			pending = RECV_ID | SEND_ID;
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long *const value[] = {&size, &mtu, &depth, &iters, &gid_index, &check};
	const char *const letters = "smrngc";
	struct roci_gid_entry gid = {.size = sizeof(gid)};
	struct address local = {0}, remote;
	const char *port = "18515", *host;
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct timespec t0, t1;
	double us;
	int fd, o;

	while ((o = getopt(argc, argv, "p:s:m:r:n:g:c")) != -1) {
		char *end = NULL;

		if (o == 'p')
			port = optarg;
		else if (o != '?')
			*value[strchr(letters, o) - letters] =
				optarg ? strtoul(optarg, &end, 0) : 1;
		if (o == '?' || (end && *end))
			errx(2, "use: roci-pingpong [-p TCP port] [-s size] [-m MTU] "
				"[-r receives] [-n iterations] [-g GID index] [-c] [HOST]");
	}
	host = argv[optind];

	must((ctx = roci_open(NULL)) != NULL, "rocid");
	must((pd = roci_alloc_pd(ctx)) != NULL, "PD");
	make_qp(ctx, pd);
	post_recv(depth);
	must(!(gid_index == ANY ? roci_find_gid(ctx, PORT, NULL, &gid)
				: roci_query_gid(ctx, PORT, gid_index, &gid)),
		"GID");
	srand48(getpid() * time(NULL));
	local.qpn = qp->qp_num;
	local.psn = lrand48() & 0xffffff;
	local.gid = gid.gid;
	exchange_print("local", &local);

	fd = exchange_open(host, port);
	if (host)
		exchange_tell(fd, &local);
	exchange_hear(fd, &remote);
	connect_qp(gid.gid_index, local.psn, &remote);
	if (!host)
		exchange_tell(fd, &local); /* only now can the client's message be received */
	exchange_end(fd, host != NULL);
	exchange_print("remote", &remote);

	clock_gettime(CLOCK_MONOTONIC, &t0);
	play(host != NULL);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	us = (t1.tv_sec - t0.tv_sec) * 1e6 + (t1.tv_nsec - t0.tv_nsec) / 1e3;
	printf("%lu bytes in %.2f seconds = %.2f Mbit/sec\n"
	       "%lu iters in %.2f seconds = %.2f usec/iter\n",
		2 * size * iters, us / 1e6, 16. * size * iters / us, iters, us / 1e6, us / iters);
	must(!roci_destroy_qp(qp) && !roci_destroy_cq(cq) && !roci_dereg_mr(mr) &&
			!roci_dealloc_pd(pd) && !roci_close(ctx),
		"end");
	return 0;
}
