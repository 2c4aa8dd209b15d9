/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core.h
 * The transport without I/O: packets and `now` in, descriptors out (design.md 3). There is one core
 * per worker, and only that worker's thread calls it. It never calls back, allocates, sleeps, reads
 * a clock or knows what a packet buffer is, so the same code runs under the poll loop, in unit
 * tests, in the simulator and under fuzzers.
 *
 * `now` is nanoseconds of any monotonic clock, the same clock for every call to one core and for
 * all cores that a QP moves between.
 *
 * The caller's loop:
 *
 *     parse a burst; core_rx(); hand over what the verdicts say
 *     core_doorbell() for each doorbell found
 *     core_tx(); core_seal() each; send
 *     core_expire() once the receive queue is drained
 *     core_events()
 *
 * between two quiescent states: the core keeps no pointer to an MR or to a frame beyond the call
 * that used it, and a struct txd is sealed before the next quiescent state.
 */
#ifndef CORE_H
#define CORE_H

#include <stdatomic.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "ah.h"
#include "bits.h"
#include "cause.h"
#include "cq.h"
#include "drop.h"
#include "flow.h"
#include "frame.h"
#include "icrc.h"
#include "limits.h"
#include "list.h"
#include "mcast.h"
#include "mr.h"
#include "path.h"
#include "srq.h"
#include "transition.h"
#include "uaccess.h"
#include "wheel.h"

struct abi_fault;
struct inject;
struct qp;
struct trace;
struct txd;

/* --- the QP table ------------------------------------------------------------------- */

/** QPN -> QP. Written by the control thread, read by all workers (design.md 4). A QP that was
 *  removed from the table is freed only after a grace period. */
struct qp_table {
	_Atomic(struct qp *) slot[QP_MAX];
	_Atomic(struct qp *) gsi[PORT_MAX]; /* QP1 of each port, which occupies no slot */
};

/* The worker bits name the QP's home: its first owner, and the worker to which a NIC rule steers
 * its packets. */
#define QPN_SLOT(qpn)	((qpn) & (QP_MAX - 1))
#define QPN_WORKER(qpn) ((qpn) >> QPN_SLOT_BITS & (WORKER_MAX - 1))
#define QPN_MAKE(gen, worker, slot)                             \
	((uint32_t)(gen) << (QPN_SLOT_BITS + QPN_WORKER_BITS) | \
		(uint32_t)(worker) << QPN_SLOT_BITS | (uint32_t)(slot))

/* --- counters ----------------------------------------------------------------------- */

/* Names and meanings are those of RDMA tools (hw_counters) where they have such a counter;
 * doc/counters.md names the source. Features that are not built yet have no counter.
 * X(field, name, help)
 */
#define CORE_COUNTERS(X)                                                                          \
	X(rx_packets, "rx_packets", "RoCE packets received, on all ports")                        \
	X(rx_bytes, "rx_bytes", "bytes received, from IP or GRH to ICRC")                         \
	X(tx_packets, "tx_packets", "RoCE packets sent, on all ports and to QPs of this rocid")   \
	X(tx_bytes, "tx_bytes", "bytes sent, from IP or GRH to ICRC")                             \
	X(tx_acks, "tx_acks", "ACK and NAK packets sent")                                         \
	X(rx_acks, "rx_acks", "ACK and NAK packets received")                                     \
	X(rx_write_requests, "rx_write_requests", "RDMA WRITE messages received")                 \
	X(rx_read_requests, "rx_read_requests", "RDMA READ requests received")                    \
	X(rx_atomic_requests, "rx_atomic_requests", "CmpSwap and FetchAdd requests received")     \
	X(rx_flush_requests, "rx_flush_requests", "FLUSH requests received")                      \
	X(rx_atomic_write_requests, "rx_atomic_write_requests", "ATOMIC WRITE requests received") \
	X(rx_send_requests, "rx_send_requests", "SEND messages received")                         \
	X(retransmits, "retransmits", "request packets retransmitted")                            \
	X(out_of_sequence, "out_of_sequence",                                                     \
		"request packets received with a PSN ahead of the expected one")                  \
	X(duplicate_request, "duplicate_request",                                                 \
		"request packets received again after their execution")                           \
	X(packet_seq_err, "packet_seq_err", "PSN sequence NAKs received")                         \
	X(implied_nak_seq_err, "implied_nak_seq_err",                                             \
		"responses received ahead of an outstanding READ response")                       \
	X(out_of_buffer, "out_of_buffer", "packets dropped because no receive WQE was posted")    \
	X(rnr_nak_sent, "rnr_nak_sent", "RNR NAKs sent")                                          \
	X(rnr_nak_recv, "rnr_nak_recv", "RNR NAKs received")                                      \
	X(rnr_nak_retry_err, "rnr_nak_retry_err",                                                 \
		"RNR NAKs received that did not exceed the QP's retry limit")                     \
	X(retry_rnr_exceeded_err, "retry_rnr_exceeded_err",                                       \
		"QPs that failed because the peer was not ready too often")                       \
	X(local_ack_timeout_err, "local_ack_timeout_err", "local ACK timers that expired")        \
	X(retry_exceeded_err, "retry_exceeded_err",                                               \
		"QPs that failed because the peer did not respond to retries")                    \
	X(req_remote_access_errors, "req_remote_access_errors",                                   \
		"remote access error NAKs received")                                              \
	X(req_remote_invalid_request, "req_remote_invalid_request",                               \
		"invalid request NAKs received")                                                  \
	X(req_cqe_error, "req_cqe_error",                                                         \
		"send queue completions with an error, including flushed ones")                   \
	X(req_cqe_flush_error, "req_cqe_flush_error", "send queue completions that were flushed") \
	X(resp_cqe_error, "resp_cqe_error",                                                       \
		"receive queue completions with an error, including flushed ones")                \
	X(resp_cqe_flush_error, "resp_cqe_flush_error",                                           \
		"receive queue completions that were flushed")                                    \
	X(resp_remote_access_errors, "resp_remote_access_errors",                                 \
		"requests received with a remote access error")                                   \
	X(resp_remote_invalid_request, "resp_remote_invalid_request", "invalid requests")         \
	X(resp_local_length_error, "resp_local_length_error",                                     \
		"messages received that were longer than their receive WQE")                      \
	X(cq_overflow, "cq_overflow", "completions lost because a CQ was full")                   \
	X(access_faults, "access_faults", "accesses to application memory that faulted")          \
	X(direct_messages, "direct_messages",                                                     \
		"messages that went to a QP of this rocid without frames")                        \
	X(direct_bytes, "direct_bytes", "their bytes")                                            \
	X(np_ecn_marked_roce_packets, "np_ecn_marked_roce_packets",                               \
		"packets received with congestion experienced, by QPs that answer with CNPs")     \
	X(np_cnp_sent, "np_cnp_sent", "CNPs sent")                                                \
	X(rp_cnp_handled, "rp_cnp_handled", "CNPs accepted")                                      \
	X(rp_cnp_ignored, "rp_cnp_ignored", "CNPs for QPs that were not accepted")                \
	X(rp_cnp_repeated, "rp_cnp_repeated",                                                     \
		"accepted CNPs and Fast CNPs about an event that the QP knew of")                 \
	X(rp_fast_cnp_handled, "rp_fast_cnp_handled", "QPs that accepted a Fast CNP")             \
	X(rp_fast_cnp_ignored, "rp_fast_cnp_ignored", "QPs that did not accept a Fast CNP")       \
	X(injected_faults, "injected_faults", "faults injected into packets, see show faults")

/** Traffic of one port. */
struct core_port_counters {
	uint64_t rx_packets;
	uint64_t rx_bytes; /* from IP or GRH to ICRC */
	uint64_t tx_packets;
	uint64_t tx_bytes;
};

/** One writer, the worker; the control thread reads with relaxed loads and sums. The core itself
 *  counts packets and bytes per port only; core_sum_ports() computes the totals. */
struct core_counters {
#define X(field, name, help) uint64_t field;
	CORE_COUNTERS(X)
#undef X
	uint64_t drop[DROP_MAX];     /* indexed by enum drop */
	uint64_t bad_pkey[PORT_MAX]; /* BadPKeyCounter of each port, up to BAD_PKEY_MAX (VAL-10) */
	uint64_t bad_qkey[PORT_MAX]; /* QKeyViolations of each port, saturates likewise */
	struct core_port_counters port[PORT_MAX];
};
#define BAD_PKEY_MAX 0xFFFFu

/** @return the name of the i-th counter in declaration order, NULL beyond the last. */
const char *core_counter_name(unsigned i);

/** @return a short description of what the i-th counter counts. */
const char *core_counter_help(unsigned i);

/** Sets the totals of @p c: rx_packets, rx_bytes, tx_packets, tx_bytes. */
void core_sum_ports(struct core_counters *c);

/* --- set-up ------------------------------------------------------------------------- */

struct core_config {
	uint16_t worker;  /* this core's number; other workers' packets are handed off */
	uint16_t workers; /* number of cores that share the tables; 0: unknown */
	const struct icrc_ops *icrc;
	const volatile uint32_t *faults; /* see uaccess.h */
	const struct qp_table *qps;
	const struct mr_table *mrs;
	const struct ah_table *ahs;
	const struct mcast_table *mcasts;
	const struct flow_table *flows;
	const struct srq_table *srqs; /* all SRQs, including those that no XRC request can name */
	const struct port_table *ports;
};

struct core_event {
	uint32_t type;	  /* ABI_EVENT_* */
	uint32_t handle;  /* of the QP, CQ or SRQ in its session */
	uint32_t channel; /* completion events: handle of the channel */
	uint32_t session; /* number of the session that owns the object */
};

/**
 * Egress: the routes by which packets leave the core. Each port is one, and so is each worker's
 * inbox, which takes packets for QPs of this daemon. An egress that cannot take a burst now is
 * closed: QPs whose packets leave by it wait, all others continue. EGRESS_NONE is for QPs that have
 * something to complete rather than to send; it is never closed.
 */
#define EGRESS_PORT(index)   (index)
#define EGRESS_LOCAL(worker) (PORT_MAX + (worker))
#define EGRESS_NONE	     (PORT_MAX + WORKER_MAX)
#define EGRESS_COUNT	     (EGRESS_NONE + 1)

/** A session's part of the schedule: sessions take turns, within a session its egresses do, and
 *  within an egress the QPs. */
struct core_share {
	struct list node; /* on core.ready or core.blocked while there is a QP in `qps` */
	uint32_t ways;	  /* a bit for each egress that has QPs */
	uint32_t last;	  /* the egress that had the last turn */
	/* QPs with something to send or to flush, round robin, per egress */
	struct list qps[EGRESS_COUNT];
	/* multicast.c: multicast datagrams still to be delivered to its QPs */
	struct list group; /* on core.groups.ready while there is one */
	struct list jobs;  /* struct group_job, in order of arrival */
	uint32_t njobs;
} CACHE_ALIGNED;

/** Members of one session that are still to receive a multicast datagram. */
struct group_job {
	struct list node; /* of the session's jobs, or on core_groups.idle */
	uint32_t session;
	uint32_t next;	/* serial of the next member */
	uint32_t place; /* index of the datagram in core_groups.held */
};

/** A multicast datagram whose frame the shell keeps. */
struct group_held {
	uint32_t jobs; /* jobs that need it; 0: the place is free */
	struct pkt pkt;
};

/** Multicast datagrams in delivery to group members; multicast.c. */
struct core_groups {
	uint32_t copies;     /* copies that may still be delivered before the next core_groups() */
	uint32_t places;     /* places in use */
	uint32_t next_place; /* where the search for a free place starts */
	struct list ready;   /* core_share.group of sessions that have jobs, round robin */
	struct list idle;    /* unused jobs */
	struct group_held held[GROUP_HELD];
	struct group_job job[GROUP_JOBS];
};

/** A CNP that waits to be sent. */
struct np_cnp {
	struct qp *qp; /* that the marked packet was for */
	uint32_t dest_qpn;
	uint16_t pkey;
	bool becn;
	struct path path;
};

/** CNPs that wait to be sent, the oldest first; np.c. */
struct core_np {
	uint32_t owed;
	struct np_cnp cnp[CNP_OWED];
};

/** Unresponsive destinations that are tracked separately (a power of two). */
#define LATE_SLOTS 16u

/* Reasons for core.careful: some QP of the daemon is traced or has injected faults. */
#define CORE_TRACING   (1u << 0)
#define CORE_INJECTING (1u << 1)

struct core {
	struct core_config cfg;
	struct uaccess ua;
	struct wheel wheel;   /* protocol timers */
	struct list ready;    /* sessions' shares with QPs that are ready, round robin */
	struct list blocked;  /* those of them that had no open egress at their turn */
	uint32_t paced;	      /* QPs on `pace` */
	uint32_t urgent_ways; /* a bit for each list of `urgent` with QPs */
	uint32_t open;	      /* a bit for each open egress: core_open_egress() */
	struct list touched;  /* CQ lanes with news since the last core_events() */
	struct list troubled; /* QPs with async events that core_events() has not taken */
	uint64_t srq_troubled[SRQ_MAX / 64]; /* likewise for SRQs, by slot of the SRQ table ... */
	uint64_t srq_summary;		     /* ... and a bit for each of its words that is not 0 */
	uint64_t clock;	  /* time of the current or latest call, for CQEs' timestamps */
	uint64_t tx_now;  /* time of the current or latest core_tx(), for core_seal() */
	uint32_t tx_call; /* its number */
	/* rp.c: which QPs have sent lately */
	uint32_t lately;       /* the oldest core_tx() call that counts */
	uint32_t lately_next;  /* what becomes that ... */
	uint32_t lately_round; /* ... at each of these rounds, ... */
	uint64_t lately_until; /* ... the next of which begins then */
	uint8_t careful;       /* CORE_TRACING, CORE_INJECTING: take steps one at a time */
	/** event.c: per slot, a QP of an unresponsive destination, or 0; the control thread takes
	 *  it away. `late_news`: there is one to report. */
	_Atomic uint32_t late[LATE_SLOTS];
	bool late_news;
	bool direct;	      /* core_direct() */
	bool short_ways;      /* core_short_ways() */
	uint32_t direct_room; /* direct.c: bytes that the core_tx() call under way may still copy */
	uint16_t ip_id;
	bool lags;	 /* core_resumed(): there is Rx from before to be received first */
	uint64_t paused; /* from when to when the worker stood still most recently, or 0 */
	uint64_t resumed;
	uint32_t grace_begun; /* core_grace_begin() */
	uint32_t grace_ended;
	struct core_counters count;
	struct drop_log drops;		      /* cause.c */
	struct core_share share[SESSION_MAX]; /* indexed by the low bits of the session's number */
	struct core_groups groups;
	struct core_np np;
	struct list urgent[EGRESS_COUNT]; /* QPs that owe an ACK or a NAK, per egress */
	struct wheel pace;	 /* limiters of QPs that wait for their departure; pacing.c */
	struct list held;	 /* struct inject that hold back frames */
	uint8_t rx_fault[BURST]; /* core_rx_fault() */
};

/** Prepares @p c, whose memory is the caller's. @p cfg is copied; what it points to must outlive
 *  the core. */
void core_init(struct core *c, const struct core_config *cfg, uint64_t now);

/* --- packets ------------------------------------------------------------------------ */

/** Outcome for a received packet: 0 when it was consumed, an enum drop when it was dropped and
 *  counted, VERDICT_HANDOFF + w when worker w owns its QP: pass it on untouched. */
#define VERDICT_HANDOFF 0x100u
/** It went to a multicast group that other workers have QPs in, too: core_group_workers() names the
 *  workers that are to get a copy, with PKT_COPY as its queue. */
#define VERDICT_SPREAD 0x200u
/** Not all members of its group have received it yet: the frame must stay until core_groups()
 * returns its place, which is in the low byte. May be combined with VERDICT_SPREAD. */
#define VERDICT_HELD 0x400u

/** @return the place in @p verdict, which has VERDICT_HELD set. */
static inline uint8_t verdict_place(uint16_t verdict)
{
	return (uint8_t)verdict;
}

/**
 * Receives @p n packets that frame_parse() accepted (the caller counts the others with
 * core_count_drop()). Their payload is in application memory when this returns.
 */
void core_rx(struct core *c, const struct pkt pkts[], unsigned n, uint64_t now, uint16_t verdict[]);

/** @return the fault injected into packet @p i of the last core_rx() of up to BURST packets: enum
 *  abi_fault_kind, 0 for none. */
static inline uint8_t core_rx_fault(const struct core *c, unsigned i)
{
	return c->careful & CORE_INJECTING ? c->rx_fault[i] : 0;
}

/** @return whether @p pkt is for the QP with number @p qpn: by its own number, as QP1, or as a
 * member of the multicast group. Not meant to be called per packet. */
bool core_is_receiver(const struct core *c, const struct pkt *pkt, uint32_t qpn);

/** @return the worker that handles QP @p qpn; this core's when there is no such QP. */
uint32_t core_owner(const struct core *c, uint32_t qpn);

/** @return a bit for each other worker that has QPs in the group that @p pkt went to. */
uint32_t core_group_workers(const struct core *c, const struct pkt *pkt);

/** @return whether any worker of this daemon has QPs in the group that @p t, which has been sealed,
 *  goes to: then a copy of it must be received, too (MC-08). */
bool core_group_here(const struct core *c, const struct txd *t);

/**
 * Delivers held multicast datagrams (VERDICT_HELD) to more members of their groups; sessions take
 * turns. Call it once per round; core_groups_wait() says whether more are left.
 * @param done  places of frames that are no longer needed
 * @return their number
 */
uint32_t core_groups(struct core *c, uint8_t done[GROUP_COPIES], uint64_t now);

static inline bool core_groups_wait(const struct core *c)
{
	return !list_empty(&c->groups.ready);
}

/**
 * Receives the @p len bytes at @p frame, for which frame_parse() returned DROP_IP_NEXT_HEADER, if
 * they are a Fast CNP and the port accepts such.
 * @param pkt     port and queue are set; receives the rest, unless the frame does not parse
 * @param others  receives a bit for each other worker that has such QPs: each gets a copy, with
 *                PKT_COPY as its queue, and calls this function
 * @return DROP_NONE; the reason for the drop, which has been counted; or DROP_IP_NEXT_HEADER, not
 * counted: the frame is not ours.
 */
enum drop core_fast_cnp(struct core *c, struct pkt *pkt, const uint8_t *frame, size_t len,
	uint64_t now, uint32_t *others);

/** Fills @p f with what a switch sees of the packets of @p qp, which has been connected by its
 *  owner. @return false: they are none of which Fast CNPs tell. Control thread. */
bool core_flow(struct qp_flow *f, struct qp *qp);

/** Counts a frame that frame_parse() or the shell itself dropped. */
void core_count_drop(struct core *c, enum drop why);

/** A piece of the payload, in application memory, or in the core's own for inline data. */
struct txseg {
	const uint8_t *addr;
	uint32_t len;
};

/** A packet to send. The caller sets `frame`, the core the rest. */
struct txd {
	uint8_t *frame;	      /* room for FRAME_MAX bytes; headers are written here */
	struct qp *qp;	      /* notified of a fault */
	uint16_t hdr_len;     /* bytes of headers written */
	uint16_t payload_len; /* sum of the pieces */
	uint8_t l3_off;
	uint8_t net;  /* enum net_type */
	uint8_t port; /* index of the port to send it by */
	bool local;   /* for a QP of this daemon: loop it back instead */
	bool group;   /* to a multicast group: see core_group_here() */
	uint8_t nsegs;
	uint8_t sealed; /* inject.c: enum txd_sealed; */
	/* the rest is set for TXD_SEALED and TXD_LOST only */
	uint8_t fault; /* enum abi_fault_kind: the latest fault applied to it; 0: none */
	uint16_t frame_len;
	struct txseg seg[SGE_MAX];
};

/** @return the BTH of @p t. */
static inline const uint8_t *txd_bth(const struct txd *t)
{
	static const uint8_t before[] = {
		[NET_IPV4] = IP4_HLEN + UDP_HLEN,
		[NET_IPV6] = IP6_HLEN + UDP_HLEN,
		[NET_ROCEV1] = GRH_HLEN,
	};

	return t->frame + t->l3_off + before[t->net];
}

/** @return the QPN that @p t is addressed to. */
static inline uint32_t txd_dest_qp(const struct txd *t)
{
	return get_be32(txd_bth(t) + BTH_RESV8A) & 0xFFFFFF;
}
enum txd_sealed {
	TXD_OPEN,   /* the normal case: core_seal() seals it */
	TXD_SEALED, /* already sealed */
	TXD_LOST,   /* already sealed, and not to be sent: an injected fault drops it */
};

/** Sets whether messages between QPs of this core may go without frames (direct.h). They may not
 *  initially, nor while the frames are captured. */
static inline void core_direct(struct core *c, bool on)
{
	c->direct = on;
}

/** Sets whether runs of plain requests, packets and acknowledgements are handled together, as they
 *  are initially. The results are the same; tests compare them. */
static inline void core_short_ways(struct core *c, bool on)
{
	c->short_ways = on;
}

/** @return whether core_tx() has nothing to build, and no QP waits for an egress or its departure:
 * the call, and that of core_open_egress() before it, may be left out. */
static inline bool core_tx_idle(const struct core *c)
{
	return list_empty(&c->ready) && list_empty(&c->blocked) && !c->careful &&
	       !(c->np.owed | c->urgent_ways | c->paced);
}

/** Sets which egresses can take a burst from now on, a bit for each. Initially all are open. */
void core_open_egress(struct core *c, uint32_t open);

/**
 * Builds up to @p n packets, for open egresses, of the QPs that have something to send: sessions
 * get equal shares, however many QPs each has, and the QPs of a session equal parts of its share.
 * @return how many of @p out were filled. Fewer than @p n: nothing more can be sent now, or so many
 * QPs had nothing to send that the rest waits for the next call; core_deadline() tells which. The
 * packets returned count as sent: the caller transmits them before it calls again.
 */
unsigned core_tx(struct core *c, struct txd out[], unsigned n, uint64_t now);

/**
 * Completes a packet of core_tx(): copies the payload after the headers, pads it and appends the
 * ICRC, in one pass over application memory.
 * @return the length of the frame (without FCS). 0 when application memory faulted: drop the
 * packet, its QP is on its way to ERR. 0 also for a packet with TXD_LOST.
 */
uint16_t core_seal(struct core *c, struct txd *t);

/* --- work --------------------------------------------------------------------------- */

/** The application rang @p qp's doorbell. @p qp must be this worker's: see qp_owner(). */
void core_doorbell(struct core *c, struct qp *qp, uint64_t now);

/** Runs up to TIMERS_ROUND due timers, and moves up to TIMERS_MOVED in the wheel. Call it when the
 *  receive queue has been drained: a timeout must not overtake an ACK that waits there (design.md
 *  3, "Pauses").
 *  @return whether more may be due. */
bool core_expire(struct core *c, uint64_t now);

/** @return when core_tx() or core_expire() next has something to do; WHEEL_NEVER if no timer is
 *  armed and no packet waits for its departure; 0 while QPs are ready to send, even if their egress
 *  is closed. */
uint64_t core_deadline(const struct core *c);

/** The worker stood still from @p from to @p now, and packets that arrived meanwhile wait: rates
 *  rise by one step at most for that time, and not before the next core_expire(). */
static inline void core_resumed(struct core *c, uint64_t from, uint64_t now)
{
	c->paused = from;
	c->resumed = now;
	c->lately_until += now - from; /* CNPs waited meanwhile, too */
	c->lags = true;
}

/**
 * Grace periods. After a window is bound anew, other cores of the daemon may still use its old
 * binding for packets in progress, so the work request completes only when each core has been
 * between two calls. The shell checks core_grace_wanted() once per round: when it is not 0, the
 * shell starts to watch each core for such a point, and reports it with core_grace_end() and that
 * number. It does not wait.
 */
static inline uint32_t core_grace_wanted(const struct core *c)
{
	return likely(c->grace_begun == c->grace_ended) ? 0 : c->grace_begun;
}

static inline void core_grace_end(struct core *c, uint32_t number)
{
	c->grace_ended = number;
}

/**
 * Takes up to @p n events. Call it once per burst: it also returns completion events. Events that
 * do not fit stay with their objects, so an event may be late, but is never lost. An event that is
 * already pending on its object is not recorded twice.
 */
unsigned core_events(struct core *c, struct core_event out[], unsigned n);

/** @return whether async events are pending. */
static inline bool core_async_wait(const struct core *c)
{
	return !list_empty(&c->troubled) || c->srq_summary;
}

/** @return whether any events may be pending. */
static inline bool core_events_wait(const struct core *c)
{
	return !list_empty(&c->touched) || core_async_wait(c);
}

/* --- commands ----------------------------------------------------------------------- */

enum core_cmd_type {
	CORE_CMD_MODIFY_QP,
	CORE_CMD_QUERY_QP,
	CORE_CMD_DETACH_QP,  /* before destruction: the core forgets the QP */
	CORE_CMD_DETACH_QPS, /* the same for `n` QPs */
	CORE_CMD_GIVE_QP,    /* the QP belongs to worker `worker` from here on */
	CORE_CMD_TAKE_QP,    /* at that worker, after GIVE_QP */
	CORE_CMD_DETACH_CQ,  /* before destruction: the core forgets this worker's lane */
	CORE_CMD_DETACH_CQS, /* the same for `n` CQs */
	CORE_CMD_COUNT_CQ,   /* counts the CQEs that wait in this worker's lane */
	CORE_CMD_RESIZE_CQ,  /* this worker's lane continues in another ring */
	CORE_CMD_SET_WINDOW, /* allows the QP `n` packets in flight */
	CORE_CMD_SET_RATE,   /* limits the QP to `rate` */
	/** The MAC of the neighbour or of the port changed: packets that the `n` QPs build from now
	 *  on go to path.dmac, from sgid.mac, or through this daemon when path.local. Valid in any
	 *  state. No packet that is already built changes, because each is sealed before the next
	 *  command. */
	CORE_CMD_READDRESS_QPS,
	/** The datagrams that the `n` QPs have posted so far keep their path, whatever happens to
	 *  the address handles that they name (UD-16). */
	CORE_CMD_SNAPSHOT_QPS,
	/** Makes the QP's path anew from attr.ah, path and sgid, as MODIFY_QP with ABI_QP_AV does.
	 *  -EINVAL: it has none. */
	CORE_CMD_REPATH_QP,
	/** Congestion control of the ports of the `n` QPs changed: ECN of their packets and their
	 *  limits follow. */
	CORE_CMD_CONGESTION_QPS,
	CORE_CMD_QUERY_RATE,   /* what limits the QP: `limit` */
	CORE_CMD_RELOAD_PKEYS, /* the P_Key table changed: look up the keys of `n` QPs again */
	CORE_CMD_TRACING,      /* to all workers, before the first TRACE_QP and after the last */
	CORE_CMD_INJECTING,    /* likewise for INJECT_QP */
	CORE_CMD_INJECT_QP,    /* attaches `inject` to the QP; NULL: detaches */
	CORE_CMD_ARM_FAULT,    /* arms `fault`; n: out, its number */
	CORE_CMD_CLEAR_FAULT,  /* clears fault number `n` */
	CORE_CMD_TRACE_QP,     /* sends the QP's events to `trace` from here on; NULL: stops */
};

/** The limit of a QP's rate. */
struct core_limit {
	const char *algorithm; /* NULL: none */
	uint64_t asked;	       /* bit/s, by an administrator; 0: no limit */
	bool limited;	       /* its packets wait for their departures */
	double rate;	       /* bit/s now; the line's where there is no limit */
	double target;	       /* bit/s to which the algorithm raises it */
	double alpha;
	double window;	       /* packets in flight that the algorithm allows; < 0: any */
	uint64_t limited_ns;   /* for how long it has been limited */
	uint64_t limited_cnps; /* handled in that time */
	uint64_t cnps;	       /* handled since INIT -> RTR */
};

struct core_cmd {
	enum core_cmd_type type;
	struct qp *qp; /* *_CQ, *S: NULL */
	struct cq *cq; /* *_CQ */
	uint32_t n;    /* *S: some dozens at most, done in one step; SET_WINDOW */
	struct qp *const *qps;
	struct cq *const *cqs;
	uint16_t worker;	  /* GIVE_QP */
	uint64_t rate;		  /* SET_RATE: bit/s on the wire; 0: no limit */
	struct core_limit limit;  /* QUERY_RATE: out */
	uint32_t cqes;		  /* COUNT_CQ: out; RESIZE_CQ: the new depth */
	struct abi_cq_lane *lane; /* RESIZE_CQ: the new ring's */
	bool tracing;		  /* TRACING, INJECTING: any QP is */
	struct trace *trace;	  /* TRACE_QP */
	struct inject *inject;	  /* INJECT_QP */
	const struct abi_fault *fault;
	uint32_t progress;	 /* used by the core; 0 at first */
	uint32_t mask;		 /* ABI_QP_* */
	struct abi_qp_attr attr; /* MODIFY: in; QUERY: out */
	struct path_spec path; /* MODIFY with ABI_QP_AV: the resolved AV; the core adds the QPNs */
	struct gid_entry sgid; /* what path.sgid points to; READDRESS uses only its MAC */
	/* MODIFY: out, the reason for -EINVAL */
	struct modify_result result;
};

/**
 * Runs a control command.
 * @return 0; a negative errno, the QP being unchanged: -EINVAL for a transition, attribute or value
 * that the state machine does not allow; or -EAGAIN: more steps are needed, call again with the
 * same command (a step is bounded so that packets do not wait).
 */
int core_cmd(struct core *c, struct core_cmd *cmd, uint64_t now);

#endif
