/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of a worker that is moved by hand; their thread is real, and so is its socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <cmocka.h>
#include <rte_cycles.h>
#include "capture_impl.h"
#include "eal_test.h"
#include "headers.h"
#include "qp_table.h"
#include "random.h"
#include "rig.h"
#include "txd.h"

#define ROOM (1u << 20)

struct hand {
	struct rig r;
	struct rig_qp a, b;
	struct worker *w;
	struct capture *c;
	int pair[2]; /* ours, the capture's */
	uint8_t *got;
	size_t len;
};

static int up(void **state)
{
	static struct hand h;

	rig_up(&h.r, 1);
	h.w = h.r.dp->worker[0];
	rig_qp_up(&h.r, &h.a, 5, 0);
	rig_qp_up(&h.r, &h.b, 6, 0);
	rig_connect(&h.r, &h.a, &h.b, 0, false);
	rig_connect(&h.r, &h.b, &h.a, 1, false);
	h.got = malloc(ROOM);
	assert_non_null(h.got);
	*state = &h;
	return 0;
}

/* The second QP is another worker's, and their packets name their payload. */
static int up_named(void **state)
{
	static struct hand h;

	rig_up(&h.r, 2);
	h.w = h.r.dp->worker[0];
	rig_qp_up(&h.r, &h.a, 5, 0);
	rig_qp_up(&h.r, &h.b, 6, 1);
	rig_connect(&h.r, &h.a, &h.b, 0, true);
	rig_connect(&h.r, &h.b, &h.a, 0, true);
	h.got = malloc(ROOM);
	assert_non_null(h.got);
	*state = &h;
	return 0;
}

static int down(void **state)
{
	struct hand *h = *state;

	tx_release(h->w);
	rig_qp_down(&h->r, &h->a, 5);
	rig_qp_down(&h->r, &h->b, 6);
	rig_down(&h->r);
	free(h->got);
	return 0;
}

static void begin(struct hand *h, struct capture_filter filter, uint64_t count)
{
	struct capture_config cfg = {
		.filter = filter, .count = count, .ninterfaces = 3, .application = "test"};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, h->pair), 0);
	cfg.socket = h->pair[1];
	cfg.done = eventfd(0, 0);
	assert_int_equal(capture_start(&h->c, h->r.dp, &cfg), 0);
}

static struct capture_filter all(void)
{
	return (struct capture_filter){.qpn = CAPTURE_ANY,
		.port = CAPTURE_ANY,
		.snap = UINT16_MAX,
		.in = true,
		.out = true};
}

/* Ends it as rocictl does, and reads all of it. */
static void end(struct hand *h)
{
	eventfd_t done;
	ssize_t n;

	shutdown(h->pair[0], SHUT_WR);
	h->len = 0;
	while ((n = read(h->pair[0], h->got + h->len, ROOM - h->len)) > 0)
		h->len += (size_t)n;
	assert_int_equal(eventfd_read(h->c->cfg.done, &done), 0);
	close(h->c->cfg.done);
	capture_stop(h->r.dp, h->c);
	close(h->pair[0]);
	close(h->pair[1]);
	assert_null(atomic_load(&h->w->captures));
}

/* @return how many blocks of @p type there are, all being whole. */
static unsigned blocks(const struct hand *h, uint32_t type)
{
	unsigned n = 0;

	for (size_t at = 0; at < h->len;) {
		uint32_t head[2];

		memcpy(head, h->got + at, sizeof(head));
		assert_in_range(head[1], 12, h->len - at);
		n += head[0] == type;
		at += head[1];
	}
	return n;
}

/* A WRITE of ten packets and its ACK, from port 0 to port 1. */
static void traffic(struct hand *h)
{
	bool drained;

	rig_write(&h->a, &h->b, 10 * 1024);
	assert_int_equal(doorbell_poll(h->w), 1);
	assert_int_equal(tx_poll(h->w), 10);
	assert_int_equal(rig_rx(h->w, &drained), 10);
	assert_int_equal(tx_poll(h->w), 1);
	assert_int_equal(rig_rx(h->w, &drained), 1);
	assert_int_equal(rig_poll(&h->a), 0);
}

static void capture_start__sees_both_directions(void **state)
{
	struct hand *h = *state;

	begin(h, all(), 0);
	traffic(h);
	end(h);
	assert_int_equal(blocks(h, 6), 22);
	assert_int_equal(blocks(h, 1), 3);
	assert_int_equal(blocks(h, 5), 3); /* statistics come last */
}

/* Packets that were under way by name when the capture began are seen whole, and those that are
 * built from then on are whole. */
static void capture_start__finds_named_payload(void **state)
{
	struct hand *h = *state;
	struct worker *to = h->r.dp->worker[1];
	const uint8_t *at;
	bool drained;

	random_fill(&(struct random){.state = 1}, h->a.memory, RIG_MEMORY);
	rig_write(&h->a, &h->b, 4 * 1024);
	doorbell_poll(h->w);
	assert_int_equal(tx_poll(h->w), 4);
	assert_int_equal(h->w->core.count.named_packets, 4);
	begin(h, all(), 0);
	assert_int_equal(rig_rx(to, &drained), 4);
	assert_memory_equal(h->b.memory, h->a.memory, 4 * 1024);
	rig_write(&h->a, &h->b, 1024);
	doorbell_poll(h->w);
	assert_int_equal(tx_poll(h->w), 1);
	assert_int_equal(rig_rx(to, &drained), 1);
	assert_int_equal(h->w->core.count.named_packets, 4);
	end(h);
	assert_int_equal(blocks(h, 6), 4 + 2);
	at = h->got;
	for (unsigned i = 0; i < 4; i++) {
		at = memmem(at, h->len - (size_t)(at - h->got), h->a.memory + i * 1024, 1024);
		assert_non_null(at);
	}
	assert_int_equal(to->core.count.drop[DROP_ICRC], 0);
}

static void capture_start__ends_after_a_count(void **state)
{
	struct hand *h = *state;
	struct capture_filter f = all();
	eventfd_t done;

	f.out = false;
	begin(h, f, 4);
	traffic(h);
	assert_int_equal(eventfd_read(h->c->cfg.done, &done), 0); /* nobody asked for it */
	eventfd_write(h->c->cfg.done, 1);
	end(h);
	assert_int_equal(blocks(h, 6), 4);
}

static void capture_start__knows_qps_and_ports(void **state)
{
	struct hand *h = *state;
	struct capture_filter f = all();

	f.qpn = h->b.qp->qpn;
	f.out = false;
	begin(h, f, 0);
	traffic(h);
	end(h);
	assert_int_equal(blocks(h, 6), 10);
	f = all();
	f.port = 0;
	f.in = false;
	begin(h, f, 0);
	traffic(h);
	end(h);
	assert_int_equal(blocks(h, 6), 10);
	f = all();
	f.drops = true;
	begin(h, f, 0);
	traffic(h);
	end(h);
	assert_int_equal(blocks(h, 6), 0);
}

/* Two at a time, one of which goes first. */
/* A packet that names another number than the QP's: QP1's, or a group's. */
static void capture_received__of_qp1(void **state)
{
	struct hand *h = *state;
	struct capture_filter f = all();
	struct rte_mbuf *m = rte_pktmbuf_alloc(h->w->pool);
	const struct pkt pkt = {.dest_qp = QPN_GSI, .queue = PKT_NO_QUEUE};
	const uint16_t good = DROP_NONE;

	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, 64));
	f.qpn = h->a.qp->qpn;
	begin(h, f, 0);
	capture_received(h->w, &m, &pkt, &good, 1, 1); /* there is no QP1 */
	atomic_store(&h->r.dp->qps->gsi[0], h->a.qp);
	capture_received(h->w, &m, &pkt, &good, 1, 2);
	atomic_store(&h->r.dp->qps->gsi[0], NULL);
	end(h);
	assert_int_equal(blocks(h, 6), 1);
	rte_pktmbuf_free(m);
}

static void capture_stop__leaves_the_others_alone(void **state)
{
	struct hand *h = *state;
	struct hand other = *h;

	other.got = malloc(ROOM);
	begin(h, all(), 0);
	begin(&other, all(), 0);
	traffic(h);
	capture_stop(h->r.dp, h->c);
	close(h->pair[0]);
	close(h->pair[1]);
	traffic(h);
	end(&other);
	assert_int_equal(blocks(&other, 6), 44);
	free(other.got);
}

/* A ring without a thread: what it takes comes out as it went in, across its end too. */
static void capture_ring__keeps_order_and_counts_losses(void **state)
{
	struct hand *h = *state;
	struct capture *c = calloc(1, sizeof(*c));
	struct rte_mbuf *m = rte_pktmbuf_alloc(h->w->pool);
	struct txd t = {.qp = h->a.qp};
	const struct capture_record *e;
	uint64_t in = 0, out = 0;

	assert_non_null(c);
	assert_non_null(m);
	c->dp = h->r.dp;
	c->cfg.filter = all();
	c->ring[0] = aligned_alloc(CACHE_LINE, sizeof(*c->ring[0]));
	assert_non_null(c->ring[0]);
	memset(c->ring[0], 0, sizeof(*c->ring[0]));
	atomic_store(&h->w->captures, c);
	for (unsigned round = 0; round < 5; round++) {
		uint64_t lost = atomic_load(&c->ring[0]->lost[0]);

		do { /* of all lengths, so that its end is met in all ways */
			m->data_len = (uint16_t)(1 + in % 4001);
			m->pkt_len = m->data_len;
			memset(rte_pktmbuf_mtod(m, void *), (int)in, m->data_len);
			capture_sent(h->w, &t, m, in++);
		} while (atomic_load(&c->ring[0]->lost[0]) == lost);
		in--;
		for (unsigned taken = 0; (e = capture_ring_peek(c->ring[0])); taken++) {
			const uint8_t *bytes = (const uint8_t *)(e + 1);

			assert_int_equal(e->time, out);
			assert_int_equal(e->kept, 1 + out % 4001);
			assert_int_equal(e->lost, round);
			assert_int_equal(bytes[0], (uint8_t)out);
			assert_int_equal(bytes[e->kept - 1], (uint8_t)out);
			capture_ring_pass(c->ring[0], e);
			out++;
		}
		assert_int_equal(in, out);
	}
	assert_in_range(out, 5 * CAPTURE_RING / 4096, 5 * CAPTURE_RING / 1024);
	atomic_store(&h->w->captures, NULL);
	rte_pktmbuf_free(m);
	free(c->ring[0]);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(capture_start__sees_both_directions, up, down),
		cmocka_unit_test_setup_teardown(capture_start__finds_named_payload, up_named, down),
		cmocka_unit_test_setup_teardown(capture_start__ends_after_a_count, up, down),
		cmocka_unit_test_setup_teardown(capture_start__knows_qps_and_ports, up, down),
		cmocka_unit_test_setup_teardown(capture_received__of_qp1, up, down),
		cmocka_unit_test_setup_teardown(capture_stop__leaves_the_others_alone, up, down),
		cmocka_unit_test_setup_teardown(
			capture_ring__keeps_order_and_counts_losses, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
