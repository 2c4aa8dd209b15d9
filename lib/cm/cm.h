/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cm.h
 * The communication manager (IBA chapter 12, annex A11; CM-01..34): connections, listeners and
 * service ID resolution as a state machine. MADs, commands and `now` come in; MADs and events go
 * out through struct cm_ops. No clock, allocation, socket or global state; one thread. The
 * pointers that an operation gets are valid until it returns. Operations must not call the
 * communication manager.
 *
 * A connection that a command or an event has named belongs to its user until cm_destroy(). Its id
 * is the local communication ID; one id does not reveal another. A destroyed connection continues
 * alone where the peer must learn of it: DREQ is repeated, TIMEWAIT is kept. When the table is
 * full, those give way to new connections (kept.c).
 */
#ifndef CM_H
#define CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hash.h"
#include "mad.h"
#include "siphash.h"

/** The DSCP bits of a traffic class belong to the connection, the ECN bits to each packet. */
#define CM_DSCP 0xFCu

/** Where a peer is: MADs use the addresses of the connection itself (CM-09). */
struct cm_path {
	uint8_t local[16];  /* GID, of IPv4 as ::ffff:a.b.c.d */
	uint8_t remote[16]; /* GID */
	uint16_t pkey;
	uint16_t vid; /* 0: none */
	uint8_t net;  /* enum net_type */
	uint8_t port;
	uint8_t tclass;
	uint8_t hop_limit;
	uint32_t flow_label;
	uint32_t sender; /* for the caller: whose MADs they are, 0: nobody's */
};

enum cm_state {
	CM_IDLE, /* ended or not started; belongs to its user */
	CM_REQ_SENT,
	CM_MRA_REQ_RCVD, /* the peer needs longer to answer our REQ */
	CM_REQ_RCVD,
	CM_MRA_REQ_SENT,
	CM_REP_SENT,
	CM_MRA_REP_RCVD,
	CM_REP_RCVD,
	CM_MRA_REP_SENT,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RCVD,
	CM_TIMEWAIT,
	CM_REJECTED, /* we rejected the REQ; its duplicates get the same REJ (CM-13) */
	CM_SIDR_REQ_SENT,
	CM_SIDR_REQ_RCVD,
	CM_SIDR_DONE, /* answered: duplicates get the same SIDR_REP */
	CM_STATES,
};

enum cm_event_type {
	CM_EV_REQ,	     /* a listener has a new connection: `listener`, MAD, private data */
	CM_EV_REP,	     /* the peer accepts; cm_rtu() is next */
	CM_EV_ESTABLISHED,   /* by an RTU, or by data before it */
	CM_EV_REJECTED,	     /* `reason`: enum cm_rej, and private data */
	CM_EV_UNREACHABLE,   /* retries exhausted; `reason`: the unanswered message, enum cm_attr */
	CM_EV_DISCONNECTED,  /* DREQ, DREP, or retries exhausted: `reason` is CM_DREQ */
	CM_EV_TIMEWAIT_EXIT, /* the QPN may be reused (CM-21) */
	CM_EV_SIDR_REQ,	     /* a request for a listener's QPN: cm_sidr_answer() is next */
	CM_EV_SIDR_REP,	     /* `reason`: enum cm_sidr_status */
	CM_EVENTS,
};

struct cm_event {
	enum cm_event_type type;
	uint32_t id;
	uint64_t cookie;   /* of the connection; CM_EV_REQ, CM_EV_SIDR_REQ: of the listener */
	uint32_t listener; /* valid for these two */
	bool over_share;   /* likewise: the peer has used up its share of half-open connections, so
			      refuse the request unless the listener's user has few */
	unsigned reason;
	const struct cm_path *path;
	const uint8_t *mad;	     /* the cause; NULL: a timer */
	const uint8_t *private_data; /* the whole field; to the RDMA IP CM service, */
	size_t private_len;	     /* it begins with a checked struct cma_hdr */
};

/** The caller's side. */
struct cm_ops {
	void (*send)(void *arg, const struct cm_path *to, const uint8_t mad[MAD_LEN]);
	/** @return 0. For CM_EV_REQ and CM_EV_SIDR_REQ also the reason to refuse the request:
	 * then no state is kept, and the answer counts as one to an unknown peer. */
	enum cm_rej (*event)(void *arg, const struct cm_event *e);
};

/** Times are 4.096 us * 2^n, as Linux rounds them: 2^(n - 8) ms. */
struct cm_conf {
	uint64_t guid;		   /* of this node */
	uint8_t response_timeout;  /* 20: 4.1 s (--cm-timeout) */
	uint8_t max_retries;	   /* 15 (--cm-retries) */
	uint8_t packet_life;	   /* 16: 0.26 s */
	uint8_t ack_delay;	   /* local CA ACK delay, 15 */
	uint32_t half_open;	   /* total REQs that may wait for a program's answer */
	uint32_t strangers;	   /* answers per second to MADs that match no connection */
	bool linux_labels;	   /* cm_flow_label() */
	struct hash_seed seed;	   /* random */
	struct siphash_key id_key; /* random */
};

#define CM_REASONS 36u /* up to 35, vendor option rejected */

struct cm_count {
	uint64_t rx[CM_ATTRS];
	uint64_t tx[CM_ATTRS];
	uint64_t repeated[CM_ATTRS];   /* retransmitted by a timer */
	uint64_t duplicates[CM_ATTRS]; /* received again */
	uint64_t ignored[CM_ATTRS];    /* id, QPN, address or state does not match */
	uint64_t bad[MAD_FAULTS];
	uint64_t refused[CM_REASONS]; /* REJs sent, by reason */
	uint64_t strangers_limited;
};

/** Parameters of cm_connect() and cm_accept(). */
struct cm_param {
	uint32_t qpn;
	uint32_t psn; /* starting PSN, random */
	uint32_t qkey;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry;
	uint8_t mtu;	     /* REQ: IB MTU code, 1..5 */
	uint8_t transport;   /* REQ: enum cm_transport */
	uint8_t packet_life; /* REQ: of the path; 0: from struct cm_conf */
	bool flow_control;
	bool srq;
	const void *private_data; /* of a REQ to the RDMA IP CM service: cma_write() first */
	size_t private_len;
};

/** Attributes for modify QP on our side (CM-23..25). */
struct cm_qp_attr {
	uint32_t dest_qpn;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint8_t path_mtu;
	uint8_t max_rd_atomic;	    /* that we may have outstanding */
	uint8_t max_dest_rd_atomic; /* that the peer may have outstanding */
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	bool remote_srq;
};

struct cm;

/** @return the bytes that cm_init() needs for @p conns connections and @p listeners. */
size_t cm_size(uint32_t conns, uint32_t listeners);

/** Turns @p room, cm_size() zeroed bytes aligned to 8, into a communication manager. Memory of a
 *  connection is not touched until it is needed. */
struct cm *cm_init(void *room, uint32_t conns, uint32_t listeners, const struct cm_conf *conf,
	const struct cm_ops *ops, void *arg, uint64_t now);

/** The defaults of struct cm_conf; the caller sets guid and seeds. */
struct cm_conf cm_defaults(void);

/* --- driving -------------------------------------------------------------------------- */

/** A datagram of @p len bytes arrived at QP1 from @p from; its content is untrusted. */
void cm_mad(
	struct cm *cm, const struct cm_path *from, const uint8_t *mad, size_t len, uint64_t now);

/** Runs at most @p most of the timers that are due at @p now.  @return false: more may be due. */
bool cm_expire(struct cm *cm, uint64_t now, unsigned most);

/** @return when to call cm_expire(), WHEEL_NEVER if no timer is armed. */
uint64_t cm_deadline(const struct cm *cm);

/* --- commands: 0 or a negative errno -------------------------------------------------- */

/**
 * Listens for @p service_id: at @p gid, at all IPv4 addresses (::ffff:0.0.0.0), at all IPv6
 * addresses (::), or at every address (NULL).
 * @param listener set to its number
 * @return -EADDRINUSE, or -ENOMEM if there are too many listeners
 */
int cm_listen(struct cm *cm, uint64_t service_id, const uint8_t gid[16], uint32_t backlog,
	uint64_t cookie, uint32_t *listener);

/** The user has received the event of request @p id, which leaves the backlog of its
 *  listener, as in Linux. -ENOENT. */
int cm_heard(struct cm *cm, uint32_t id);

/** No request reaches @p listener any more, and another may have its address; cm_unlisten() is
 *  next. -ENOENT. */
int cm_close(struct cm *cm, uint32_t listener);

/** @return requests to @p listener that were refused, for whatever reason. */
uint64_t cm_listener_refused(const struct cm *cm, uint32_t listener);

/** Ends @p listener, closed or not; rejects REQs and SIDR_REQs whose event was not received.
 *  -ENOENT. */
int cm_unlisten(struct cm *cm, uint32_t listener, uint64_t now);

/** Sends a REQ. @param id set to the connection. -ENOMEM: no room; -EINVAL: bad @p p. */
int cm_connect(struct cm *cm, const struct cm_path *path, uint64_t service_id,
	const struct cm_param *p, uint64_t cookie, uint32_t *id, uint64_t now);

/** Later events of the connection carry @p cookie, and MADs @p sender. -ENOENT. */
int cm_adopt(struct cm *cm, uint32_t id, uint64_t cookie, uint32_t sender);

/** Passive: sends the REP, with depths limited to what the REQ allows (CM-22). */
int cm_accept(struct cm *cm, uint32_t id, const struct cm_param *p, uint64_t cookie, uint64_t now);

/** Active, after CM_EV_REP: sends the RTU. */
int cm_rtu(struct cm *cm, uint32_t id, const void *private_data, size_t len, uint64_t now);

/** Rejects a REQ or REP, or a SIDR_REQ; the connection becomes idle. */
int cm_reject(struct cm *cm, uint32_t id, enum cm_rej reason, const void *private_data, size_t len,
	uint64_t now);

/** Data arrived before the RTU (CM-16). */
int cm_established(struct cm *cm, uint32_t id, uint64_t now);

/** Sends a DREQ, or the DREP for which the peer waits. */
int cm_disconnect(struct cm *cm, uint32_t id, const void *private_data, size_t len, uint64_t now);

/** The user gives up the connection, in any state; the peer is notified. No event follows. */
int cm_destroy(struct cm *cm, uint32_t id, uint64_t now);

/** Requests the QPN that serves @p service_id (CM-31). */
int cm_sidr(struct cm *cm, const struct cm_path *path, uint64_t service_id,
	const void *private_data, size_t len, uint64_t cookie, uint32_t *id, uint64_t now);

int cm_sidr_answer(struct cm *cm, uint32_t id, enum cm_sidr_status status, uint32_t qpn,
	uint32_t qkey, const void *private_data, size_t len, uint64_t now);

/**
 * @return the 20-bit flow label of a connection that the RDMA IP CM service makes between two
 * ports: as RoCE's entropy specification defines it or, if @p as_linux, as Linux computes it
 * (ENT-06).
 */
uint32_t cm_flow_label(uint16_t dst_port, uint16_t src_port, bool as_linux);

/* --- queries ---------------------------------------------------------------------------------- */

/** @return the state, -ENOENT if @p id is unknown. */
int cm_state_of(const struct cm *cm, uint32_t id);

const char *cm_state_name(enum cm_state s);

/** @return -ENOENT, or -EINVAL while the peer's QPN is unknown. */
int cm_qp_attr(const struct cm *cm, uint32_t id, struct cm_qp_attr *a);

const struct cm_count *cm_counters(const struct cm *cm);

/** @return connections in use, including those in TIMEWAIT and rejected ones. */
uint32_t cm_used(const struct cm *cm);

/** @return REQs and SIDR_REQs waiting for a program's answer. */
uint32_t cm_half_open(const struct cm *cm);

#endif
