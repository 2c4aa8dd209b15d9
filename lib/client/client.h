/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file client.h
 * The private parts of libroci's public handles. Each object begins with its public part.
 *
 * Locks, in the order in which they may nest:
 *
 *     qp.modify_lock    mutex   one modify or query of a QP at a time: its cached state
 *     cq.resize_lock    mutex   one resize of a CQ at a time
 *     srq.modify_lock   mutex   one modify of an SRQ at a time
 *     context.call_lock mutex   one request on the socket at a time
 *     context.lock      mutex   the maps of objects, memory, reference and event counts
 *         cq.lock           spin    the consumer side of the lanes, cq.qps, queue.polled and number
 *         queue.lock        spin    the producer side of a ring
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "abi_wqe.h"
#include "map.h"
#include "roci.h"
#include "spin.h"

/** Empty polls of a CQ between two checks of the socket: a killed rocid cannot write epoch 0, and
 *  the check needs a system call. */
#define POLLS_PER_LOOK 4096u

/** No QP has this number (they have 24 bits): marks a CQE to skip. */
#define QPN_NONE UINT32_MAX

/** A region created by rocid, mapped here. */
struct region {
	uint8_t *base;
	size_t size;
};

struct pd {
	struct roci_pd pub;
	uint32_t handle;
};

struct context {
	struct roci_context pub;
	char device[sizeof(((struct abi_hello_reply *)0)->device) + 1];
	struct region region; /* starts with struct abi_session */
	uint64_t epoch;	      /* of the rocid that answered our hello */
	uint32_t workers;
	uint32_t doorbell_off;
	uint32_t doorbell_stride;
	bool rocev1;	   /* its ports also have RoCEv1 GIDs */
	int *wake;	   /* eventfd per worker, -1: not needed */
	_Atomic bool dead; /* rocid is gone; never reset */
	pthread_mutex_t call_lock;
	uint32_t seq; /* of the latest request */
	pthread_mutex_t lock;
	pthread_cond_t acked; /* an event was acknowledged */
	struct map cqs;	      /* by handle */
	struct map qps;	      /* by handle */
	struct map srqs;      /* by handle */
	void *memory;	      /* tree of struct memory, see memory.c */
	uint32_t pds;
	struct pd no_pd; /* roci_no_pd() */
	uint32_t channels;
	bool death_reported;	     /* DEVICE_FATAL was delivered */
	bool abandoned;		     /* do not wait for events: roci_abandon() */
	struct context *prev, *next; /* fork.c */
};

struct mw {
	struct roci_mw pub;
	uint32_t handle;
};

struct ah {
	struct roci_ah pub;
	uint32_t handle; /* used in work requests */
};

struct channel {
	struct roci_channel pub;
	uint32_t handle;
	uint32_t users;	       /* number of CQs */
	_Atomic uint32_t left; /* how many of those have `left` set */
};

/** Events returned to the program and acknowledged by it; context.lock. */
struct event_count {
	uint32_t given;
	uint32_t acked;
};

/** A ring of a CQ: after a resize the older ones stay until they are empty; cq.lock. */
struct cq_ring {
	struct cq_ring *next; /* its replacement; NULL: in use */
	struct region region; /* none: this is the CQ's first ring */
	uint8_t *first_lane;
	uint32_t lane_stride;
	uint32_t depth;
	uint32_t lanes; /* lanes that currently take from this ring */
};

/** A lane of a CQ; cq.lock. */
struct lane {
	struct cq_ring *from;
	struct abi_cqe *ring;
	_Atomic uint32_t *consumer;
	uint32_t head;	    /* entries taken */
	uint32_t published; /* the value of *consumer */
};

struct cq {
	struct roci_cq pub;
	uint32_t handle;
	struct region region; /* the first one; starts with struct abi_cq */
	struct map_node by_handle;
	uint32_t users; /* send and receive queues; context.lock */
	struct event_count events;
	bool death_reported; /* its last event was delivered */
	_Atomic bool left;   /* armed while it held completions that no event has announced */
	struct spin lock;
	struct map qps;	 /* by QPN */
	struct qp *last; /* owner of the last completion taken, while it is one of `qps`; or NULL */
	uint32_t last_qpn; /* its QPN in completions */
	struct cq_ring *oldest;
	struct cq_ring *newest;
	pthread_mutex_t resize_lock; /* one resize at a time */
	bool resizing;
	bool ringless;	  /* a new ring arrived but could not be mapped */
	uint32_t resizes; /* rings that replaced another, as abi_cq.resizes */
	uint32_t lanes;
	uint32_t next;	/* lane to poll next */
	uint32_t empty; /* number of empty polls */
	/** Completions taken when the last event was returned, plus 1 if another one was waiting.
	 */
	uint32_t announced;
	struct lane lane[];
};

/**
 * A send or receive queue. The thread that polls the CQ writes `polled`, the one that posts writes
 * all other members, so neither waits for the other's lock. Entries [tail, producer) are
 * outstanding; their wr_ids stay in the ring and are read from there when rocid dies.
 */
struct queue {
	struct spin lock;
	uint8_t *entries;
	struct abi_queue *shared; /* NULL: there is no such queue */
	uint32_t depth;
	uint32_t stride;
	uint32_t max_sge;
	uint32_t producer;
	/** Oldest entry that may be outstanding. Receive queue: unused, see `polled`. */
	uint32_t tail;
	/** Send queue: number of `polled` that `tail` already accounts for. */
	uint32_t counted;
	/** Completions taken. Send queue: successful ones, which are signaled. Receive queue: all.
	 */
	_Atomic uint32_t polled;
	uint32_t number; /* of the next completion; cq.lock */
};

struct xrcd {
	struct roci_xrcd pub;
	uint32_t handle;
};

struct srq {
	struct roci_srq pub;
	uint32_t handle;
	struct region region; /* the first one; starts with struct abi_queue */
	struct region ring;   /* the entries after a resize; none: they are in `region` */
	struct map_node by_handle;
	uint32_t users; /* QPs; context.lock */
	struct cq *cq;	/* of an XRC SRQ; else NULL */
	struct event_count events;
	pthread_mutex_t modify_lock;
	/** `tail` is the last value read from abi_queue.consumer; `polled`, `counted` and `number`
	 *  are unused. */
	struct queue queue;
	/* queue.lock */
	bool moving;   /* waiting for a new ring: nothing is posted */
	bool ringless; /* it arrived but could not be mapped */
};

struct qp {
	struct roci_qp pub;
	uint32_t handle;
	uint32_t number; /* QPN in completions; for QP1 the public number is 1 on each port */
	uint32_t max_inline;
	bool sq_sig_all;
	bool datagram;		/* UD, GSI */
	uint8_t plain;		/* a bit per opcode that post.c has a fast path for */
	_Atomic uint32_t state; /* enum roci_qp_state after our last modify or query */
	pthread_mutex_t modify_lock;
	struct roci_qp_cap cap;
	struct region region;
	uint32_t worker; /* its first worker */
	uint32_t slot;
	struct map_node by_handle;
	struct map_node in_send_cq;
	struct map_node in_recv_cq; /* unused when both queues use one CQ */
	struct event_count events;
	struct queue sq;
	struct queue rq;
};

static inline struct context *context_of(struct roci_context *c)
{
	return (struct context *)c;
}

static inline struct qp *qp_of(struct roci_qp *qp)
{
	return (struct qp *)qp;
}

/* --- error.c ---------------------------------------------------------------------------- */

/** Stores the sentence for roci_last_error().  @return @p err. */
int fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** The same for the data path: @p sentence is a literal. */
int fail_const(int err, const char *sentence);

/** Copies an options structure from the caller, of the caller's size; missing bytes become zero.
 *  @return 0, or EINVAL: size not set, or an option set that this library does not know. */
int opts_read(void *dst, size_t dst_size, const void *src, const char *name);

/** Copies ours to the caller's as far as it fits; the caller's size is unchanged.  @return 0 or
 *  EINVAL. */
int opts_write(void *dst, const void *src, size_t src_size, const char *name);

/* --- message.c -------------------------------------------------------------------------- */

/** A control call. `reply` receives the body of rocid's reply, padded with zeroes. */
struct call {
	uint32_t type; /* enum abi_msg_type */
	const void *body;
	size_t body_len;
	int fd; /* to send; -1: none */
	void *reply;
	size_t reply_len;
	int *fds; /* receives exactly nfds descriptors */
	unsigned nfds;
};

/** @return 0 or an errno value, with a sentence for roci_last_error(). */
int call(struct context *ctx, const struct call *c);

/** A call without descriptors. */
int call_plain(struct context *ctx, uint32_t type, const void *body, size_t body_len, void *reply,
	size_t reply_len);

/** A call whose reply carries one descriptor, stored in *@p fd. */
int call_for_fd(struct context *ctx, uint32_t type, const void *body, size_t body_len, void *reply,
	size_t reply_len, int *fd);

/** Destroys @p handle by message @p type; succeeds even when rocid is gone. */
int call_destroy(struct context *ctx, uint32_t type, uint32_t handle);

/** Maps a region received with a reply, and closes @p fd.  @return 0 or an errno value. */
int region_map(struct region *r, int fd, uint32_t size);
void region_unmap(struct region *r);

/** @return whether [@p off, @p off + @p len) is inside @p r and aligned to @p align. */
bool region_has(const struct region *r, uint64_t off, uint64_t len, uint32_t align);

/** @return whether rocid is gone; checks the socket only if @p look, because that needs a system
 *  call. */
bool context_dead(struct context *ctx, bool look);

/* --- qp.c ------------------------------------------------------------------------------- */

/** Converts an address vector; rocid resolves the MAC address (A17.4.2). */
void ah_to_abi(const struct roci_ah_attr *a, struct abi_ah_attr *r);

/* --- cq.c ------------------------------------------------------------------------------- */

/** @return whether the CQ holds completions that have not been taken. */
bool cq_has_completions(struct cq *cq);

/** Clears `left`, which cq_req_notify may have set. */
void cq_forget_left(struct cq *cq);

/** Records that an event is returned to the program, which announces the CQ's oldest completion. */
void cq_give_event(struct cq *cq);

/** Hides @p qp's completions in its CQs and forgets the entries that they would free: for RESET
 *  (QPS-16) and destruction (CQ-12). */
void cq_forget_qp(struct qp *qp);

/** Hides completions of the XRC SRQ @p srqn in @p cq: for destruction (CQ-12). */
void cq_forget_srq(struct cq *cq, uint32_t srqn);

/** Adds @p qp to its CQs.  @return 0 or ENOMEM. */
int cq_attach_qp(struct qp *qp);
void cq_detach_qp(struct qp *qp);

/* --- post.c ----------------------------------------------------------------------------- */

/** Handles a failed send completion: moves the tail past request number @p index. */
void sq_failed(struct queue *sq, uint32_t index);

/** Takes up to @p n requests that were outstanding in @p qp's send or receive queue when rocid
 *  died.  @return their number. */
int sq_flush(struct qp *qp, int n, struct roci_wc *wc);
int rq_flush(struct qp *qp, int n, struct roci_wc *wc);

/** Writes @p wr to the next entry of a receive queue, which must have room, and hands it over. */
void recv_put(struct queue *q, const struct roci_recv_wr *wr);

/** Discards everything posted so far, without completions (QPS-16); cq.lock is held. */
void queue_discard(struct queue *q);

/* --- events.c --------------------------------------------------------------------------- */

/** Waits until the program has acknowledged its events; context.lock is held. */
void events_wait(struct context *ctx, const struct event_count *e);

/* --- fork.c ----------------------------------------------------------------------------- */

/** Lists a context so that a child of fork() closes its copies of the descriptors. */
void context_list(struct context *ctx);
void context_unlist(struct context *ctx);

/* --- memory.c --------------------------------------------------------------------------- */

/** Unmaps all memory of a session. */
void memory_free_all(struct context *ctx);

#endif
