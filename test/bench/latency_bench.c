/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong of 64 bytes between two programs over net_ring: half of a round trip. A WRITE is seen
 * by its last byte, a SEND by its completion. Once everything in one thread, and once with the
 * worker on one CPU and both programs on another, as rocid runs.
 *
 *   latency_bench [--quick]
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>
#include "bench.h"
#include "flows.h"
#include "host.h"
#include "worker.h"

#define SIZE   64u
#define DEPTH  64u
#define WARMUP 1000u
#define TRIPS  20000u
#define QUICK  5000u
/* Without an answer for so long something hangs; and looks between two at the clock. */
#define PATIENCE_NS 120e9
#define LOOKS	    (1ul << 20)

struct pingpong {
	struct flows *flows;
	struct worker *worker; /* NULL: another thread calls its rounds */
	enum roci_wr_opcode opcode;
	unsigned trips;
	uint64_t *cycles; /* of each trip */
	double ns_per_cycle;
};

static void check(int ok, const char *what)
{
	if (!ok)
		bench_die("%s: %s", what, roci_last_error());
}

/* Takes what has come to @p end.  @return receives among it. */
static unsigned take(struct pingpong *p, unsigned end)
{
	struct roci_wc wc[8];
	int n = roci_poll_cq(flows_cq(p->flows, end), 8, wc);
	unsigned received = 0;

	check(n >= 0, "poll");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != ROCI_WC_SUCCESS)
			bench_die("a message failed: %s", roci_wc_status_str(wc[i].status));
		received += wc[i].opcode == ROCI_WC_RECV;
	}
	return received;
}

static void post_receive(struct pingpong *p, unsigned end)
{
	struct roci_mr *mr = flows_mr(p->flows, end);
	struct roci_sge sge = {(uintptr_t)mr->addr, SIZE, mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	check(!roci_post_recv(flows_qp(p->flows, 0, end), &wr, NULL), "post a receive");
}

/* The memory that @p end sends follows the memory that it receives into. */
static void post(struct pingpong *p, unsigned end, uint8_t mark)
{
	struct roci_mr *mr = flows_mr(p->flows, end);
	struct roci_mr *to = flows_mr(p->flows, !end);
	uint8_t *from = (uint8_t *)mr->addr + SIZE;
	struct roci_sge sge = {(uintptr_t)from, SIZE, mr->lkey};
	struct roci_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = p->opcode};

	from[SIZE - 1] = mark;
	wr.send_flags = ROCI_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
	wr.wr.rdma.rkey = to->rkey;
	check(!roci_post_send(flows_qp(p->flows, 0, end), &wr, NULL), "post");
}

/* Waits until the message @p mark is at @p end; completions of what was sent are taken by the way.
 */
static void await(struct pingpong *p, unsigned end, uint8_t mark)
{
	const volatile uint8_t *last =
		(const volatile uint8_t *)flows_mr(p->flows, end)->addr + SIZE - 1;

	double since = 0;

	for (unsigned long i = 1;; i++) {
		if (p->worker)
			worker_round(p->worker);
		if (p->opcode == ROCI_WR_SEND ? take(p, end) : *last == mark)
			return;
		if (i % LOOKS)
			continue;
		if (!since)
			since = bench_ns();
		else if (bench_ns() - since > PATIENCE_NS)
			bench_die("a message does not arrive");
	}
}

static void one_trip(struct pingpong *p, uint8_t mark)
{
	for (unsigned end = 0; end < 2; end++) {
		if (p->opcode == ROCI_WR_SEND)
			post_receive(p, !end);
		post(p, end, mark);
		await(p, !end, mark);
		if (p->opcode != ROCI_WR_SEND)
			take(p, !end); /* its own last one */
	}
}

static void run(void *arg)
{
	struct pingpong *p = arg;
	uint64_t before = 0;
	double start = 0;
	uint64_t first = 0;

	for (unsigned i = 0; i < WARMUP + p->trips; i++) {
		if (i == WARMUP) {
			start = bench_ns();
			first = __rdtsc();
		}
		before = __rdtsc();
		one_trip(p, (uint8_t)(i + 1));
		if (i >= WARMUP)
			p->cycles[i - WARMUP] = __rdtsc() - before;
	}
	p->ns_per_cycle = (bench_ns() - start) / (double)(__rdtsc() - first);
	while (take(p, 0) || take(p, 1))
		;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print(struct pingpong *p, const char *threads)
{
	double half = p->ns_per_cycle / 2;

	qsort(p->cycles, p->trips, sizeof(p->cycles[0]), by_value);
	line_begin("latency");
	line_text("op", p->opcode == ROCI_WR_SEND ? "send" : "write");
	line_number("size", SIZE);
	line_text("threads", threads);
	line_text("unit", "ns");
	line_number("median", (double)p->cycles[p->trips / 2] * half);
	line_number("min", (double)p->cycles[0] * half);
	line_number("p99", (double)p->cycles[p->trips - 1 - p->trips / 100] * half);
	line_number("trips", p->trips);
	line_end();
}

static void open_flows(void *arg)
{
	struct pingpong *p = arg;
	const struct flows_config cfg = {
		.connections = 1, .depth = DEPTH, .memory = 4096, .reads = 1};

	p->flows = flows_open(&cfg);
}

static void close_flows(void *arg)
{
	flows_close(arg);
}

int main(int argc, char *argv[])
{
	static const enum roci_wr_opcode ops[] = {ROCI_WR_RDMA_WRITE, ROCI_WR_SEND};
	struct pingpong p = {.trips = TRIPS};
	struct worker *w;

	if (argc > 1 && !strcmp(argv[1], "--quick"))
		p.trips = QUICK;
	else if (argc > 1)
		bench_die("usage: latency_bench [--quick]");
	p.cycles = calloc(p.trips, sizeof(p.cycles[0]));
	if (!p.cycles)
		bench_die("no memory");
	w = host_start(argv[0], NULL);
	host_while(open_flows, &p);
	bench_settle();
	for (unsigned i = 0; i < 2; i++) {
		p.opcode = ops[i];
		p.worker = w;
		run(&p);
		print(&p, "one");
		p.worker = NULL;
		host_while(run, &p);
		print(&p, "worker and programs");
	}
	host_while(close_flows, p.flows);
	host_stop();
	free(p.cycles);
	return 0;
}
