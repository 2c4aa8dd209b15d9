/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole of a worker: an application's memory, the rings, the port and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "eal_test.h"
#include "linkemu.h"
#include "rig.h"

#define LOSSY_TIMEOUT 14 /* of the ACK, 67 ms: for links that lose */

static void fill(struct rig_qp *q, uint8_t seed)
{
	for (uint32_t i = 0; i < RIG_MEMORY; i++)
		q->memory[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

/* `messages` WRITEs of `len` bytes between QPs of two workers or of one. */
static void transfer(uint32_t nworkers, bool local, const char *impair, uint32_t messages,
	uint32_t len, struct core_counters *count)
{
	struct linkemu_config cfg;
	struct linkemu *emu[2] = {0};
	struct rig_qp a, b;
	struct rig r;
	char why[256];

	rig_up(&r, nworkers);
	rig_qp_up(&r, &a, 5, 0);
	rig_qp_up(&r, &b, 6, nworkers - 1);
	if (impair) {
		assert_int_equal(linkemu_parse(&cfg, impair, why, sizeof(why)), 0);
		for (unsigned i = 0; i < 2; i++)
			emu[i] = linkemu_attach(r.ethdev[i], 0, &cfg);
		r.ack_timeout = LOSSY_TIMEOUT;
	}
	rig_start(&r);
	rig_connect(&r, &a, &b, 0, local);
	rig_connect(&r, &b, &a, !local, local);
	for (uint32_t i = 0; i < messages; i++) {
		fill(&a, (uint8_t)i);
		rig_write(&a, &b, len);
		assert_int_equal(rig_poll(&a), ABI_WC_SUCCESS);
		assert_memory_equal(a.memory, b.memory, len);
	}
	rig_qp_down(&r, &a, 5);
	rig_qp_down(&r, &b, 6);
	worker_counters(r.dp, count);
	rig_stop(&r);
	for (unsigned i = 0; i < 2; i++)
		linkemu_detach(emu[i]);
	rig_down(&r);
}

static void worker_run__write_over_ring_pair(void **state)
{
	struct core_counters count;

	transfer(1, false, NULL, 5, 10000, &count);
	assert_in_range(count.rx_write_requests, 5, 50);
	assert_int_equal(count.retransmits, 0);
	assert_int_equal(count.access_faults, 0);
}

/* The receiving queue of a packet is the sender's, so every packet has to be handed over. */
static void worker_run__two_workers_hand_packets_over(void **state)
{
	struct core_counters count;

	transfer(2, false, NULL, 5, 10000, &count);
	assert_int_equal(count.drop[DROP_HANDOFF_FULL], 0);
	assert_int_equal(count.retransmits, 0);
}

static void worker_run__local_packets_do_not_need_the_port(void **state)
{
	struct core_counters count;

	/* the port loses everything */
	transfer(1, true, "loss=1", 5, 10000, &count);
	assert_int_equal(count.retransmits, 0);
	transfer(2, true, "loss=1", 5, 10000, &count);
	assert_int_equal(count.retransmits, 0);
}

static void worker_run__lossy_link_is_survived(void **state)
{
	struct core_counters count;

	transfer(
		1, false, "loss=0.05,dup=0.02,reorder=0.02,corrupt=0.02,seed=3", 20, 20000, &count);
	assert_true(count.retransmits > 0);
	assert_true(count.drop[DROP_ICRC] > 0);
}

static void worker_run__all_buffers_come_back(void **state)
{
	struct rig_qp a, b;
	struct rig r;
	unsigned before;

	rig_up(&r, 1);
	before = rig_free_buffers(r.dp->worker[0]);
	rig_qp_up(&r, &a, 5, 0);
	rig_qp_up(&r, &b, 6, 0);
	rig_start(&r);
	rig_connect(&r, &a, &b, 0, false);
	rig_connect(&r, &b, &a, 1, false);
	for (unsigned i = 0; i < 3 * RIG_DEPTH; i++) {
		rig_write(&a, &b, 3000);
		assert_int_equal(rig_poll(&a), ABI_WC_SUCCESS);
	}
	rig_qp_down(&r, &a, 5);
	rig_qp_down(&r, &b, 6);
	rig_stop(&r);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), before);
	rig_down(&r);
}

static void worker_run__starts_again_after_stop(void **state)
{
	struct rig r;

	rig_up(&r, 1);
	rig_start(&r);
	worker_grace(r.dp);
	rig_stop(&r);
	worker_grace(r.dp); /* nobody to wait for */
	rig_start(&r);
	worker_grace(r.dp);
	rig_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_run__write_over_ring_pair),
		cmocka_unit_test(worker_run__two_workers_hand_packets_over),
		cmocka_unit_test(worker_run__local_packets_do_not_need_the_port),
		cmocka_unit_test(worker_run__lossy_link_is_survived),
		cmocka_unit_test(worker_run__all_buffers_come_back),
		cmocka_unit_test(worker_run__starts_again_after_stop),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
