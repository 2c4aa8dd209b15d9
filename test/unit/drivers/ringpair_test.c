/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>
#include <rte_ethdev.h>
#include "eal_test.h"
#include "limits.h"
#include "ringpair.h"

static struct rte_mempool *pool;

static void start(uint16_t port, uint16_t queues)
{
	const struct rte_eth_conf conf = {0};

	assert_int_equal(rte_eth_dev_configure(port, queues, queues, &conf), 0);
	for (uint16_t q = 0; q < queues; q++) {
		assert_int_equal(rte_eth_rx_queue_setup(port, q, 64, 0, NULL, pool), 0);
		assert_int_equal(rte_eth_tx_queue_setup(port, q, 64, 0, NULL), 0);
	}
	assert_int_equal(rte_eth_dev_start(port), 0);
}

static void stop(uint16_t port)
{
	assert_int_equal(rte_eth_dev_stop(port), 0);
	assert_int_equal(rte_eth_dev_close(port), 0);
}

static void ringpair_create__crosswise_queue_by_queue(void **state)
{
	uint16_t port[2];
	struct rte_mbuf *m, *got;

	assert_int_equal(ringpair_create(0, 2, SOCKET_ID_ANY, port), 0);
	start(port[0], 2);
	start(port[1], 2);
	for (uint16_t side = 0; side < 2; side++) {
		for (uint16_t q = 0; q < 2; q++) {
			m = rte_pktmbuf_alloc(pool);
			assert_int_equal(rte_eth_tx_burst(port[side], q, &m, 1), 1);
			assert_int_equal(rte_eth_rx_burst(port[side], q, &got, 1), 0);
			assert_int_equal(rte_eth_rx_burst(port[!side], !q, &got, 1), 0);
			assert_int_equal(rte_eth_rx_burst(port[!side], q, &got, 1), 1);
			assert_ptr_equal(got, m);
			rte_pktmbuf_free(m);
		}
	}
	stop(port[0]);
	stop(port[1]);
	ringpair_destroy(0, 2);
}

static void ringpair_destroy__frees_what_is_under_way(void **state)
{
	unsigned before = rte_mempool_avail_count(pool);
	uint16_t port[2];
	struct rte_mbuf *m;

	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(ringpair_create(1, 1, SOCKET_ID_ANY, port), 0);
		start(port[0], 1);
		do
			m = rte_pktmbuf_alloc(pool);
		while (rte_eth_tx_burst(port[0], 0, &m, 1));
		rte_pktmbuf_free(m);
		assert_int_equal(before - rte_mempool_avail_count(pool), RINGPAIR_DEPTH - 1);
		stop(port[0]);
		ringpair_destroy(1, 1);
		assert_int_equal(rte_mempool_avail_count(pool), before);
	}
}

static void ringpair_create__queues_in_range(void **state)
{
	uint16_t port[2];

	assert_int_equal(ringpair_create(2, 0, SOCKET_ID_ANY, port), -EINVAL);
	assert_int_equal(ringpair_create(2, WORKER_MAX + 1, SOCKET_ID_ANY, port), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ringpair_create__crosswise_queue_by_queue),
		cmocka_unit_test(ringpair_destroy__frees_what_is_under_way),
		cmocka_unit_test(ringpair_create__queues_in_range),
	};

	eal_test_start();
	pool = rte_pktmbuf_pool_create("pair", 2047, 0, 0, 512, SOCKET_ID_ANY);
	return pool ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
