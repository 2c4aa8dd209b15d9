/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file end.h
 * One end of the connection: its session, queue pairs and memory. A process has one, or both with
 * --both. Functions end the program with a sentence if they fail.
 *
 * Messages of a QP are numbered from 0 for each size. They use slots in turn: slots of the QP's
 * part of `tx` for sent messages, of its part of `rx` for received ones. A WRITE or READ uses the
 * same slot on both sides.
 */
#ifndef END_H
#define END_H

#include <roci.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "options.h"
#include "plan.h"
#include "shape.h"

/** Longest list of a post call: param_info[PARAM_POST_LIST].max. */
#define LIST_MAX 256
/** Maximum requests per message. */
#define END_REQUESTS_MAX 2u
/** The Q_Key of all datagrams; perftest's. */
#define END_QKEY 0x11111111u
/** Completions polled at a time. */
#define POLL_MAX 32

/** The position of a sequence of messages in a QP's slots. */
struct cursor {
	uint64_t seq; /* of the next message */
	uint32_t slot;
	uint32_t round; /* how often the slots were used */
};

/** A QP and its messages. */
struct flow {
	struct roci_qp *qp;	/* sends; RC, UC and UD also receive on it */
	struct roci_qp *target; /* XRC: the destination of the peer's `qp` */
	uint64_t area;		/* offset of its slots in both memories */
	struct cursor sent;	/* next to post */
	struct cursor done;	/* next to complete: followed with --verify only */
	struct cursor posted;	/* next receive to post */
	struct cursor taken;	/* next to arrive */
	uint32_t under_way;	/* requests posted and not complete */
	uint32_t unsignaled;	/* of these the last ones, which no completion will report */
	uint32_t recvs;		/* receives posted */
	uint32_t psn;		/* our first PSN; the following belong to the other end */
	uint32_t peer_qpn;	/* the destination of `qp` */
	uint32_t peer_source;	/* XRC: the QP that sends to `target` */
	uint32_t peer_psn;	/* the peer's first PSN, for either of its QPs */
};

struct end {
	const struct plan *plan;
	const struct op *op;
	struct place place;
	bool initiates; /* the client, or both ends of a bidirectional run */
	bool targets; /* messages arrive here: the server, or both in a bidirectional run or lat */
	int fd;	      /* to the other end */

	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_channel *channel; /* with --events */
	struct roci_cq *cq;
	struct roci_xrcd *xrcd; /* of XRC */
	struct roci_srq *srq;	/* with --srq, and of XRC */
	struct roci_mr *mr;
	struct roci_mw *mw; /* with --mw */
	struct roci_ah *ah; /* of UD: to the peer */
	struct roci_gid_entry gid;
	struct flow *flow; /* an array */
	uint32_t flows;
	uint32_t peer_flows;  /* PARAM_QPS, but with --mcast the client has one */
	union roci_gid group; /* with --mcast */
	uint8_t *tx;
	uint8_t *rx;
	size_t memory; /* bytes of tx, and of rx */

	enum roci_mtu mtu;
	uint8_t rd_atomic;
	uint32_t rkey; /* the peer's key: the MR's, or the window's */
	uint32_t peer_rkey;
	uint32_t peer_srqn;
	union roci_gid peer_gid;
	uint64_t peer_tx; /* addresses there */
	uint64_t peer_rx;
	struct shape shape;
};

/** Checks that rocid and its port exist. */
void end_probe(const struct place *place);

/** @return a port of the same rocid for a second end: 2 if it has an address, otherwise @p e's
 * own. */
unsigned end_other_port(const struct end *e);

/** Opens the session and creates all objects. */
void end_open(
	struct end *e, const struct plan *plan, const struct place *place, int fd, bool client);

/** Chooses the GID, one that matches @p peer unless that is NULL or the user chose. */
void end_choose_gid(struct end *e, const union roci_gid *peer);

/** Sends this end's address to the other end; receives that of the other. */
void end_tell(const struct end *e);
void end_hear(struct end *e);

/** Connects all QPs to the address that end_hear() received. */
void end_connect(struct end *e);

/** Prepares messages of @p size: nothing is in flight. Posts the receives, opens the window. */
void end_shape(struct end *e, uint32_t size);

/** Tells the other end that this one is ready for messages of that size; receives the same. */
void end_tell_ready(const struct end *e);
void end_hear_ready(struct end *e);

void end_close(struct end *e);

/** Ends the program: the request that @p wc completes has failed. */
_Noreturn void end_failed(const struct end *e, const struct roci_wc *wc);

/** Ends the program with a sentence unless @p ok; the library says why. */
void end_must(bool ok, const char *what);

/** Advances to the next message. */
static inline void cursor_next(struct cursor *c, uint32_t slots)
{
	c->seq++;
	if (++c->slot == slots) {
		c->slot = 0;
		c->round++;
	}
}

/** @return the offset of @p c's slot in tx, of the data in its slot in rx. */
static inline uint64_t cursor_tx(const struct end *e, const struct flow *f, const struct cursor *c)
{
	return f->area + (uint64_t)c->slot * e->shape.tx_stride;
}

static inline uint64_t cursor_rx(const struct end *e, const struct flow *f, const struct cursor *c)
{
	return f->area + (uint64_t)c->slot * e->shape.rx_stride + e->shape.rx_header;
}

#endif
