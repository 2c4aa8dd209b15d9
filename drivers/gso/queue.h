/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file gso/queue.h
 * One queue of a port (gso.h): what its worker needs to receive and to send. A worker owns it,
 * except for the control thread's requests.
 */
#ifndef GSO_QUEUE_H
#define GSO_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "gso/ask.h"
#include "gso/run.h"
#include "gso/sock.h"
#include "limits.h"

struct rte_eth_rxtx_callback;
struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

/** The ethdev's own ring, for frames that callbacks reported as sent: emptied before it is
 * filled. */
#define GSO_SENT_MAX (2 * BURST)

/** One message to the kernel: a frame or a run of them. */
struct gso_message {
	struct virtio_net_hdr vnet;
	uint8_t head[GSO_HEAD_MAX]; /* directly after it */
	uint16_t frames;
	uint32_t bytes;
	uint32_t longest; /* bytes of the longest frame, which is the first */
};
_Static_assert(offsetof(struct gso_message, head) == sizeof(struct virtio_net_hdr), "one piece");

/** The longest frame that passed lately. Written by the worker; the control thread takes it. */
struct gso_passed {
	_Atomic uint32_t len;	 /* since the control thread last took it */
	_Atomic uint32_t before; /* the value taken then */
};

struct gso_queue {
	struct gsosock sock;
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
	_Atomic uint32_t refused_len;  /* written by the worker, emptied by the control thread */
	struct gso_passed single, run; /* frames that went singly, and in runs */
	/* the worker's: how long messages have been refused, and when one was last offered */
	uint64_t waited, tried;
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

/** Counts @p n more. One writer. */
static inline void gso_count(_Atomic uint64_t *to, uint64_t n)
{
	atomic_store_explicit(
		to, atomic_load_explicit(to, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t gso_counted(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

/** The ethdev's callback (rte_rx_callback_fn) that receives. @param arg the struct gso_queue */
uint16_t gso_receive(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg);

/** The ethdev's callback (rte_tx_callback_fn) that sends. The sent buffers still belong to the
 * caller: the ethdev takes them next. @return how many of the @p n frames were sent; the caller
 * offers the others again. */
uint16_t gso_send(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg);

#endif
