/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file qp.h
 * A queue pair. One worker at a time owns it. With thousands of them no cache holds the next one,
 * so members share cache lines by use (decision 0153), not by their writers, which are:
 *
 *     identity, queues      control thread, before the QP is published; `opc` says which service
 *                           it has: RC's own files, or uc.c
 *     owner, lanes          move.c: the owner names its successor (decision 0040)
 *     attr, path, state     qp_modify.c (commands), qp.c (error transitions)
 *     expect                qp_modify.c (commands)
 *     req                   requester.c, requester_run.c
 *     comp                  completer.c, completer_run.c, timers.c
 *     resp                  responder.c, responder_run.c, responder_tx.c, recv.c, direct.c
 *     win                   cc/window.c
 *     limited, limiter      pacing.c
 *     why                   cause.c, qp_modify.c
 *     windows, grace        mw_wqe.c
 *     epoch, named, recall  named.c; other workers read `epoch`
 *     trace, traced         trace.c (a command)
 *     inject                inject.c (a command)
 *     cnp_next              np.c
 *     notice, sent_to       rp.c
 *     local_sent            ud_tx.c
 *     local_arrived         ud.c
 *     events, troubled      event.c
 *
 * `cqes` of comp and resp goes with each CQE: complete.h, completer_run.c, responder_run.c,
 * direct_run.c. `sq.next` is the requester's, `rq.next` the responder's (recv.c, responder_run.c).
 */
#ifndef QP_H
#define QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "abi_wqe.h"
#include "bits.h"
#include "cause.h"
#include "limits.h"
#include "path.h"
#include "pkt.h"
#include "wheel.h"
#include "window.h"

struct abi_queue;
struct cq_lane;
struct inject;
struct limiter;
struct srq;
struct trace;

/** PSNs that one READ request may ask for. Half of the 2^23 window, so that two may be
 *  outstanding: a 2^31-byte READ at PMTU 256 goes out as two requests (BTH-16). */
#define READ_PSNS_MAX (1u << 22)
#define READ_PARTS    2u

/** Bits of send_wqe.flags besides ABI_WQE_*: what its opcode means. */
#define WQE_TAKES_RECV (1u << 5) /* consumes a receive WQE at the peer (CRD-05) */
#define WQE_RESPONSE   (1u << 6) /* completed by a response of its own */
#define WQE_FETCHES    (1u << 7) /* its response brings data */

/** Values of send_wqe.status besides enum abi_wc_status, for WQEs that send nothing (mw_wqe.c). */
enum wqe_local {
	WQE_LOCAL = 0xFD,	/* executed when the requester reaches it (REQ-11) */
	WQE_LOCAL_GRACE = 0xFE, /* executed; complete after grace period `qp.grace` */
	WQE_LOCAL_DONE = 0xFF,	/* completes in its turn */
};

/** A send WQE, copied out of the shared ring once and validated; stays in the QP's private ring
 *  until it completes, so the application's slot may change meanwhile. */
struct send_wqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t imm;	 /* network order; the key to invalidate; FETH; the region to bind to */
	uint32_t length; /* bytes of the message */
	uint32_t first_psn;
	uint32_t last_psn; /* READ: of its last response; local: one before first_psn */
	uint8_t opcode;	   /* enum abi_wr_opcode */
	uint8_t flags;	   /* ABI_WQE_* of ctl, WQE_* */
	uint8_t status;	   /* not 0: fails with this at its turn (REQ-18); wqe_local */
	uint8_t num_sge;   /* 0 with inline data */
	uint32_t ssn;	   /* send sequence number of the message (CRD-04) */
	uint8_t cause;	   /* for status: enum cause, ... */
	uint16_t culprit;  /* ... and the SGE at fault, or the number of SGEs posted */
	union {
		/* READ, per part: PSN of the latest request, at which responses may start (REQ-41)
		 */
		uint32_t read_psn[READ_PARTS];
		struct {
			uint64_t compare_add;
			uint64_t swap;
		} atomic;
		uint32_t flush_len;
		struct {
			uint32_t mw;
			uint32_t access;
			uint64_t length;
		} bind; /* to `imm` at remote_addr; the new key is `rkey` */
		struct {
			uint32_t dest_qpn;
			uint32_t qkey;
			uint16_t pkey;
		} ud; /* its path follows at the slot's end: ud_tx.c */
	};
	/* struct abi_sge sge[], or inline bytes, up to the ring's stride */
};
_Static_assert(sizeof(struct send_wqe) == 64, "send_wqe");

/** A receive WQE, copied once when a message takes it. */
struct recv_wqe {
	uint64_t wr_id;
	uint64_t length; /* sum of the SGEs, at most the maximum message length (C9-94) */
	uint32_t num_sge;
	uint32_t pd;  /* of the keys of its SGEs */
	bool invalid; /* claims more SGEs than the queue has */
	struct abi_sge sge[SGE_MAX];
};

/** A queue in shared memory as this side sees it; set before publication except `next`. */
struct ring {
	uint8_t *entries;
	struct abi_queue *shared;
	uint32_t depth; /* power of two; 0: no such queue */
	uint32_t stride;
	uint32_t next; /* entries taken so far */
	uint32_t max_sge;
};

/** A request with a response of its own that the responder accepted (RSP-36, RSP-37, FLU-03). A
 *  duplicate READ that is part of the original is executed again in the same slot (RSP-40); a
 *  duplicate of any other is answered with the saved result. */
struct resp_res {
	/* the original request */
	uint8_t kind; /* enum opcode_kind */
	uint32_t first_psn;
	uint32_t last_psn;
	uint32_t rkey;
	uint32_t length;
	uint32_t pd; /* of the key */
	uint64_t va;
	/* the current execution */
	uint32_t exec_psn; /* PSN of its first response */
	uint32_t next_psn; /* of the next response to send */
	uint32_t end_psn;  /* one past its last; == next_psn: nothing pending */
	uint32_t exec_len;
	uint64_t exec_va;
	uint32_t msn;	/* for the AETH of the responses */
	bool ack_first; /* an ACK for earlier requests is owed, and is sent first (RSP-27) */
	uint64_t orig;	/* ATOMIC: the word before the operation */
};

/** Requester: takes WQEs and turns them into request packets. Written by requester.c and
 *  requester_run.c. */
struct qp_req {
	uint32_t fetched;      /* WQEs copied out of the SQ */
	uint32_t cur;	       /* WQE that the next packet belongs to */
	uint32_t psn;	       /* of the next packet; goes back on retry */
	uint32_t psn_new;      /* of the next new packet */
	uint32_t psn_assign;   /* first PSN of the next WQE to be fetched */
	uint32_t sent;	       /* request packets sent, to compare with comp.acked */
	uint32_t since_ackreq; /* packets sent since the last with AckReq */
	uint32_t rd_started;   /* WQE_RESPONSE requests sent, to compare with comp.rd_done */
	uint32_t ssn;	       /* messages fetched (CRD-04) */
	/* where the byte at psn lies, so that a message is not walked from its start again */
	uint32_t sge;	  /* index into the SGEs of cur */
	uint32_t sge_off; /* offset in that SGE */
	uint32_t sge_psn; /* the PSN that sge and sge_off refer to */
	uint32_t sge_wqe; /* and the WQE */
	bool rings;	  /* nothing to fetch until the application rings */
};

/** Completer: processes ACKs, NAKs and READ responses. Written by completer.c,
 *  completer_run.c and timers.c. */
struct qp_comp {
	uint32_t head;	  /* oldest incomplete WQE */
	uint32_t una;	  /* oldest unacknowledged PSN; inside a READ, the expected response */
	uint32_t acked;	  /* request packets acknowledged */
	uint32_t rd_done; /* WQE_RESPONSE requests whose responses are complete */
	uint32_t cqes;	  /* completions of the send queue since RESET (abi_cqe.mark) */
	uint32_t retry_left;
	uint32_t rnr_left;
	uint32_t limit;	 /* last SSN that the peer's credits allow (CRD-04) */
	bool limited;	 /* credits apply: the peer's last ACK had a valid code */
	bool retrying;	 /* went back to una, and nothing has been acknowledged since */
	bool rnr_wait;	 /* an RNR timer runs; the ACK timer does not (REQ-31) */
	uint8_t refused; /* syndrome of a fatal NAK that follows a READ without responses, or 0 */
	uint32_t refused_psn;
	uint8_t failed;	    /* status that the WQE at head is still to complete with, or 0 ... */
	uint8_t failed_why; /* ... and its vendor_err */
	uint64_t due;	    /* when the ACK or RNR timer fires; 0: none runs */
};

/** Packets that the responder owes besides READ responses. */
enum resp_owed {
	OWE_NOTHING,
	OWE_ACK,
	OWE_NAK, /* syndrome in resp.syndrome */
};

/** Responder. Written by responder.c, responder_run.c, responder_tx.c and recv.c. */
struct qp_resp {
	/* shares a cache line with `urgent`: used by each request */
	uint32_t epsn; /* expected PSN */
	uint32_t msn;
	uint32_t ack_psn;  /* newest SEND or WRITE packet that was accepted */
	uint32_t res_head; /* newest + 1; the responder remembers the last max_dest_rd_atomic ... */
	uint32_t res_next; /* oldest with responses pending; a duplicate moves it back */
	uint8_t open; /* enum opcode_kind of the message whose LAST is awaited; KIND_NONE: none */
	uint8_t owed; /* enum resp_owed */
	uint8_t syndrome;
	bool nak_sent;	     /* RSP-03: a PSN sequence NAK was sent */
	bool rnr_sent;	     /* RSP-18: an RNR NAK was sent */
	bool have_wqe;	     /* the open message holds wqe */
	bool drain;	     /* QP is in ERR, but what is owed is still sent (RSP-22) */
	bool last_wqe;	     /* SRQ: LAST_WQE_REACHED was raised (SRQ-07) */
	uint32_t rkey;	     /* of the open WRITE */
	uint32_t write_left; /* bytes of the open WRITE to come */
	uint32_t write_len;  /* its DMALen */
	uint64_t va;	     /* of its next byte */
	/* the next line: used by SENDs and READs */
	uint32_t cqes;	   /* completions of the receive queue since RESET (abi_cqe.mark) */
	uint32_t recv_off; /* bytes of the open SEND placed so far */
	uint32_t nak_psn;
	uint32_t early;	      /* highest PSN dropped since nak_sent because it came too early */
	uint32_t res_kept;    /* ... that is this many, RD_ATOMIC_MAX at most */
	uint32_t res_done;    /* oldest whose first execution is not over; never moves back */
	struct resp_res *res; /* ring of RD_ATOMIC_MAX slots */
	struct recv_wqe wqe;
};

struct qp {
	/* each packet: identity (control thread), state (qp_modify.c, qp.c) and attributes, of
	 * which those after the first 40 bytes are on the next line. Other workers read this line
	 * for packets to this QP and from it, so nothing here changes from packet to packet. */
	uint32_t qpn;
	uint32_t pd;
	_Atomic uint32_t epoch; /* named.c: names from before it changed are void */
	_Atomic uint16_t owner; /* number of the worker that handles it */
	uint16_t pkey;
	uint8_t opc;	   /* enum opcode_class of its packets: the service, by its type */
	bool reliable;	   /* requests are acknowledged: RC and XRC */
	uint8_t type;	   /* enum abi_qp_type */
	uint8_t state;	   /* enum abi_qp_state */
	uint8_t mtu_shift; /* log2 of the path MTU */
	bool comm_est;	   /* RSP-46: raised */
	bool traced;	   /* trace.c: `trace` is not NULL */
	bool limited;	   /* pacing.h: the limiter applies */
	struct abi_qp_attr attr;
	/* seldom */
	uint32_t handle;     /* in its session: control thread */
	uint32_t window_max; /* packets in flight, upper limit */
	uint32_t max_inline;
	struct trace *trace; /* trace.c; NULL: not traced */
	uint8_t gsi_port;    /* QP1: number of its port, from 1; else 0 */
	bool named;	     /* named.c: other workers may read memory by names of this epoch */
	/* each packet that it sends; the second line only over IPv6 and RoCEv1 */
	struct path path CACHE_ALIGNED;
	/* requests and their responses */
	struct qp_req req CACHE_ALIGNED;
	uint8_t *sq_private; /* sq.depth slots of struct send_wqe and its SGEs or inline data */
	struct qp_comp comp CACHE_ALIGNED;
	uint64_t ack_timeout; /* ns, 0: infinite (REQ-22) */
	struct ring sq CACHE_ALIGNED;
	struct cq_lane *send_lane;
	struct window win;
	uint16_t sq_slot_size; /* stride of sq_private */
	bool sq_sig_all;
	/* each packet that it sends or receives, and its turns */
	struct list ready CACHE_ALIGNED; /* on the core_share of its session */
	struct wheel_timer timer;	 /* ACK or RNR */
	uint32_t session;		 /* number of the session that owns it */
	uint32_t tx_call; /* schedule.c: the core_tx() call that last built a packet of this QP */
	/* classify.c, read by the control thread: the receive queue that the peer's last packet
	 * came in by, PKT_NO_QUEUE for none, and the number of packets in a row that did */
	uint32_t queue_run;
	uint8_t queue;
	uint8_t egress; /* schedule.c: the list of its share that `ready` is on */
	/* each packet that it receives */
	/** The headers of its peer's packets: what `path`, `pkey`, `qpn` and `opc` say. Those that
	 *  differ may be good ones, but have to be read one by one. */
	struct expect expect CACHE_ALIGNED;
	/* SENDs received, and the limiter */
	struct ring rq;
	struct cq_lane *recv_lane;
	struct limiter *limiter; /* pacing.c: never NULL */
	/* requests received. schedule.c: on core.urgent, because an ACK or NAK is owed */
	struct list urgent CACHE_ALIGNED;
	struct qp_resp resp;
	struct qp_why why CACHE_ALIGNED;
	/** mw_wqe.c: type 2 windows that it bound and did not invalidate; the control thread has
	 *  destroyed some of them. */
	uint32_t windows;
	/** mw_wqe.c: the grace period that the WQE in WQE_LOCAL_GRACE waits for; 0: not requested
	 *  yet. There is at most one, since the cursor does not pass it. */
	uint32_t grace;
	struct srq *srq; /* control thread, before publication; NULL: none */
	struct {
		uint32_t xrcd; /* XRC_RECV, control thread: number of its domain */
		/* recv.c: the SRQ that the current request names, and that of resp.wqe. Kept as
		 * numbers, because it may be destroyed before the message is complete. */
		uint32_t named;
		uint32_t held;
		/* the QP has no PD of its own: `pd` is that of the SRQ that the current request
		 * names, 0 if it names none (decision 0108) */
		bool follows;
	} xrc;
	struct inject *inject; /* NULL: no faults */
	uint64_t cnp_next;     /* np.c: marked packets before that time are not answered */
	struct {
		uint64_t until; /* before that time, the other kind reports the same event */
		uint8_t kind;	/* enum cc_notice of the last one */
	} notice;
	/** rp.c: addresses that a datagram QP has sent to lately, a bit for the hash of each. */
	struct {
		uint64_t now;	 /* since round `round` of the core began */
		uint64_t before; /* in the round before */
		uint32_t round;
	} sent_to;
	/* UD, by PSN with bit 31 set: the last frame to a group or to a QP of its core, which it
	 * must not overtake (ud_tx.c), and the last one to arrive at a QP of its core (ud.c) */
	uint32_t local_sent;
	uint32_t local_arrived;
	uint32_t recall; /* named.c: the grace period that ends the epoch; 0: none began */
	/* event.c: async events that have not been taken, a bit for each ABI_EVENT_* */
	uint32_t events;
	struct list troubled; /* on the core's list while there are any */
} CACHE_ALIGNED;

_Static_assert(offsetof(struct qp, attr.ah) == CACHE_LINE, "the line of all workers is full");

/** Members that are used together share a cache line. */
#define QP_LINE(from, to)                                                                          \
	_Static_assert(                                                                            \
		offsetof(struct qp, from) / CACHE_LINE ==                                          \
			(offsetof(struct qp, to) + sizeof(((struct qp *)0)->to) - 1) / CACHE_LINE, \
		#to " is on the line of " #from)
QP_LINE(req, sq_private);
QP_LINE(comp, ack_timeout);
QP_LINE(sq, sq_sig_all);
QP_LINE(ready, egress);
QP_LINE(rq, limiter);
QP_LINE(urgent, resp.va);
QP_LINE(resp.cqes, resp.wqe.length);

/* --- set-up by the control thread ----------------------------------------------------- */

/** Parameters of a new QP; the control thread fills it in from CREATE_QP. */
struct qp_config {
	uint32_t qpn;
	uint32_t pd; /* 0: XRC_RECV without one */
	uint32_t handle;
	uint8_t type;
	bool sq_sig_all;
	uint32_t session;
	struct cq_lane *send_lane;
	struct cq_lane *recv_lane;
	struct ring sq; /* next is ignored */
	struct ring rq; /* depth 0 with an SRQ */
	struct srq *srq;
	uint32_t xrcd;
	uint32_t max_inline;
	uint32_t window;  /* packets in flight; 0: WINDOW_DEFAULT */
	uint8_t gsi_port; /* QP1: whose, from 1 */
};

/** @return bytes of memory, aligned to CACHE_LINE, that qp_init() needs for @p cfg. */
size_t qp_size(const struct qp_config *cfg);

/** Makes a QP in state RESET in @p mem, which is qp_size() bytes of any contents: the queue of a
 *  large QP takes megabytes, which are not touched before they are used.
 *  @return NULL when the depth of its send queue is not a power of two. 0 is not allowed, because
 *  the core looks at that ring unconditionally. */
struct qp *qp_init(void *mem, const struct qp_config *cfg);

/** @return the worker that handles @p qp. A worker that reads its own number may proceed: only the
 *  owner can give a QP away. Any worker; the control thread. */
static inline uint32_t qp_owner(const struct qp *qp)
{
	return atomic_load_explicit(&qp->owner, memory_order_acquire);
}

/** @return whether the peer of @p qp has acknowledged something since RTS, by a response or without
 *  frames: una has moved, the only trace that direct.c leaves. Any thread. */
static inline bool qp_heard(const struct qp *qp)
{
	return __atomic_load_n(&qp->comp.una, __ATOMIC_RELAXED) != qp->why.sq_psn ||
	       __atomic_load_n(&qp->comp.acked, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&qp->comp.rd_done, __ATOMIC_RELAXED);
}

#endif
