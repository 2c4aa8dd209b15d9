/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hundreds of queue pairs of one program that all talk: to others over the link, to others on the
 * same port, to themselves. Each message has its number as immediate data and bytes that tell the
 * connection and the number; before it goes an RDMA WRITE whose bytes must be there when it comes.
 * Nothing may be lost, come twice or out of order, neither messages nor completions.
 *
 *     many_qps SOCKET wire|lossy|local|self QPS MESSAGES IN_FLIGHT [PORT_A PORT_B]
 */
#include <err.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pair.h"

#define WAIT_S	240 /* without any completion */
#define PATIENT 21  /* 8.6 s, seven times: workers share a busy machine */
#define LOSSY	19  /* 2.1 s: where the link loses packets */
#define SLOTS	4u  /* messages of a flow under way */
#define ROOM	2048u
#define CQE	16384

/* The way from one QP to its peer. Its memory: SLOTS of each kind, ROOM bytes each. */
struct flow {
	struct roci_qp *from;
	struct roci_qp *to;
	uint32_t sent;	/* messages posted */
	uint32_t acked; /* send completions, in WRs: two per message */
	uint32_t received;
	uint32_t posted; /* receives */
};

enum kind {
	SEND_FROM,
	RECV_TO,
	WRITE_FROM,
	WRITE_TO,
	KINDS,
};

static struct roci_context *ctx;
static struct roci_pd *pd;
static struct roci_cq *cq;
static struct roci_mr *mr;
static struct end *end; /* of each QP; ctx and qp only */
static struct flow *flow;
static unsigned qps, messages, in_flight, under_way;
static uint8_t timeout = PATIENT;

static void must(bool ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

/* --- bytes -------------------------------------------------------------------------------- */

static uint8_t *memory(unsigned f, enum kind k, uint32_t n)
{
	return (uint8_t *)mr->addr + (((size_t)f * KINDS + k) * SLOTS + n % SLOTS) * ROOM;
}

/* One, two or three packets of 1024 bytes, and odd ends. */
static uint32_t length_of(unsigned f, uint32_t n)
{
	return 1 + (f * 31 + n * 197) % (ROOM - 1);
}

static void fill(uint8_t *p, unsigned f, uint32_t n, uint8_t salt)
{
	uint32_t len = length_of(f, n);

	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(f * 7 + n * 13 + i + salt);
}

static void check(const uint8_t *p, unsigned f, uint32_t n, uint8_t salt, const char *what)
{
	uint32_t len = length_of(f, n);

	for (uint32_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)(f * 7 + n * 13 + i + salt))
			errx(1, "flow %u message %u: %s: byte %u of %u is wrong", f, n, what, i,
				len);
}

/* --- posting ------------------------------------------------------------------------------ */

static void post_recv(unsigned f)
{
	struct flow *fl = &flow[f];
	struct roci_sge sge = {(uintptr_t)memory(f, RECV_TO, fl->posted), ROOM, mr->lkey};
	struct roci_recv_wr wr = {.wr_id = fl->posted++, .sg_list = &sge, .num_sge = 1};

	must(!roci_post_recv(fl->to, &wr, NULL), "post a receive");
}

static void post_message(unsigned f)
{
	struct flow *fl = &flow[f];
	uint32_t n = fl->sent++;
	uint32_t len = length_of(f, n);
	struct roci_sge sge[2] = {
		{(uintptr_t)memory(f, WRITE_FROM, n), len, mr->lkey},
		{(uintptr_t)memory(f, SEND_FROM, n), len, mr->lkey},
	};
	struct roci_send_wr wr[2] = {
		{.wr_id = 2 * n, .sg_list = &sge[0], .num_sge = 1, .next = &wr[1]},
		{.wr_id = 2 * n + 1, .sg_list = &sge[1], .num_sge = 1},
	};

	fill(memory(f, WRITE_FROM, n), f, n, 1);
	fill(memory(f, SEND_FROM, n), f, n, 2);
	wr[0].opcode = ROCI_WR_RDMA_WRITE;
	wr[0].wr.rdma.remote_addr = (uintptr_t)memory(f, WRITE_TO, n);
	wr[0].wr.rdma.rkey = mr->rkey;
	wr[1].opcode = ROCI_WR_SEND_WITH_IMM;
	wr[1].imm_data = n;
	wr[0].send_flags = wr[1].send_flags = ROCI_SEND_SIGNALED;
	must(!roci_post_send(fl->from, wr, NULL), "post a message");
	under_way++;
}

/* --- completions -------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint32_t x = (*(const struct end *)a).qp->qp_num;
	uint32_t y = (*(const struct end *)b).qp->qp_num;

	return x < y ? -1 : x > y;
}

static unsigned index_of(uint32_t qp_num)
{
	struct roci_qp qp = {.qp_num = qp_num};
	struct end key = {.qp = &qp};
	struct end *e = bsearch(&key, end, qps, sizeof(*end), by_number);

	if (!e)
		errx(1, "a completion of QP 0x%x, which there is not", qp_num);
	return (unsigned)(e - end);
}

/* Flow i goes out of QP i, to that one's peer. */
static unsigned peer_of(unsigned i, bool self)
{
	return self ? i : i ^ 1;
}

static void take(const struct roci_wc *wc, bool self)
{
	unsigned i = index_of(wc->qp_num);
	bool recv = wc->opcode & ROCI_WC_RECV;
	unsigned f = recv ? peer_of(i, self) : i;
	struct flow *fl = &flow[f];

	if (wc->status != ROCI_WC_SUCCESS)
		errx(1, "flow %u: a request failed: %s", f, roci_wc_status_str(wc->status));
	if (!recv) {
		if (wc->wr_id != fl->acked)
			errx(1, "flow %u: send completion %llu instead of %u", f,
				(unsigned long long)wc->wr_id, fl->acked);
		fl->acked++;
		return;
	}
	if (wc->wr_id != fl->received || wc->imm_data != fl->received ||
		wc->byte_len != length_of(f, fl->received))
		errx(1, "flow %u: message %u (%llu) of %u bytes instead of %u", f, wc->imm_data,
			(unsigned long long)wc->wr_id, wc->byte_len, fl->received);
	check(memory(f, RECV_TO, fl->received), f, fl->received, 2, "SEND");
	check(memory(f, WRITE_TO, fl->received), f, fl->received, 1, "WRITE");
	fl->received++;
	under_way--;
	post_recv(f);
}

/* Naps now and then, so that completions pile up in all lanes, as with a program that computes. */
static unsigned poll(bool self)
{
	static unsigned polls;
	struct roci_wc wc[64];
	int n;

	if (++polls % 64 == 0)
		usleep(3000);
	n = roci_poll_cq(cq, 64, wc);
	must(n >= 0, "poll");
	for (int i = 0; i < n; i++)
		take(&wc[i], self);
	return (unsigned)n;
}

/* --- life --------------------------------------------------------------------------------- */

static void open_all(const char *socket, bool self, uint8_t port_a, uint8_t port_b)
{
	const int access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE;
	const struct end_tuning tuning = {.mtu = ROCI_MTU_1024, .timeout = timeout, .retry_cnt = 7};
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};

	must((ctx = roci_open(socket)) != NULL, "rocid");
	must((pd = roci_alloc_pd(ctx)) != NULL, "PD");
	mr = roci_alloc_mr(pd, (size_t)qps * KINDS * SLOTS * ROOM, access);
	must(mr != NULL, "memory");
	must((cq = roci_create_cq(ctx, CQE, NULL, NULL, 0)) != NULL, "CQ");
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct roci_qp_cap){2 * SLOTS, SLOTS, 1, 1, 0};
	end = calloc(qps, sizeof(*end));
	flow = calloc(qps, sizeof(*flow));
	if (!end || !flow)
		err(1, "no memory");
	for (unsigned i = 0; i < qps; i++) {
		end[i].ctx = ctx;
		end[i].mr = mr;
		must((end[i].qp = roci_create_qp(pd, &init)) != NULL, "QP");
	}
	qsort(end, qps, sizeof(*end), by_number);
	for (unsigned i = 0; i < qps; i++) {
		unsigned k = peer_of(i, self);
		uint8_t port = i & 1 ? port_b : port_a;
		struct end_address peer = end_address(&end[k], k & 1 ? port_b : port_a);

		end_to_init(&end[i], port);
		end_to_rts(&end[i], port, &peer, &tuning);
		flow[i] = (struct flow){.from = end[i].qp, .to = end[k].qp};
	}
}

static void close_all(void)
{
	for (unsigned i = 0; i < qps; i++)
		must(!roci_destroy_qp(end[i].qp), "destroy a QP");
	must(!roci_destroy_cq(cq), "destroy the CQ");
	must(!roci_dereg_mr(mr), "deregister");
	must(!roci_dealloc_pd(pd), "free the PD");
	must(!roci_close(ctx), "close");
	free(end);
	free(flow);
}

static bool may_send(const struct flow *fl)
{
	/* The slot's message has come, and all completions of it, so nobody reads the slot. */
	return fl->sent < messages && fl->sent - fl->received < SLOTS &&
	       2 * (fl->sent + 1) - fl->acked <= 2 * SLOTS && under_way < in_flight;
}

static void talk(bool self)
{
	uint64_t left = (uint64_t)qps * messages * 3; /* two send completions and one receive */
	time_t until = time(NULL) + WAIT_S;
	unsigned next = 0;

	for (unsigned i = 0; i < qps; i++)
		for (unsigned k = 0; k < SLOTS; k++)
			post_recv(i);
	while (left) {
		unsigned n;

		for (unsigned i = 0; i < qps && under_way < in_flight; i++, next++)
			if (may_send(&flow[next % qps]))
				post_message(next % qps);
		n = poll(self);
		left -= n;
		if (n)
			until = time(NULL) + WAIT_S;
		else if (time(NULL) > until)
			errx(1, "no completion within %d s, %llu are missing", WAIT_S,
				(unsigned long long)left);
		else
			sched_yield();
	}
	if (poll(self))
		errx(1, "completions that nobody asked for");
}

int main(int argc, char **argv)
{
	bool self, wire, lossy;

	if (argc != 6 && argc != 8)
		errx(2, "use: many_qps SOCKET wire|lossy|local|self QPS MESSAGES IN_FLIGHT "
			"[PORT_A PORT_B]");
	self = !strcmp(argv[2], "self");
	lossy = !strcmp(argv[2], "lossy");
	wire = lossy || !strcmp(argv[2], "wire");
	if (lossy)
		timeout = LOSSY;
	qps = (unsigned)atoi(argv[3]) & ~1u;
	messages = (unsigned)atoi(argv[4]);
	in_flight = (unsigned)atoi(argv[5]);
	open_all(argv[1], self, argc == 8 ? (uint8_t)atoi(argv[6]) : 1,
		argc == 8 ? (uint8_t)atoi(argv[7])
		: wire	  ? 2
			  : 1);
	talk(self);
	printf("%u QPs, %u messages each: all there, in order\n", qps, messages);
	close_all();
	return 0;
}
