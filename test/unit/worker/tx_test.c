/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include <rte_cycles.h>
#include "eal_test.h"
#include "rig.h"
#include "ringpair.h"

/* A worker that is moved by hand: what port 0 sends stays in the ring until somebody takes it. */
#define PATIENT 21 /* of the ACK timeout, 8.6 s: none runs out meanwhile */

struct hand {
	struct rig r;
	struct rig_qp a, b;
	struct worker *w;
	unsigned all_buffers;
};

static int rise(void **state, bool local)
{
	static struct hand h;

	rig_up(&h.r, 1);
	h.r.ack_timeout = PATIENT;
	h.w = h.r.dp->worker[0];
	h.all_buffers = rig_free_buffers(h.w);
	rig_qp_up(&h.r, &h.a, 5, 0);
	rig_qp_up(&h.r, &h.b, 6, 0);
	rig_connect(&h.r, &h.a, &h.b, 0, local);
	rig_connect(&h.r, &h.b, &h.a, !local, local);
	*state = &h;
	return 0;
}

static int up(void **state)
{
	return rise(state, false);
}

static int up_local(void **state)
{
	return rise(state, true);
}

static int down(void **state)
{
	struct hand *h = *state;

	rig_qp_down(&h->r, &h->a, 5);
	rig_qp_down(&h->r, &h->b, 6);
	rig_down(&h->r);
	return 0;
}

static unsigned drain(struct hand *h)
{
	struct rte_mbuf *m[BURST];
	unsigned all = 0;
	uint16_t n;

	while ((n = rte_eth_rx_burst(h->r.ethdev[1], 0, m, BURST))) {
		rte_pktmbuf_free_bulk(m, n);
		all += n;
	}
	return all;
}

static void fill_ring(struct hand *h)
{
	struct rte_mbuf *m;

	do {
		m = rte_pktmbuf_alloc(h->w->pool);
		assert_non_null(m);
	} while (rte_eth_tx_burst(h->r.ethdev[0], 0, &m, 1));
	rte_pktmbuf_free(m);
}

static void tx_poll__sends_what_was_posted(void **state)
{
	struct hand *h = *state;

	assert_int_equal(tx_poll(h->w), 0);
	rig_write(&h->a, &h->b, 10 * 1024); /* 10 packets */
	assert_int_equal(doorbell_poll(h->w), 1);
	assert_int_equal(tx_poll(h->w), 10);
	assert_int_equal(drain(h), 10);
	assert_int_equal(rig_free_buffers(h->w), h->all_buffers - h->w->nspare);
	tx_release(h->w);
	assert_int_equal(rig_free_buffers(h->w), h->all_buffers);
}

/* A round that moves bytes without frames has worked: its worker must not fall asleep. */
static void tx_poll__without_frames_is_work(void **state)
{
	struct hand *h = *state;

	rig_write(&h->a, &h->b, 1024);
	assert_int_equal(doorbell_poll(h->w), 1);
	assert_int_equal(tx_poll(h->w), 1);
	assert_int_equal(h->w->core.count.direct_messages, 1);
	assert_int_equal(tx_poll(h->w), 0);
	assert_int_equal(drain(h), 0);
}

/* Of `n` that were sent. */
static void send_some(struct hand *h, uint32_t n)
{
	rig_write(&h->a, &h->b, n * 1024);
	doorbell_poll(h->w);
	assert_int_equal(tx_poll(h->w), n);
	assert_int_equal(drain(h), n);
}

static struct rte_mbuf *received(struct hand *h)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(h->w->pool);

	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, 100));
	assert_non_null(rte_pktmbuf_adj(m, 4));
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 5;
	return m;
}

static void tx_restock__spares_the_pool(void **state)
{
	struct hand *h = *state;
	struct rte_mbuf *m[4];
	unsigned stock;

	send_some(h, 3);
	stock = h->w->nspare;
	for (unsigned i = 0; i < 4; i++)
		m[i] = received(h);
	tx_restock(h->w, m, 4);
	assert_int_equal(h->w->nspare, stock + 3); /* and the fourth, for which there is no room */
	assert_int_equal(h->w->gap, 0);
	assert_int_equal(rig_free_buffers(h->w), h->all_buffers - h->w->nspare);
	for (unsigned i = 0; i < 3; i++) {
		const struct rte_mbuf *b = h->w->spare[i];

		assert_ptr_equal(h->w->txd[i].frame, (uint8_t *)b->buf_addr + RTE_PKTMBUF_HEADROOM);
		assert_int_equal(rte_pktmbuf_headroom(b), RTE_PKTMBUF_HEADROOM);
		assert_int_equal(b->ol_flags, 0);
		assert_int_equal(b->vlan_tci, 0);
		assert_int_equal(b->data_len, 0);
	}
	rig_write(&h->a, &h->b, 2 * 1024); /* and are sent like any other */
	doorbell_poll(h->w);
	assert_int_equal(tx_poll(h->w), 2);
	assert_int_equal(drain(h), 2);
}

/* Mbufs that somebody else still refers to, chained ones, and another pool's. */
static void tx_restock__takes_no_buffer_that_is_not_its_own(void **state)
{
	struct hand *h = *state;
	struct rte_mempool *other =
		rte_pktmbuf_pool_create("other", 3, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rte_mbuf *shared = received(h), *chained = received(h);
	struct rte_mbuf *m[] = {shared, chained, NULL};
	unsigned stock;

	assert_non_null(other);
	m[2] = rte_pktmbuf_alloc(other);
	assert_non_null(m[2]);
	send_some(h, 5);
	stock = h->w->nspare;
	rte_mbuf_refcnt_update(shared, 1);
	assert_int_equal(rte_pktmbuf_chain(chained, received(h)), 0);
	tx_restock(h->w, m, 3);
	assert_int_equal(h->w->nspare, stock);
	assert_int_equal(rte_mbuf_refcnt_read(shared), 1);
	assert_int_equal(rte_mempool_avail_count(other), 3);
	rte_pktmbuf_free(shared);
	assert_int_equal(rig_free_buffers(h->w), h->all_buffers - h->w->nspare);
	rte_mempool_free(other);
}

static uint64_t now(struct hand *h)
{
	return clock_at(&h->w->clock, rte_rdtsc());
}

/* REQ-22, REQ-29: whatever time has gone by since the round began. */
static void tx_poll__timeout_begins_with_the_packet(void **state)
{
	struct hand *h = *state;
	bool drained;
	uint64_t t;

	rig_write(&h->a, &h->b, 4);
	doorbell_poll(h->w);
	t = now(h);
	assert_int_equal(tx_poll(h->w), 1);
	assert_true(h->a.qp->comp.due >= t + h->a.qp->ack_timeout);
	rig_rx(h->w, &drained);
	assert_int_equal(tx_poll(h->w), 1); /* the ACK */
	rig_write(&h->a, &h->b, 4);
	doorbell_poll(h->w);
	assert_int_equal(tx_poll(h->w), 1);
	t = now(h);
	rig_rx(h->w, &drained);
	assert_int_equal(rig_poll(&h->a), ABI_WC_SUCCESS);
	assert_true(h->a.qp->comp.due >= t + h->a.qp->ack_timeout);
}

static void tx_poll__backlog_goes_first_and_nothing_is_lost(void **state)
{
	struct hand *h = *state;
	unsigned sent = 0;

	fill_ring(h);
	rig_write(&h->a, &h->b, 60 * 1024);
	doorbell_poll(h->w);
	assert_int_equal(tx_poll(h->w), BURST);
	assert_int_equal(h->w->port[0].count, BURST);
	assert_int_equal(tx_poll(h->w), 0); /* nothing is built for it while a burst waits */
	assert_int_equal(h->w->port[0].count, BURST);
	drain(h);
	for (unsigned i = 0; i < 4; i++) {
		tx_poll(h->w);
		sent += drain(h);
	}
	assert_int_equal(sent, 60);
	assert_int_equal(h->w->stats.tx_stalled, 0);
}

static void tx_poll__port_that_takes_nothing_does_not_block_for_ever(void **state)
{
	struct hand *h = *state;

	fill_ring(h);
	rig_write(&h->a, &h->b, 60 * 1024);
	doorbell_poll(h->w);
	h->w->now = 1000000;
	tx_poll(h->w);
	h->w->now += 60000000;
	assert_int_equal(tx_poll(h->w), 0);
	assert_int_equal(h->w->stats.tx_stalled, 0); /* its peer may only be paused */
	h->w->now += 60000000;
	assert_int_equal(tx_poll(h->w), 60 - BURST);
	assert_int_equal(h->w->stats.tx_stalled, 60); /* and from now on at once */
	drain(h);
	rig_write(&h->a, &h->b, 1024);
	doorbell_poll(h->w);
	assert_int_equal(tx_poll(h->w), 1);
	assert_int_equal(drain(h), 1);
	assert_int_equal(h->w->port[0].stalled, 0);
	fill_ring(h);
	rig_write(&h->a, &h->b, 1024);
	doorbell_poll(h->w);
	tx_poll(h->w);
	assert_true(h->w->port[0].stalled);
	tx_release(h->w);
	assert_int_equal(h->w->port[0].stalled, 0);
	drain(h);
	assert_int_equal(rig_free_buffers(h->w), h->all_buffers);
}

/* A pause, in which nobody offers the port a packet, counts as a moment. */
static void tx_poll__own_pause_is_not_the_ports(void **state)
{
	struct hand *h = *state;
	const struct timespec pause = {.tv_nsec = 150000000};
	uint64_t dropped, since;

	h->w->port[1].rx = false;
	worker_begin(h->w);
	worker_round(h->w);
	nanosleep(&pause, NULL);
	worker_round(h->w);
	assert_false(h->w->port[0].stalled);
	fill_ring(h);
	rig_write(&h->a, &h->b, 1024);
	worker_round(h->w);
	nanosleep(&pause, NULL);
	worker_round(h->w);
	dropped = h->w->stats.tx_stalled;
	since = h->w->port[0].stalled;
	tx_resumed(h->w, 5 * WORKER_PAUSE_NS);
	since = h->w->port[0].stalled - since;
	drain(h);
	worker_round(h->w);
	worker_end(h->w);
	assert_int_equal(dropped, 0);
	assert_int_equal(since, 4 * WORKER_PAUSE_NS);
	assert_int_equal(drain(h), 1);
	assert_int_equal(rig_free_buffers(h->w), h->all_buffers);
}

/* A peer that takes a packet now and then holds a burst, and delays nobody who sends by another
 * port: each message of theirs leaves in the round in which it was posted. */
static void tx_poll__slow_port_holds_up_no_other(void **state)
{
	struct hand *h = *state;
	struct rte_mbuf *m[BURST];

	fill_ring(h);
	rig_write(&h->a, &h->b, 60 * 1024);
	for (unsigned round = 0; round < 40; round++) {
		if (round % 2) /* by the slow one */
			rte_pktmbuf_free_bulk(m, rte_eth_rx_burst(h->r.ethdev[1], 0, m, 1));
		rig_write(&h->b, &h->a, 1024);
		doorbell_poll(h->w);
		tx_poll(h->w);
		assert_int_equal(rte_eth_rx_burst(h->r.ethdev[0], 0, m, BURST), 1);
		rte_pktmbuf_free_bulk(m, 1);
		assert_in_range(h->w->port[0].count - h->w->port[0].sent, 1, BURST);
	}
	assert_int_equal(h->w->stats.tx_stalled, 0);
}

static void tx_poll__no_buffers_is_counted_and_survived(void **state)
{
	struct hand *h = *state;
	struct rte_mbuf *m[8192];
	unsigned n = 0;

	while ((m[n] = rte_pktmbuf_alloc(h->w->pool)))
		n++;
	rig_write(&h->a, &h->b, 1024);
	doorbell_poll(h->w);
	assert_int_equal(tx_poll(h->w), 0);
	assert_int_equal(h->w->stats.no_mbuf, 1);
	rte_pktmbuf_free_bulk(m, n);
	assert_int_equal(tx_poll(h->w), 1);
}

#define WITH_HAND(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_HAND(tx_poll__sends_what_was_posted),
		cmocka_unit_test_setup_teardown(tx_poll__without_frames_is_work, up_local, down),
		WITH_HAND(tx_poll__timeout_begins_with_the_packet),
		WITH_HAND(tx_poll__backlog_goes_first_and_nothing_is_lost),
		WITH_HAND(tx_poll__port_that_takes_nothing_does_not_block_for_ever),
		WITH_HAND(tx_poll__own_pause_is_not_the_ports),
		WITH_HAND(tx_poll__slow_port_holds_up_no_other),
		WITH_HAND(tx_poll__no_buffers_is_counted_and_survived),
		WITH_HAND(tx_restock__spares_the_pool),
		WITH_HAND(tx_restock__takes_no_buffer_that_is_not_its_own),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
