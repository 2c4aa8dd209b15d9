/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of the communication manager. Only the thread that calls it writes any of
 * this. */
#ifndef CM_IMPL_H
#define CM_IMPL_H

#include "bits.h"
#include "cm.h"
#include "list.h"
#include "wheel.h"

#define CM_NONE	 UINT32_MAX
#define CM_PEERS 1024u
/* One peer gets at most 1/CM_STRANGER_SHARE of the answers to unknown peers. */
#define CM_STRANGER_SHARE 16u
#define CM_TICK_SHIFT	  20u /* 1.05 ms: the protocol has no shorter time */
#define CM_TIME_MAX	  25u /* 131 s */
#define MRA_TIMEOUT	  24u /* 66 s, in an MRA that answers a duplicate */
/* 17 s, the longest response timeout of a peer for which an answer is kept; Linux uses 20. */
#define CM_ANSWER_TIMEOUT 22u
/* Maximum number of duplicates that are answered per connection: a peer repeats a message 15 times;
 * more repeats are hostile. */
#define CM_ANSWERS 128u

/* How a connection is found by the peer's identifiers, besides by our id. */
enum cm_index {
	CM_BY_REMOTE_ID,  /* its communication ID and GUID: duplicates of a REQ */
	CM_BY_REMOTE_QPN, /* its QPN and GUID: stale connections */
	CM_BY_REQUEST,	  /* the ID of its SIDR_REQ, which may equal a communication ID */
	CM_INDEXES,
};

struct cm_conn {
	struct wheel_timer timer;
	struct list node; /* in a listener's requests, if `unheard`; by kept.c, if without a user */
	uint32_t next[CM_INDEXES];
	bool indexed[CM_INDEXES];
	uint32_t id; /* 0: the slot is free, and next[0] is the next free one */
	uint32_t next_by_id;
	uint32_t remote_id;
	uint64_t tid;
	uint64_t guid; /* the peer's; on the active side 0 before the REP */
	uint64_t cookie;
	uint64_t timeout;    /* ns until the last message is sent again */
	uint64_t service_id; /* of a received SIDR_REQ */
	struct cm_path path;
	uint32_t listener; /* if `unheard` */
	uint32_t local_qpn, remote_qpn;
	uint32_t local_psn, remote_psn;
	uint8_t state;
	uint8_t answered; /* duplicates answered */
	uint8_t retries;  /* retries left */
	uint8_t max_retries;
	uint8_t init_depth, resp_res; /* the peer's offer, later the agreed values */
	uint8_t mtu, retry_count, rnr_retry, ack_timeout, remote_timeout;
	uint8_t own_timeout; /* from the peer's REQ: when it repeats the REQ */
	bool owned;
	bool half;    /* its program has not answered the request */
	bool unheard; /* its program has not received the event: in the backlog */
	bool remote_srq;
	bool alternate;	       /* the REQ has an alternate path */
	bool extended;	       /* XRC: a REP has the QPN in the place of the EE context's */
	uint8_t last[MAD_LEN]; /* the answer to duplicates, or the message to retransmit */
};
_Static_assert(sizeof(struct cm_conn) <= 1024, "a connection costs at most 1 KiB");

struct cm_listener {
	uint64_t service_id;
	uint64_t cookie;
	uint8_t gid[16];
	uint32_t backlog;
	uint32_t waiting;
	uint64_t refused;
	struct list requests; /* whose event was not received */
	uint32_t next;	      /* in its bucket, or in the free list */
	bool any, used;
	bool closed; /* in no bucket */
};

struct cm_tokens {
	uint64_t left, time;
};

struct cm {
	struct wheel wheel;
	struct cm_conf conf;
	struct cm_ops ops;
	void *arg;
	struct cm_count count;
	struct cm_conn *conn;
	struct cm_listener *listener;
	uint32_t *bucket[CM_INDEXES];
	uint32_t *id_bucket; /* by our id, which nobody else chooses */
	uint32_t *listen_bucket;
	uint32_t conns, listeners, mask, listen_mask;
	uint32_t free, free_listener;
	uint32_t used, halves;
	uint32_t begun;		      /* connections so far, from which their ids follow */
	uint32_t touched;	      /* slots ever used; memory of the others was never touched */
	uint32_t half_peer[CM_PEERS]; /* by cm_peer() */
	/* kept.c: without a user, oldest first; answers by cm_peer() */
	struct list answers[CM_PEERS], timewait, dreqs;
	uint32_t nanswers[CM_PEERS];
	uint64_t next_tid;
	/* answers that strangers may still get: all of them, and those of a peer */
	struct cm_tokens strangers, stranger[CM_PEERS];
};

/* One received MAD. */
struct cm_rx {
	struct cm *cm;
	const struct cm_path *from;
	const uint8_t *mad;
	uint64_t now;
};

/* cm.c */
struct cm_conn *cm_find(struct cm *cm, uint32_t id);
struct cm_conn *cm_alloc(struct cm *cm, const struct cm_path *path, uint64_t cookie);
void cm_free(struct cm *cm, struct cm_conn *c);
unsigned cm_peer(const struct cm *cm, const struct cm_path *path);
void cm_undo(struct cm *cm, struct cm_conn *c, uint32_t listener);
void cm_index_add(struct cm *cm, struct cm_conn *c, enum cm_index by);
void cm_index_del(struct cm *cm, struct cm_conn *c, enum cm_index by);
struct cm_conn *cm_index_find(struct cm *cm, enum cm_index by, uint64_t guid, uint32_t number,
	const struct cm_path *from);
bool cm_half_room(struct cm *cm, const struct cm_listener *l, const struct cm_path *from);
void cm_half_add(struct cm *cm, struct cm_conn *c, uint32_t listener);
void cm_half_heard(struct cm *cm, struct cm_conn *c);
void cm_half_del(struct cm *cm, struct cm_conn *c);
enum cm_rej cm_event(struct cm *cm, struct cm_conn *c, enum cm_event_type type, unsigned reason,
	const uint8_t *mad);
void cm_ended(struct cm *cm, struct cm_conn *c);
void cm_timewait(struct cm *cm, struct cm_conn *c, uint64_t now);
void cm_keep_answer(struct cm *cm, struct cm_conn *c, uint64_t now);
uint64_t cm_time(unsigned n);
uint8_t cm_ack_timeout(unsigned delay, unsigned life);

/* kept.c */
void cm_kept_init(struct cm *cm);
/* @p c has no user, or no longer the state in which it was kept. */
void cm_keep(struct cm *cm, struct cm_conn *c);
void cm_keep_no_more(struct cm *cm, struct cm_conn *c);
/* The one that gives way to a new connection, or NULL. */
struct cm_conn *cm_least_kept(struct cm *cm);

/* send.c */
void cm_transmit(struct cm *cm, const struct cm_path *to, const uint8_t *mad);
void cm_send(struct cm *cm, struct cm_conn *c);
void cm_send_timed(struct cm *cm, struct cm_conn *c, uint8_t retries, uint64_t now);
void cm_send_mra(struct cm *cm, struct cm_conn *c);
void cm_format(struct cm_conn *c, uint8_t *mad, enum cm_attr attr);
void cm_send_rej(struct cm *cm, struct cm_conn *c, enum cm_rej reason, enum cm_named named,
	const void *private_data, size_t len);
bool cm_stranger(struct cm_rx *rx);
void cm_refuse(struct cm_rx *rx, enum cm_rej reason, enum cm_named named, uint32_t remote_id,
	uint32_t local_id);
bool cm_private_fits(enum cm_attr attr, const void *p, size_t len);
uint64_t cm_tid_next(struct cm *cm, uint32_t id);

/* command.c */
void cm_send_dreq(
	struct cm *cm, struct cm_conn *c, const void *private_data, size_t len, uint64_t now);

/* listen.c */
struct cm_listener *cm_listener_find(
	struct cm *cm, uint64_t service_id, const uint8_t gid[16], uint32_t *number);

/* label.c: chooses that of @p c, which @p mad, a REQ, has begun. */
void cm_label_request(const struct cm *cm, struct cm_conn *c, const uint8_t *mad);

/* receive.c, passive.c, sidr.c */
bool cm_same_peer(const struct cm_conn *c, const struct cm_path *from);
void cm_ignored(struct cm_rx *rx);
bool cm_answers(struct cm_rx *rx, struct cm_conn *c);
void cm_stale(struct cm_rx *rx, struct cm_conn *old);
void cm_rx_req(struct cm_rx *rx);
void cm_rx_sidr_req(struct cm_rx *rx);
void cm_rx_sidr_rep(struct cm_rx *rx);
bool cm_addressed(const struct cm_rx *rx, enum cm_field f, uint64_t service_id, uint8_t dst[16]);

#endif
