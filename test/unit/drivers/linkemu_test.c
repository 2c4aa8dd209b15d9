/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <rte_ethdev.h>
#include "bits.h"
#include "eal_test.h"
#include "frames.h"
#include "headers.h"
#include "linkemu.h"
#include "patience.h"
#include "ringpair.h"

#define PACKETS 1000u

static struct rte_mempool *pool;
static uint16_t ethdev[2];
static unsigned all_buffers;

static int start_queues(uint16_t port, uint16_t n)
{
	const struct rte_eth_conf conf = {0};

	int err = rte_eth_dev_configure(port, n, n, &conf);

	for (uint16_t q = 0; !err && q < n; q++)
		err = rte_eth_rx_queue_setup(port, q, 64, SOCKET_ID_ANY, NULL, pool) ||
		      rte_eth_tx_queue_setup(port, q, 64, SOCKET_ID_ANY, NULL);
	return err || rte_eth_dev_start(port);
}

static int start_port(uint16_t port)
{
	return start_queues(port, 1);
}

static int up(void **state)
{
	pool = rte_pktmbuf_pool_create("emu", 4095, 0, 0, 2048, SOCKET_ID_ANY);
	if (!pool || ringpair_create(0, 1, SOCKET_ID_ANY, ethdev))
		return -1;
	all_buffers = rte_mempool_avail_count(pool);
	return start_port(ethdev[0]) || start_port(ethdev[1]);
}

static struct linkemu *link_of(const char *text)
{
	struct linkemu_config cfg;
	struct linkemu *l;
	char why[256];

	assert_int_equal(linkemu_parse(&cfg, text, why, sizeof(why)), 0);
	l = linkemu_attach(ethdev[1], 0, &cfg);
	assert_non_null(l);
	return l;
}

/* Sends frame number `psn`; `roce` false: the same bytes to another UDP port. */
static void send_frame(uint32_t psn, bool roce)
{
	struct frame f = frame_of(NET_IPV4, 0x04, 64);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	put_be32(f.b + f.bth + 8, psn);
	if (!roce)
		put_be16(f.b + f.udp + UDP_DPORT, 53);
	memcpy(rte_pktmbuf_append(m, (uint16_t)f.len), f.b, f.len);
	assert_int_equal(rte_eth_tx_burst(ethdev[0], 0, &m, 1), 1);
}

struct arrival {
	uint32_t psn;
	uint16_t len;
	uint32_t sum; /* of all bytes */
};

static unsigned receive(struct arrival *to, unsigned max)
{
	struct rte_mbuf *m[32];
	unsigned got = 0;
	uint16_t n = rte_eth_rx_burst(ethdev[1], 0, m, 32);

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *b = rte_pktmbuf_mtod(m[i], const uint8_t *);
		struct arrival a = {.len = rte_pktmbuf_data_len(m[i])};

		a.psn = a.len >= 54 ? get_be32(b + ETH_HLEN + IP4_HLEN + UDP_HLEN + 8) : 0;
		for (unsigned k = 0; k < a.len; k++)
			a.sum += b[k] * (k + 1);
		if (got < max)
			to[got++] = a;
		rte_pktmbuf_free(m[i]);
	}
	return got;
}

/* Sends PACKETS and takes what comes, for long enough that nothing waits any more. */
static unsigned through(struct arrival *to, unsigned max)
{
	unsigned got = 0;
	time_t end;

	for (uint32_t i = 0; i < PACKETS; i++) {
		send_frame(i, true);
		got += receive(to + got, max - got);
	}
	end = patience_begin();
	while (rte_mempool_avail_count(pool) != all_buffers && !patience_over(end))
		got += receive(to + got, max - got);
	return got;
}

static struct linkemu_counters counters(const struct linkemu *l)
{
	struct linkemu_counters c = {0};

	linkemu_count(l, &c);
	return c;
}

static struct arrival first[2 * PACKETS], second[2 * PACKETS];

static void on_receive__perfect_link_changes_nothing(void **state)
{
	struct linkemu *l = link_of("");
	unsigned n = through(first, 2 * PACKETS);

	assert_int_equal(n, PACKETS);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(first[i].psn, i);
		assert_int_equal(first[i].len, first[0].len);
	}
	assert_int_equal(counters(l).packets, PACKETS);
	linkemu_detach(l);
}

static void on_receive__loses_the_share_asked_for(void **state)
{
	struct linkemu *l = link_of("loss=0.1,seed=1");
	unsigned n = through(first, 2 * PACKETS);

	assert_in_range(n, PACKETS * 85 / 100, PACKETS * 95 / 100);
	assert_int_equal(counters(l).lost, PACKETS - n);
	linkemu_detach(l);
}

static void on_receive__nth_and_mask_name_packets(void **state)
{
	struct linkemu *l = link_of("nth=10,mask=5");
	unsigned n = through(first, 2 * PACKETS);

	assert_int_equal(n, PACKETS - 102);
	assert_int_equal(first[0].psn, 1);
	assert_int_equal(first[1].psn, 3);
	for (unsigned i = 0; i < n; i++)
		assert_int_not_equal(first[i].psn % 10, 9);
	linkemu_detach(l);
}

static void on_receive__duplicates(void **state)
{
	struct linkemu *l = link_of("dup=1");
	unsigned n = through(first, 2 * PACKETS);

	assert_int_equal(n, 2 * PACKETS);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(first[i].psn, i / 2);
		assert_int_equal(first[i].sum, first[i & ~1u].sum);
	}
	linkemu_detach(l);
}

static void on_receive__reorders_neighbours(void **state)
{
	struct linkemu *l = link_of("reorder=0.2,seed=5");
	unsigned n = through(first, 2 * PACKETS);
	unsigned swaps = 0;

	assert_int_equal(n, PACKETS); /* none is lost, the last one neither */
	for (unsigned i = 0; i < n; i++) {
		if (first[i].psn == i)
			continue;
		assert_int_equal(first[i].psn, i + 1);
		assert_int_equal(first[i + 1].psn, i);
		swaps++;
		i++;
	}
	assert_in_range(swaps, PACKETS / 10, PACKETS / 4);
	linkemu_detach(l);
}

static void on_receive__corrupts_one_bit_and_truncates(void **state)
{
	struct linkemu *l = link_of("corrupt=1");
	uint16_t len;

	assert_int_equal(through(first, 2 * PACKETS), PACKETS);
	linkemu_detach(l);
	l = link_of("");
	assert_int_equal(through(second, 2 * PACKETS), PACKETS);
	linkemu_detach(l);
	len = second[0].len;
	for (unsigned i = 0; i < PACKETS; i++)
		assert_int_not_equal(first[i].sum, second[i].sum);
	l = link_of("truncate=1,seed=2");
	assert_int_equal(through(first, 2 * PACKETS), PACKETS);
	for (unsigned i = 0; i < PACKETS; i++)
		assert_true(first[i].len < len);
	assert_int_equal(counters(l).truncated, PACKETS);
	linkemu_detach(l);
}

static void on_receive__same_seed_same_faults(void **state)
{
	const char *text = "loss=0.1,dup=0.1,corrupt=0.1,truncate=0.1,seed=42";
	struct linkemu *l = link_of(text);
	unsigned n = through(first, 2 * PACKETS);

	linkemu_detach(l);
	l = link_of(text);
	assert_int_equal(through(second, 2 * PACKETS), n);
	linkemu_detach(l);
	assert_memory_equal(first, second, n * sizeof(first[0]));
	l = link_of("loss=0.1,dup=0.1,corrupt=0.1,truncate=0.1,seed=43");
	through(second, 2 * PACKETS);
	linkemu_detach(l);
	assert_memory_not_equal(first, second, n * sizeof(first[0]));
}

static void on_receive__delay_is_kept(void **state)
{
	struct linkemu *l = link_of("delay=20ms");
	struct timespec a, b;
	struct arrival got;

	clock_gettime(CLOCK_MONOTONIC, &a);
	send_frame(7, true);
	while (!receive(&got, 1))
		;
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec >= 20000000);
	assert_int_equal(got.psn, 7);
	linkemu_detach(l);
}

static void on_receive__other_frames_pass(void **state)
{
	struct linkemu *l = link_of("loss=1");
	struct arrival got[32];

	for (unsigned i = 0; i < 10; i++)
		send_frame(i, false);
	assert_int_equal(receive(got, 32), 10);
	assert_int_equal(counters(l).packets, 0);
	linkemu_detach(l);
}

static void linkemu_detach__frees_what_is_under_way(void **state)
{
	struct linkemu *l = link_of("delay=3600s");
	struct arrival got;

	for (unsigned i = 0; i < LINKEMU_HELD + 10; i++) {
		send_frame(i, true);
		assert_int_equal(receive(&got, 1), 0);
	}
	assert_int_equal(counters(l).overflow, 10);
	linkemu_detach(l);
	assert_int_equal(rte_mempool_avail_count(pool), all_buffers);
}

/* --- a rate ----------------------------------------------------------------------------- */

#define FRAME_LEN (ETH_HLEN + IP4_HLEN + UDP_HLEN + BTH_HLEN + 64 + ICRC_LEN)
#define FRAME_NS  ((FRAME_LEN + 24) * 8 * 1000ull) /* at 1 Mbit/s */
#define SECOND	  1000000000ull

/* Sends @p n frames at once, numbered from 0, those that may be marked. */
static void send_burst(unsigned n)
{
	struct rte_mbuf *m[32];

	for (unsigned i = 0; i < n; i++) {
		struct frame f = frame_of(NET_IPV4, 0x04, 64);

		put_be32(f.b + f.bth + 8, i);
		f.b[f.l3 + IP4_TOS] = ECN_ECT0;
		frame_ip4_sum(&f);
		m[i] = rte_pktmbuf_alloc(pool);
		assert_non_null(m[i]);
		memcpy(rte_pktmbuf_append(m[i], (uint16_t)f.len), f.b, f.len);
	}
	assert_int_equal(rte_eth_tx_burst(ethdev[0], 0, m, (uint16_t)n), n);
}

/* Takes what has come. @p ce: which frames are marked, from @p got on. */
static void receive_some(unsigned *got, bool ce[])
{
	struct rte_mbuf *m[32];
	uint16_t came = rte_eth_rx_burst(ethdev[1], 0, m, 32);

	for (uint16_t i = 0; i < came; i++) {
		const uint8_t *ip = rte_pktmbuf_mtod(m[i], const uint8_t *) + ETH_HLEN;
		struct frame f = {.net = NET_IPV4, .l3 = ETH_HLEN};

		memcpy(f.b, ip - ETH_HLEN, ETH_HLEN + IP4_HLEN);
		frame_ip4_sum(&f); /* the mark has mended it */
		assert_memory_equal(f.b + ETH_HLEN, ip, IP4_HLEN);
		ce[(*got)++] = (ip[IP4_TOS] & ECN_MASK) == ECN_CE;
		rte_pktmbuf_free(m[i]);
	}
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* Takes frames until @p n have come, or none can come any more. */
static void receive_all(unsigned *got, unsigned n, bool ce[])
{
	time_t end = patience_begin();

	while (*got < n && !patience_over(end))
		receive_some(got, ce);
}

/* A link at which @p n frames have come at once: it takes what came while nobody polled it for what
 * it could have sent meanwhile, which must be less than a frame at 1 Mbit/s. */
static struct linkemu *link_with_burst(const char *text, unsigned n, unsigned *got, bool ce[])
{
	for (time_t end = patience_begin(); !patience_over(end);) {
		uint64_t begin = now_ns();
		struct linkemu *l = link_of(text);

		*got = 0;
		send_burst(n);
		receive_some(got, ce);
		if (now_ns() - begin < FRAME_NS)
			return l;
		linkemu_detach(l);
	}
	fail_msg("this thread never runs for %llu ns", FRAME_NS);
	return NULL;
}

/* The last of ten bits-by-bit frames cannot come before all ten have had their time. */
static void on_receive__takes_its_time(void **state)
{
	uint64_t begin = now_ns();
	struct linkemu *l = link_of("rate=1M,delay=1ms");
	unsigned got = 0;
	bool ce[32];

	send_burst(10);
	receive_all(&got, 10, ce);
	assert_true(now_ns() - begin >= 10 * FRAME_NS + 1000000 - FRAME_NS / 10);
	assert_int_equal(got, 10);
	assert_int_equal(counters(l).dropped + counters(l).marked + counters(l).overflow, 0);
	linkemu_detach(l);
}

/* Of a burst the first leaves at once and does not wait; the rest waits, as far as there is room.
 */
static void on_receive__queue_is_limited(void **state)
{
	char text[64];
	struct linkemu *l;
	unsigned got;
	bool ce[32];

	snprintf(text, sizeof(text), "rate=1M,queue=%u", 5 * (FRAME_LEN + 4));
	l = link_with_burst(text, 20, &got, ce);
	receive_all(&got, 6, ce);
	assert_int_equal(got, 6);
	assert_int_equal(counters(l).dropped, 14);
	assert_int_equal(rte_mempool_avail_count(pool), all_buffers);
	linkemu_detach(l);
}

static void on_receive__marks_at_egress_or_ingress(void **state)
{
	for (int ingress = 0; ingress < 2; ingress++) {
		char text[96];
		struct linkemu *l;
		unsigned got;
		bool ce[32];

		/* RED is a step here: more than four waiting frames */
		snprintf(text, sizeof(text), "rate=1M,red=%u:%u:1,mark=%s", 4 * (FRAME_LEN + 4),
			4 * (FRAME_LEN + 4) + 1, ingress ? "ingress" : "egress");
		l = link_with_burst(text, 10, &got, ce);
		receive_all(&got, 10, ce);
		assert_int_equal(got, 10);
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(ce[i], ingress ? i >= 6 : i >= 1 && i <= 4);
		assert_int_equal(counters(l).marked, 4);
		linkemu_detach(l);
	}
}

/* --- queues ----------------------------------------------------------------------------- */

#define QUEUES 3u

struct wide {
	uint16_t ethdev[2];
	struct linkemu *link[QUEUES];
	unsigned came[QUEUES]; /* packets by queue */
};

static void wide_up(struct wide *w, const char *text)
{
	struct linkemu_config cfg;
	char why[256];

	memset(w, 0, sizeof(*w));
	assert_int_equal(linkemu_parse(&cfg, text, why, sizeof(why)), 0);
	assert_int_equal(ringpair_create(1, QUEUES, SOCKET_ID_ANY, w->ethdev), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(start_queues(w->ethdev[i], QUEUES), 0);
	for (uint16_t q = 0; q < QUEUES; q++) {
		w->link[q] = linkemu_attach(w->ethdev[1], q, &cfg);
		assert_non_null(w->link[q]);
	}
	assert_int_equal(linkemu_join(w->link, QUEUES), 0);
}

static void wide_down(struct wide *w)
{
	for (unsigned q = 0; q < QUEUES; q++)
		linkemu_detach(w->link[q]);
	for (unsigned i = 0; i < 2; i++) {
		rte_eth_dev_stop(w->ethdev[i]);
		rte_eth_dev_close(w->ethdev[i]);
	}
	ringpair_destroy(1, QUEUES);
	assert_int_equal(rte_mempool_avail_count(pool), all_buffers);
}

/* By queue 0, from UDP port @p sport; what comes is counted. */
static void wide_send(struct wide *w, uint16_t sport)
{
	struct frame f = frame_of(NET_IPV4, 0x04, 64);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	put_be16(f.b + f.udp + UDP_SPORT, sport);
	memcpy(rte_pktmbuf_append(m, (uint16_t)f.len), f.b, f.len);
	assert_int_equal(rte_eth_tx_burst(w->ethdev[0], 0, &m, 1), 1);
	for (uint16_t q = 0; q < QUEUES; q++) {
		uint16_t n = rte_eth_rx_burst(w->ethdev[1], q, &m, 1);

		w->came[q] += n;
		if (n)
			rte_pktmbuf_free(m);
	}
}

static void linkemu_join__random(void **state)
{
	struct linkemu_counters c = {0};
	struct wide w;

	wide_up(&w, "spread=random,seed=3");
	for (unsigned i = 0; i < PACKETS; i++)
		wide_send(&w, 0xC000);
	for (unsigned q = 0; q < QUEUES; q++) {
		assert_in_range(w.came[q], PACKETS / QUEUES - 100, PACKETS / QUEUES + 100);
		linkemu_count(w.link[q], &c);
	}
	assert_int_equal(w.came[0] + w.came[1] + w.came[2], PACKETS);
	assert_int_equal(c.spread, w.came[1] + w.came[2]);
	wide_down(&w);
}

/* A flow stays together; many flows use all queues. */
static void linkemu_join__hash(void **state)
{
	bool used[QUEUES] = {false};
	struct wide w;

	wide_up(&w, "spread=hash");
	for (uint16_t flow = 0; flow < 30; flow++) {
		unsigned queues = 0;

		memset(w.came, 0, sizeof(w.came));
		for (unsigned i = 0; i < 20; i++)
			wide_send(&w, (uint16_t)(0xC000 + flow));
		for (unsigned q = 0; q < QUEUES; q++) {
			queues += w.came[q] != 0;
			used[q] |= w.came[q] == 20;
		}
		assert_int_equal(queues, 1);
	}
	assert_true(used[0] && used[1] && used[2]);
	wide_down(&w);
}

/* --- changes while it is in use --------------------------------------------------------- */

static void change(struct linkemu *l, const char *text)
{
	struct linkemu_config cfg;
	char why[256];

	assert_int_equal(linkemu_parse(&cfg, text, why, sizeof(why)), 0);
	linkemu_change(l, &cfg);
}

static void linkemu_change__from_the_next_burst_on(void **state)
{
	struct linkemu *l = link_of("");
	char text[64];

	assert_int_equal(through(first, 2 * PACKETS), PACKETS);
	for (unsigned i = 0; i < 3; i++) {
		change(l, "nth=10,mask=5"); /* both count from here, each time */
		assert_string_equal(
			linkemu_text(linkemu_config(l), text, sizeof(text)), "nth=10,mask=5");
		assert_int_equal(through(first, 2 * PACKETS), PACKETS - 102);
		assert_int_equal(first[0].psn, 1);
		change(l, "");
		assert_int_equal(through(first, 2 * PACKETS), PACKETS);
	}
	assert_int_equal(counters(l).packets, 7 * PACKETS);
	assert_int_equal(counters(l).lost, 3 * 102);
	linkemu_detach(l);
}

/* Packets that wait for their turn on a slow link need not any more. */
static void linkemu_change__ends_a_rate(void **state)
{
	struct linkemu *l = link_of("rate=1K"); /* 1.2 s each */
	unsigned got = 0;
	bool ce[32];

	send_burst(10);
	assert_int_equal(receive(first, PACKETS), 0);
	change(l, "");
	send_burst(10);
	receive_all(&got, 20, ce);
	assert_int_equal(got, 20);
	change(l, "rate=10,queue=1K"); /* nothing waits there */
	send_burst(2);
	assert_int_equal(receive(first, PACKETS), 0);
	assert_int_equal(counters(l).dropped, 0);
	linkemu_detach(l);
	assert_int_equal(rte_mempool_avail_count(pool), all_buffers);
}

/* Packets that were under way arrive, with their delay. */
static void linkemu_change__loses_nothing(void **state)
{
	struct linkemu *l = link_of("delay=20ms");
	unsigned got = 0;
	time_t end = patience_begin();

	for (unsigned i = 0; i < 20; i++)
		send_frame(i, true);
	got += receive(first, PACKETS);
	change(l, "");
	while (got < 20 && !patience_over(end))
		got += receive(first + got, PACKETS - got);
	assert_int_equal(got, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(first[i].psn, i);
	linkemu_detach(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_receive__perfect_link_changes_nothing),
		cmocka_unit_test(on_receive__loses_the_share_asked_for),
		cmocka_unit_test(on_receive__nth_and_mask_name_packets),
		cmocka_unit_test(on_receive__duplicates),
		cmocka_unit_test(on_receive__reorders_neighbours),
		cmocka_unit_test(on_receive__corrupts_one_bit_and_truncates),
		cmocka_unit_test(on_receive__same_seed_same_faults),
		cmocka_unit_test(on_receive__delay_is_kept),
		cmocka_unit_test(on_receive__other_frames_pass),
		cmocka_unit_test(linkemu_detach__frees_what_is_under_way),
		cmocka_unit_test(linkemu_change__from_the_next_burst_on),
		cmocka_unit_test(linkemu_change__loses_nothing),
		cmocka_unit_test(on_receive__takes_its_time),
		cmocka_unit_test(on_receive__queue_is_limited),
		cmocka_unit_test(on_receive__marks_at_egress_or_ingress),
		cmocka_unit_test(linkemu_change__ends_a_rate),
		cmocka_unit_test(linkemu_join__random),
		cmocka_unit_test(linkemu_join__hash),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, up, NULL);
}
