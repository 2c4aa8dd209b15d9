/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings between the two threads of a netdev of IP over InfiniBand, and the questions in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "rib_impl.h"

static struct rib r;
static uint32_t wakes;
static char handle[2];

void rib_wake(int eventfd)
{
	wakes++;
}

static struct roci_ah *ah(uint32_t i)
{
	return (struct roci_ah *)(void *)&handle[i];
}

static int begin(void **state)
{
	static const struct ipoib_config cfg = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 2044};

	memset(&r, 0, sizeof(r));
	for (unsigned i = 0; i < RIB_RINGS; i++)
		rib_jobs_init(&r.ring[i]);
	r.ipoib = ipoib_init(malloc(ipoib_size()), &cfg);
	wakes = 0;
	return 0;
}

static int finish(void **state)
{
	for (unsigned i = 0; i < RIB_RINGS; i++)
		rib_jobs_destroy(&r.ring[i]);
	free(r.ipoib);
	return 0;
}

/* --- jobs.c ----------------------------------------------------------------------------------- */

static struct rib_job job(uint32_t dest)
{
	return (struct rib_job){.ask.dest = dest};
}

static bool put(uint32_t dest)
{
	struct rib_job j = job(dest);

	return rib_jobs_put(&r.ring[RIB_ASKED], &j);
}

static void take(uint32_t dest)
{
	struct rib_job j;

	assert_true(rib_jobs_take(&r.ring[RIB_ASKED], &j));
	assert_int_equal(j.ask.dest, dest);
}

static void rib_jobs_take__oldest_and_youngest(void **state)
{
	struct rib_job j;

	assert_false(rib_jobs_take(&r.ring[RIB_ASKED], &j));
	assert_false(rib_jobs_take_youngest(&r.ring[RIB_ASKED], &j));
	for (uint32_t i = 0; i < 3; i++)
		assert_true(put(i));
	assert_int_equal(rib_jobs_count(&r.ring[RIB_ASKED]), 3);
	take(0);
	assert_true(rib_jobs_take_youngest(&r.ring[RIB_ASKED], &j));
	assert_int_equal(j.ask.dest, 2);
	take(1);
	assert_int_equal(rib_jobs_count(&r.ring[RIB_ASKED]), 0);
}

/* The jobs that are there stay, wherever the ring begins. */
static void rib_jobs_put__full(void **state)
{
	for (uint32_t i = 0; i < 7; i++)
		put(i);
	for (uint32_t i = 0; i < 7; i++)
		take(i);
	for (uint32_t i = 0; i < RIB_JOBS; i++)
		assert_true(put(i));
	assert_false(put(RIB_JOBS));
	assert_int_equal(rib_jobs_count(&r.ring[RIB_ASKED]), RIB_JOBS);
	take(0);
	assert_true(put(RIB_JOBS));
	for (uint32_t i = 1; i <= RIB_JOBS; i++)
		take(i);
}

/* --- questions.c ------------------------------------------------------------------------------ */

/* The kernel sends to a group that it did not send to before. */
static void send_to_group(uint32_t i)
{
	uint8_t frame[14 + 28 + IPOIB_TAIL] = {1, 0, 0x5E};
	struct ipoib_tx tx;

	frame[6] = 2;
	frame[11] = 1;
	put_be16(frame + 12, 0x800);
	frame[14] = 0x45;
	put_be32(frame + 30, 0xEF000001 + i);
	assert_false(ipoib_from_kernel(r.ipoib, frame, 14 + 28, 1, &tx));
	rib_ask(&r, 1);
}

static uint32_t asked(enum rib_ring i)
{
	return rib_jobs_count(&r.ring[i]);
}

/* The helper finds all. */
static void answer_all(void)
{
	struct rib_job j;

	while (rib_jobs_take(&r.ring[RIB_ASKED_GROUPS], &j)) {
		j.ah = ah(0);
		assert_true(rib_jobs_put(&r.ring[RIB_ANSWERED], &j));
	}
}

/* A program sends to ever more groups: no ring is ever full, and peers are asked for. */
static void rib_ask__bounds_the_groups(void **state)
{
	for (uint32_t i = 0; i < 4 * RIB_JOBS; i++)
		send_to_group(i);
	assert_int_equal(asked(RIB_ASKED_GROUPS), RIB_ASKED_GROUPS_MAX);
	assert_int_equal(r.open_groups, RIB_ASKED_GROUPS_MAX);
	assert_int_equal(r.open_peers, 0);
	answer_all();
	for (uint32_t i = 0; i < 4 * RIB_JOBS; i++)
		send_to_group(i);
	assert_int_equal(asked(RIB_ASKED_GROUPS), 0);
	rib_take_answers(&r, 2);
	assert_int_equal(r.open_groups, 0);
	send_to_group(5 * RIB_JOBS);
	assert_int_equal(asked(RIB_ASKED_GROUPS), 1);
}

/* The handles of entries that are gone leave room to no more: answers wait, and none is lost. */
static void rib_take_answers__waits_for_room(void **state)
{
	struct rib_jobs *unused = &r.ring[RIB_UNUSED];
	struct rib_job gone = {.ask = {.dest = 1, .serial = 12345, .group = true}, .ah = ah(1)}, j;

	r.open_groups = 2;
	while (rib_jobs_count(unused) < RIB_JOBS - 1)
		rib_jobs_put(unused, &(struct rib_job){.ah = ah(0)});
	rib_jobs_put(&r.ring[RIB_ANSWERED], &gone);
	rib_jobs_put(&r.ring[RIB_ANSWERED], &gone);
	rib_take_answers(&r, 2);
	assert_int_equal(asked(RIB_ANSWERED), 1);
	assert_int_equal(r.open_groups, 1);
	assert_int_equal(rib_jobs_count(unused), RIB_JOBS);
	assert_true(rib_jobs_take(unused, &j));
	rib_take_answers(&r, 2);
	assert_int_equal(asked(RIB_ANSWERED), 0);
	assert_true(rib_jobs_take_youngest(unused, &j));
	assert_ptr_equal(j.ah, ah(1));
	assert_true(rib_jobs_take_youngest(unused, &j));
	assert_ptr_equal(j.ah, ah(1));
	assert_int_equal(wakes, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rib_jobs_take__oldest_and_youngest, begin, finish),
		cmocka_unit_test_setup_teardown(rib_jobs_put__full, begin, finish),
		cmocka_unit_test_setup_teardown(rib_ask__bounds_the_groups, begin, finish),
		cmocka_unit_test_setup_teardown(rib_take_answers__waits_for_room, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
