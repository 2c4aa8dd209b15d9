/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include "bench.h"
#include "bits.h"
#include "floor.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "limits.h"

#define DESCRIPTORS 1024u
#define BUFFERS	    4095u
#define ENTRIES	    1024u /* of the work and the completion ring */
#define PACKET	    4096u /* payload at most */
#define HEADERS	    (ETH_HLEN + IP4_HLEN + UDP_HLEN + BTH_HLEN + RETH_LEN)

/* A work entry, and a completion: one cache line. */
struct entry {
	uint64_t offset;
	uint64_t rest[7];
} CACHE_ALIGNED;

static struct {
	const struct icrc_ops *icrc;
	struct rte_mempool *pool;
	struct rte_ring *ring;
	uint16_t port;
	uint8_t *from;
	uint8_t *to;
	size_t bytes;
	uint8_t template[HEADERS];
	uint32_t posted, sent, completed;
	uint32_t random;
	struct entry work[ENTRIES];
	struct entry completion[ENTRIES];
} floor_ = {.random = 1};

static uint8_t *memory(size_t bytes, int value)
{
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("no %zu MB of memory for the floor", bytes >> 20);
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, value, bytes);
	return p;
}

static void open_port(void)
{
	struct rte_eth_conf conf = {0};
	int port;

	floor_.pool = rte_pktmbuf_pool_create(
		"floor", BUFFERS, 256, 0, RTE_PKTMBUF_HEADROOM + MBUF_ROOM, (int)rte_socket_id());
	floor_.ring = rte_ring_create(
		"floor", DESCRIPTORS, (int)rte_socket_id(), RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!floor_.pool || !floor_.ring)
		bench_die("no memory for the floor's packets");
	port = rte_eth_from_ring(floor_.ring);
	if (port < 0)
		bench_die("no net_ring port for the floor");
	floor_.port = (uint16_t)port;
	if (rte_eth_dev_configure(floor_.port, 1, 1, &conf) ||
		rte_eth_tx_queue_setup(floor_.port, 0, DESCRIPTORS, 0, NULL) ||
		rte_eth_rx_queue_setup(floor_.port, 0, DESCRIPTORS, 0, NULL, floor_.pool) ||
		rte_eth_dev_start(floor_.port))
		bench_die("the floor's net_ring port does not start");
}

void floor_open(size_t bytes)
{
	floor_.icrc = icrc_best();
	floor_.bytes = bytes;
	floor_.from = memory(bytes, 5);
	floor_.to = memory(bytes, 6);
	memset(floor_.template, 0x11, sizeof(floor_.template));
	open_port();
}

void floor_close(void)
{
	rte_eth_dev_stop(floor_.port);
	rte_eth_dev_close(floor_.port);
	rte_ring_free(floor_.ring);
	rte_mempool_free(floor_.pool);
	munmap(floor_.from, floor_.bytes);
	munmap(floor_.to, floor_.bytes);
}

/* Headers from the template, PSN and offset into them, ICRC over them, then payload and ICRC. */
static void build(struct rte_mbuf *m, uint64_t offset, uint32_t len)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t *payload = frame + HEADERS;
	uint32_t crc;

	memcpy(frame, floor_.template, HEADERS);
	memcpy(payload - RETH_LEN - 4, &floor_.sent, 4);
	memcpy(payload - RETH_LEN, &offset, 8);
	floor_.sent++;
	crc = icrc_header_copy(floor_.icrc, frame + ETH_HLEN, NET_IPV4, HEADERS - ETH_HLEN, payload,
		floor_.from + offset, len);
	icrc_store(payload + len, crc);
	m->data_len = (uint16_t)(HEADERS + len + ICRC_LEN);
	m->pkt_len = m->data_len;
}

static void send_burst(unsigned packets, uint32_t per_message, uint32_t len)
{
	struct rte_mbuf *m[BURST];
	uint64_t offset = 0;

	if (rte_pktmbuf_alloc_bulk(floor_.pool, m, packets))
		bench_die("the floor has lost its packets");
	for (unsigned i = 0; i < packets; i++) {
		struct entry *e = &floor_.work[floor_.posted % ENTRIES];

		if (i % per_message == 0) {
			offset = e->offset;
			e->rest[6] = i;
			floor_.posted++;
		}
		build(m[i], offset, len);
		offset += len;
	}
	if (rte_eth_tx_burst(floor_.port, 0, m, (uint16_t)packets) != packets)
		bench_die("the floor's ring is too small");
}

static void place(struct rte_mbuf *m, uint32_t len)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct pkt p = {.net = NET_IPV4, .l3 = frame + ETH_HLEN};
	uint64_t offset;

	p.icrc_off = HEADERS - ETH_HLEN + len;
	if (!icrc_check(floor_.icrc, &p))
		bench_die("the floor's ICRC is wrong");
	memcpy(&offset, frame + HEADERS - RETH_LEN, 8);
	memcpy(floor_.to + offset, frame + HEADERS, len);
}

static void receive_burst(unsigned packets, uint32_t per_message, uint32_t len)
{
	struct rte_mbuf *m[BURST];
	unsigned n = rte_eth_rx_burst(floor_.port, 0, m, BURST);

	if (n != packets)
		bench_die("the floor has lost packets");
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (unsigned i = 0; i < n; i++) {
		place(m[i], len);
		if ((i + 1) % per_message == 0) {
			struct entry *e = &floor_.completion[floor_.completed++ % ENTRIES];

			for (unsigned k = 0; k < ARRAY_SIZE(e->rest); k++)
				e->rest[k] = i + k;
			e->offset = i;
		}
	}
	rte_pktmbuf_free_bulk(m, n);
}

struct floor_cost floor_run(size_t size, size_t set, unsigned long messages)
{
	uint32_t len = size < PACKET ? (uint32_t)size : PACKET;
	uint32_t per_message = (uint32_t)(size / len);
	unsigned batch = BURST / per_message;
	uint32_t places = (uint32_t)(set / size);
	double start = bench_ns();
	uint64_t tx_cycles = 0;
	uint64_t all_cycles = rte_rdtsc();
	double each;
	unsigned long n;

	for (n = 0; n < messages; n += batch) {
		uint64_t t;

		for (unsigned i = 0; i < batch; i++)
			floor_.work[(floor_.posted + i) % ENTRIES].offset =
				(uint64_t)bench_below(&floor_.random, places) * size;
		t = rte_rdtsc();
		send_burst(batch * per_message, per_message, len);
		tx_cycles += rte_rdtsc() - t;
		receive_burst(batch * per_message, per_message, len);
	}
	all_cycles = rte_rdtsc() - all_cycles;
	each = (bench_ns() - start) / (double)n;
	return (struct floor_cost){
		.tx_ns = each * (double)tx_cycles / (double)all_cycles,
		.rx_ns = each * (double)(all_cycles - tx_cycles) / (double)all_cycles,
	};
}
