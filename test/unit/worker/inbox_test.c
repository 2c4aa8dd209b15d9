/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose frames are taken out of an inbox, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "eal_test.h"
#include "inbox.h"

#define WORKERS 3u

static struct inbox in;
static char frame[INBOX_KINDS][WORKERS]; /* their addresses stand for frames */

static int up(void **state)
{
	memset(&in, 0, sizeof(in));
	return !inbox_create(&in, 0, WORKERS, SOCKET_ID_ANY);
}

static int down(void **state)
{
	inbox_destroy(&in);
	return 0;
}

static unsigned put(unsigned kind, unsigned source, unsigned n)
{
	unsigned i = 0;

	while (i < n && !rte_ring_enqueue(in.ring[kind][source], &frame[kind][source]))
		i++;
	return i;
}

/* How many frames of that kind and source the next burst has. */
static unsigned taken[INBOX_KINDS][WORKERS];

static unsigned take(void)
{
	struct rte_mbuf *m[BURST];
	unsigned n = inbox_take(&in, m);

	memset(taken, 0, sizeof(taken));
	for (unsigned i = 0; i < n; i++)
		taken[((char *)m[i] - &frame[0][0]) / WORKERS]
		     [((char *)m[i] - &frame[0][0]) % WORKERS]++;
	return n;
}

/* One source has all that it may; what others have comes within two bursts. */
static void inbox_take__sources_and_kinds_take_turns(void **state)
{
	assert_true(inbox_empty(&in));
	assert_in_range(put(INBOX_LOCAL, 1, UINT16_MAX), 2 * BURST, INBOX_SIZE);
	assert_false(inbox_empty(&in));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(take(), BURST);
	put(INBOX_LOCAL, 2, 2);
	put(INBOX_HANDED, 1, 3);
	put(INBOX_LOCAL, 0, 1);
	put(INBOX_LOCAL, 1, UINT16_MAX);
	take();
	if (taken[INBOX_HANDED][1]) {
		assert_int_equal(taken[INBOX_HANDED][1], 3);
		take();
	}
	assert_int_equal(taken[INBOX_LOCAL][2], 2);
	assert_int_equal(taken[INBOX_LOCAL][0], 1);
	assert_int_equal(taken[INBOX_LOCAL][1], BURST - 3);
	while (take())
		;
	assert_true(inbox_empty(&in));
}

/* The packets of one worker that wait for all others fit into their part of its pool, and a burst
 * always finds room twice. */
static void inbox_frames__bounded(void **state)
{
	for (uint32_t n = 1; n <= WORKER_MAX; n++)
		assert_in_range(inbox_frames(n), 4 * BURST, 3 * INBOX_SIZE);
	assert_null(in.ring[INBOX_HANDED][0]);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_true(rte_ring_get_size(in.ring[INBOX_LOCAL][i]) >= 2 * BURST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(inbox_take__sources_and_kinds_take_turns, up, down),
		cmocka_unit_test_setup_teardown(inbox_frames__bounded, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
