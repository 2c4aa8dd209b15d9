/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <rte_ethdev.h>
#include "burst.h"
#include "eal_test.h"
#include "rig.h"

#define PAGE 4096u

static struct rig r;
static volatile uint8_t *ring; /* the driver's, which vanishes in a burst */

/* A driver whose interrupt thread unmaps the ring when a burst has just begun. */
static uint16_t rx_vanishes(void *queue, struct rte_mbuf **m, uint16_t n)
{
	munmap((void *)ring, PAGE);
	return ring[0] ? n : 0;
}

static uint16_t tx_vanishes(void *queue, struct rte_mbuf **m, uint16_t n)
{
	rte_pktmbuf_free(m[0]);
	munmap((void *)ring, PAGE);
	ring[0] = 1;
	return n;
}

static int up(void **state)
{
	rig_up(&r, 1);
	r.dp->worker[0]->port[0].fragile = true;
	ring = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ring, MAP_FAILED);
	return 0;
}

static int down(void **state)
{
	rig_down(&r);
	return 0;
}

/* In the test itself: cmocka installs its own handler before each. */
static const struct worker_port *handled_port(void)
{
	assert_int_equal(burst_install(), 0);
	return &r.dp->worker[0]->port[0];
}

static void burst__passes_frames_both_ways(void **state)
{
	const struct worker_port *p = handled_port();
	struct rte_mbuf *m[BURST];

	assert_int_equal(rte_pktmbuf_alloc_bulk(r.dp->worker[0]->pool, m, 3), 0);
	assert_int_equal(burst_tx(p, m, 3), 3);
	assert_int_equal(burst_rx(&r.dp->worker[0]->port[1], m), 3);
	assert_int_equal(rte_eth_tx_burst(r.ethdev[1], 0, m, 3), 3);
	assert_int_equal(burst_rx(p, m), 3);
	rte_pktmbuf_free_bulk(m, 3);
}

static void burst_rx__ring_vanishes(void **state)
{
	const struct worker_port *p = handled_port();
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[p->ethdev];
	eth_rx_burst_t real = ops->rx_pkt_burst;
	struct rte_mbuf *m[BURST];

	ops->rx_pkt_burst = rx_vanishes;
	assert_int_equal(burst_rx(p, m), 0);
	assert_int_equal(burst_rx(p, m), 0); /* and once more: the signal is not left blocked */
	ops->rx_pkt_burst = real;
}

static void burst_tx__ring_vanishes(void **state)
{
	const struct worker_port *p = handled_port();
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[p->ethdev];
	eth_tx_burst_t real = ops->tx_pkt_burst;
	struct rte_mbuf *m[BURST];

	assert_int_equal(rte_pktmbuf_alloc_bulk(r.dp->worker[0]->pool, m, 3), 0);
	ops->tx_pkt_burst = tx_vanishes;
	assert_int_equal(burst_tx(p, m, 3), 3); /* none is offered or freed again */
	ops->tx_pkt_burst = real;
	rte_pktmbuf_free_bulk(&m[1], 2);
}

static int signal_of(void (*child)(const struct worker_port *))
{
	const struct worker_port *p = handled_port();
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(60);
		child(p);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void fault_after_burst(const struct worker_port *p)
{
	struct rte_mbuf *m[BURST];

	burst_rx(p, m);
	munmap((void *)ring, PAGE);
	ring[0] = 1;
}

static void be_signalled(const struct worker_port *p)
{
	raise(SIGSEGV);
}

static void on_sigsegv__other_faults_end_the_process(void **state)
{
	assert_int_equal(signal_of(fault_after_burst), SIGSEGV);
	assert_int_equal(signal_of(be_signalled), SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(burst__passes_frames_both_ways, up, down),
		cmocka_unit_test_setup_teardown(burst_rx__ring_vanishes, up, down),
		cmocka_unit_test_setup_teardown(burst_tx__ring_vanishes, up, down),
		cmocka_unit_test_setup_teardown(on_sigsegv__other_faults_end_the_process, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
