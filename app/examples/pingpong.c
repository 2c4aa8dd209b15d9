/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first program: two queue pairs send one message back and forth. One side starts without
 * an argument, the other with its host. It speaks the TCP exchange of ibv_rc_pingpong, so
 * either side may be that program, on a machine with an RDMA device.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netdb.h>
#include <roci.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	RECV_ID = 1,
	SEND_ID = 2
};

struct address {		/* what the two sides tell each other */
	unsigned lid, qpn, psn; /* the LID is 0 on RoCE */
	union roci_gid gid;
};

static unsigned size = 4096, mtu = 1024, depth = 500, iters = 1000, ib_port = 1, check;
static struct roci_mr *mr; /* what is sent, and behind it what is received */
static struct roci_cq *cq;
static struct roci_qp *qp;

/* Every failure of the library comes with a sentence. */
static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static int tcp_connect(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *list, *a;
	int on = 1, rc = getaddrinfo(host, port, &hints, &list), fd = -1, peer;

	if (rc)
		errx(1, "%s:%s: %s", host ? host : "", port, gai_strerror(rc));
	for (a = list, rc = -1; a && rc; a = a->ai_next) {
		close(fd);
		fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		rc = host ? connect(fd, a->ai_addr, a->ai_addrlen)
			  : bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 1);
	}
	if (rc)
		err(1, "TCP port %s%s%s", port, host ? " of " : "", host ? host : "");
	freeaddrinfo(list);
	if (host)
		return fd;
	peer = accept(fd, NULL, NULL);
	close(fd);
	return peer;
}

#define FORMAT "%04x:%06x:%06x:%08x%08x%08x%08x"
#define LENGTH sizeof("0000:000000:000000:00000000000000000000000000000000")

static void tell(int fd, const struct address *a)
{
	char text[LENGTH];
	uint32_t g[4];

	memcpy(g, a->gid.raw, sizeof(g));
	snprintf(text, sizeof(text), FORMAT, a->lid & 0xffff, a->qpn, a->psn, ntohl(g[0]),
		ntohl(g[1]), ntohl(g[2]), ntohl(g[3]));
	if (write(fd, text, sizeof(text)) != sizeof(text))
		err(1, "cannot tell the peer the local address");
}

static void hear(int fd, struct address *a)
{
	char text[LENGTH + 1] = "";
	uint32_t g[4];

	if (recv(fd, text, LENGTH, MSG_WAITALL) != LENGTH ||
		sscanf(text, "%x:%x:%x:%8x%8x%8x%8x", &a->lid, &a->qpn, &a->psn, &g[0], &g[1],
			&g[2], &g[3]) != 7)
		errx(1, "the peer told no address");
	for (int i = 0; i < 4; i++)
		g[i] = htonl(g[i]);
	memcpy(a->gid.raw, g, sizeof(g));
}

static void print(const char *whose, const struct address *a)
{
	char gid[INET6_ADDRSTRLEN];

	printf("  %s address: LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", whose, a->lid, a->qpn,
		a->psn, inet_ntop(AF_INET6, a->gid.raw, gid, sizeof(gid)));
	fflush(stdout);
}

static void make_qp(struct roci_context *ctx, struct roci_pd *pd)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_INIT};

	must((mr = roci_alloc_mr(pd, 2ul * size + 1, ROCI_ACCESS_LOCAL_WRITE)) != NULL, "memory");
	memset(mr->addr, 0x7b, size); /* as ibv_rc_pingpong does */
	must((cq = roci_create_cq(ctx, (int)depth + 1, NULL, NULL, 0)) != NULL, "CQ");
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct roci_qp_cap){1, depth, 1, 1, 0};
	must((qp = roci_create_qp(pd, &init)) != NULL, "QP");
	attr.port_num = (uint8_t)ib_port;
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
	attr.ah_attr.port_num = (uint8_t)ib_port;
	attr.ah_attr.grh.dgid = remote->gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)sgid_index;
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

static void post_recv(unsigned n)
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

/* With -c: every byte is the peer's; then they are cleared for the next message. */
static void check_message(uint32_t length)
{
	uint8_t *data = (uint8_t *)mr->addr + size;

	if (length != size || (check && size && memcmp(data, mr->addr, size)))
		errx(1, "a message of %u bytes is not what was sent", length);
	if (check)
		memset(data, 0, size);
}

/* Sends whenever the last message has come in and the last send is complete. */
static void play(int begin)
{
	unsigned sent = 0, received = 0, posted = depth, pending = RECV_ID | (begin ? SEND_ID : 0);
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
		sent += wc.wr_id == SEND_ID;
		if (wc.wr_id == RECV_ID) {
			received++;
			check_message(wc.byte_len);
			if (--posted <= 1) {
				post_recv(depth - posted);
				posted = depth;
			}
		}
		pending &= ~(unsigned)wc.wr_id;
		if (sent < iters && !pending) {
			post_send();
			pending = RECV_ID | SEND_ID;
		}
	}
}

static const char *options(int argc, char **argv, const char **port, int *gid_index)
{
	int o;

	while ((o = getopt(argc, argv, "p:i:s:m:r:n:g:c")) != -1) {
		unsigned *number = o == 'i'   ? &ib_port
				   : o == 's' ? &size
				   : o == 'm' ? &mtu
				   : o == 'r' ? &depth
				   : o == 'n' ? &iters
				   : o == 'g' ? (unsigned *)gid_index
					      : &check;
		char *end = "";

		if (o == 'p')
			*port = optarg;
		else if (o == 'c')
			check = 1;
		else if (o != '?')
			*number = (unsigned)strtoul(optarg, &end, 0);
		if (o == '?' || *end)
			errx(2, "use: roci-pingpong [-p TCP port] [-i port] [-s size] [-m MTU] "
				"[-r receives] [-n iterations] [-g GID index] [-c] [HOST]");
	}
	return argv[optind];
}

int main(int argc, char **argv)
{
	struct roci_gid_entry gid = {.size = sizeof(gid)};
	struct address local = {0}, remote;
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct timespec t0, t1;
	const char *port = "18515", *host;
	int gid_index = -1, fd;
	double us;

	host = options(argc, argv, &port, &gid_index);
	must((ctx = roci_open(NULL)) != NULL, "rocid");
	must((pd = roci_alloc_pd(ctx)) != NULL, "PD");
	make_qp(ctx, pd);
	post_recv(depth);
	must(!(gid_index < 0 ? roci_find_gid(ctx, ib_port, NULL, &gid)
			     : roci_query_gid(ctx, ib_port, (unsigned)gid_index, &gid)),
		"GID");
	srand48(getpid() * time(NULL));
	local.qpn = qp->qp_num;
	local.psn = lrand48() & 0xffffff;
	local.gid = gid.gid;
	print("local ", &local);

	/* The client tells first. The server answers when its QP can receive. */
	fd = tcp_connect(host, port);
	if (host)
		tell(fd, &local);
	hear(fd, &remote);
	connect_qp(gid.gid_index, local.psn, &remote);
	if (host) {
		if (write(fd, "done", sizeof("done")) < 0)
			err(1, "the peer has gone");
	} else {
		char done[LENGTH];

		tell(fd, &local);
		if (read(fd, done, sizeof(done)) <= 0)
			errx(1, "the peer has gone");
	}
	close(fd);
	print("remote", &remote);

	clock_gettime(CLOCK_MONOTONIC, &t0);
	play(host != NULL);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	us = (t1.tv_sec - t0.tv_sec) * 1e6 + (t1.tv_nsec - t0.tv_nsec) / 1e3;
	printf("%llu bytes in %.2f seconds = %.2f Mbit/sec\n", 2ull * size * iters, us / 1e6,
		2.0 * size * iters * 8 / us);
	printf("%u iters in %.2f seconds = %.2f usec/iter\n", iters, us / 1e6, us / iters);

	must(!roci_destroy_qp(qp) && !roci_destroy_cq(cq) && !roci_dereg_mr(mr) &&
			!roci_dealloc_pd(pd) && !roci_close(ctx),
		"end");
	return 0;
}
