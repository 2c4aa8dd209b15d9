/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instr_bench [--cc VALUE] [--limited] [--qps N] [--list N] [--size BYTES] [--one-port] [--workers
 * N]
 *
 * The program that `instr` runs under callgrind: for each operation and size as many messages as
 * that many bursts make, counted between two dumps whose trigger says "OP SIZE MESSAGES". Then
 * rounds of the worker in which nothing happens, as "idle 0 ROUNDS". Without callgrind it does the
 * same, counted by nobody. With --cc the ports control congestion, with --limited each QP has a CNP
 * before each count, and with --qps there are so many pairs of them instead of one, each of which
 * has a list of 8 messages or more; --list posts lists of another length. --size leaves out all
 * sizes but one. With --one-port both ends are at the same port, so no frame is made, unless
 * --workers 2 gives each a worker of its own.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>
#include "bench.h"
#include "bits.h"
#include "flows.h"
#include "host.h"

#define MESSAGES 1024u
/* By which callgrind slows programs down, roughly: timers are to expire as often as they would. */
#define SLOWDOWN 64u
#define MTU	 4096u
#define MEMORY	 (512u << 10)

static const struct {
	enum roci_wr_opcode opcode;
	const char *name;
} ops[] = {
	{ROCI_WR_RDMA_WRITE, "write"},
	{ROCI_WR_SEND, "send"},
	{ROCI_WR_RDMA_READ, "read"},
};

static const size_t sizes[] = {64, 1024, 4096, 65536};

struct arguments {
	const char *cc;
	bool limited;
	size_t size; /* 0: all */
	unsigned list;
};

/* Lists that a QP may have in flight, if there are many QPs. */
#define LISTS_OF_MANY 2u

static struct flows_config cfg = {.connections = 1, .depth = 128, .memory = MEMORY, .reads = 16};

static void open_flows(void *arg)
{
	*(struct flows **)arg = flows_open(&cfg);
}

static void close_flows(void *arg)
{
	flows_close(arg);
}

static void one_round(void *arg)
{
	host_round();
}

/* Limits may have ended since the last count. */
static void limit_all(void)
{
	if (host_limit() != 2 * cfg.connections)
		bench_die("some QPs are not limited: --cc must name an algorithm that CNPs make "
			  "slower");
}

static void count(struct flows *flows, unsigned op, size_t size, const struct arguments *a)
{
	struct traffic t = {
		.opcode = ops[op].opcode,
		.size = size,
		.set = MEMORY,
		.list = a->list,
		.signaled = 1,
		.packets = (unsigned)((size + MTU - 1) / MTU),
	};
	unsigned messages = MESSAGES / t.packets, lists = cfg.connections * t.list;
	char trigger[64];

	if (messages < lists)
		messages = lists; /* each QP has one */

	flows_run(flows, &t, messages / 4, one_round, NULL, 0);
	if (a->limited)
		limit_all();
	CALLGRIND_ZERO_STATS;
	CALLGRIND_TOGGLE_COLLECT;
	flows_run(flows, &t, messages, one_round, NULL, 0);
	CALLGRIND_TOGGLE_COLLECT;
	snprintf(trigger, sizeof(trigger), "%s %zu %u", ops[op].name, size, messages);
	CALLGRIND_DUMP_STATS_AT(trigger);
}

static void count_idle(void)
{
	char trigger[64];

	CALLGRIND_ZERO_STATS;
	CALLGRIND_TOGGLE_COLLECT;
	for (unsigned i = 0; i < MESSAGES; i++)
		host_round();
	CALLGRIND_TOGGLE_COLLECT;
	snprintf(trigger, sizeof(trigger), "idle 0 %u", MESSAGES);
	CALLGRIND_DUMP_STATS_AT(trigger);
}

static void read_arguments(struct arguments *a, int argc, char *argv[])
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--limited"))
			a->limited = true;
		else if (!strcmp(argv[i], "--cc") && i + 1 < argc)
			a->cc = argv[++i];
		else if (!strcmp(argv[i], "--qps") && i + 1 < argc)
			cfg.connections = (unsigned)strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--list") && i + 1 < argc)
			a->list = (unsigned)strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--size") && i + 1 < argc)
			a->size = strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--workers") && i + 1 < argc)
			host_workers((unsigned)strtoul(argv[++i], NULL, 0));
		else if (!strcmp(argv[i], "--one-port"))
			cfg.one_port = true;
		else
			bench_die("usage: instr_bench [--cc VALUE] [--limited] [--qps N] "
				  "[--list N] [--size BYTES] [--one-port] [--workers N]");
	}
	if (!cfg.connections)
		bench_die("--qps must be 1 or more");
	if (!a->list || a->list > cfg.depth)
		bench_die("--list must be 1 to %u", cfg.depth);
	if (cfg.connections > 1)
		cfg.depth = LISTS_OF_MANY * a->list;
}

int main(int argc, char *argv[])
{
	struct arguments a = {.list = 8};
	struct flows *flows;

	read_arguments(&a, argc, argv);
	host_start(argv[0], a.cc);
	host_while(open_flows, &flows);
	if (RUNNING_ON_VALGRIND)
		host_slow_clock(SLOWDOWN);
	for (unsigned op = 0; op < ARRAY_SIZE(ops); op++)
		for (unsigned s = 0; s < ARRAY_SIZE(sizes); s++)
			if (!a.size || a.size == sizes[s])
				count(flows, op, sizes[s], &a);
	count_idle();
	host_while(close_flows, flows);
	host_stop();
	return 0;
}
