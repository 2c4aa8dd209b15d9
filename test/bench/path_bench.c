/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a message from one application's memory to another's, on one core with all that is
 * between them, and the floor beside it, in turns (ABBA): README.md of this folder.
 *
 *   path_bench [--quick] [--op write,send,read] [--size 64,1024] [--set 512K,256M] [--qps 1,100]
 *              [--list 1,8,32] [--signal 1] [--samples 15] [--ms 10] [--alone]
 *
 * --alone leaves the floor out: for a profiler.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "bits.h"
#include "floor.h"
#include "flows.h"
#include "host.h"
#include "limits.h"
#include "worker.h"

#define CHOICES	   8u
#define MTU	   4096u
#define READS	   16u
#define QPS_MAX	   6000u /* connections: of both ends' QPs a daemon has 16,384 */
#define MEMORY_MAX (256u << 20)

struct choices {
	unsigned n;
	size_t v[CHOICES];
};

static struct {
	struct choices op, size, set, qps, list;
	unsigned signaled;
	unsigned samples;
	double ms;  /* of one sample */
	bool alone; /* without the floor */
} opt = {
	.op = {3, {ROCI_WR_RDMA_WRITE, ROCI_WR_SEND, ROCI_WR_RDMA_READ}},
	.size = {4, {64, 1024, 4096, 65536}},
	.set = {2, {512u << 10, MEMORY_MAX}},
	.qps = {3, {1, 100, 10000}},
	.list = {3, {1, 8, 32}},
	.signaled = 1,
	.samples = SAMPLES,
	.ms = 10,
};

/* --- options ------------------------------------------------------------------------------ */

static const char *op_name(size_t op)
{
	return op == ROCI_WR_RDMA_WRITE ? "write" : op == ROCI_WR_SEND ? "send" : "read";
}

static bool parse_one(const char *word, bool op, size_t *v)
{
	static const size_t ops[] = {ROCI_WR_RDMA_WRITE, ROCI_WR_SEND, ROCI_WR_RDMA_READ};
	char *end;

	for (unsigned i = 0; op && i < ARRAY_SIZE(ops); i++)
		if (!strcmp(word, op_name(ops[i]))) {
			*v = ops[i];
			return true;
		}
	*v = strtoul(word, &end, 10);
	if (*end == 'K' || *end == 'M')
		*v <<= *end++ == 'K' ? 10 : 20;
	return !op && *v && !*end;
}

static void parse_list(struct choices *c, char *text, bool op)
{
	char *save;

	c->n = 0;
	for (char *w = strtok_r(text, ",", &save); w; w = strtok_r(NULL, ",", &save))
		if (c->n == CHOICES || !parse_one(w, op, &c->v[c->n++]))
			bench_die("path_bench: %s: not what is wanted here, see the README", w);
}

static void quick(void)
{
	opt.ms = 4;
	opt.samples = 5;
	opt.list = (struct choices){1, {8}};
	opt.qps = (struct choices){2, {1, 10000}};
}

static size_t most(const struct choices *c)
{
	size_t max = 0;

	for (unsigned i = 0; i < c->n; i++)
		max = c->v[i] > max ? c->v[i] : max;
	return max;
}

/* The features of the floor and the flows. */
static void check(void)
{
	for (unsigned s = 0; s < opt.size.n; s++) {
		size_t size = opt.size.v[s];

		if (size > BURST * MTU || (size > MTU && size % MTU))
			bench_die("path_bench: --size %zu: up to %u, or a multiple of it up to %u",
				size, MTU, BURST * MTU);
		for (unsigned m = 0; m < opt.set.n; m++)
			if (opt.set.v[m] < size)
				bench_die("path_bench: --set %zu: smaller than a message",
					opt.set.v[m]);
	}
	if (most(&opt.set) > UINT32_MAX)
		bench_die("path_bench: --set: less than 4096M");
	if (most(&opt.list) > FLOWS_LIST_MAX || opt.signaled > FLOWS_LIST_MAX)
		bench_die("path_bench: --list, --signal: up to %u", FLOWS_LIST_MAX);
	if (most(&opt.qps) > 2 * QPS_MAX)
		bench_die("path_bench: --qps: up to %u", 2 * QPS_MAX);
	if (!opt.signaled || !opt.samples || opt.samples > SAMPLES_MAX || opt.ms <= 0)
		bench_die("path_bench: a number is 0, or more than %u samples", SAMPLES_MAX);
}

static void parse(int argc, char *argv[])
{
	static const struct option options[] = {
		{"quick", no_argument, NULL, 'q'},
		{"op", required_argument, NULL, 'o'},
		{"size", required_argument, NULL, 's'},
		{"set", required_argument, NULL, 'w'},
		{"qps", required_argument, NULL, 'n'},
		{"list", required_argument, NULL, 'l'},
		{"signal", required_argument, NULL, 'g'},
		{"samples", required_argument, NULL, 'r'},
		{"ms", required_argument, NULL, 'm'},
		{"alone", no_argument, NULL, 'a'},
		{NULL, 0, NULL, 0},
	};
	struct choices *lists[] = {
		['o'] = &opt.op,
		['s'] = &opt.size,
		['w'] = &opt.set,
		['n'] = &opt.qps,
		['l'] = &opt.list,
	};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'q')
			quick();
		else if (o == 'a')
			opt.alone = true;
		else if (o == 'g')
			opt.signaled = (unsigned)atoi(optarg);
		else if (o == 'r')
			opt.samples = (unsigned)atoi(optarg);
		else if (o == 'm')
			opt.ms = atof(optarg);
		else if (o != '?')
			parse_list(lists[o], optarg, o == 'o');
		else
			exit(2);
	}
	check();
}

/* --- measuring ---------------------------------------------------------------------------- */

static void one_round(void *arg)
{
	worker_round(arg);
}

/* Uses each entry of all queues once: the first use of a page takes longer than a message. */
static void touch_queues(struct flows *flows, const struct flows_config *cfg, struct worker *w)
{
	struct traffic t = {
		.opcode = ROCI_WR_SEND,
		.size = 64,
		.set = cfg->memory,
		.list = FLOWS_LIST_MAX,
		.signaled = 1,
		.packets = 1,
	};

	flows_run(flows, &t, (unsigned long)cfg->connections * cfg->depth, one_round, w, 0);
}

struct figure {
	struct samples floor_tx, floor_rx, path, post, poll, ratio;
};

/* @return how often the floor fits into a sample; 0: it is left out. */
static unsigned long floor_count(const struct traffic *t, unsigned long few)
{
	if (opt.alone)
		return 0;
	floor_run(t->size, t->set, few);
	return (unsigned long)(opt.ms * 1e6 / (floor_run(t->size, t->set, few).tx_ns * 2)) + 1;
}

static void sample_floor(struct figure *f, const struct traffic *t, unsigned long n)
{
	struct floor_cost c;

	if (!n)
		return;
	c = floor_run(t->size, t->set, n);
	f->floor_tx.v[f->floor_tx.n++] = c.tx_ns;
	f->floor_rx.v[f->floor_rx.n++] = c.rx_ns;
}

static void sample_path(struct figure *f, struct flows *flows, const struct traffic *t,
	unsigned long n, struct worker *w)
{
	f->path.v[f->path.n++] = flows_run(flows, t, n, one_round, w, 0).all_ns;
}

static void sample_split(struct figure *f, struct flows *flows, const struct traffic *t,
	unsigned long n, struct worker *w)
{
	struct flows_cost c = flows_run(flows, t, n, one_round, w, 1);

	f->post.v[f->post.n++] = c.post_ns;
	f->poll.v[f->poll.n++] = c.poll_ns;
}

/* Floor and path take turns, each first as often as the other: what drifts meets both. */
static void measure(
	struct figure *f, struct flows *flows, const struct traffic *t, struct worker *w)
{
	unsigned long few = 200 + 2 * (MTU << 4) / t->size;
	unsigned long nfloor = floor_count(t, few), npath;
	double path_ns;

	memset(f, 0, sizeof(*f));
	flows_run(flows, t, few, one_round, w, 0);
	path_ns = flows_run(flows, t, few, one_round, w, 0).all_ns;
	npath = (unsigned long)(opt.ms * 1e6 / path_ns) + 1;
	for (unsigned i = 0; i < opt.samples; i++) {
		if (i % 2)
			sample_path(f, flows, t, npath, w);
		sample_floor(f, t, nfloor);
		if (i % 2 == 0)
			sample_path(f, flows, t, npath, w);
		if (nfloor)
			f->ratio.v[f->ratio.n++] =
				f->path.v[i] / (f->floor_tx.v[i] + f->floor_rx.v[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		sample_split(f, flows, t, npath / 2 + 1, w);
}

static void print(const struct figure *f, const struct traffic *t, size_t qps)
{
	double ns = median(&f->path);
	char set[16];

	snprintf(set, sizeof(set), t->set >> 20 ? "%zuM" : "%zuK",
		t->set >> 20 ? t->set >> 20 : t->set >> 10);
	line_begin("path");
	line_text("op", op_name(t->opcode));
	line_number("size", (double)t->size);
	line_number("qps", (double)qps);
	line_text("memory", set);
	line_number("list", t->list);
	line_number("signal", t->signaled);
	line_samples("ns", &f->path);
	line_number("mmsg_s", 1e3 / ns);
	line_number("gbit_s", (double)t->size * 8 / ns);
	if (f->ratio.n) {
		line_number("floor_tx", median(&f->floor_tx));
		line_number("floor_rx", median(&f->floor_rx));
		line_number("ratio_to_floor", median(&f->ratio));
	}
	line_number("post", median(&f->post));
	line_number("poll", median(&f->poll));
	line_end();
}

static void run_sizes(struct flows *flows, struct traffic *t, size_t qps, struct worker *w)
{
	for (unsigned s = 0; s < opt.size.n; s++) {
		struct figure f;

		t->size = opt.size.v[s];
		t->packets = (unsigned)((t->size + MTU - 1) / MTU);
		measure(&f, flows, t, w);
		print(&f, t, qps);
	}
}

static void run_flows(struct flows *flows, size_t qps, struct worker *w)
{
	for (unsigned l = 0; l < opt.list.n; l++)
		for (unsigned m = 0; m < opt.set.n; m++)
			for (unsigned o = 0; o < opt.op.n; o++) {
				struct traffic t = {
					.opcode = (enum roci_wr_opcode)opt.op.v[o],
					.set = opt.set.v[m],
					.list = (unsigned)opt.list.v[l],
					.signaled = opt.signaled,
				};

				if (t.list < t.signaled)
					t.list = t.signaled;
				run_sizes(flows, &t, qps, w);
			}
}

struct opening {
	struct flows_config cfg;
	struct flows *flows;
};

static void open_flows(void *arg)
{
	struct opening *o = arg;

	o->flows = flows_open(&o->cfg);
}

static void close_flows(void *arg)
{
	flows_close(arg);
}

int main(int argc, char *argv[])
{
	struct worker *w;
	size_t memory;

	parse(argc, argv);
	memory = most(&opt.set);
	if (memory < FLOWS_TOUCH)
		memory = FLOWS_TOUCH;
	w = host_start(argv[0], NULL);
	floor_open(memory);
	for (unsigned i = 0; i < opt.qps.n; i++) {
		size_t qps = opt.qps.v[i];
		struct opening o = {.cfg = {
					    .connections = qps > 1 ? (unsigned)(qps / 2) : 1,
					    .depth = qps > 1000 ? 32 : 128,
					    .memory = memory,
					    .reads = READS,
				    }};

		host_while(open_flows, &o);
		flows_touch(o.flows, one_round, w);
		touch_queues(o.flows, &o.cfg, w);
		run_flows(o.flows, qps, w);
		host_while(close_flows, o.flows);
	}
	floor_close();
	host_stop();
	return 0;
}
