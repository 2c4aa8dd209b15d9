/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers on CPUs of their own, each with both ends of a connection: how much of its rate a worker
 * keeps while all others work, too.
 *
 *   cores_bench [--quick] [--samples 15] --workers N
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include "bench.h"
#include "bits.h"
#include "flows.h"
#include "host.h"
#include "worker.h"

#define MEMORY	(512u << 10)
#define CHUNK	1000u /* messages between looks at the clock */
#define MS	20.0  /* of a sample */
#define MS_FEW	4.0
#define WORKERS 16u

/* A worker, and the program beside it on its thread. */
struct lane {
	struct flows *flows;
	struct worker *worker;
	double rate; /* messages per us */
};

static struct {
	unsigned workers;
	double ms;
	struct lane lane[WORKERS];
	struct traffic traffic;
	unsigned samples;
	unsigned together; /* threads of this sample */
	_Atomic unsigned ready;
	_Atomic bool
		over; /* the first thread has finished: the others would be faster from now on */
} cores = {.ms = MS, .samples = SAMPLES};

static void one_round(void *arg)
{
	worker_round(arg);
}

/* For a sample: begins when all threads of it are there. */
static int run(void *arg)
{
	struct lane *l = arg;
	unsigned long messages = 0;
	double start, ns;

	atomic_fetch_add(&cores.ready, 1);
	while (atomic_load(&cores.ready) < cores.together)
		;
	start = bench_ns();
	do {
		flows_run(l->flows, &cores.traffic, CHUNK, one_round, l->worker, 0);
		messages += CHUNK;
		ns = bench_ns() - start;
	} while (ns < cores.ms * 1e6 && !atomic_load(&cores.over));
	atomic_store(&cores.over, true);
	l->rate = (double)messages * 1e3 / ns;
	return 0;
}

/* Worker 0 runs on the main thread.  @return the lcore of worker @p i. */
static unsigned lcore_of(unsigned i)
{
	unsigned lcore = rte_get_main_lcore();

	while (i--)
		lcore = rte_get_next_lcore(lcore, 1, 1);
	return lcore;
}

static void launch(unsigned i)
{
	if (i == 0)
		run(&cores.lane[0]);
	else if (rte_eal_remote_launch(run, &cores.lane[i], lcore_of(i)))
		bench_die("the thread of lcore %u is busy", lcore_of(i));
}

/* Runs workers @p from to @p to - 1 for a sample.  @return their rate. */
static double run_some(unsigned from, unsigned to)
{
	double rate = 0;

	cores.together = to - from;
	atomic_store(&cores.ready, 0);
	atomic_store(&cores.over, false);
	for (unsigned i = to; i-- > from;)
		launch(i);
	rte_eal_mp_wait_lcore();
	for (unsigned i = from; i < to; i++)
		rate += cores.lane[i].rate;
	return rate;
}

struct figure {
	struct samples all, kept;
};

static double each_alone(void)
{
	double rate = 0;

	for (unsigned i = 0; i < cores.workers; i++)
		rate += run_some(i, i + 1);
	return rate;
}

/* Each worker works alone before and after all of them: a slow moment meets both. */
static void sample(struct figure *f)
{
	double before = each_alone();
	double all = run_some(0, cores.workers);

	f->all.v[f->all.n++] = all;
	f->kept.v[f->kept.n++] = all * 2 / (before + each_alone());
}

static void print(const struct figure *f, const char *op)
{
	line_begin("cores");
	line_text("op", op);
	line_number("size", (double)cores.traffic.size);
	line_number("workers", cores.workers);
	line_samples("M/s", &f->all);
	if (cores.workers > 1)
		line_number("kept", median(&f->kept));
	line_number("gbit_s", (double)cores.traffic.size * 8e-3 * median(&f->all));
	line_end();
}

static void measure(enum roci_wr_opcode opcode, const char *op, size_t size)
{
	struct figure f = {0};

	cores.traffic = (struct traffic){.opcode = opcode,
		.size = size,
		.set = MEMORY,
		.list = 8,
		.signaled = 1,
		.packets = 1};
	run_some(0, cores.workers); /* warms the caches */
	for (unsigned i = 0; i < cores.samples; i++)
		sample(&f);
	print(&f, op);
}

static void open_flows(void *arg)
{
	const struct flows_config cfg = {
		.connections = 1, .depth = 128, .memory = MEMORY, .reads = 16};
	struct flows *f[WORKERS];

	flows_open_each(f, cores.workers, &cfg);
	for (unsigned i = 0; i < cores.workers; i++)
		cores.lane[i] = (struct lane){.flows = f[i], .worker = host_worker(i)};
}

static void close_flows(void *arg)
{
	for (unsigned i = 0; i < cores.workers; i++)
		flows_close(cores.lane[i].flows);
}

static void read_arguments(int argc, char *argv[])
{
	cpu_set_t mine;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick"))
			cores.ms = MS_FEW;
		else if (!strcmp(argv[i], "--samples") && i + 1 < argc)
			cores.samples = (unsigned)strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--workers") && i + 1 < argc)
			cores.workers = (unsigned)strtoul(argv[++i], NULL, 0);
		else
			bench_die("usage: cores_bench [--quick] [--samples N] --workers N");
	}
	if (!cores.samples || cores.samples > SAMPLES_MAX)
		bench_die("cores_bench: --samples 1 to %u", SAMPLES_MAX);
	if (!cores.workers || cores.workers > WORKERS)
		bench_die("cores_bench: --workers 1 to %u", WORKERS);
	if (!sched_getaffinity(0, sizeof(mine), &mine) && CPU_COUNT(&mine) < (int)cores.workers)
		bench_die("cores_bench: %u workers need as many CPUs, but there are %d",
			cores.workers, CPU_COUNT(&mine));
}

int main(int argc, char *argv[])
{
	read_arguments(argc, argv);
	host_workers(cores.workers);
	host_start(argv[0], NULL);
	host_while(open_flows, NULL);
	bench_settle();
	measure(ROCI_WR_RDMA_WRITE, "write", 64);
	measure(ROCI_WR_SEND, "send", 64);
	measure(ROCI_WR_RDMA_READ, "read", 64);
	measure(ROCI_WR_RDMA_WRITE, "write", 4096);
	host_while(close_flows, NULL);
	host_stop();
	return 0;
}
