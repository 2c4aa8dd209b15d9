/* SPDX-License-Identifier: BSD-3-Clause */
/* In a network name space of its own, on a veth: both ends take and give many frames at a time, or
 * a plain packet socket looks at what comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <rte_ethdev.h>
#include "bits.h"
#include "eal_test.h"
#include "frame.h"
#include "gso/gso.h"
#include "headers.h"
#include "icrc.h"
#include "packet.h"
#include "path.h"
#include "patience.h"
#include "port.h"
#include "unstick.h"

#define QUEUES 2
#define BODY   1024u

/* Addresses of the frames' receiver. */
static const struct gid_table gids = {.count = 1,
	.entry = {{.gid = {[10] = 0xFF, 0xFF, 0x0A, 0x09, 0x08, 0xF6},
		.net = NET_IPV4,
		.valid = true}}};
static const struct port owner = {.gids = &gids};

struct end {
	struct gsoport *port;
	uint16_t ethdev;
};

static struct rte_mempool *pool;
static struct end a, b;

static void open_asking(struct end *e, const char *netdev, bool asks)
{
	struct rte_mempool *pools[QUEUES] = {pool, pool};
	const struct rte_eth_conf conf = {0};
	char why[256] = "";

	e->port = gsoport_create(netdev, QUEUES, &e->ethdev, why, sizeof(why));
	assert_non_null(e->port);
	assert_int_equal(rte_eth_dev_configure(e->ethdev, QUEUES, QUEUES, &conf), 0);
	for (uint16_t q = 0; q < QUEUES; q++) {
		assert_int_equal(
			rte_eth_rx_queue_setup(e->ethdev, q, 64, SOCKET_ID_ANY, NULL, pool), 0);
		assert_int_equal(rte_eth_tx_queue_setup(e->ethdev, q, 64, SOCKET_ID_ANY, NULL), 0);
	}
	assert_int_equal(rte_eth_dev_start(e->ethdev), 0);
	assert_int_equal(gsoport_start(e->port, pools, &owner, asks), 0);
}

static void open_end(struct end *e, const char *netdev)
{
	open_asking(e, netdev, false);
}

static void close_end(struct end *e)
{
	gsoport_stop(e->port);
	assert_int_equal(rte_eth_dev_stop(e->ethdev), 0);
	assert_int_equal(rte_eth_dev_close(e->ethdev), 0);
	gsoport_destroy(e->port);
}

static int open_both(void **state)
{
	open_end(&a, "va");
	open_end(&b, "vb");
	return 0;
}

static int close_both(void **state)
{
	close_end(&a);
	close_end(&b);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	return 0;
}

/* A sealed frame of @p body bytes between BTH and ICRC. @p flow: its UDP source port. */
static struct rte_mbuf *frame(unsigned net, uint16_t flow, uint16_t id, uint32_t body)
{
	static struct gid_entry sgid = {.valid = true, .mac = {2, 0, 0, 0, 0, 1}};
	struct path_spec s = {.sgid = &sgid, .hop_limit = 9, .sport = flow};
	uint16_t rest = (uint16_t)(BTH_HLEN + body + ICRC_LEN);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *f, *bth;
	struct path p;

	assert_non_null(m);
	sgid.net = (uint8_t)net;
	memset(s.dmac, 0xFF, sizeof(s.dmac));
	memcpy(sgid.gid, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\x0A\x09\x08\x07", 16);
	memcpy(s.dgid, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\x0A\x09\x08\xF6", 16);
	path_init(&p, &s);
	f = rte_pktmbuf_mtod(m, uint8_t *);
	memset(f, 0, 100);
	bth = path_write(&p, f, rest, id);
	memset(bth, (uint8_t)id, rest);
	bth[BTH_OPCODE] = 0x07;
	bth[BTH_FLAGS] = 0;
	put_be16(bth + BTH_PKEY, 0xFFFF);
	m->data_len = (uint16_t)(bth - f) + rest;
	m->pkt_len = m->data_len;
	icrc_store(
		f + m->data_len - ICRC_LEN, icrc_header(icrc_by_name("table"), f + ETH_HLEN, net,
						    m->data_len - (size_t)(ETH_HLEN + ICRC_LEN)));
	return m;
}

static void send_all(uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	assert_int_equal(rte_eth_tx_burst(a.ethdev, queue, m, n), n);
}

/* Receives @p n frames by whatever queue, into @p m. @return the queue, the same for all */
static uint16_t receive(struct rte_mbuf **m, unsigned n)
{
	time_t end = patience_begin();
	uint16_t queue = QUEUES;
	unsigned got = 0;

	while (got < n) {
		for (uint16_t q = 0; q < QUEUES; q++) {
			uint16_t k = rte_eth_rx_burst(b.ethdev, q, m + got,
				(uint16_t)RTE_MIN(n - got, 5u)); /* in pieces */

			assert_true(!k || queue == QUEUES || queue == q);
			queue = k ? q : queue;
			got += k;
		}
		assert_false(patience_over(end));
	}
	return queue;
}

static void assert_good(struct rte_mbuf *m)
{
	struct pkt p;

	assert_int_equal(frame_parse(&p, rte_pktmbuf_mtod(m, uint8_t *), m->data_len), DROP_NONE);
	assert_true(icrc_check(icrc_by_name("table"), &p));
}

static void same(struct rte_mbuf *m, struct rte_mbuf *copy)
{
	assert_good(m);
	assert_int_equal(m->data_len, copy->data_len);
	assert_memory_equal(
		rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_mtod(copy, uint8_t *), m->data_len);
}

static struct rte_eth_stats stats_of(const struct end *e)
{
	struct rte_eth_stats s;

	assert_int_equal(rte_eth_stats_get(e->ethdev, &s), 0);
	gsoport_count(e->port, &s);
	return s;
}

/* Runs, what is between them, and what cannot be part of one: all arrive, in order, as they were.
 */
static void gsoport__what_is_sent_arrives(void **state)
{
	struct rte_mbuf *m[BURST], *copy[BURST], *got[BURST];
	struct rte_eth_stats s;
	uint64_t bytes = 0;

	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++) {
		for (unsigned i = 0; i < BURST; i++) {
			m[i] = frame(net, 50000, (uint16_t)(100 + i + i / 20),
				i == 11	  ? 512
				: i == 12 ? 0
					  : BODY);
			copy[i] = rte_pktmbuf_copy(m[i], pool, 0, UINT32_MAX);
			bytes += m[i]->data_len;
		}
		send_all(0, m, BURST);
		receive(got, BURST);
		for (unsigned i = 0; i < BURST; i++)
			same(got[i], copy[i]);
		rte_pktmbuf_free_bulk(got, BURST);
		rte_pktmbuf_free_bulk(copy, BURST);
	}
	s = stats_of(&b);
	assert_int_equal(s.ipackets, 3 * BURST);
	assert_int_equal(s.ibytes, bytes);
	assert_int_equal(s.ierrors + s.imissed + s.rx_nombuf, 0);
	s = stats_of(&a);
	assert_int_equal(s.opackets, 3 * BURST);
	assert_int_equal(s.obytes, bytes);
	assert_int_equal(s.oerrors, 0);
}

/* The first that is sent after the netdev was down goes, too: most often it is what was lost
 * before.
 */
static void gsoport__after_the_netdev_was_down(void **state)
{
	struct rte_mbuf *m = frame(NET_IPV4, 50000, 1, BODY), *copy, *got;

	copy = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
	assert_int_equal(system("ip link set va down && ip link set va up"), 0);
	send_all(0, &m, 1);
	receive(&got, 1);
	same(got, copy);
	rte_pktmbuf_free(got);
	rte_pktmbuf_free(copy);
	assert_int_equal(stats_of(&a).oerrors, 0);
}

/* As RSS would: several workers see several flows. */
static void gsoport__queues_share_the_flows(void **state)
{
	bool seen[QUEUES] = {false};

	for (uint16_t flow = 50000; flow < 50064; flow++) {
		struct rte_mbuf *m[4], *got[4];
		uint16_t queue;

		for (uint16_t i = 0; i < 4; i++)
			m[i] = frame(NET_IPV4, flow, i, BODY);
		send_all(flow % QUEUES, m, 4);
		queue = receive(got, 4);
		seen[queue] = true;
		for (unsigned i = 0; i < 4; i++)
			assert_good(got[i]);
		rte_pktmbuf_free_bulk(got, 4);
	}
	assert_true(seen[0] && seen[1]);
}

/* Waits until b's kernel has handed over what was sent, while there is no buffer that it could be
 * taken into. */
static void arrived(void)
{
	static struct rte_mbuf *all[4096];
	uint64_t before = stats_of(&b).rx_nombuf;
	time_t end = patience_begin();
	struct rte_mbuf *got[16];
	unsigned taken = 0;

	while ((all[taken] = rte_pktmbuf_alloc(pool)))
		taken++;
	while (stats_of(&b).rx_nombuf == before) {
		for (uint16_t q = 0; q < QUEUES; q++)
			assert_int_equal(rte_eth_rx_burst(b.ethdev, q, got, 16), 0);
		assert_false(patience_over(end));
	}
	rte_pktmbuf_free_bulk(all, taken);
}

static void send_run(unsigned net, uint16_t id)
{
	struct rte_mbuf *m[16];

	for (uint16_t i = 0; i < 16; i++)
		m[i] = frame(net, 50000, (uint16_t)(id + i), BODY);
	send_all(0, m, 16);
}

/* The frames of send_run(). */
static void receive_run(unsigned net, uint16_t id)
{
	struct rte_mbuf *got[16];

	receive(got, 16);
	for (uint16_t i = 0; i < 16; i++) {
		struct rte_mbuf *copy = frame(net, 50000, (uint16_t)(id + i), BODY);

		same(got[i], copy);
		rte_pktmbuf_free(copy);
	}
	rte_pktmbuf_free_bulk(got, 16);
}

/* One run is there, while buffers are for a few frames only: it waits. */
static void gsoport__no_buffers(void **state)
{
	send_run(NET_IPV4, 0);
	arrived();
	receive_run(NET_IPV4, 0);
	assert_int_equal(stats_of(&b).ipackets, 16);
}

/* The error that this leaves in the receiver's socket is not taken for the run that waits. */
static void gsoport__a_run_waits_while_the_netdev_is_down(void **state)
{
	send_run(NET_IPV4, 0);
	arrived();
	assert_int_equal(system("ip link set vb down && ip link set vb up && "
				"until ip link show va | grep -q 'state UP'; do sleep 0.01; done"),
		0);
	for (uint16_t id = 0; id < 64; id += 16) {
		receive_run(NET_IPV4, id);
		send_run(NET_IPV4, id + 16);
	}
	receive_run(NET_IPV4, 64);
	assert_int_equal(stats_of(&b).ierrors, 0);
}

/* Takes a frame that waits in one of b's sockets. */
static void steal(void)
{
	uint8_t first[64];
	unsigned taken = 0;

	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_ll at = {.sll_family = AF_UNSPEC};
		socklen_t size = sizeof(at);

		if (!getsockname(fd, (struct sockaddr *)&at, &size) && at.sll_family == AF_PACKET &&
			at.sll_ifindex == (int)if_nametoindex("vb"))
			taken += recv(fd, first, sizeof(first), MSG_DONTWAIT) > 0;
	}
	assert_int_equal(taken, 1);
}

static void poll_end(const struct end *e)
{
	struct rte_mbuf *got[BURST];
	uint16_t n = 0;

	for (uint16_t q = 0; q < QUEUES; q++) {
		uint16_t k = rte_eth_rx_burst(e->ethdev, q, got, BURST);

		rte_pktmbuf_free_bulk(got, k); /* the next test needs them */
		n += k;
	}
	assert_int_equal(n, 0);
}

/* Nothing is delivered with the payload of another frame. With IPv6 only the PSN tells them apart.
 */
static void gsoport__slots_out_of_step(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		uint64_t before = stats_of(&b).ierrors;
		time_t end = patience_begin();

		send_run(net, 100);
		arrived();
		steal();
		send_run(net, 200);
		while (stats_of(&b).ierrors != before + 2) {
			poll_end(&b);
			assert_false(patience_over(end));
		}
	}
}

/* The same for a frame that is no run. */
static void gsoport__a_slot_out_of_step(void **state)
{
	time_t end = patience_begin();

	for (uint16_t id = 1; id < 3; id++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		struct rte_mbuf *like = frame(NET_IPV4, 50000, id, BODY);

		m->data_off = 0;
		m->data_len = MBUF_ROOM;
		m->pkt_len = MBUF_ROOM;
		memcpy(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_mtod(like, uint8_t *), BODY);
		rte_pktmbuf_free(like);
		send_all(0, &m, 1);
		if (id == 1) {
			arrived();
			steal();
		}
	}
	while (stats_of(&b).ierrors != 2) {
		poll_end(&b);
		assert_false(patience_over(end));
	}
}

/* A tap, as a virtual machine has it. */
static int open_tap(void)
{
	struct ifreq req = {.ifr_name = "t0", .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, TUNSETIFF, &req)) {
		print_message("SKIP: no tap here: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(system("ip link set t0 mtu 9000 && ip link set t0 up"), 0);
	return fd;
}

/* A frame of the machine that has the tap. @p type: VIRTIO_NET_HDR_GSO_... */
static void from_tap(int fd, uint16_t id, uint8_t type)
{
	struct rte_mbuf *m = frame(NET_IPV4, 50000, id, BODY);
	struct virtio_net_hdr head = {.gso_type = type};
	struct iovec io[] = {{&head, sizeof(head)}, {rte_pktmbuf_mtod(m, uint8_t *), m->data_len}};

	if (type)
		head = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
			.gso_type = type,
			.hdr_len = ETH_HLEN + IP4_HLEN + UDP_HLEN,
			.gso_size = 512,
			.csum_start = ETH_HLEN + IP4_HLEN,
			.csum_offset = UDP_CSUM};
	assert_int_equal(writev(fd, io, 2), sizeof(head) + m->data_len);
	rte_pktmbuf_free(m);
}

/* Receives what the tap sent. @return frames, until b is stuck or one was received */
static unsigned after_ufo(int tap)
{
	time_t end = patience_begin();
	struct rte_mbuf *got[BURST];
	uint64_t now_ms = 1000;
	unsigned n = 0;

	do {
		assert_false(patience_over(end));
		from_tap(tap, 7, VIRTIO_NET_HDR_GSO_NONE);
		for (uint16_t q = 0; q < QUEUES; q++)
			n += rte_eth_rx_burst(b.ethdev, q, got + n, (uint16_t)(BURST - n));
		now_ms += GSOPORT_LOOK_MS / 4;
	} while (!n && !gsoport_stuck(b.port, now_ms));
	rte_pktmbuf_free_bulk(got, n);
	return n;
}

/* Linux drops all that comes after such a frame: only new sockets help. */
static void gsoport_stuck__after_a_frame_that_cannot_be_described(void **state)
{
	int tap = open_tap();
	struct rte_mbuf *got;

	close_end(&b);
	open_end(&b, "t0");
	from_tap(tap, 1, VIRTIO_NET_HDR_GSO_NONE);
	receive(&got, 1);
	rte_pktmbuf_free(got);
	from_tap(tap, 2, VIRTIO_NET_HDR_GSO_UDP);
	if (after_ufo(tap)) {
		close(tap);
		print_message("SKIP: this kernel survives it\n");
		skip();
	}
	close_end(&b);
	open_end(&b, "t0");
	from_tap(tap, 3, VIRTIO_NET_HDR_GSO_NONE);
	receive(&got, 1);
	assert_good(got);
	rte_pktmbuf_free(got);
	close(tap);
}

static int listen_at(const char *netdev)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETHERTYPE_IPV4),
		.sll_ifindex = (int)if_nametoindex(netdev)};
	const struct timeval patience = {.tv_sec = patience_s()};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETHERTYPE_IPV4));
	int size = 8 << 20;

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* The next frame that a packet socket without our ways gets from us. */
static uint32_t see(int fd, uint8_t *f, size_t size)
{
	ssize_t n;

	do {
		n = recv(fd, f, size, MSG_TRUNC);
		assert_true(n > 0);
	} while (get_be16(f + ETH_HLEN + IP4_HLEN + UDP_DPORT) != UDP_PORT_ROCEV2);
	return (uint32_t)n;
}

/* A veth passes a run on as one, and where the netdev wants frames, the kernel makes them: each
 * with the identification that its ICRC was made of. proves IP4-17 */
static void gsoport__the_kernel_cuts(void **state)
{
	static uint8_t f[70000];
	struct rte_mbuf *m[16];
	struct pkt p;
	int fd = listen_at("vb");

	for (uint16_t i = 0; i < 16; i++)
		m[i] = frame(NET_IPV4, 50000, (uint16_t)(0xFFF8 + i), BODY);
	send_all(0, m, 16);
	assert_int_equal(see(fd, f, sizeof(f)), 42 + 16 * (BODY + BTH_HLEN + ICRC_LEN));
	assert_int_equal(system("ip link set va gso_max_size 2000"), 0);
	for (uint16_t i = 0; i < 16; i++)
		m[i] = frame(NET_IPV4, 50000, (uint16_t)(0xFFF8 + i), BODY);
	send_all(0, m, 16);
	for (uint16_t i = 0; i < 16; i++) {
		uint32_t len = see(fd, f, sizeof(f));

		assert_int_equal(len, 42 + BODY + BTH_HLEN + ICRC_LEN);
		assert_int_equal(get_be16(f + ETH_HLEN + IP4_ID), (uint16_t)(0xFFF8 + i));
		assert_int_not_equal(get_be16(f + ETH_HLEN + IP4_HLEN + UDP_CSUM), 0);
		assert_int_equal(frame_parse(&p, f, len), DROP_NONE);
		assert_true(icrc_check(icrc_by_name("table"), &p));
	}
	assert_int_equal(system("ip link set va gso_max_size 65536"), 0);
	close(fd);
	for (uint16_t q = 0; q < QUEUES; q++) {
		struct rte_mbuf *got[BURST];
		uint16_t n = rte_eth_rx_burst(b.ethdev, q, got, BURST);

		rte_pktmbuf_free_bulk(got, n);
	}
}

/* IPv6 with a Destination Options header. */
static void make_options(uint8_t *f)
{
	put_be16(f + ETH_TYPE, ETHERTYPE_IPV6);
	f[ETH_HLEN] = 0x60;
	f[ETH_HLEN + IP6_NXT] = IP6_NXT_DSTOPTS;
}

/* proves FCN-14: they come when they are asked for, by any queue, and no longer than that. */
static void gsoport__options_when_asked_for(void **state)
{
	struct rte_mbuf *got[BURST];

	for (unsigned i = 0; i < 4; i++) {
		struct rte_mbuf *m[] = {
			frame(NET_IPV6, 50000, 1, BODY), frame(NET_IPV6, 50000, 2, BODY)};

		make_options(rte_pktmbuf_mtod(m[0], uint8_t *));
		gsoport_options(b.port, i & 1);
		/* The kernel chooses a queue for each: it sees no flow in the options. */
		for (unsigned k = 0; k < 2; k++) {
			send_all(0, &m[k], 1);
			if (k == 0 && !(i & 1))
				continue;
			receive(got, 1);
			assert_int_equal(rte_pktmbuf_mtod(got[0], uint8_t *)[ETH_HLEN + IP6_NXT],
				k ? IPPROTO_ROCEV2 : IP6_NXT_DSTOPTS);
			rte_pktmbuf_free(got[0]);
		}
	}
	assert_int_equal(stats_of(&b).ipackets, 6);
	gsoport_options(NULL, true);
}

/* Sends @p n frames of one flow, without room for more than a burst of them. @p step: of their
 * identifications; 1: they go in runs */
static void send_many(unsigned n, uint16_t step)
{
	uint16_t id = 0;

	for (unsigned i = 0; i < n / BURST; i++) {
		struct rte_mbuf *m[BURST];

		for (unsigned k = 0; k < BURST; k++, id += step)
			m[k] = frame(NET_IPV4, 50000, id, BODY);
		send_all(0, m, BURST);
	}
}

/* Receives @p n frames of send_many(). */
static void receive_many(unsigned n, uint16_t step)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m;

		receive(&m, 1);
		assert_good(m);
		assert_int_equal(get_be16(rte_pktmbuf_mtod(m, uint8_t *) + ETH_HLEN + IP4_ID),
			(uint16_t)(i * step));
		rte_pktmbuf_free(m);
	}
}

/* A worker that is paused: as many single frames wait as with DPDK's port, and as many runs. */
static void gsoport__frames_wait(void **state)
{
	send_many(2048, 7);
	receive_many(2048, 7);
	send_many(12800, 1);
	receive_many(12800, 1);
	assert_int_equal(stats_of(&b).imissed + stats_of(&b).ierrors, 0);
}

/* Longer than a buffer: it is read, and discarded. Then shorter than that and longer than a slot,
 * and ever shorter. */
static void gsoport__a_frame_longer_than_a_slot(void **state)
{
	for (uint32_t body = MBUF_ROOM + 196; body >= 4400; body -= 4) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *got[1];
		uint32_t head = ETH_HLEN + IP4_HLEN + UDP_HLEN;
		struct rte_mbuf *last = frame(NET_IPV4, 50000, 5, BODY);

		/* Our port sends whatever fits in a buffer with its headroom. */
		memcpy(rte_pktmbuf_mtod(m, uint8_t *) - RTE_PKTMBUF_HEADROOM,
			rte_pktmbuf_mtod(last, uint8_t *), head + BODY);
		m->data_off = 0;
		m->data_len = (uint16_t)body;
		m->pkt_len = body;
		send_all(0, &m, 1);
		send_all(0, &last, 1);
		if (body <= MBUF_ROOM) {
			receive(got, 1);
			assert_int_equal(got[0]->data_len, body);
			rte_pktmbuf_free(got[0]);
		}
		receive(got, 1);
		assert_good(got[0]);
		rte_pktmbuf_free(got[0]);
	}
	assert_int_equal(stats_of(&b).ierrors, 49);
}

/* Without the right to more memory for a socket: slots that hold whole runs. */
static void gsoport__without_net_admin(void **state)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct had[2], less[2];

	close_end(&b);
	assert_int_equal(syscall(SYS_capget, &head, had), 0);
	memcpy(less, had, sizeof(less));
	less[0].effective &= ~(1u << CAP_NET_ADMIN);
	assert_int_equal(syscall(SYS_capset, &head, less), 0);
	open_end(&b, "vb");
	assert_int_equal(syscall(SYS_capset, &head, had), 0);
	send_many(1280, 1);
	receive_many(1280, 1);
	send_many(128, 7);
	receive_many(128, 7);
	assert_int_equal(stats_of(&b).imissed + stats_of(&b).ierrors, 0);
}

/* The ring of a paused worker is full: frames are dropped, as they should be. */
static void gsoport_stuck__not_when_the_ring_is_full(void **state)
{
	struct rte_mbuf *got;

	for (unsigned i = 0; i < 5; i++) {
		send_many(2560, 7);
		assert_false(gsoport_stuck(b.port, 1000 + i * GSOPORT_LOOK_MS));
	}
	assert_true(stats_of(&b).imissed > 0);
	for (unsigned i = 0; i < 2048; i++) {
		receive(&got, 1);
		rte_pktmbuf_free(got);
	}
}

static struct gsoport_runs runs_of(const struct end *e)
{
	struct gsoport_runs r;

	gsoport_runs(e->port, &r);
	return r;
}

/* A short burst of one flow from a to b. */
static void send_four(void)
{
	struct rte_mbuf *m[4], *got[4];

	for (uint16_t i = 0; i < 4; i++)
		m[i] = frame(NET_IPV4, 50000, i, BODY);
	memcpy(rte_pktmbuf_mtod(m[0], uint8_t *), "\x02\0\0\0\x0A\x02", 6);
	for (uint16_t i = 1; i < 4; i++)
		memcpy(rte_pktmbuf_mtod(m[i], uint8_t *), rte_pktmbuf_mtod(m[0], uint8_t *), 6);
	send_all(0, m, 4);
	receive(got, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_good(got[i]);
	rte_pktmbuf_free_bulk(got, 4);
}

/* Runs go to a peer once it has answered, and no other frame is seen by anybody. */
static void gsoport__asks_before_it_sends_runs(void **state)
{
	time_t end = patience_begin();
	struct rte_eth_stats s;
	unsigned rounds = 0;

	close_end(&a);
	open_asking(&a, "va", true);
	for (unsigned i = 0; i < 4; i++)
		send_four();
	assert_int_equal(runs_of(&a).sent, 0); /* nobody has looked for an answer */
	assert_true(runs_of(&a).trials > 0);
	while (!runs_of(&a).sent) {
		poll_end(&b);
		poll_end(&a);
		send_four();
		rounds++;
		assert_false(patience_over(end));
	}
	assert_true(runs_of(&b).answers > 0);
	assert_int_equal(runs_of(&b).trials, 0);
	s = stats_of(&b);
	assert_int_equal(s.ipackets, 4 * (4 + rounds));
	assert_int_equal(s.ierrors + s.imissed, 0);
}

/* Frames that are no RoCE never come; one that is too long for a buffer is counted. */
static void gsoport__what_is_not_for_us(void **state)
{
	static uint8_t f[9000];
	struct rte_mbuf *m = frame(NET_IPV4, 50000, 1, BODY), *got[BURST];
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("va")};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	uint32_t len = m->data_len;

	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	memcpy(f, rte_pktmbuf_mtod(m, uint8_t *), len);
	put_be16(f + ETH_HLEN + IP4_HLEN + UDP_DPORT, 4790);
	assert_int_equal(send(fd, f, len, 0), len);
	put_be16(f + ETH_HLEN + IP4_HLEN + UDP_DPORT, UDP_PORT_ROCEV2);
	assert_int_equal(send(fd, f, 8000, 0), 8000);
	f[ETH_HLEN + IP4_PROTO] = 6;
	assert_int_equal(send(fd, f, len, 0), len);
	make_options(f); /* FCN-14 */
	assert_int_equal(send(fd, f, len, 0), len);
	send_all(0, &m, 1);
	receive(got, 1);
	assert_good(got[0]);
	rte_pktmbuf_free_bulk(got, 1);
	assert_int_equal(stats_of(&b).ipackets, 1);
	assert_int_equal(stats_of(&b).ierrors, 1);
	close(fd);
}

/* The other end takes 1500 bytes: longer frames are lost, those after them are not. */
static void gsoport__a_frame_that_is_refused(void **state)
{
	struct unstick u = {0};
	uint32_t shortest, passed;

	assert_int_equal(system("ip link set vb mtu 1500"), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct rte_mbuf *m[3] = {frame(NET_IPV4, 50000, 1, 64),
			frame(NET_IPV4, 50000, 5, 4096), frame(NET_IPV4, 50000, 9, 128)};
		struct rte_mbuf *got[2];
		uint64_t count;

		send_all(0, m, 3);
		receive(got, 2);
		rte_pktmbuf_free_bulk(got, 2);
		assert_int_equal(unstick_refused(&u, 1000, UNSTICK_TOLD_MS), 0);
		count = gsoport_refused(a.port, &shortest, &passed);
		assert_int_equal(count, 1);
		assert_int_equal(shortest, 42 + BTH_HLEN + 4096 + ICRC_LEN);
		assert_int_equal(passed, 42 + BTH_HLEN + 128 + ICRC_LEN);
		unstick_tell(&u, count, shortest, passed, 1000);
	}
	assert_int_equal(unstick_refused(&u, 1000, UNSTICK_TOLD_MS), shortest);
	assert_int_equal(u.count, 2);
	assert_int_equal(stats_of(&a).oerrors, 2);
	assert_int_equal(system("ip link set vb mtu 9000"), 0);
	assert_int_equal(gsoport_refused(a.port, &shortest, &passed), 0);
}

/* Gives va a queue of @p limit messages, which @p tbf empties. */
static void slow_down(const char *tbf, unsigned limit)
{
	char line[256];

	snprintf(line, sizeof(line),
		"tc qdisc add dev va root handle 1: tbf %s limit 10mb && "
		"tc qdisc add dev va parent 1:1 pfifo limit %u",
		tbf, limit);
	if (system(line)) {
		print_message("SKIP: this kernel has no such qdisc\n");
		skip();
	}
}

static void speed_up(void)
{
	assert_int_equal(system("tc qdisc del dev va root"), 0);
}

/* A queue of the netdev that is full drops frames, which are no longer than others: they are sent
 * again, whether or not the control thread has looked in between. */
static void gsoport__a_qdisc_that_is_full(void **state)
{
	uint32_t shortest, passed;
	uint64_t refused = 0;
	time_t end = patience_begin();

	slow_down("rate 100mbit burst 4k", 4);
	for (uint16_t i = 0; i < 512; i++) {
		struct rte_mbuf *m = frame(NET_IPV4, 50000, (uint16_t)(i * 7), BODY);
		bool looked = false;

		while (!rte_eth_tx_burst(a.ethdev, 0, &m, 1)) {
			if (!looked)
				refused += gsoport_refused(a.port, &shortest, &passed);
			looked = true;
			assert_false(patience_over(end));
		}
	}
	assert_int_equal(stats_of(&a).oerrors, 0);
	assert_int_equal(refused, 0);
	receive_many(512, 7);
	speed_up();
}

/* Runs are offered again, too; and no other frame has passed that tells how long they may be. */
static void gsoport__runs_and_a_qdisc_that_is_full(void **state)
{
	uint32_t shortest, passed;
	time_t end = patience_begin();

	slow_down("rate 100mbit burst 100k", 4);
	for (uint16_t i = 0; i < 64; i++) {
		struct rte_mbuf *m[BURST];
		unsigned done = 0;

		for (uint16_t k = 0; k < BURST; k++)
			m[k] = frame(NET_IPV4, 50000, (uint16_t)(i * BURST + k), BODY);
		while (done < BURST) {
			done += rte_eth_tx_burst(a.ethdev, 0, m + done, (uint16_t)(BURST - done));
			assert_false(patience_over(end));
		}
		if (i % 16 == 0)
			assert_int_equal(gsoport_refused(a.port, &shortest, &passed), 0);
	}
	assert_int_equal(stats_of(&a).oerrors, 0);
	assert_true(runs_of(&a).sent >= 64);
	receive_many(64 * BURST, 1);
	speed_up();
}

/* Only time in which it is offered shows that a frame will not pass. */
static void gsoport__a_pause_while_a_qdisc_is_full(void **state)
{
	struct rte_mbuf *m;
	time_t end = patience_begin();

	slow_down("rate 1kbit burst 2000", 1);
	do
		m = frame(NET_IPV4, 50000, 1, BODY);
	while (rte_eth_tx_burst(a.ethdev, 0, &m, 1));
	usleep(200000); /* longer than any queue is full */
	assert_int_equal(rte_eth_tx_burst(a.ethdev, 0, &m, 1), 0);
	assert_int_equal(stats_of(&a).oerrors, 0);
	while (!rte_eth_tx_burst(a.ethdev, 0, &m, 1))
		assert_false(patience_over(end));
	assert_int_equal(stats_of(&a).oerrors, 1);
	speed_up();
}

/* A queue that takes no frame as long as theirs: nobody waits for them, although others pass. */
static void gsoport__a_run_that_is_refused(void **state)
{
	uint32_t shortest, passed;

	slow_down("rate 1gbit burst 2000", 100);
	for (uint16_t i = 0; i < 2; i++) {
		struct rte_mbuf *m[7], *got[3];

		for (uint16_t k = 0; k < 7; k++)
			m[k] = frame(NET_IPV4, 50000, k < 6 ? k : 42, k < 3 ? BODY : 4096);
		send_all(0, m, 7);
		receive(got, 3);
		for (uint16_t k = 0; k < 3; k++)
			assert_int_equal(got[k]->data_len, 42 + BTH_HLEN + BODY + ICRC_LEN);
		rte_pktmbuf_free_bulk(got, 3);
		assert_int_equal(gsoport_refused(a.port, &shortest, &passed), 4);
		assert_int_equal(shortest, 42 + BTH_HLEN + 4096 + ICRC_LEN);
		assert_int_equal(stats_of(&a).oerrors, 4 * (i + 1u));
	}
	assert_int_equal(runs_of(&a).sent, 2);
	speed_up();
}

static void gsoport_create__no_such_netdev(void **state)
{
	uint16_t ethdev;
	char why[256] = "";

	assert_null(gsoport_create("nodev0", 1, &ethdev, why, sizeof(why)));
	assert_int_equal(errno, ENODEV);
	assert_non_null(strstr(why, "no netdev nodev0"));
}

/* Not for want of a right. */
static void gsoport_create__no_descriptor(void **state)
{
	struct rlimit before;
	struct gsoport *port;
	uint16_t ethdev;
	char why[256] = "";
	int err;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, before.rlim_max}), 0);
	port = gsoport_create("va", QUEUES, &ethdev, why, sizeof(why));
	err = errno;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(port);
	assert_int_equal(err, EMFILE);
	assert_non_null(strstr(why, "ulimit -n"));
}

static void gsoport_describe__the_netdevs_own(void **state)
{
	struct port_info info = {0};

	gsoport_describe(a.port, &info);
	assert_string_equal(info.driver, GSOPORT_DRIVER);
	assert_memory_equal(info.mac, "\x02\0\0\0\x0A\x01", 6);
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)
	const struct CMUnitTest tests[] = {
		test(gsoport__what_is_sent_arrives),
		test(gsoport__after_the_netdev_was_down),
		test(gsoport__queues_share_the_flows),
		test(gsoport__no_buffers),
		test(gsoport__a_run_waits_while_the_netdev_is_down),
		test(gsoport__slots_out_of_step),
		test(gsoport__a_slot_out_of_step),
		test(gsoport__the_kernel_cuts),
		test(gsoport__options_when_asked_for),
		test(gsoport__frames_wait),
		test(gsoport_stuck__after_a_frame_that_cannot_be_described),
		test(gsoport_stuck__not_when_the_ring_is_full),
		test(gsoport__a_frame_longer_than_a_slot),
		test(gsoport__without_net_admin),
		test(gsoport__asks_before_it_sends_runs),
		test(gsoport__what_is_not_for_us),
		test(gsoport__a_frame_that_is_refused),
		test(gsoport__a_qdisc_that_is_full),
		test(gsoport__runs_and_a_qdisc_that_is_full),
		test(gsoport__a_pause_while_a_qdisc_is_full),
		test(gsoport__a_run_that_is_refused),
		cmocka_unit_test(gsoport_create__no_such_netdev),
		cmocka_unit_test(gsoport_create__no_descriptor),
		test(gsoport_describe__the_netdevs_own),
	};

	if (unshare(CLONE_NEWNET) ||
		system("ip link add va mtu 9000 type veth peer name vb mtu 9000 &&"
		       "ip link set va address 02:00:00:00:0a:01 && ip link set vb address "
		       "02:00:00:00:0a:02 && "
		       "ip link set va up && "
		       "ip link set vb up")) {
		fprintf(stderr, "SKIP: no network name space with a veth: run as root\n");
		return 77;
	}
	eal_test_start();
	pool = rte_pktmbuf_pool_create(
		"gsoport", 255, 0, 0, RTE_PKTMBUF_HEADROOM + MBUF_ROOM, SOCKET_ID_ANY);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
