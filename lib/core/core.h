/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core.h
 * The transport without I/O: packets and `now` in, descriptors out (design.md 3). One core a
 * worker; every call is made by that worker's thread. It never calls back, allocates, sleeps,
 * reads a clock or knows what a packet buffer is, so the same code runs under the poll loop,
 * in unit tests, in the simulator and under fuzzers.
 *
 * `now` is nanoseconds of any monotonic clock, the same for all calls of one core and for all cores
 * that a QP moves between.
 *
 * The caller's loop:
 *
 *     parse a burst; core_rx(); hand over what the verdicts say
 *     core_doorbell() for each doorbell found
 *     core_tx(); core_seal() each; send
 *     core_expire() once the receive queue is drained
 *     core_events()
 *
 * between two quiescent states: the core keeps no pointer to an MR, and none to a frame,
 * beyond the call that used it; a struct txd is sealed before the next quiescent state.
 */
#ifndef CORE_H
#define CORE_H

#include <stdatomic.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "cq.h"
#include "drop.h"
#include "frame.h"
#include "icrc.h"
#include "limits.h"
#include "list.h"
#include "mr.h"
#include "path.h"
#include "uaccess.h"
#include "wheel.h"

struct qp;

/* --- the QP table ------------------------------------------------------------------- */

/** QPN -> QP. Written by the control thread; read by all workers (design.md 4). A withdrawn
 *  QP is freed after a grace period only. */
struct qp_table {
	_Atomic(struct qp *) slot[QP_MAX];
};

/* The worker bits name the QP's home: its first owner, and where a NIC's rule steers it. */
#define QPN_SLOT(qpn)	((qpn) & (QP_MAX - 1))
#define QPN_WORKER(qpn) ((qpn) >> QPN_SLOT_BITS & (WORKER_MAX - 1))
#define QPN_MAKE(gen, worker, slot)                             \
	((uint32_t)(gen) << (QPN_SLOT_BITS + QPN_WORKER_BITS) | \
		(uint32_t)(worker) << QPN_SLOT_BITS | (uint32_t)(slot))

/* --- counters ----------------------------------------------------------------------- */

/* Names as RDMA tools know them (hw_counters) where such a name exists. X(field, name) */
#define CORE_COUNTERS(X)                                                                     \
	X(rx_packets, "rx_packets")                                                          \
	X(rx_bytes, "rx_bytes")                                                              \
	X(tx_packets, "tx_packets")                                                          \
	X(tx_bytes, "tx_bytes")                                                              \
	X(tx_acks, "tx_acks")                                                                \
	X(rx_acks, "rx_acks")                                                                \
	X(rx_write_requests, "rx_write_requests")                                            \
	X(rx_read_requests, "rx_read_requests")                                              \
	X(rx_send_requests, "rx_send_requests")                                              \
	X(retransmits, "retransmits")	      /* packets sent again */                       \
	X(out_of_sequence, "out_of_sequence") /* responder: PSN ahead of the expected one */ \
	X(duplicate_request, "duplicate_request")                                            \
	X(packet_seq_err, "packet_seq_err") /* requester: PSN sequence NAKs received */      \
	X(implied_nak_seq_err, "implied_nak_seq_err")                                        \
	X(rnr_nak_sent, "rnr_nak_sent")                                                      \
	X(rnr_nak_recv, "rnr_nak_recv")                                                      \
	X(rnr_nak_retry_err, "rnr_nak_retry_err")                                            \
	X(local_ack_timeout_err, "local_ack_timeout_err")                                    \
	X(retry_exceeded_err, "retry_exceeded_err")                                          \
	X(req_remote_access_errors, "req_remote_access_errors")                              \
	X(req_remote_invalid_request, "req_remote_invalid_request")                          \
	X(req_cqe_error, "req_cqe_error")                                                    \
	X(resp_cqe_error, "resp_cqe_error")                                                  \
	X(resp_remote_access_errors, "resp_remote_access_errors")                            \
	X(resp_remote_invalid_request, "resp_remote_invalid_request")                        \
	X(resp_local_length_error, "resp_local_length_error")                                \
	X(cq_overflow, "cq_overflow")                                                        \
	X(access_faults, "access_faults") /* application memory that faulted under us */     \
	X(events_lost, "events_lost")

/** One writer, the worker; the control thread reads with relaxed loads and sums. */
struct core_counters {
#define X(field, name) uint64_t field;
	CORE_COUNTERS(X)
#undef X
	uint64_t drop[DROP_MAX];     /* by enum drop */
	uint64_t bad_pkey[PORT_MAX]; /* BadPKeyCounter of each port, up to BAD_PKEY_MAX (VAL-10) */
};
#define BAD_PKEY_MAX 0xFFFFu

/** @return the name of the i-th counter in declaration order, NULL beyond the last. */
const char *core_counter_name(unsigned i);

/* --- set-up ------------------------------------------------------------------------- */

struct core_config {
	uint16_t worker; /* this core's number; packets of QPs with another owner are handed off */
	const struct icrc_ops *icrc;
	const volatile uint32_t *faults; /* see uaccess.h */
	const struct qp_table *qps;
	const struct mr_table *mrs;
	const struct port_table *ports;
};

struct core_event {
	uint32_t type;	  /* ABI_EVENT_* */
	uint32_t handle;  /* of the QP or CQ in its session */
	uint32_t channel; /* completion events: handle of the channel */
	uint32_t session; /* number of the session that owns the object */
};

/** A session's part of the schedule: sessions take turns, and within one its QPs do. */
struct core_share {
	struct list node; /* on core.ready while there is a QP in `qps` */
	struct list qps;  /* QPs with something to send or to flush, round robin */
};

struct core {
	struct core_config cfg;
	struct uaccess ua;
	struct wheel wheel;
	struct list ready;   /* sessions' shares with QPs that are ready, round robin */
	struct list touched; /* CQ lanes with news since the last core_events() */
	uint32_t tx_call;    /* number of the core_tx() call under way, or the last */
	uint32_t ev_head, ev_tail;
	struct core_event ev[EVENT_QUEUE];
	uint16_t ip_id;
	struct core_counters count;
	struct core_share share[SESSION_MAX]; /* by the low bits of the session's number */
};

/** Prepares @p c, whose memory is the caller's; @p cfg is copied, what it points to must
 *  outlive the core. */
void core_init(struct core *c, const struct core_config *cfg, uint64_t now);

/* --- packets ------------------------------------------------------------------------ */

/** What became of a received packet: 0 when it was consumed, an enum drop when it was dropped
 *  and counted, VERDICT_HANDOFF + w when it is worker w's: pass it on untouched. */
#define VERDICT_HANDOFF 0x100u

/**
 * Receives @p n packets that frame_parse() accepted (the caller counts those it did not with
 * core_count_drop()). What they carry is in application memory when this returns.
 */
void core_rx(struct core *c, const struct pkt pkts[], unsigned n, uint64_t now, uint16_t verdict[]);

/** @return the worker that handles QP @p qpn; this core's when there is no such QP. */
uint32_t core_owner(const struct core *c, uint32_t qpn);

/** Counts a frame that frame_parse() or the shell itself dropped. */
void core_count_drop(struct core *c, enum drop why);

/** A payload piece in application memory, or in the core's own for inline data. */
struct txseg {
	const uint8_t *addr;
	uint32_t len;
};

/** A packet to send. The caller sets `frame`, the core the rest. */
struct txd {
	uint8_t *frame;	      /* room for FRAME_MAX bytes; headers are written here */
	struct qp *qp;	      /* to be told of a fault */
	uint16_t hdr_len;     /* bytes of headers written */
	uint16_t payload_len; /* sum of the pieces */
	uint8_t l3_off;
	uint8_t net;  /* enum net_type */
	uint8_t port; /* index of the port to send it by */
	bool local;   /* for a QP of this daemon: loop it back instead */
	uint8_t nsegs;
	struct txseg seg[SGE_MAX];
};

/**
 * Builds up to @p n packets of the QPs that have something to send: sessions get equal shares,
 * however many QPs each has, and the QPs of a session equal parts of its share.
 * @return how many of @p out were filled. Fewer than @p n: nothing more can be sent now, or so
 * many QPs had nothing to send that the rest waits for the next call; core_deadline() tells.
 * What is returned counts as sent: the caller transmits it before it calls again.
 */
unsigned core_tx(struct core *c, struct txd out[], unsigned n, uint64_t now);

/**
 * Completes a packet of core_tx(): copies the payload behind the headers, pads it and puts
 * the ICRC at its end, in one pass over application memory.
 * @return the length of the frame (without FCS), or 0 when application memory faulted: drop
 * the packet; its QP is on its way to ERR.
 */
uint16_t core_seal(struct core *c, struct txd *t);

/* --- work --------------------------------------------------------------------------- */

/** The application rang @p qp's doorbell. @p qp must be this worker's: see qp_owner(). */
void core_doorbell(struct core *c, struct qp *qp, uint64_t now);

/** Runs the timers that are due. Call when the receive queue has been drained: an ACK that
 *  waits there must not be overtaken by its timeout (design.md 3, "Pauses"). */
void core_expire(struct core *c, uint64_t now);

/** @return when core_expire() has something to do next; WHEEL_NEVER if nothing is armed;
 *  0 while QPs are ready to send. */
uint64_t core_deadline(const struct core *c);

/** Takes up to @p n events. Call once a burst: completion events come from here. */
unsigned core_events(struct core *c, struct core_event out[], unsigned n);

/* --- commands ----------------------------------------------------------------------- */

enum core_cmd_type {
	CORE_CMD_MODIFY_QP,
	CORE_CMD_QUERY_QP,
	CORE_CMD_DETACH_QP,  /* before destroying: the core forgets the QP */
	CORE_CMD_DETACH_QPS, /* the same of `n` QPs */
	CORE_CMD_GIVE_QP,    /* the QP is worker `worker`'s from here on */
	CORE_CMD_TAKE_QP,    /* to that worker, after GIVE_QP */
	CORE_CMD_DETACH_CQ,  /* before destroying: the core forgets this worker's lane */
	CORE_CMD_DETACH_CQS, /* the same of `n` CQs */
	CORE_CMD_COUNT_CQ,   /* how many CQEs wait in this worker's lane? */
	CORE_CMD_RESIZE_CQ,  /* this worker's lane goes on in another ring */
	/** The neighbour's or the port's MAC changed: packets that the `n` QPs build from now on
	 *  go to path.dmac, from sgid.mac, or by way of this daemon when path.local. In any state;
	 *  no packet that is built already changes, because each is sealed before the next
	 *  command. */
	CORE_CMD_READDRESS_QPS,
};

struct core_cmd {
	enum core_cmd_type type;
	struct qp *qp; /* *_CQ, *S: NULL */
	struct cq *cq; /* *_CQ */
	uint32_t n;    /* *S: at most some dozens, done in one step */
	struct qp *const *qps;
	struct cq *const *cqs;
	uint16_t worker;	  /* GIVE_QP */
	uint32_t cqes;		  /* COUNT_CQ: out; RESIZE_CQ: the new depth */
	struct abi_cq_lane *lane; /* RESIZE_CQ: the new ring's */
	uint32_t progress;	  /* the core's; 0 at first */
	uint32_t mask;		  /* ABI_QP_* */
	struct abi_qp_attr attr;  /* MODIFY: in; QUERY: out */
	struct path_spec path;	  /* MODIFY with ABI_QP_AV: the AV with its L2 address resolved; the
				   * QPNs are filled in by the core */
	struct gid_entry sgid;	  /* what path.sgid points to; READDRESS: only its MAC counts */
};

/**
 * Runs a control command.
 * @return 0; a negative errno, the QP being as before: -EINVAL for a transition, attribute or
 * value that the state machine does not allow; or -EAGAIN: call again with the same
 * command, more steps are needed (a step is bounded so that packets do not wait).
 */
int core_cmd(struct core *c, struct core_cmd *cmd, uint64_t now);

#endif
