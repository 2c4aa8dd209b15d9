/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file chaos_flow.h
 * The other traffic on the hosts of a chaos run: one-way flows of messages over each service, whose
 * receives are mostly shared. RC, UC and UD QPs take receives from one SRQ, XRC targets from the
 * SRQ that each message names; datagrams go to one QP or to a group.
 *
 * The model: each message carries its number, which identifies it. Over RC and XRC, each message
 * arrives once and in order, and a successful completion means that it has arrived. Over UC, each
 * arrives at most once, whole, and in order unless a link has reordered packets. Over UD, each
 * arrives at most once, unless a link has duplicated it, from the address that it was sent from. A
 * receive completes once or stays in its queue: after each step, the WQEs that left an SRQ are
 * those that have completed and those that QPs hold.
 *
 *     chaos_flow.c       flows: created, broken, checked, created again
 *     chaos_flow_acts.c  events in mid-flight
 *     chaos_send.c       the messages, and the completions of their send requests
 *     chaos_recv.c       arriving messages
 *     chaos_pool.c       receives: SRQs, their limits, sizes and errors
 *     chaos_ud.c         address handles, groups, the 40 bytes before a datagram
 */
#ifndef CHAOS_FLOW_H
#define CHAOS_FLOW_H

#include "abi_ctl.h"
#include "ah.h"
#include "mcast.h"
#include "pair.h"
#include "random.h"

struct chaos_world;

#define FLOWS	      6u
#define POOLS	      8u
#define POOL_BUFS     64u
#define FLOW_MESSAGES 250u /* per flow and run */
#define FLOW_SLOTS    16u  /* places for outstanding messages */
#define FLOW_LEN_MAX  8192u
#define FLOW_AHS      64u /* maximum number that a flow creates */
#define FLOW_FILL     0x5A
#define UD_AREA	      40u

enum flow_service {
	FLOW_RC,
	FLOW_UC,
	FLOW_UD,
	FLOW_XRC,
	FLOW_SERVICES
};
extern const char *const flow_service_name[FLOW_SERVICES];

/** The mistake in a message, or in a receive. */
enum flow_mistake {
	FLOW_GOOD,
	FLOW_LKEY,  /* a key that does not exist */
	FLOW_RKEY,  /* likewise */
	FLOW_SRQN,  /* XRC: an SRQ outside the target's domain */
	FLOW_QKEY,  /* UD: not that of the receiver */
	FLOW_QPN,   /* UD: of no QP */
	FLOW_AH,    /* UD: a handle that does not exist, or is in another domain */
	FLOW_LONG,  /* UD: more than a packet */
	FLOW_SHORT, /* a receive that is too small for some messages */
	FLOW_SGES,  /* a receive with more SGEs than its queue has */
	FLOW_MISTAKES
};
extern const char *const flow_mistake_name[FLOW_MISTAKES];

/** Events that affect flows and pools in mid-flight. */
enum flow_act {
	FLOW_RECEIVER_ERR,
	FLOW_RECEIVER_RESET,
	FLOW_RECEIVER_DESTROY,
	FLOW_SENDER_ERR,
	FLOW_STARVE,  /* no receives for a while */
	FLOW_LIMIT,   /* a limit is armed */
	FLOW_RESIZE,  /* an SRQ is resized */
	FLOW_BREAK,   /* invalid values are written into an SRQ */
	FLOW_SRQ_NEW, /* XRC: an SRQ is destroyed, and another one created */
	FLOW_AH_NEW,  /* likewise, the address handles of waiting datagrams */
	FLOW_ATTACH,  /* attaches to the group, or detaches */
	FLOW_ACTS
};
extern const char *const flow_act_name[FLOW_ACTS];

/* --- receives --------------------------------------------------------------------------- */

struct pool_buf {
	uint32_t serial; /* of its receive */
	uint32_t len;	 /* that the receive has room for */
	uint8_t mistake; /* enum flow_mistake */
	bool posted;
};

/** The receives in one queue: an SRQ, or the receive queue of one QP. */
struct pool {
	struct app *app;
	struct app_srq *srq; /* NULL: qp's own */
	struct app_qp *qp;
	struct app_cq *cq; /* XRC: where they complete */
	struct app_mr *mr;
	uint32_t xrcd;	  /* 0: none */
	uint32_t buf_len; /* of a receive */
	uint32_t depth;
	uint32_t max_sge;
	uint32_t epoch;	 /* changes with each new SRQ */
	uint32_t posted; /* of this epoch */
	uint32_t done;	 /* have completed */
	uint32_t lost;	 /* were held by a QP that was reset */
	struct pool_buf buf[POOL_BUFS];
	uint64_t starve_until;
	/* as it was before the step */
	uint32_t head;
	uint32_t limit;
	uint64_t starved;
	unsigned limit_events;
	unsigned errors; /* SRQ_ERR */
	bool broken;	 /* invalid values were written */
	bool ever_broken;
};

/* --- flows ------------------------------------------------------------------------------ */

struct flow_message {
	uint8_t op;	 /* enum abi_wr_opcode */
	uint8_t mistake; /* enum flow_mistake */
	uint8_t pool;	 /* it takes a receive from this pool */
	uint8_t ah;	 /* UD: the handle that it was posted with */
	bool unsignaled;
	bool solicited;
	bool group; /* UD */
	bool failed;
	bool unsent; /* it failed before all of it was on the wire */
	uint32_t len;
	uint32_t epoch; /* of the pool when it was posted */
	uint64_t add;	/* FETCH_ADD */
};

/** How a datagram's address handle marks it. */
struct ud_mark {
	uint32_t label;
	uint8_t hop, tclass, pcp;
	bool tag;
};

struct flow {
	enum flow_service service;
	unsigned index;
	uint64_t key;
	uint32_t max_len;
	uint32_t share; /* percent */
	bool lossy;	/* seven retries may not be enough */
	/* A sends, B receives */
	struct app *app[ENDS];
	struct app_qp *qp[ENDS];
	struct app_qp_spec spec[ENDS];
	struct abi_qp_attr attr[ENDS];
	struct app_mr *mr[ENDS];
	bool gone[ENDS]; /* this end was ended, and not by its peer */
	unsigned events[ENDS][32];
	struct invariants_flow invariants;
	enum {
		FLOW_UP,
		FLOW_BREAKING, /* one side is gone */
		FLOW_DRAINING,
		FLOW_DOWN,
		FLOW_OVER
	} phase;
	uint64_t until;
	struct pool *pool; /* B's; NULL for XRC, which uses all pools of its domain */
	uint32_t base;	   /* first message of this connection */
	uint32_t posted;
	uint32_t done;
	uint32_t expect[POOLS];	     /* in order: the next that may come */
	uint64_t next_serial[POOLS]; /* lowest serial of the next receive, under its epoch */
	uint8_t failed;		     /* status */
	uint8_t recv_failed;	     /* of a receive, likewise */
	uint64_t word;		     /* its value after the FETCH_ADDs */
	struct flow_message msg[FLOW_MESSAGES];
	/* UD */
	struct ah *ah;
	struct ah *group_ah;
	struct ud_mark mark[FLOW_AHS];
	unsigned ahs;
	uint8_t got[FLOWS][FLOW_MESSAGES]; /* how often, by each receiver */
	uint32_t refused;		   /* by B: longer than its receives */
	bool member;			   /* B has attached to the group */
};

struct flows {
	struct random random; /* a generator of its own: the choices of others do not change */
	unsigned n;
	struct flow flow[FLOWS];
	unsigned pools;
	struct pool pool[POOLS];
	struct app_cq *send_cq[2], *recv_cq[2]; /* of each host */
	bool mistakes;
	bool sure;		      /* no packet can be lost, and no end has gone */
	bool quiet;		      /* no packet is in flight */
	struct mcast_group *group[2]; /* of each host; NULL: no QP is attached there */
	struct ah *foreign[2];	      /* handles of another domain */
	uint8_t mgid[16];
};

/** Of all runs. */
extern struct flow_totals {
	uint64_t sent[FLOW_SERVICES];
	uint64_t failed[FLOW_SERVICES];
	uint64_t received[FLOW_SERVICES];
	uint64_t recv_failed[FLOW_SERVICES];
	uint64_t status[32];
	uint64_t recv_status[32];
	uint64_t mistake[FLOW_MISTAKES];
	uint64_t act[FLOW_ACTS];
	uint64_t event[32];
	uint64_t grouped; /* received through the group */
	uint64_t recovered;
	uint64_t again;
	uint64_t sure; /* runs that could account for every datagram */
} flow_totals;

static inline uint32_t flows_below(struct flows *f, uint32_t n)
{
	return (uint32_t)random_below(&f->random, n);
}

/* --- chaos_flow.c ----------------------------------------------------------------------- */

void flows_init(struct chaos_world *w, struct flows *f, uint64_t seed);
void flows_fini(struct flows *f);
void flows_turn(struct chaos_world *w, struct flows *f);
/** Takes and checks the completions of a step; flows_event() has already got its events. */
void flows_take(struct chaos_world *w, struct flows *f);
/** @return whether @p ev was for a flow or a pool of @p app, and has been handled. */
bool flows_event(struct flows *f, const struct app *app, const struct core_event *ev);
/** @return whether all is over. */
bool flows_over(const struct flows *f);
/** @return whether a flow on the host of @p app has both ends there. */
bool flows_loop(const struct flows *f, const struct app *app);
/** End @p e of @p fl stops answering. */
void flow_gone(struct chaos_world *w, struct flow *fl, int e);
struct flow *flow_of(struct flows *f, const struct app *app, int e, uint32_t qpn);
bool flow_reliable(const struct flow *fl);
/** Resets or destroys B's QP. */
void flow_end_receiver(struct chaos_world *w, struct flows *f, struct flow *fl, bool destroy);

/* --- chaos_flow_acts.c ------------------------------------------------------------------ */

void flows_act(struct chaos_world *w, struct flows *f);

/* --- chaos_send.c ----------------------------------------------------------------------- */

void flow_memory(struct flows *f, struct flow *fl);
void flow_post(struct flows *f, struct flow *fl);
void flow_sent(struct flow *fl, const struct abi_cqe *cqe);
/** The send queue is empty: requests without a completion have succeeded. */
void flow_settle(struct flow *fl);
/** The connection is over: checks FETCH_ADD's word, to which the first of the failed ones may also
 *  have been added. */
void flow_recall_word(struct flow *fl);
void flow_fill(const struct flow *fl, uint32_t n, uint8_t *to);
bool flow_takes_recv(const struct flow_message *m);
/** Where message @p n is written to. */
const uint8_t *flow_target(const struct flow *fl, uint32_t n);

/* --- chaos_recv.c ----------------------------------------------------------------------- */

void flow_received(
	struct chaos_world *w, struct flows *f, const struct app *app, const struct abi_cqe *cqe);

/* --- chaos_pool.c ----------------------------------------------------------------------- */

struct pool *pool_new(struct flows *f, struct app *app, uint32_t buf_len);
/** Gives the pool a new SRQ. */
void pool_make_srq(struct flows *f, struct pool *p);
/** Gives the pool the receive queue of @p qp, which is empty. */
void pool_take_qp(struct pool *p, struct app_qp *qp);
void pool_post(struct chaos_world *w, struct flows *f, struct pool *p);
/** @return the pool of receive @p wr_id. @param buf  receives its buffer */
struct pool *pool_of(struct flows *f, uint64_t wr_id, struct pool_buf **buf);
const uint8_t *pool_mem(const struct pool *p, const struct pool_buf *buf);
/** @p buf has completed. */
void pool_done(struct pool *p, struct pool_buf *buf);
/** @p qp will be reset or destroyed: the receives that it holds will not complete. */
void pool_forget(struct flows *f, const struct app_qp *qp);
void pool_before(struct pool *p);
/** SRQ-02, SRQ-04, SRQ-08: checks the invariants after each step. */
void pool_check(const struct flows *f, struct pool *p);
void pool_arm(struct flows *f, struct pool *p);
void pool_resize(struct flows *f, struct pool *p);
void pool_break(struct flows *f, struct pool *p);
/** XRC: destroys the SRQ and makes another. */
void pool_renew(struct flows *f, struct pool *p);

/* --- chaos_ud.c ------------------------------------------------------------------------- */

void ud_init(struct chaos_world *w, struct flows *f);
void ud_fini(struct flows *f);
/** Creates new address handles and destroys the old ones. */
void ud_handles(struct chaos_world *w, struct flows *f, struct flow *fl);
void ud_attach(struct chaos_world *w, struct flows *f, struct flow *fl, bool attach);
void ud_describe(const struct flow *fl, const struct flow_message *m, struct app_send *s);
/** @return how many datagrams of @p fl did not arrive where they should. */
uint32_t ud_missing(const struct flows *f, const struct flow *fl);
/** @return the sender of a datagram, by its CQE and the 40 bytes before it. */
struct flow *ud_sender(
	struct chaos_world *w, struct flows *f, const struct abi_cqe *cqe, const uint8_t *area);
void ud_check(const struct chaos_world *w, const struct flow *from, const struct flow *to,
	const struct flow_message *m, const struct abi_cqe *cqe, const uint8_t *area);

#endif
