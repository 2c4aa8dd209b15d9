/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core.h
 * The transport without I/O: packets and `now` in, descriptors out (decision 0000.3). There is one
 * core per worker, and only that worker's thread calls it. It never calls back, allocates, sleeps,
 * reads a clock or knows what a packet buffer is, so the same code runs under the poll loop, in
 * unit tests, in the simulator and under fuzzers.
 *
 * `now` is nanoseconds of any monotonic clock, the same clock for every call to one core and for
 * all cores that a QP moves between.
 *
 * The caller's loop:
 *
 *     parse a burst, by core_expected() or frame_parse(); core_rx(); hand over what the
 *     verdicts say
 *     core_doorbell() for each doorbell found
 *     core_tx(); core_seal_burst(); send
 *     core_expire() once the receive queue is drained
 *     core_events()
 *
 * between two quiescent states: the core keeps no pointer to an MR or to a frame beyond the call
 * that used it, and a struct txd is sealed before the next quiescent state.
 */
#ifndef CORE_H
#define CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bits.h"
#include "core_counters.h"
#include "list.h"
#include "path.h"
#include "pkt.h"
#include "wheel.h"

struct ah_table;
struct core_cmd;
struct drop_log;
struct expect;
struct icrc_ops;
struct flow_table;
struct mcast_table;
struct mr_table;
struct qp;
struct qp_flow;
struct qp_table;
struct srq_table;
struct txd;

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
	struct drop_log *drops; /* this core's, zeroes at first; NULL: drops are only counted */
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

/** CNPs that wait to be sent, the oldest first, but for those that took the place of a closed
 * port's; np.c. */
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
	bool telemetry;	       /* of port_table, as of the latest round */
	uint8_t careful;       /* CORE_TRACING, CORE_INJECTING: take steps one at a time */
	/** event.c: per slot, a QP of an unresponsive destination, or 0; the control thread takes
	 *  it away. `late_news`: there is one to report. */
	_Atomic uint32_t late[LATE_SLOTS];
	bool late_news;
	bool direct;	      /* core_direct() */
	bool names;	      /* core_names() */
	bool fast_paths;      /* core_fast_paths() */
	uint32_t direct_room; /* direct.c: bytes that the current core_tx() call may still copy */
	uint16_t ip_id;
	bool lags;	 /* core_resumed(): packets from before the pause must be received first */
	uint64_t paused; /* begin and end of the worker's latest pause, or 0 */
	uint64_t resumed;
	uint32_t grace_begun; /* core_grace_begin() */
	uint32_t grace_ended;
	struct core_counters count;
	struct core_share share[SESSION_MAX]; /* indexed by the low bits of the session's number */
	struct core_groups groups;
	struct core_np np;
	struct list urgent[EGRESS_COUNT]; /* QPs that owe an ACK or a NAK, per egress */
	const struct cc_hops
		*hops;		 /* telemetry.c: of the ACK that core_rx() is given; NULL: none */
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
 * The fast path from a frame to a packet, for frames from the peer of the QP that they name. It has
 * two steps, so that the QPs of a burst can be prefetched in between. core_rx() relies on the
 * comparisons made here, so it must be called before the next command.
 *
 * @return whether core_expect() may be called at all
 */
static inline bool core_expects(const struct core *c)
{
	return c->fast_paths && !c->careful;
}

/** Prefetches the QP that @p frame of @p len bytes may be for, unless @p last is of the same QP.
 *  @return the headers that it expects, for core_expected(); NULL: there is no such QP */
const struct expect *core_expect(
	const struct core *c, const uint8_t *frame, size_t len, const struct expect *last);

/** @return whether the @p frame for which core_expect() returned @p e is a packet as its QP expects
 * them. If so, @p p is filled in; its port and queue must have been. If not, frame_parse() has to
 * decide. */
bool core_expected(const struct core *c, struct pkt *p, const uint8_t *frame, size_t len,
	const struct expect *e);

/**
 * Receives @p n packets that core_expected() or frame_parse() accepted (the caller counts the
 * others with core_count_drop()). Their payload is in application memory when this returns.
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

/** In its place when none is left: the new round's copies may be delivered. */
static inline void core_groups_rest(struct core *c)
{
	c->groups.copies = GROUP_COPIES;
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
 *  owner. @return false: Fast CNPs do not cover such packets. Control thread. */
bool core_flow(struct qp_flow *f, struct qp *qp);

/** Counts a frame that frame_parse() or the shell itself dropped. */
void core_count_drop(struct core *c, enum drop why);

/** Sets whether messages between QPs of this core may go without frames (direct.h). They may not
 *  initially, nor while the frames are captured. */
static inline void core_direct(struct core *c, bool on)
{
	c->direct = on;
}

/** Sets whether packets between QPs of this daemon may name their payload instead of carrying it,
 * so that core_seal() sets txd.named and the receiver's shell has to call core_named(). They may
 * not initially, nor while frames are captured. */
static inline void core_names(struct core *c, bool on)
{
	c->names = on;
}

/** Finds the payload of @p pkt, which frame_parse() accepted and whose sender set txd.named, after
 *  source_qp was set. The memory is read in core_rx(), before the next quiescent state.
 * @param whole  a capture or trace needs the frame: payload and ICRC are copied in now; zeroes if
 *                the memory can no longer be read
 * @return whether the frame has its payload from now on, and names none
 */
bool core_named(struct core *c, struct pkt *pkt, bool whole);

/** Turns the fast paths on, as they are initially, or off: runs of plain requests, packets and
 *  acknowledgements are handled together, and the headers of a QP's peer are expected
 *  (core_expects()). The results are the same; tests compare them. */
static inline void core_fast_paths(struct core *c, bool on)
{
	c->fast_paths = on;
}

/** @return whether core_tx() has nothing to build, and no QP waits for an egress or its departure:
 * the call, and that of core_open_egress() before it, may be left out. */
static inline bool core_tx_idle(const struct core *c)
{
	return list_empty(&c->ready) && list_empty(&c->blocked) && !c->careful &&
	       !(c->np.owed | c->urgent_ways | c->paced);
}

/** @return whether a CNP, an ACK or a NAK may leave now: it is what the next core_tx() builds
 * first. */
static inline bool core_tx_urgent(const struct core *c)
{
	return (c->np.owed | (c->urgent_ways & c->open)) != 0;
}

/** @return whether the last core_tx() delivered something without frames. */
static inline bool core_tx_direct(const struct core *c)
{
	return c->direct_room != DIRECT_ROUND;
}

/** Sets which egresses can take a burst from now on, a bit for each. Initially all are open. */
void core_open_egress(struct core *c, uint32_t open);

/**
 * Builds up to @p n packets, for open egresses, of the QPs that have something to send: sessions
 * get equal shares, however many QPs each has, and the QPs of a session equal parts of its share.
 * @return how many of @p out were filled. Fewer than @p n: nothing more can be sent now, or so many
 * QPs had nothing to send that the rest waits for the next call; core_deadline() distinguishes
 * them. The packets returned count as sent: the caller transmits them before it calls again.
 */
unsigned core_tx(struct core *c, struct txd *out, unsigned n, uint64_t now);

/**
 * Completes a packet of core_tx(): copies the payload after the headers, pads it and appends the
 * ICRC, in one pass over application memory.
 * @return the length of the frame (without FCS). 0 when application memory faulted: drop the
 * packet, its QP is on its way to ERR. 0 also for a packet with TXD_LOST.
 */
uint16_t core_seal(struct core *c, struct txd *t);

/** core_seal() of the @p n packets @p t, whose results are stored in @p len. */
void core_seal_burst(struct core *c, struct txd *t, unsigned n, uint16_t len[]);

/* --- work --------------------------------------------------------------------------- */

/** The application rang @p qp's doorbell. @p qp must be this worker's: see qp_owner(). */
void core_doorbell(struct core *c, struct qp *qp, uint64_t now);

/** Runs up to TIMERS_ROUND due timers, and moves up to TIMERS_MOVED in the wheel. Call it when the
 *  receive queue has been drained: a timeout must not overtake an ACK that waits there
 *  (decision 0000.3, "Pauses").
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
	if (!c->lags) /* else it is one pause with the one before */
		c->paused = from;
	c->resumed = now;
	c->lately_until += now - from; /* CNPs waited meanwhile, too */
	c->lags = true;
}

/**
 * Grace periods. After a window is bound again, other cores of the daemon may still use its old
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

/**
 * Runs a control command.
 * @return 0; a negative errno, the QP being unchanged: -EINVAL for a transition, attribute or value
 * that the state machine does not allow; or -EAGAIN: more steps are needed, call again with the
 * same command (a step is bounded so that packets do not wait).
 */
int core_cmd(struct core *c, struct core_cmd *cmd, uint64_t now);

#endif
