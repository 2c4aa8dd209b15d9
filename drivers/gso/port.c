/* SPDX-License-Identifier: BSD-3-Clause */
/* The port: its sockets, its ethdev and its counters. Control thread. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include "bits.h"
#include "gso/gso.h"
#include "gso/queue.h"
#include "port.h"

/* A worker may have taken all frames of a full ring just before one look. */
#define STUCK_LOOKS 2u

struct gsoport {
	char netdev[IFNAMSIZ];
	uint16_t ethdev;
	uint16_t queues;
	bool made;	       /* the ethdev */
	uint64_t look_ms;      /* when to look next whether one is stuck; control thread */
	uint64_t refused;      /* that gsoport_refused() has returned; control thread */
	struct rte_ring *none; /* always empty: the ethdev's own receive ring */
	struct gso_queue *queue[WORKER_MAX];
};

static struct gso_queue *make_queue(const struct gsoport *g, uint16_t number)
{
	struct gso_queue *q = rte_zmalloc("gsoport", sizeof(*q), CACHE_LINE);
	char name[RTE_RING_NAMESIZE];

	if (!q)
		return NULL;
	snprintf(name, sizeof(name), "gso%s.%u", g->netdev, number);
	q->sent = rte_ring_create(
		name, GSO_SENT_MAX * 2, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	q->sock.fd = -EBADF;
	return q;
}

static bool make_queues(struct gsoport *g)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "gso%s", g->netdev);
	g->none = rte_ring_create(name, 2, SOCKET_ID_ANY, 0);
	for (uint16_t i = 0; i < g->queues; i++) {
		g->queue[i] = make_queue(g, i);
		if (!g->queue[i] || !g->queue[i]->sent)
			return false;
	}
	return g->none;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* In the order of their numbers, which rxwake.c relies on. */
static int open_sockets(struct gsoport *g, char *why, unsigned why_size)
{
	int fd[WORKER_MAX];
	int fanout = -1;
	int err = 0;

	for (uint16_t i = 0; i < g->queues; i++) {
		fd[i] = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		fd[i] = fd[i] < 0 ? -errno : fd[i];
	}
	qsort(fd, g->queues, sizeof(fd[0]), by_number);
	for (uint16_t i = 0; i < g->queues; i++)
		g->queue[i]->sock.fd = fd[i];
	for (uint16_t i = 0; i < g->queues && !err; i++)
		err = gsosock_open(&g->queue[i]->sock, g->netdev, g->queues > 1 ? &fanout : NULL,
			why, why_size);
	return err;
}

static int make_ethdev(struct gsoport *g)
{
	struct rte_ring *rx[WORKER_MAX], *tx[WORKER_MAX];
	char name[32];
	int port;

	for (uint16_t i = 0; i < g->queues; i++) {
		rx[i] = g->none;
		tx[i] = g->queue[i]->sent;
	}
	snprintf(name, sizeof(name), "gso_%s", g->netdev);
	port = rte_eth_from_rings(name, rx, g->queues, tx, g->queues, 0);
	if (port < 0)
		return -ENOMEM;
	g->ethdev = (uint16_t)port;
	g->made = true;
	return 0;
}

struct gsoport *gsoport_create(
	const char *netdev, uint16_t queues, uint16_t *ethdev, char *why, unsigned why_size)
{
	struct gsoport *g = calloc(1, sizeof(*g));
	int err = -ENOMEM;

	if (g && queues <= WORKER_MAX) {
		snprintf(g->netdev, sizeof(g->netdev), "%s", netdev);
		g->queues = queues;
		snprintf(why, why_size, "no memory for a port: give EAL more with -m MB");
		err = make_queues(g) ? open_sockets(g, why, why_size) : -ENOMEM;
		if (!err)
			err = make_ethdev(g);
	}
	if (!err) {
		*ethdev = g->ethdev;
		return g;
	}
	gsoport_destroy(g);
	errno = -err;
	return NULL;
}

void gsoport_options(const struct gsoport *g, bool on)
{
	for (uint16_t i = 0; g && i < g->queues; i++)
		gsosock_options(&g->queue[i]->sock, on);
}

void gsoport_describe(const struct gsoport *g, struct port_info *info)
{
	struct ifreq ifr = {0};

	snprintf(info->driver, sizeof(info->driver), "%s", GSOPORT_DRIVER);
	memcpy(ifr.ifr_name, g->netdev, IFNAMSIZ);
	if (!ioctl(g->queue[0]->sock.fd, SIOCGIFHWADDR, &ifr))
		memcpy(info->mac, ifr.ifr_hwaddr.sa_data, sizeof(info->mac));
}

/* Call it before any callback is added: a worker may read the answers of all queues. */
static void prepare_to_ask(struct gsoport *g, const struct port *port, bool asks)
{
	for (uint16_t i = 0; i < g->queues; i++) {
		struct gso_queue *q = g->queue[i];

		q->asks = asks;
		gso_ask_init(&q->ask, rte_get_tsc_hz() / 1000);
		q->ask.fd = q->sock.fd;
		q->ask.port = port;
		q->ask.queues = g->queues;
		for (uint16_t k = 0; k < g->queues; k++)
			q->ask.all[k] = &g->queue[k]->ask;
	}
}

int gsoport_start(
	struct gsoport *g, struct rte_mempool *const pool[], const struct port *port, bool asks)
{
	prepare_to_ask(g, port, asks);
	for (uint16_t i = 0; i < g->queues; i++) {
		struct gso_queue *q = g->queue[i];

		q->pool = pool[i];
		q->room = rte_pktmbuf_data_room_size(pool[i]) - RTE_PKTMBUF_HEADROOM;
		q->on_rx = rte_eth_add_rx_callback(g->ethdev, i, gso_receive, q);
		q->on_tx = rte_eth_add_tx_callback(g->ethdev, i, gso_send, q);
		if (!q->on_rx || !q->on_tx)
			return -ENOMEM;
	}
	return 0;
}

static void destroy_queue(struct gso_queue *q)
{
	struct rte_mbuf *m;

	if (!q)
		return;
	gsosock_close(&q->sock);
	rte_pktmbuf_free_bulk(q->part + q->given, q->parts - (unsigned)q->given);
	while (q->sent && !rte_ring_dequeue(q->sent, (void **)&m))
		rte_pktmbuf_free(m);
	rte_ring_free(q->sent);
	rte_free(q);
}

void gsoport_stop(struct gsoport *g)
{
	for (uint16_t i = 0; g && i < g->queues; i++) {
		struct gso_queue *q = g->queue[i];

		if (q->on_rx)
			rte_eth_remove_rx_callback(g->ethdev, i, q->on_rx);
		if (q->on_tx)
			rte_eth_remove_tx_callback(g->ethdev, i, q->on_tx);
		rte_free((void *)(uintptr_t)q->on_rx);
		rte_free((void *)(uintptr_t)q->on_tx);
		q->on_rx = q->on_tx = NULL;
	}
}

void gsoport_destroy(struct gsoport *g)
{
	char name[32];

	if (!g)
		return;
	snprintf(name, sizeof(name), "net_ring_gso_%s", g->netdev);
	if (g->made)
		rte_eal_hotplug_remove("vdev", name);
	for (uint16_t i = 0; i < g->queues; i++)
		destroy_queue(g->queue[i]);
	rte_ring_free(g->none);
	free(g);
}

static uint64_t missed(struct gso_queue *q)
{
	q->missed += gsosock_missed(&q->sock);
	return q->missed;
}

void gsoport_count(void *arg, struct rte_eth_stats *stats)
{
	struct gsoport *g = arg;

	memset(stats, 0, sizeof(*stats));
	for (uint16_t i = 0; i < g->queues; i++) {
		struct gso_queue *q = g->queue[i];

		stats->imissed += missed(q) + gso_counted(&q->count.no_room);
		stats->ipackets += gso_counted(&q->count.ipackets);
		stats->ibytes += gso_counted(&q->count.ibytes);
		stats->ierrors += gso_counted(&q->count.ierrors);
		stats->rx_nombuf += gso_counted(&q->count.nombuf);
		stats->opackets += gso_counted(&q->count.opackets);
		stats->obytes += gso_counted(&q->count.obytes);
		stats->oerrors += gso_counted(&q->count.oerrors);
	}
}

void gsoport_runs(const struct gsoport *g, struct gsoport_runs *r)
{
	*r = (struct gsoport_runs){0};
	for (uint16_t i = 0; i < g->queues; i++) {
		r->sent += gso_counted(&g->queue[i]->count.runs);
		r->trials += gso_counted(&g->queue[i]->ask.trials);
		r->answers += gso_counted(&g->queue[i]->ask.answered);
	}
}

/* @return bytes of the longest that passed since the last call. */
static uint32_t take_passed(struct gso_passed *p)
{
	uint32_t longest = atomic_exchange(&p->len, 0u);

	atomic_store_explicit(&p->before, longest, memory_order_relaxed);
	return longest;
}

uint64_t gsoport_refused(struct gsoport *g, uint32_t *shortest, uint32_t *passed)
{
	uint64_t before = g->refused;

	*shortest = 0;
	*passed = 0;
	g->refused = 0;
	for (uint16_t i = 0; i < g->queues; i++) {
		struct gso_queue *q = g->queue[i];
		uint32_t refused = atomic_exchange(&q->refused_len, 0);
		uint32_t longest = take_passed(&q->single);

		take_passed(&q->run);
		g->refused += gso_counted(&q->count.refused);
		*passed = RTE_MAX(*passed, longest);
		if (refused && (!*shortest || refused < *shortest))
			*shortest = refused;
	}
	return g->refused - before;
}

/* Frames are also dropped while a paused worker leaves the ring full, but then its slots are
 * filled.
 */
static bool is_stuck(struct gso_queue *q)
{
	uint64_t missed_now = missed(q);
	uint64_t taken = gso_counted(&q->count.ipackets) + gso_counted(&q->count.ierrors) +
			 gso_counted(&q->count.no_room);

	if (missed_now != q->stuck.missed && taken == q->stuck.taken && gsosock_empty(&q->sock))
		q->stuck.looks++;
	else
		q->stuck.looks = 0;
	q->stuck.missed = missed_now;
	q->stuck.taken = taken;
	return q->stuck.looks >= STUCK_LOOKS;
}

bool gsoport_stuck(struct gsoport *g, uint64_t now_ms)
{
	bool stuck = false;

	if (now_ms < g->look_ms)
		return false;
	g->look_ms = now_ms + GSOPORT_LOOK_MS;
	for (uint16_t i = 0; i < g->queues; i++)
		stuck |= is_stuck(g->queue[i]);
	return stuck;
}
