/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include "frame.h"
#include "interrupts.h"
#include "json_line.h"
#include "opcode.h"
#include "plan.h"
#include "row.h"
#include "send.h"

#define PORT	   0
#define BURST	   32u
#define RING	   1024u
#define MBUFS	   8191u
#define LINK_S	   30u
#define QUIET_MS   50u
#define MARGIN_MTU (ETH_HLEN + 4u) /* and a VLAN tag */

/* The answers. */
struct answers {
	uint64_t packets, acks, naks, cnps, others;
};

static atomic_bool stop;

static void on_signal(int number)
{
	atomic_store(&stop, true);
}

/* --- the port ----------------------------------------------------------------------------- */

static size_t longest(const struct plan *p)
{
	size_t len = 0;

	for (uint64_t i = 0; i < (uint64_t)p->message * p->nops; i++)
		if (plan_length(p, i) > len)
			len = plan_length(p, i);
	return len;
}

static struct rte_mempool *open_port(const struct plan *p)
{
	struct rte_eth_conf conf = {0};
	uint16_t mtu = (uint16_t)(p->mtu ? p->mtu : 0);
	/* memif needs room for the largest frame of the other side. */
	uint16_t room = (uint16_t)(RTE_PKTMBUF_HEADROOM + PLAN_FRAME);
	struct rte_mempool *pool;
	int err;

	if (!rte_eth_dev_is_valid_port(PORT))
		errx(1, "EAL has no port: name one with --vdev or -a");
	pool = rte_pktmbuf_pool_create("rocigen", MBUFS, 256, 0, room, SOCKET_ID_ANY);
	if (!pool)
		errx(1, "no memory for packet buffers: give EAL more, -m 256");
	err = rte_eth_dev_configure(PORT, 1, 1, &conf);
	if (!err && mtu) {
		err = rte_eth_dev_set_mtu(PORT, mtu);
		if (err == -ENOTSUP) /* memif: every frame that fits into its buffers passes */
			err = 0;
	}
	if (!err)
		err = rte_eth_rx_queue_setup(PORT, 0, RING, SOCKET_ID_ANY, NULL, pool);
	if (!err)
		err = rte_eth_tx_queue_setup(PORT, 0, RING, SOCKET_ID_ANY, NULL);
	if (!err)
		err = rte_eth_dev_start(PORT);
	if (err)
		errx(1, "cannot set up the port (%s)", strerror(-err));
	return pool;
}

static void wait_for_link(void)
{
	uint64_t until = rte_get_timer_cycles() + LINK_S * rte_get_timer_hz();
	struct rte_eth_link link;

	while (rte_eth_link_get_nowait(PORT, &link) || !link.link_status) {
		if (rte_get_timer_cycles() > until || atomic_load(&stop))
			errx(1,
				"the link did not come up within %u s: check that the other side "
				"runs",
				LINK_S);
		usleep(1000);
	}
}

/* --- sending and receiving ---------------------------------------------------------------- */

static void count(struct answers *a, const struct rte_mbuf *m)
{
	struct pkt pkt;

	a->packets++;
	if (frame_parse(&pkt, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m)))
		a->others++;
	else if (pkt.op->kind == KIND_CNP)
		a->cnps++;
	else if (pkt.op->kind == KIND_ACK && (pkt.syndrome & AETH_TYPE_MASK) == AETH_ACK)
		a->acks++;
	else if (pkt.op->kind == KIND_ACK)
		a->naks++;
	else
		a->others++;
}

/* @return whether there were answers. */
static bool receive(struct answers *a)
{
	struct rte_mbuf *m[BURST];
	unsigned n = rte_eth_rx_burst(PORT, 0, m, BURST);
	uint64_t others = a->others;

	for (unsigned i = 0; i < n; i++)
		count(a, m[i]);
	rte_pktmbuf_free_bulk(m, n);
	return a->others - others < n;
}

/* Sends a burst starting with frame @p first. @return how many. */
static unsigned fill(
	const struct plan *p, struct rte_mempool *pool, struct rte_mbuf **m, uint64_t first)
{
	unsigned n = BURST;

	if (p->count && p->count - first < n)
		n = (unsigned)(p->count - first);
	if (rte_pktmbuf_alloc_bulk(pool, m, n))
		return 0;
	for (unsigned i = 0; i < n; i++) {
		uint16_t len = (uint16_t)plan_length(p, first + i);

		plan_frame(p, first + i, rte_pktmbuf_mtod(m[i], uint8_t *));
		m[i]->data_len = len;
		m[i]->pkt_len = len;
	}
	return n;
}

static void pace(const struct plan *p, uint64_t sent, uint64_t start, struct answers *a)
{
	uint64_t due =
		start + (uint64_t)((double)sent / (p->mpps * 1e6) * (double)rte_get_timer_hz());

	while (rte_get_timer_cycles() < due && !atomic_load(&stop))
		receive(a);
}

static uint64_t send_all(
	const struct plan *p, struct rte_mempool *pool, struct answers *a, uint64_t *refused)
{
	uint64_t start = rte_get_timer_cycles();
	uint64_t sent = 0;

	while ((!p->count || sent < p->count) && !atomic_load(&stop)) {
		struct rte_mbuf *m[BURST];
		unsigned n = fill(p, pool, m, sent);
		unsigned done = 0;

		while (done < n && !atomic_load(&stop)) {
			unsigned took = rte_eth_tx_burst(PORT, 0, m + done, (uint16_t)(n - done));

			done += took;
			*refused += done < n;
			receive(a);
		}
		rte_pktmbuf_free_bulk(m + done, n - done);
		sent += done;
		if (p->mpps > 0)
			pace(p, sent, start, a);
	}
	return sent;
}

/* Keeps the port while answers arrive, or until the caller has seen all: some ports lose unread
 * frames when they close. Other frames may never stop coming. */
static void linger(const struct plan *p, struct answers *a)
{
	uint64_t quiet = rte_get_timer_hz() / 1000 * QUIET_MS;
	uint64_t last = rte_get_timer_cycles();

	while (rte_get_timer_cycles() - last < quiet && !atomic_load(&stop))
		if (receive(a))
			last = rte_get_timer_cycles();
}

static void hold(void)
{
	char c;

	while (!atomic_load(&stop) && read(STDIN_FILENO, &c, 1) > 0)
		;
}

static void print(const struct plan *p, uint64_t sent, uint64_t refused, double seconds,
	const struct answers *a)
{
	struct row r;

	row_begin(&r);
	put_int(&r, "sent", (int64_t)sent);
	put_real(&r, "seconds", seconds);
	put_real(&r, "mpps", (double)sent / seconds * 1e-6);
	put_real(&r, "gbit_s", (double)sent * (double)plan_length(p, 0) * 8e-9 / seconds);
	put_int(&r, "refused_bursts", (int64_t)refused);
	put_int(&r, "answers", (int64_t)a->packets);
	put_int(&r, "acks", (int64_t)a->acks);
	put_int(&r, "naks", (int64_t)a->naks);
	put_int(&r, "cnps", (int64_t)a->cnps);
	put_int(&r, "others", (int64_t)a->others);
	json_line(row_end(&r));
}

void send_plan(const struct plan *p, int argc, char *argv[])
{
	struct sigaction act = {.sa_handler = on_signal};
	struct answers a = {0};
	struct rte_mempool *pool;
	uint64_t refused = 0;
	uint64_t start, sent;
	double seconds;

	if (rte_eal_init(argc, argv) < 0)
		errx(1, "EAL does not start: see its own message for the reason");
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	if (longest(p) > MARGIN_MTU + (p->mtu ? p->mtu : 1500u))
		errx(1, "frames of %zu bytes exceed the MTU: use --mtu %zu", longest(p),
			longest(p) - ETH_HLEN);
	pool = open_port(p);
	wait_for_link();
	start = rte_get_timer_cycles();
	sent = send_all(p, pool, &a, &refused);
	seconds = (double)(rte_get_timer_cycles() - start) / (double)rte_get_timer_hz();
	linger(p, &a);
	print(p, sent, refused, seconds, &a);
	if (p->hold)
		hold();
	interrupts_stop();
	rte_eth_dev_stop(PORT);
	rte_eth_dev_close(PORT);
	rte_mempool_free(pool);
	rte_eal_cleanup();
}
