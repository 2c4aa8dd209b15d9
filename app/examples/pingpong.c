/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first program: two queue pairs send one message back and forth. One side starts without
 * an argument, the other with its host. Either side may be ibv_rc_pingpong on a machine with
 * an RDMA device; with -u, which sends datagrams, ibv_ud_pingpong.
 */
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <roci.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "exchange.h"
#include "rc.h"
#include "ud.h"

#define PORT	1 /* of the device */
#define ANY	(-1ul)
#define RECV_ID 1
#define SEND_ID 2
#define QKEY	0x11111111u /* ibv_ud_pingpong's */

static unsigned long size = 4096, mtu = 1024, depth = 500, iters = 1000, gid_index = ANY, check,
		     datagram;
static struct roci_mr *mr; /* the message that is sent, then the one that is received */
static struct roci_cq *cq;
static struct roci_qp *qp;
static struct roci_ah *ah;  /* with -u: the address of the peer, */
static uint32_t remote_qpn; /* and its QP */
static unsigned long area;  /* bytes in front of what is received */

/* Every failure of the library comes with a sentence. */
static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void make_qp(struct roci_context *ctx, struct roci_pd *pd)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};

	if (datagram) {
		init.qp_type = ROCI_QPT_UD;
		area = ROCI_GRH_LEN;
	}
	must((mr = roci_alloc_mr(pd, 2 * size + area + 1, ROCI_ACCESS_LOCAL_WRITE)) != NULL,
		"memory");
	memset(mr->addr, 0x7b, size); /* as ibv_rc_pingpong does, with a mark in each page: */
	for (unsigned long i = 0; check && i < size; i += 4096)
		((uint8_t *)mr->addr)[i] = 0;
	must((cq = roci_create_cq(ctx, depth + 1, NULL, NULL, 0)) != NULL, "CQ");
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct roci_qp_cap){1, depth, 1, 1, 0};
	must((qp = roci_create_qp(pd, &init)) != NULL, "QP");
	must(!(datagram ? ud_init(qp, PORT, QKEY) : rc_init(qp, PORT, 0)), "QP to INIT");
}

/* A datagram QP has no peer: each message has a destination. */
static void start_qp(
	struct roci_pd *pd, uint8_t sgid_index, unsigned psn, const struct address *remote)
{
	must(!ud_start(qp, psn), "start the QP");
	must((ah = ud_peer(pd, PORT, sgid_index, &remote->gid)) != NULL, "address handle");
	remote_qpn = remote->qpn;
}

/* INIT to RTR and RTS, one by one: rc.c shows the details. */
static void connect_qp(uint8_t sgid_index, unsigned psn, const struct address *remote)
{
	const struct rc_path path = {
		.port = PORT,
		.gid_index = sgid_index,
		.mtu = (enum roci_mtu)roci_mtu_of_bytes(mtu),
		.psn = psn,
		.rd_atomic = 1,
		.timeout = 14, /* 4.096 us * 2^14 = 67 ms */
		.peer_qpn = remote->qpn,
		.peer_psn = remote->psn,
		.peer_gid = remote->gid,
	};

	must(!rc_connect(qp, &path), "connect the QP");
}

static void post_recv(unsigned long n)
{
	struct roci_sge sge = {(uintptr_t)mr->addr + size, size + area, mr->lkey};
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
	if (datagram) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = remote_qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	must(!roci_post_send(qp, &wr, NULL), "send");
}

/* With -c the received bytes must equal the sent ones, and are then cleared for the next message.
 */
static void check_message(uint32_t length)
{
	uint8_t *data = (uint8_t *)mr->addr + size + area;

	if (length != size + area || (check && memcmp(data, mr->addr, size)))
		errx(1, "a message of %u bytes differs from the one that was sent", length);
	if (check)
		memset(data, 0, size);
}

/* Sends whenever the last message has arrived and the last send is complete. */
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
			errx(1, "%s: %s", roci_wc_status_str(wc.status), roci_qp_error(qp));
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

static void usage(FILE *to, int status)
{
	fprintf(to, "usage: roci-pingpong [-p TCP port] [-s size] [-m MTU] [-r receives] "
		    "[-n iterations] [-g GID index] [-c] [-u] [HOST]\n");
	exit(status);
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (!isdigit((unsigned char)*text) || *end) /* strtoul() also takes signs and blanks */
		usage(stderr, 2);
	return value;
}

/* @return the TCP port. */
static const char *read_options(int argc, char **argv)
{
	static const struct option long_options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	unsigned long *const value[] = {&size, &mtu, &depth, &iters, &gid_index, &check, &datagram};
	const char *const letters = "smrngcu";
	const char *port = "18515";
	int o;

	while ((o = getopt_long(argc, argv, "hp:s:m:r:n:g:cu", long_options, NULL)) != -1) {
		if (o == 'p')
			port = optarg;
		else if (o == 'h')
			usage(stdout, 0);
		else if (o == '?')
			usage(stderr, 2);
		else
			*value[strchr(letters, o) - letters] = optarg ? number(optarg) : 1;
	}
	return port;
}

int main(int argc, char **argv)
{
	struct roci_gid_entry gid = {.size = sizeof(gid)};
	struct address local = {0}, remote;
	const char *port, *host;
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct timespec t0, t1;
	double us;
	int fd;

	port = read_options(argc, argv);
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
	if (datagram)
		start_qp(pd, (uint8_t)gid.gid_index, local.psn, &remote);
	else
		connect_qp((uint8_t)gid.gid_index, local.psn, &remote);
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
	must(!ah || !roci_destroy_ah(ah), "end");
	must(!roci_destroy_qp(qp) && !roci_destroy_cq(cq) && !roci_dereg_mr(mr) &&
			!roci_dealloc_pd(pd) && !roci_close(ctx),
		"end");
	return 0;
}
