/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's burst as messages to the kernel: single frames, and runs of them. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include "gso/queue.h"
#include "gso/run.h"

/* A refusal that lasts longer is not due to a full queue on the path: the frame is refused. Shorter
 * than the time for which a worker offers a frame. */
#define FULL_MS 50u
/* A longer interval between two attempts was a pause of the worker, which did not check for room
 * meanwhile. */
#define STEP_MS 1u

static void note_passed(struct gso_passed *p, uint32_t len)
{
	if (atomic_load_explicit(&p->len, memory_order_relaxed) < len)
		atomic_store_explicit(&p->len, len, memory_order_relaxed);
}

static uint32_t passed(const struct gso_passed *p)
{
	return RTE_MAX(atomic_load_explicit(&p->len, memory_order_relaxed),
		atomic_load_explicit(&p->before, memory_order_relaxed));
}

static void refuse_frame(struct gso_queue *q, const struct gso_message *msg)
{
	uint32_t before = atomic_load_explicit(&q->refused_len, memory_order_relaxed);

	gso_count(&q->count.refused, msg->frames);
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

/* Finds how many of the @p n frames at @p m to send as a run. @return 1 if no other can join the
 * first frame, or the peer takes no runs. */
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

/* Builds message @p msg of the first frame of @p m and those that can join it. @return how many
 * pieces it has. */
static unsigned lay_out(struct gso_queue *q, struct gso_message *msg, struct iovec *io,
	struct rte_mbuf **m, uint16_t n)
{
	struct gso_run run;

	memset(&msg->vnet, 0, sizeof(msg->vnet));
	msg->frames = find_run(q, &run, m, n);
	msg->longest = m[0]->data_len;
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
		gso_count(&q->count.obytes, msg->bytes + (msg->frames - 1u) * msg->vnet.hdr_len);
		note_passed(msg->frames == 1 ? &q->single : &q->run, msg->longest);
		if (msg->frames > 1)
			gso_count(&q->count.runs, 1);
	}
	gso_count(&q->count.opackets, frames);
	return frames;
}

/* Adds the time since the previous refusal. @return whether @p q's frames have been refused for
 * longer than a queue on the path stays full. */
static bool waits_in_vain(struct gso_queue *q)
{
	const uint64_t now = rte_rdtsc(), ms = rte_get_tsc_hz() / 1000;

	q->waited += RTE_MIN(now - q->tried, STEP_MS * ms);
	q->tried = now;
	return q->waited > FULL_MS * ms;
}

/* Whether to offer @p msg again, which was refused for lack of room. Frames as long as its longest
 * passed lately, so a queue on the path is probably full, unless the refusal has lasted longer than
 * any queue stays full. Frames of runs prove nothing about single frames: a run may pass where a
 * single frame does not, because no device compares the length of a super-frame with an MTU. */
static bool may_pass(struct gso_queue *q, const struct gso_message *msg)
{
	uint32_t longest = passed(&q->single);

	if (msg->frames > 1)
		longest = RTE_MAX(longest, passed(&q->run));
	return msg->longest <= longest && !waits_in_vain(q);
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
	gso_count(&q->count.oerrors, msg->frames);
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

uint16_t gso_send(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	struct gso_queue *q = arg;
	struct rte_mbuf *old[GSO_SENT_MAX];
	unsigned messages, i = 0;
	uint16_t done = 0;

	rte_pktmbuf_free_bulk(
		old, rte_ring_dequeue_burst(q->sent, (void **)old, GSO_SENT_MAX, NULL));
	messages = prepare(q, pkts, RTE_MIN(n, (uint16_t)BURST));
	while (i < messages) {
		int sent = send_messages(q, i, messages);
		uint16_t lost;

		if (sent > 0) {
			q->waited = 0;
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
