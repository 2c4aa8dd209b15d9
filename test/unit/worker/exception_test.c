/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that are not RoCE, between a port and the rings to the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "eal_test.h"
#include "exception.h"
#include "frames.h"
#include "headers.h"
#include "opcode.h"
#include "rig.h"

static struct rig r;
static struct exception *x;
static unsigned all_buffers;

/* Port 1 has a way to the kernel, port 0 has none. */
static int up(void **state)
{
	rig_up(&r, 1);
	x = exception_create(1, SOCKET_ID_ANY);
	assert_non_null(x);
	r.dp->exception[1] = x;
	all_buffers = rig_free_buffers(r.dp->worker[0]);
	return 0;
}

static int down(void **state)
{
	exception_destroy(x);
	rig_down(&r);
	return 0;
}

static const uint8_t arp[60] = {[12] = 0x08, [13] = 0x06, [20] = 1};

static struct rte_mbuf *buffer(const uint8_t *bytes, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r.dp->worker[0]->pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), bytes, len);
	return m;
}

/* In through one port, so that it comes out of the other. */
static void inject(unsigned by, const uint8_t *bytes, size_t len)
{
	struct rte_mbuf *m = buffer(bytes, len);

	assert_int_equal(rte_eth_tx_burst(r.ethdev[by], 0, &m, 1), 1);
}

static void receive(unsigned packets)
{
	bool drained;

	assert_int_equal(rig_rx(r.dp->worker[0], &drained), packets);
}

static uint64_t dropped(enum drop why)
{
	return r.dp->worker[0]->core.count.drop[why];
}

static void rx_poll__what_is_not_roce_goes_up(void **state)
{
	struct frame f = frame_of(NET_IPV4, OPC_RC | 0x04, 16);
	struct rte_mbuf *m;

	inject(0, arp, sizeof(arp));
	f.b[f.bth - 8 + 2] = 0; /* UDP to another port */
	inject(0, f.b, f.len);
	inject(1, arp, sizeof(arp)); /* comes out of port 0 */
	receive(3);
	assert_int_equal(dropped(DROP_NOT_ROCE), 1);
	assert_int_equal(r.dp->worker[0]->stats.to_kernel, 2);
	assert_int_equal(rte_ring_dequeue(x->up, (void **)&m), 0);
	assert_int_equal(rte_pktmbuf_data_len(m), sizeof(arp));
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), arp, sizeof(arp));
	rte_pktmbuf_free(m);
	assert_int_equal(rte_ring_dequeue(x->up, (void **)&m), 0);
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), f.b, f.len);
	rte_pktmbuf_free(m);
}

/* The kernel would only answer with ICMP errors. */
static void rx_poll__malformed_roce_stays(void **state)
{
	struct frame f = frame_of(NET_IPV4, OPC_RC | 0x04, 16);
	struct frame v1 = frame_of(NET_ROCEV1, OPC_RC | 0x04, 16);

	f.b[f.bth + BTH_FLAGS] |= 3; /* header version */
	v1.b[v1.bth + BTH_FLAGS] |= 3;
	inject(0, f.b, f.len);
	inject(0, v1.b, v1.len);
	receive(2);
	assert_int_equal(dropped(DROP_BTH_TVER), 2);
	assert_int_equal(rte_ring_count(x->up), 0);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers);
}

static void rx_poll__full_ring_loses(void **state)
{
	for (unsigned i = 0; i < EXCEPTION_RING + 5; i++) {
		inject(0, arp, sizeof(arp));
		receive(1);
	}
	assert_int_equal(rte_ring_count(x->up), EXCEPTION_RING);
	assert_int_equal(r.dp->worker[0]->stats.to_kernel, EXCEPTION_RING);
	assert_int_equal(r.dp->worker[0]->stats.kernel_full, 5);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers - EXCEPTION_RING);
}

/* Frames of the kernel leave by their port, some a round; what is spent is free again. */
static void tx_poll__sends_what_comes_down(void **state)
{
	struct worker *w = r.dp->worker[0];
	struct rte_mbuf *m[BURST];
	unsigned sent = 0, rounds = 0;
	unsigned before;

	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(rte_ring_enqueue(x->down, buffer(arp, sizeof(arp))), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rte_ring_enqueue(x->spent, buffer(arp, sizeof(arp))), 0);
	while (sent < 20) {
		unsigned n = tx_poll(w);

		assert_true(n > 0 && n < 20);
		sent += n;
		rounds++;
	}
	assert_true(rounds > 1);
	assert_int_equal(tx_poll(w), 0);
	assert_int_equal(w->stats.from_kernel, 20);
	assert_int_equal(rte_ring_count(x->spent), 0);
	before = rig_free_buffers(w);
	assert_int_equal(rte_eth_rx_burst(r.ethdev[0], 0, m, BURST), 20);
	for (unsigned i = 0; i < 20; i++)
		assert_memory_equal(rte_pktmbuf_mtod(m[i], uint8_t *), arp, sizeof(arp));
	rte_pktmbuf_free_bulk(m, 20);
	assert_int_equal(rig_free_buffers(w), before + 20);
}

/* proves ETH-07: one VLAN's frame does not get into another network. */
static void exception_take__stripped_tag_is_put_back(void **state)
{
	struct rte_mbuf *m = buffer(arp, sizeof(arp));
	struct rte_mbuf *full = buffer(arp, sizeof(arp));
	uint8_t *frame;

	m->vlan_tci = full->vlan_tci = 5;
	m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	full->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	full->data_off = 0;
	assert_int_equal(rte_eth_tx_burst(r.ethdev[0], 0, &m, 1), 1);
	assert_int_equal(rte_eth_tx_burst(r.ethdev[0], 0, &full, 1), 1);
	receive(2);
	assert_int_equal(rte_ring_count(x->up), 1);
	assert_int_equal(rte_ring_dequeue(x->up, (void **)&m), 0);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	assert_int_equal(rte_pktmbuf_data_len(m), sizeof(arp) + VLAN_HLEN);
	assert_int_equal(frame[12] << 8 | frame[13], ETHERTYPE_VLAN);
	assert_int_equal(frame[15], 5);
	assert_memory_equal(frame + 16, arp + 12, sizeof(arp) - 12);
	rte_pktmbuf_free(m);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exception_take__stripped_tag_is_put_back, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__what_is_not_roce_goes_up, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__malformed_roce_stays, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__full_ring_loses, up, down),
		cmocka_unit_test_setup_teardown(tx_poll__sends_what_comes_down, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
