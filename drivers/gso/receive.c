/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames and super-frames from the kernel, as single frames in buffers. */
#include <string.h>
#include <rte_mbuf.h>
#include "gso/queue.h"
#include "gso/run.h"

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
	gso_count(&q->count.ipackets, 1);
	gso_count(&q->count.ibytes, len);
}

/* Takes the frame, which fits in a buffer, out of its slot or from the socket. @return false: there
 * are no buffers. */
static bool take_one(
	struct gso_queue *q, const struct gsosock_frame *f, struct rte_mbuf **pkts, uint16_t *n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(q->pool);

	if (!m) {
		gso_count(&q->count.nombuf, 1);
		return false;
	}
	q->into[1] = (struct iovec){rte_pktmbuf_mtod(m, void *), f->len};
	if (f->whole) {
		memcpy(rte_pktmbuf_mtod(m, void *), f->data, f->len);
	} else if (!gsosock_read(&q->sock, q->into, 2, f->len) ||
		   memcmp(rte_pktmbuf_mtod(m, void *), f->data, GSOSOCK_SEEN)) {
		rte_pktmbuf_free(m);
		gso_count(&q->count.ierrors, 1);
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
		gso_count(&q->count.nombuf, 1);
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
	gso_count(&q->count.ierrors, 1);
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
	gso_count(f->whole || f->queued ? &q->count.ierrors : &q->count.no_room, 1);
}

/* Whether @p f is a trial, an answer or a part of one, which must not be passed on. */
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

uint16_t gso_receive(
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
