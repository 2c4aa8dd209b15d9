/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file trace.h
 * Events of one QP in order, for people (`rocictl trace`, `chaos --trace`). Each traced QP has a
 * ring of its own, so its events stay in order when it moves to another worker.
 *
 * Most events are not noted where they happen. While any QP is traced the core takes its steps (a
 * packet, a turn to send, a timer, a command) one at a time, looks at the QP before and after, and
 * notes the differences. So untraced QPs pay for one test per burst, turn and completion (decision
 * 0061).
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bits.h"
#include "limits.h"

struct core;
struct inject_rule;
struct pkt;
struct qp;
struct txd;

/* If you add an event, add a row to lib/trace/trace_text.c. */
enum trace_type {
	TRACE_DOORBELL,
	TRACE_FETCH, /* a send WQE was taken: code ABI_WR_*, id wr_id, value bytes, psn .. other */
	TRACE_TAKE,  /* a receive WQE was taken: id wr_id, value bytes */
	TRACE_SEND,  /* a packet: code BTH opcode, psn, value bytes of payload, other MSN, flags */
	TRACE_RECEIVE,
	TRACE_GO_BACK,	/* to psn, from other */
	TRACE_RETRIES,	/* value left */
	TRACE_RNR,	/* value RNR retries left */
	TRACE_WINDOW,	/* value packets, before other */
	TRACE_ARMED,	/* a timer: flags TRACE_RNR_TIMER, id nanoseconds from now */
	TRACE_FIRED,	/* flags */
	TRACE_STOPPED,	/* flags */
	TRACE_STATE,	/* code, before other */
	TRACE_COMPLETE, /* code ABI_WC_* status, id wr_id, value bytes, other ABI_WC_* opcode */
	TRACE_ASYNC,	/* code ABI_EVENT_* */
	TRACE_MOVE,	/* to worker value */
	TRACE_LOST,	/* id events were lost, because the ring was full */
	TRACE_INJECT,	/* a fault: code ABI_FAULT_*, psn, value its number, flags TRACE_IN */
	/** The limit has changed: id kb/s << 32 | kb/s of the target, psn alpha in 1/65535 << 16 |
	 *  window (0xFFFF: any), value bytes sent since the last one, other CNPs so far. */
	TRACE_RATE,
	TRACE_RELEASED, /* a frame that a fault held back is sent: code ABI_FAULT_*, psn */
	TRACE_END,	/* the QP is destroyed */
	TRACE_TYPES
};

#define TRACE_ACKREQ	(1u << 0)
#define TRACE_AGAIN	(1u << 1) /* the request was sent, or received, before */
#define TRACE_AETH	(1u << 2) /* it has one: syndrome in id */
#define TRACE_RNR_TIMER (1u << 3) /* else the ACK timer */
#define TRACE_IN	(1u << 5) /* of a received packet, else of one that is sent */
#define TRACE_REFUSED	(1u << 4) /* the WQE is bad and fails when its turn comes */

/** In `id` of TRACE_RECEIVE: the verdict on the packet above, the syndrome below. */
#define TRACE_VERDICT_SHIFT 8

struct trace_event {
	uint64_t time; /* ns of the core's clock */
	uint64_t id;
	uint32_t psn;
	uint32_t value;
	uint32_t other;
	uint8_t type; /* enum trace_type */
	uint8_t worker;
	uint8_t code;
	uint8_t flags; /* TRACE_* */
};
_Static_assert(sizeof(struct trace_event) == 32, "trace_event");

/** The memory is the caller's, zeroed at first; it may be freed when `ended`, or after
 *  CORE_CMD_TRACE_QP has detached it from its QP. */
struct trace {
	/* written by the owner of the QP */
	_Atomic uint32_t head; /* total events published to the reader */
	uint32_t next;	       /* total events recorded */
	uint32_t lost;	       /* since the last event that found room */
	uint64_t step;	       /* when the last step began */
	uint32_t taken;	       /* receive WQEs that were taken and noted */
	uint32_t sent;	       /* bytes sent for the first time since the last TRACE_RATE */
	uint64_t cnps;	       /* of the last TRACE_RATE */
	double rate;	       /* likewise; 0: none yet */
	_Atomic bool ended;    /* the QP is gone: no more events */
	bool rates; /* the reader's, before it starts: note TRACE_RATE and the end alone */
	/* written by the reader */
	_Atomic uint32_t tail CACHE_ALIGNED;
	struct trace_event event[TRACE_EVENTS] CACHE_ALIGNED;
};

/** Takes up to @p n events. Single reader. */
unsigned trace_read(struct trace *t, struct trace_event out[], unsigned n);

/* --- inside the core ------------------------------------------------------------------ */

/** State that a step may change. */
struct trace_step {
	struct trace_event *packet; /* of a step that handles one; NULL: none, or no room */
	uint64_t due;
	uint32_t fetched;
	uint32_t psn, psn_new;
	uint32_t retry_left, rnr_left;
	uint32_t window;
	uint8_t state;
	bool rnr_wait;
};

/** Records the state of @p qp, which is traced, before a step. */
void trace_begin(struct trace_step *s, const struct qp *qp, uint64_t now);

/** Before the step that handles @p pkt. */
void trace_rx_begin(struct trace_step *s, const struct core *c, struct qp *qp,
	const struct pkt *pkt, uint64_t now);

/** After it. */
void trace_rx_end(
	struct trace_step *s, const struct core *c, struct qp *qp, uint16_t verdict, uint64_t now);

/** Before a turn of @p qp, traced or not, to send. */
void trace_tx_begin(struct trace_step *s, const struct qp *qp, uint64_t now);

/** After it: @p n packets were built. */
void trace_tx_end(struct trace_step *s, const struct core *c, struct qp *qp, const struct txd *out,
	unsigned n, uint64_t now);

/** Before the timer of @p qp is checked. */
void trace_timer_begin(struct trace_step *s, const struct core *c, struct qp *qp, uint64_t now);

/** After any other step. */
void trace_end(struct trace_step *s, const struct core *c, struct qp *qp, uint64_t now);

/* Events that a comparison of the QP's state does not show; the QP is traced. */
void trace_cqe(const struct core *c, const struct qp *qp, uint64_t wr_id, uint8_t status,
	uint8_t opcode, uint32_t byte_len, uint64_t now);
void trace_async(const struct core *c, const struct qp *qp, uint32_t type);
void trace_doorbell(const struct core *c, const struct qp *qp, uint64_t now);
void trace_inject(const struct core *c, const struct qp *qp, const struct pkt *pkt,
	const struct inject_rule *r, uint64_t now);
void trace_released(const struct core *c, const struct qp *qp, const struct txd *t, uint64_t now);
void trace_move(const struct core *c, const struct qp *qp, uint16_t worker, uint64_t now);

/** CORE_CMD_TRACE_QP: starts tracing @p qp into @p t, or stops with NULL.
 *  @return 0, or -EBUSY: the QP is already traced. */
int trace_qp(struct core *c, struct qp *qp, struct trace *t);

/** @p qp is about to be destroyed. */
void trace_gone(const struct core *c, struct qp *qp, uint64_t now);

#endif
