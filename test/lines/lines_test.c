/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No packet writes a line that another worker uses: two workers, each with both ends of a
 * connection, and every access that the core and the worker make for their messages.
 */
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "flows.h"
#include "host.h"
#include "lines.h"
#include "worker.h"

#define MEMORY	 (64u << 10)
#define MESSAGES 2000u
#define SKIPPED	 77 /* as meson reads it */
/* Lines may move this often in a run, for work that is not done per packet, burst or round. */
#define SELDOM 4u

static struct flows *flows[LINES_WORKERS];

static const struct flows_config cfg = {
	.connections = 1, .depth = 128, .memory = MEMORY, .reads = 16};

static void open_flows(void *arg)
{
	flows_open_each(flows, LINES_WORKERS, &cfg);
}

static void open_apart(void *arg)
{
	*(struct flows **)arg = flows_open(&cfg);
}

static void close_apart(void *arg)
{
	flows_close(arg);
}

static void close_flows(void *arg)
{
	for (unsigned i = 0; i < LINES_WORKERS; i++)
		flows_close(flows[i]);
}

static void counted_round(void *arg)
{
	unsigned i = *(unsigned *)arg;

	lines_by(i);
	worker_round(host_worker(i));
	lines_by(LINES_WORKERS);
}

static void both_rounds(void *arg)
{
	for (unsigned i = 0; i < LINES_WORKERS; i++)
		counted_round(&i);
}

static void run(const struct traffic *t)
{
	for (unsigned i = 0; i < LINES_WORKERS; i++)
		flows_run(flows[i], t, MESSAGES, counted_round, &i, 0);
}

/* As addr2line takes it. */
static uintptr_t offset_of(const void *instruction)
{
	extern const char __executable_start[];

	return (uintptr_t)instruction - (uintptr_t)__executable_start;
}

static void show(const struct shared_lines *s)
{
	fprintf(stderr,
		"lines move %" PRIu64 " times. Most often %#" PRIx64 ", which the two workers read "
		"%" PRIu64 " and %" PRIu64 " times and write %" PRIu64 " and %" PRIu64
		" times: see `addr2line -ifpe lines_test %#" PRIxPTR " %#" PRIxPTR "`\n",
		s->times, s->address, s->reads[0], s->reads[1], s->writes[0], s->writes[1],
		offset_of(s->writer), offset_of(s->user));
}

static void none_is_shared(void)
{
	const struct shared_lines s = lines_shared();

	if (s.times > SELDOM)
		show(&s);
	assert_in_range(s.times, 0, SELDOM);
}

static void share_nothing(enum roci_wr_opcode opcode, size_t size, unsigned list)
{
	const struct traffic t = {.opcode = opcode,
		.size = size,
		.set = MEMORY,
		.list = list,
		.signaled = 1,
		.packets = (unsigned)((size + 4095) / 4096)};

	run(&t); /* what is done once is done */
	lines_clear();
	run(&t);
	/* A message is at the very least a hundred accesses. */
	assert_true(lines_accesses() > 100ull * MESSAGES * LINES_WORKERS);
	none_is_shared();
}

static void two_workers__write(void **state)
{
	share_nothing(ROCI_WR_RDMA_WRITE, 64, 8);
}

static void two_workers__send(void **state)
{
	share_nothing(ROCI_WR_SEND, 64, 8);
}

static void two_workers__read(void **state)
{
	share_nothing(ROCI_WR_RDMA_READ, 64, 8);
}

static void two_workers__lists_of_one(void **state)
{
	share_nothing(ROCI_WR_RDMA_WRITE, 64, 1);
	share_nothing(ROCI_WR_SEND, 64, 1);
	share_nothing(ROCI_WR_RDMA_READ, 64, 1);
}

static void two_workers__several_packets(void **state)
{
	share_nothing(ROCI_WR_RDMA_WRITE, 16384, 4);
	share_nothing(ROCI_WR_SEND, 16384, 4);
	share_nothing(ROCI_WR_RDMA_READ, 16384, 4);
}

static void two_workers__idle(void **state)
{
	lines_clear();
	for (unsigned n = 0; n < MESSAGES; n++)
		both_rounds(NULL);
	assert_true(lines_accesses() > MESSAGES * LINES_WORKERS);
	none_is_shared();
}

/* The other way round: a connection whose ends are on different workers, which pass packets on. */
static void two_workers__ends_apart(void **state)
{
	const struct traffic t = {.opcode = ROCI_WR_RDMA_WRITE,
		.size = 64,
		.set = MEMORY,
		.list = 8,
		.signaled = 1,
		.packets = 1};
	struct flows *f;

	host_while(open_apart, &f);
	lines_clear();
	flows_run(f, &t, MESSAGES, both_rounds, NULL, 0);
	assert_true(lines_shared().times > MESSAGES / t.list);
	host_while(close_apart, f);
}

static int start(void **state)
{
	host_workers(LINES_WORKERS);
	host_start("lines_test", NULL);
	host_while(open_flows, NULL);
	return 0;
}

static int stop(void **state)
{
	host_while(close_flows, NULL);
	host_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_workers__write),
		cmocka_unit_test(two_workers__send),
		cmocka_unit_test(two_workers__read),
		cmocka_unit_test(two_workers__lists_of_one),
		cmocka_unit_test(two_workers__several_packets),
		cmocka_unit_test(two_workers__idle),
		cmocka_unit_test(two_workers__ends_apart),
	};
	cpu_set_t mine;

	if (!sched_getaffinity(0, sizeof(mine), &mine) && CPU_COUNT(&mine) < (int)LINES_WORKERS) {
		puts("skipped: two workers need two CPUs");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, start, stop);
}
