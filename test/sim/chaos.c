/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chaos [--seed S] [--runs N] [--digest]: random runs, each decided by its seed; see chaos.h. On a
 * failure the seed is printed, and `chaos --seed S` repeats that run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "chaos.h"

static uint64_t first_seed = 1;
static uint64_t runs = 100;
static uint64_t current;
static bool print_digest;

/* --- one run -------------------------------------------------------------------------- */

static bool enough(const struct chaos_world *w, unsigned messages)
{
	return world_messages(w) >= messages && world_packets(w) >= CHAOS_PACKETS;
}

static void turn(struct chaos_world *w)
{
	for (unsigned i = 0; i < w->conns; i++)
		for (int e = A; e < ENDS; e++)
			work_post(w, &w->conn[i], e);
	for (unsigned i = 0; i < w->ucs; i++)
		uc_turn(w, &w->uc[i]);
	flows_turn(w, &w->flows);
	actions_turn(w);
	world_step(w);
	for (unsigned i = 0; i < w->conns; i++)
		conn_turn(w, &w->conn[i]);
	assert_true(now_of(w) < CHAOS_TIME);
}

/* Nothing new: what is under way ends as it must, then the connections end. */
static void wind_up(struct chaos_world *w)
{
	bool open = true;

	w->winding_up = true;
	while (open) {
		open = false;
		for (unsigned i = 0; i < w->conns; i++) {
			struct chaos_conn *c = &w->conn[i];

			if (c->phase == CONN_UP && conn_quiet(c))
				conn_close(w, c);
			open |= c->phase != CONN_OVER;
		}
		for (unsigned i = 0; i < w->ucs; i++)
			open |= !uc_idle(&w->uc[i]);
		open |= !flows_over(&w->flows);
		turn(w);
	}
}

uint64_t chaos_run(uint64_t seed)
{
	static struct chaos_world w;
	unsigned messages;

	world_init(&w, seed);
	messages = CHAOS_MESSAGES + pick(&w, 0, 800);
	while (!enough(&w, messages))
		turn(&w);
	wind_up(&w);
	assert_true(world_messages(&w) >= CHAOS_MESSAGES);
	assert_true(world_packets(&w) >= CHAOS_PACKETS);
	world_digest(&w, now_of(&w));
	world_digest(&w, world_packets(&w));
	report_run(&w);
	world_fini(&w);
	return w.digest;
}

/* --- all of them ---------------------------------------------------------------------- */

static void chaos__every_seed(void **state)
{
	uint64_t digest = 0;

	for (uint64_t i = 0; i < runs; i++) {
		current = first_seed + i;
		digest = digest * 31 + chaos_run(current);
	}
	current = 0;
	if (print_digest)
		printf("digest %016llx\n", (unsigned long long)digest);
	if (runs >= 100)
		report_nothing_is_zero();
}

/* Independent of earlier runs, and of where the memory lies. */
static void chaos__repeats_itself(void **state)
{
	uint64_t first[5];

	if (current)
		skip(); /* the seed that failed is to be printed */
	for (unsigned i = 0; i < ARRAY_SIZE(first); i++)
		first[i] = chaos_run(current = first_seed + i);
	for (unsigned i = ARRAY_SIZE(first); i--;)
		assert_int_equal(chaos_run(current = first_seed + i), first[i]);
	current = 0;
}

int chaos_trace = -1;

int main(int argc, char **argv)
{
	const struct CMUnitTest every[] = {cmocka_unit_test(chaos__every_seed)};
	const struct CMUnitTest both[] = {
		cmocka_unit_test(chaos__every_seed),
		cmocka_unit_test(chaos__repeats_itself),
	};
	bool one = false;
	int rc;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			first_seed = strtoull(argv[++i], NULL, 0);
			one = true;
		} else if (!strcmp(argv[i], "--runs") && i + 1 < argc) {
			runs = strtoull(argv[++i], NULL, 0);
			one = false;
		} else if (!strcmp(argv[i], "--trace") && i + 1 < argc) {
			chaos_trace = atoi(argv[++i]);
		} else if (!strcmp(argv[i], "--digest")) {
			print_digest = true;
		} else {
			fprintf(stderr,
				"usage: %s [--seed S] [--runs N] [--digest] [--trace CONNECTION]\n",
				argv[0]);
			return 2;
		}
	}
	if (one)
		runs = 1;
	rc = one ? cmocka_run_group_tests(every, NULL, NULL)
		 : cmocka_run_group_tests(both, NULL, NULL);
	report_print();
	if (current)
		printf("failed with --seed %llu\n", (unsigned long long)current);
	return rc;
}
