/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include "bits.h"
#include "gso.h"
#include "gsoask.h"
#include "gsoport.h"
#include "gsosock.h"
#include "limits.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* Linux 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* The ethdev's own ring, for frames that callbacks reported as sent: emptied before it is
 * filled. */
#define SENT_MAX (2 * BURST)
/* A queue on the way that is full for longer is none: the frame is refused. Shorter than a worker
 * offers it. */
#define FULL_MS 50u
/* A worker may have taken all frames of a full ring just before one look. */
#define STUCK_LOOKS 2u

/* One message to the kernel: a frame or a run of them. */
struct gso_message {
	struct virtio_net_hdr vnet;
	uint8_t head[GSO_HEAD_MAX]; /* directly after it */
	uint16_t frames;
	uint32_t bytes;
};
_Static_assert(offsetof(struct gso_message, head) == sizeof(struct virtio_net_hdr), "one piece");

/* One queue, which its worker owns, except for the control thread's requests. */
struct gso_queue {
	struct gsosock sock;
	uint16_t ethdev;
	uint16_t queue;
	struct rte_mempool *pool;
	uint32_t room; /* room of its buffers, for a frame */
	const struct rte_eth_rxtx_callback *on_rx, *on_tx;
	/* receive */
	struct rte_mbuf *part[GSO_SEGMENTS_MAX]; /* of the last super-frame */
	uint16_t parts, given;			 /* of them, to the worker */
	struct iovec into[2 + GSO_SEGMENTS_MAX];
	/* send */
	struct rte_ring *sent; /* what the ethdev counts as sent */
	bool singly;	       /* this kernel accepts no super-frames */
	bool asks;	       /* only peers that are known to take runs are sent them */
	uint16_t alone;	       /* frames of this burst that go singly: a run that may not */
	struct gso_ask ask;
	struct gso_message message[BURST];
	struct mmsghdr header[BURST];
	struct iovec piece[3 * BURST];
	/* written by the worker; `refused_len` and `passed_len` emptied by the control thread */
	_Atomic uint32_t refused_len, passed_len;
	_Atomic uint32_t passed_before; /* what passed_len was; written by the control thread */
	uint64_t full; /* since when may_pass() waits, 0: it does not; the worker's */
	struct gso_counters {
		_Atomic uint64_t ipackets, ibytes, ierrors, nombuf, opackets, obytes, oerrors,
			refused, runs, no_room;
	} count;
	/* control thread */
	uint64_t missed; /* frames that found no slot */
	struct {
		uint64_t missed, taken; /* at the last look */
		unsigned looks;		/* in a row, that found no slot filled */
	} stuck;
};

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

/* One writer. */
static void add(_Atomic uint64_t *to, uint64_t n)
{
	atomic_store_explicit(
		to, atomic_load_explicit(to, memory_order_relaxed) + n, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

/* --- receive ---------------------------------------------------------------------------- */

static void tag(struct rte_mbuf *m, bool tagged, uint16_t vlan)
{
	if (!tagged)
		return;
	m->vlan_tci = vlan;
	m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
}

static void received(struct gso_queue *q, struct rte_mbuf *m, uint32_t len)
{
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	add(&q->count.ipackets, 1);
	add(&q->count.ibytes, len);
}

/* Takes the frame, which fits in a buffer, out of its slot or from the socket. @return false: there
 * are no buffers. */
static bool take_one(
	struct gso_queue *q, const struct gsosock_frame *f, struct rte_mbuf **pkts, uint16_t *n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(q->pool);

	if (!m) {
		add(&q->count.nombuf, 1);
		return false;
	}
	q->into[1] = (struct iovec){rte_pktmbuf_mtod(m, void *), f->len};
	if (f->whole) {
		memcpy(rte_pktmbuf_mtod(m, void *), f->data, f->len);
	} else if (!gsosock_read(&q->sock, q->into, 2, f->len) ||
		   memcmp(rte_pktmbuf_mtod(m, void *), f->data, GSOSOCK_SEEN)) {
		rte_pktmbuf_free(m);
		add(&q->count.ierrors, 1);
		return true;
	}
	received(q, m, f->len);
	tag(m, f->tagged, f->vlan);
	pkts[(*n)++] = m;
	return true;
}

/* Makes frames of the super-frame @p s in `part`. */
static void cut(struct gso_queue *q, struct gso_split *s, const struct gsosock_frame *f)
{
	for (uint16_t i = 0; i < q->parts; i++) {
		struct rte_mbuf *m = q->part[i];
		uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *);

		received(q, m, f->whole ? gso_split_next(s, at) : gso_split_head(s, at));
		tag(m, f->tagged, f->vlan);
	}
}

/* Reads the super-frame from the socket: each part goes to where it stays. Another frame, if slots
 * and queue were ever out of step, has another identification or PSN. */
static bool read_parts(struct gso_queue *q, const struct gso_split *s, uint32_t len)
{
	uint8_t head[GSO_HEAD_MAX];

	q->into[1] = (struct iovec){head, s->head};
	for (uint16_t i = 0; i < q->parts; i++) {
		uint32_t before = (uint32_t)i * s->size;

		q->into[2 + i] =
			(struct iovec){rte_pktmbuf_mtod_offset(q->part[i], void *, s->head),
				RTE_MIN(s->size, s->left - before)};
	}
	return gsosock_read(&q->sock, q->into, 2u + q->parts, len) &&
	       !memcmp(head, s->frame, s->head) &&
	       !memcmp(q->into[2].iov_base, s->frame + s->head, BTH_HLEN);
}

/* Takes the super-frame @p s, all of its frames. @return false: there are no buffers. */
static bool take_run(struct gso_queue *q, struct gso_split *s, const struct gsosock_frame *f)
{
	uint16_t n = (uint16_t)gso_split_count(s);

	if (rte_pktmbuf_alloc_bulk(q->pool, q->part, n)) {
		add(&q->count.nombuf, 1);
		return false;
	}
	q->parts = n;
	q->given = 0;
	if (f->whole || read_parts(q, s, f->len)) {
		cut(q, s, f);
		return true;
	}
	rte_pktmbuf_free_bulk(q->part, n);
	q->parts = 0;
	add(&q->count.ierrors, 1);
	return true;
}

/* Gives the worker frames of the last super-frame. @return how many. */
static uint16_t give(struct gso_queue *q, struct rte_mbuf **pkts, uint16_t room)
{
	uint16_t n = RTE_MIN((uint16_t)(q->parts - q->given), room);

	memcpy(pkts, q->part + q->given, n * sizeof(pkts[0]));
	q->given += n;
	return n;
}

static void discard(struct gso_queue *q, const struct gsosock_frame *f)
{
	if (f->queued)
		gsosock_read(&q->sock, q->into, 1, 0);
	add(f->whole || f->queued ? &q->count.ierrors : &q->count.no_room, 1);
}

/* Whether it is a trial, an answer or a part of one, which nobody else is to see. */
static bool heard(struct gso_queue *q, const struct gsosock_frame *f)
{
	uint8_t part[GSO_TRIAL_MAX];
	struct gso_split split;
	uint32_t len = 0;

	if (!gso_trial_long(f->len) || f->tagged || !f->whole)
		return false;
	if (f->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return gso_ask_heard(&q->ask, f->data, f->len, f->to_us);
	if (f->gso_type != VIRTIO_NET_HDR_GSO_UDP_L4 ||
		!gso_split_begin(&split, f->data, f->len, f->gso_size, sizeof(part)))
		return false;
	while (split.left)
		len = gso_split_next(&split, part);
	return gso_ask_heard(&q->ask, part, len, f->to_us);
}

/* Takes the frame, or super-frame, in the next slot. @return false: it waits for buffers. */
static bool take(
	struct gso_queue *q, const struct gsosock_frame *f, struct rte_mbuf **pkts, uint16_t *n)
{
	struct gso_split split;
	bool all = f->whole || f->queued;

	if (unlikely(heard(q, f)))
		return true;
	if (f->gso_type == VIRTIO_NET_HDR_GSO_NONE && all && f->len <= q->room)
		return take_one(q, f, pkts, n);
	if (f->gso_type == VIRTIO_NET_HDR_GSO_UDP_L4 && all &&
		gso_split_begin(&split, f->data, f->len, f->gso_size, q->room))
		return take_run(q, &split, f);
	discard(q, f);
	return true;
}

static uint16_t on_receive(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg)
{
	struct gso_queue *q = arg;
	struct gsosock_frame f;

	n += give(q, pkts + n, (uint16_t)(max - n));
	/* Discarded frames count too, so that this round ends. */
	for (unsigned i = 0; i < BURST && n < max && gsosock_look(&q->sock, &f); i++) {
		if (!take(q, &f, pkts, &n))
			break;
		gsosock_release(&q->sock);
		n += give(q, pkts + n, (uint16_t)(max - n));
	}
	gso_ask_reply(&q->ask);
	return n;
}

/* --- send ------------------------------------------------------------------------------- */

static void note_longest(_Atomic uint32_t *longest, uint32_t len)
{
	if (atomic_load_explicit(longest, memory_order_relaxed) < len)
		atomic_store_explicit(longest, len, memory_order_relaxed);
}

static void refuse_frame(struct gso_queue *q, const struct gso_message *msg)
{
	uint32_t before = atomic_load_explicit(&q->refused_len, memory_order_relaxed);

	add(&q->count.refused, msg->frames);
	if (msg->frames == 1 && (!before || msg->bytes < before))
		atomic_store_explicit(&q->refused_len, msg->bytes, memory_order_relaxed);
}

static const uint8_t *bytes_of(const struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, const uint8_t *);
}

static struct iovec piece(const void *at, size_t len)
{
	return (struct iovec){(void *)(uintptr_t)at, len};
}

/* Finds those of the @p n frames at @p m that go as a run. @return how many: 1 if none join the
 * first, or are not to. */
static uint16_t find_run(struct gso_queue *q, struct gso_run *run, struct rte_mbuf **m, uint16_t n)
{
	uint16_t frames = 1;

	if (q->alone) {
		q->alone--;
		return 1;
	}
	if (q->singly || n == 1 || !gso_begin(run, bytes_of(m[0]), m[0]->data_len))
		return 1;
	while (frames < n && gso_add(run, bytes_of(m[frames]), m[frames]->data_len))
		frames++;
	if (frames > 1 && q->asks && !gso_ask_takes(&q->ask, run->first, rte_rdtsc())) {
		q->alone = (uint16_t)(frames - 1);
		return 1;
	}
	return frames;
}

/* Builds message @p msg: the first of @p m, and those that can join it. @return pieces. */
static unsigned lay_out(struct gso_queue *q, struct gso_message *msg, struct iovec *io,
	struct rte_mbuf **m, uint16_t n)
{
	struct gso_run run;

	memset(&msg->vnet, 0, sizeof(msg->vnet));
	msg->frames = find_run(q, &run, m, n);
	if (msg->frames == 1) {
		msg->bytes = m[0]->data_len;
		io[0] = piece(&msg->vnet, sizeof(msg->vnet));
		io[1] = piece(bytes_of(m[0]), m[0]->data_len);
		return 2;
	}
	msg->bytes = run.bytes;
	gso_write_head(&run, msg->head);
	msg->vnet = gsosock_run(run.head, gso_size(&run));
	io[0] = piece(&msg->vnet, sizeof(msg->vnet) + run.head);
	for (uint16_t i = 0; i < msg->frames; i++)
		io[1 + i] = piece(bytes_of(m[i]) + run.head, m[i]->data_len - (size_t)run.head);
	return 1u + msg->frames;
}

/* @return the number of messages. */
static unsigned prepare(struct gso_queue *q, struct rte_mbuf **m, uint16_t n)
{
	struct iovec *io = q->piece;
	unsigned messages = 0;

	q->alone = 0;
	for (uint16_t i = 0; i < n; i += q->message[messages++].frames) {
		struct msghdr *h = &q->header[messages].msg_hdr;
		unsigned pieces = lay_out(q, &q->message[messages], io, m + i, (uint16_t)(n - i));

		*h = (struct msghdr){.msg_iov = io, .msg_iovlen = pieces};
		io += pieces;
	}
	return messages;
}

static uint16_t count_sent(struct gso_queue *q, unsigned from, unsigned to)
{
	uint16_t frames = 0;

	for (unsigned i = from; i < to; i++) {
		const struct gso_message *msg = &q->message[i];

		frames += msg->frames;
		/* Each frame has the headers, as where it is received. */
		add(&q->count.obytes, msg->bytes + (msg->frames - 1u) * msg->vnet.hdr_len);
		if (msg->frames == 1)
			note_longest(&q->passed_len, msg->bytes);
		else
			add(&q->count.runs, 1);
	}
	add(&q->count.opackets, frames);
	return frames;
}

/* Whether @p msg, for which there was no room, is to be offered again: frames as long as it passed
 * lately, so a queue on the way is full, and that is not the case for so long that it is no queue.
 */
static bool may_pass(struct gso_queue *q, const struct gso_message *msg)
{
	uint32_t longest = RTE_MAX(atomic_load_explicit(&q->passed_len, memory_order_relaxed),
		atomic_load_explicit(&q->passed_before, memory_order_relaxed));

	if (msg->frames > 1 || msg->bytes > longest)
		return false;
	if (!q->full)
		q->full = rte_rdtsc() | 1; /* not 0 */
	return rte_rdtsc() - q->full <= rte_get_tsc_hz() / 1000 * FULL_MS;
}

/* The kernel did not accept message @p msg. @return the frames that are lost with it, 0: offer it
 * again later. */
static uint16_t not_sent(struct gso_queue *q, const struct gso_message *msg, int err)
{
	if (err == EAGAIN || err == EINTR)
		return 0; /* unsent data fills the socket */
	if (err == ENOBUFS && may_pass(q, msg))
		return 0;
	if (err == EINVAL && msg->frames > 1) {
		q->singly = true; /* before Linux 6.2 */
		return 0;
	}
	add(&q->count.oerrors, msg->frames);
	if (err == ENOBUFS || err == EMSGSIZE)
		refuse_frame(q, msg);
	return msg->frames;
}

/* @return how many were sent, -1 and errno if the first was not. */
static int send_messages(struct gso_queue *q, unsigned from, unsigned to)
{
	int sent = sendmmsg(q->sock.fd, &q->header[from], to - from, MSG_DONTWAIT);

	/* A netdev that was down leaves this error in the socket, for the first send after it is
	 * up. */
	if (sent < 0 && errno == ENETDOWN)
		sent = sendmmsg(q->sock.fd, &q->header[from], to - from, MSG_DONTWAIT);
	return sent;
}

/* Sent buffers stay with the caller: the ethdev takes them next. */
static uint16_t on_send(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	struct gso_queue *q = arg;
	struct rte_mbuf *old[SENT_MAX];
	unsigned messages, i = 0;
	uint16_t done = 0;

	rte_pktmbuf_free_bulk(old, rte_ring_dequeue_burst(q->sent, (void **)old, SENT_MAX, NULL));
	messages = prepare(q, pkts, RTE_MIN(n, (uint16_t)BURST));
	while (i < messages) {
		int sent = send_messages(q, i, messages);
		uint16_t lost;

		if (sent > 0) {
			q->full = 0;
			done += count_sent(q, i, i + (unsigned)sent);
			i += (unsigned)sent;
			continue;
		}
		lost = not_sent(q, &q->message[i], errno);
		if (!lost)
			break;
		done += lost;
		i++;
	}
	return done;
}

/* --- control thread --------------------------------------------------------------------- */

static struct gso_queue *make_queue(const struct gsoport *g, uint16_t number)
{
	struct gso_queue *q = rte_zmalloc("gsoport", sizeof(*q), CACHE_LINE);
	char name[RTE_RING_NAMESIZE];

	if (!q)
		return NULL;
	snprintf(name, sizeof(name), "gso%s.%u", g->netdev, number);
	q->sent = rte_ring_create(name, SENT_MAX * 2, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	q->sock.fd = -EBADF;
	q->queue = number;
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

/* Before any callback: a worker may look at the answers of all. */
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
		q->ethdev = g->ethdev;
		q->on_rx = rte_eth_add_rx_callback(g->ethdev, i, on_receive, q);
		q->on_tx = rte_eth_add_tx_callback(g->ethdev, i, on_send, q);
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

		stats->imissed += missed(q) + get(&q->count.no_room);
		stats->ipackets += get(&q->count.ipackets);
		stats->ibytes += get(&q->count.ibytes);
		stats->ierrors += get(&q->count.ierrors);
		stats->rx_nombuf += get(&q->count.nombuf);
		stats->opackets += get(&q->count.opackets);
		stats->obytes += get(&q->count.obytes);
		stats->oerrors += get(&q->count.oerrors);
	}
}

void gsoport_runs(const struct gsoport *g, struct gsoport_runs *r)
{
	*r = (struct gsoport_runs){0};
	for (uint16_t i = 0; i < g->queues; i++) {
		r->sent += get(&g->queue[i]->count.runs);
		r->trials += get(&g->queue[i]->ask.trials);
		r->answers += get(&g->queue[i]->ask.answered);
	}
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
		uint32_t longest = atomic_exchange(&q->passed_len, 0u);

		g->refused += get(&q->count.refused);
		atomic_store_explicit(&q->passed_before, longest, memory_order_relaxed);
		*passed = RTE_MAX(*passed, longest);
		if (refused && (!*shortest || refused < *shortest))
			*shortest = refused;
	}
	return g->refused - before;
}

/* Frames of a full ring are dropped too, while its worker is paused: then slots are filled. */
static bool is_stuck(struct gso_queue *q)
{
	uint64_t missed_now = missed(q);
	uint64_t taken = get(&q->count.ipackets) + get(&q->count.ierrors) + get(&q->count.no_room);

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
