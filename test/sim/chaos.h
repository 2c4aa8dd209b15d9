/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file chaos.h
 * Random runs: two hosts, several connections between and inside them, bad links, and applications
 * that make mistakes, starve receives, and change, reset, destroy and deregister objects in use.
 * The seed decides everything.
 *
 *     chaos.c          the program, and one run
 *     chaos_world.c    hosts, links, completion queues, and taking their events and CQEs
 *     chaos_conn.c     a connection: created, broken, drained, checked, created again
 *     chaos_work.c     the work requests
 *     chaos_uc.c       UC connections in addition
 *     chaos_flow.h     datagrams, shared receives and XRC in addition
 *     chaos_actions.c  events in mid-flight
 *     chaos_path.c     addresses and marks of packets, and changes of them
 *     chaos_report.c   counts, and which of them must not be zero
 */
#ifndef CHAOS_H
#define CHAOS_H

#include "abi_ctl.h"
#include "chaos_flow.h"
#include "fabric.h"
#include "invariants.h"
#include "traffic.h"

#define CHAOS_HOSTS    2u
#define CHAOS_CONNS    4u
#define CHAOS_CQS      4u /* per host */
#define CHAOS_CQ_DEPTH 2048u
#define CHAOS_TIME     (600 * SEC) /* maximum virtual time of a run */
#define CHAOS_MESSAGES 200u	   /* minimum per run */
#define CHAOS_PACKETS  2000u

/** Events in mid-flight. */
enum chaos_action {
	ACT_SQD, /* drained, changed, and back */
	ACT_ERR,
	ACT_RESET,
	ACT_DESTROY,
	ACT_DEREG_LOCAL,
	ACT_DEREG_TARGET,
	ACT_DEREG_RECV,
	ACT_ACCESS,  /* remote access is taken from a QP */
	ACT_MIN_RNR, /* another min_rnr_timer, RTS -> RTS */
	ACT_PAUSE,   /* a link pauses */
	ACT_STALL,   /* a host pauses */
	ACT_IMPAIR,  /* a link gets other impairments */
	ACT_STARVE,  /* no receives are posted for a while */
	ACT_REFUSED, /* a modify that must be refused without changing anything */
	ACT_QUERY,
	ACT_REPATH, /* another source port, flow label, priority ... while packets fly */
	ACT_PKEY,   /* a host becomes a limited member of its partition, or a full one again */
	ACT_NOTICE, /* a Fast CNP and a CNP arrive */
	/* of a connection that is made */
	ACT_RTR_HOLD, /* a side stays in RTR until requests arrive */
	ACT_TOO_MANY_READS,
	ACT_SMALL_CQ, /* a side's CQ overflows */
	ACT_LOOPBACK,
	ACT_SAME_QP, /* after RESET, with new PSNs */
	ACT_NEW_QP,
	CHAOS_ACTIONS
};

enum chaos_phase {
	CONN_UP,
	CONN_BREAKING, /* one side is gone, the other is left to find out */
	CONN_DRAINING, /* both are in ERR: everything is flushed */
	CONN_DOWN,     /* stale packets may arrive */
	CONN_OVER,     /* the run ends */
};

enum chaos_sqd {
	SQD_NOT,
	SQD_DRAINING,
	SQD_DRAINED,
};

struct chaos_end {
	struct app *app;
	struct app_qp *qp; /* NULL: destroyed */
	struct app_qp_spec spec;
	struct abi_qp_attr attr;
	struct app_cq *small; /* an own CQ that nobody polls before it overflows */
	bool overflown;	      /* its CQ_ERR came */
	uint64_t rts_at;      /* it waits in RTR until then */
	uint64_t starve_until;
	enum chaos_sqd sqd;
	bool sqd_notify;  /* SQ_DRAINED was asked for */
	uint32_t sqd_psn; /* first that must not be sent before RTS */
	uint64_t sqd_until;
	uint32_t una; /* stall watch */
	uint64_t moved_at;
	unsigned events[16]; /* of this QP, by ABI_EVENT_* */
	bool may_access_err; /* the peer asks for what it may not have */
	bool may_req_err;
};

struct chaos_conn {
	struct traffic traffic;
	struct chaos_end end[ENDS];
	struct invariants_flow flow[ENDS];
	enum chaos_phase phase;
	uint64_t until; /* of the phase */
	uint32_t max_len;
	uint32_t post_share; /* percent */
	uint32_t mistakes;   /* per million messages */
	bool calm;	     /* nothing may break it but what is done to it */
	unsigned made;
};

/** An end of a UC connection. */
struct uc_end {
	struct app *app;
	struct app_qp *qp;
	struct app_cq *cq;
	struct app_mr *mr;
	uint32_t posted; /* messages, by number */
	uint32_t done;
	uint32_t recv_posted;
	uint32_t received;
	uint32_t last;		     /* message of the peer that came */
	uint32_t bad;		     /* message that fails, or has */
	uint32_t void_from, void_to; /* messages that the last failure took along */
};
#define NO_MESSAGE	 UINT32_MAX
#define CHAOS_UCS	 2u
#define CHAOS_UC_LEN_MAX 8192u

struct chaos_uc {
	struct uc_end end[ENDS];
	struct random random; /* its own, so that it changes no other's choices */
	uint64_t key;
	uint32_t max_len; /* of a message, at most CHAOS_UC_LEN_MAX */
	uint32_t share;	  /* how eagerly it posts, percent */
};

struct chaos_cqe {
	struct app *app;
	struct abi_cqe cqe;
};

struct chaos_world {
	struct fabric fabric;
	struct wirecheck wire;
	struct random random;
	struct sim_host *host[CHAOS_HOSTS];
	struct app app[CHAOS_HOSTS];
	struct app_cq *cq[CHAOS_HOSTS][CHAOS_CQS];
	uint32_t armed[CHAOS_HOSTS][CHAOS_CQS]; /* ABI_CQ_ARM_* */
	unsigned notices[CHAOS_HOSTS][CHAOS_CQS];
	unsigned cqs;
	struct sim_link link[CHAOS_HOSTS][CHAOS_HOSTS]; /* from, to */
	struct sim_frame *frames[CHAOS_HOSTS][CHAOS_HOSTS];
	struct sim_frame **places[CHAOS_HOSTS][CHAOS_HOSTS];
	unsigned events_seen[CHAOS_HOSTS];
	struct chaos_conn conn[CHAOS_CONNS];
	unsigned conns;
	struct chaos_uc uc[CHAOS_UCS];
	unsigned ucs;
	struct flows flows;
	enum host_gid gid;
	bool perfect;	   /* nothing ever goes wrong */
	bool moderate;	   /* seven retries survive the impairments */
	uint32_t psn_jump; /* from a connection's PSNs to its successor's: no stale packet fits */
	bool winding_up;
	int trace;	      /* connection whose QPs are traced; -1: none */
	uint64_t next_action; /* when so many messages are over */
	uint32_t action_gap;  /* 0: none happen */
	uint64_t quantum;
	uint64_t digest;
	struct traffic_totals before; /* of the process, when the run began */
};

/** The parameters that world_init() derives: `chaos --trace N`. */
extern int chaos_trace;

/* --- chaos.c -------------------------------------------------------------------------- */

static inline uint32_t pick(struct chaos_world *w, uint32_t from, uint32_t to)
{
	return from + (uint32_t)random_below(&w->random, (uint64_t)to - from + 1);
}

static inline bool chance(struct chaos_world *w, uint32_t percent)
{
	return random_below(&w->random, 100) < percent;
}

static inline uint32_t pow2(struct chaos_world *w, uint32_t from_log2, uint32_t to_log2)
{
	return 1u << pick(w, from_log2, to_log2);
}

static inline uint64_t now_of(const struct chaos_world *w)
{
	return w->fabric.now;
}

/** Executes one run.  @return a digest of everything that happened in it. */
uint64_t chaos_run(uint64_t seed);

/* --- chaos_world.c -------------------------------------------------------------------- */

void world_init(struct chaos_world *w, uint64_t seed);
void world_fini(struct chaos_world *w);
/** @return random impairments; in a moderate run, only those that a calm connection survives. */
struct link_impair world_impair(struct chaos_world *w);
/** Rings doorbells, simulates one event, takes events and CQEs, and checks invariants. */
void world_step(struct chaos_world *w);
/** Takes the waiting CQEs, including those of small CQs if @p small. */
void world_take(struct chaos_world *w, bool small);
/** @return how many messages of this run have a known outcome; how many packets were sent. */
uint64_t world_messages(const struct chaos_world *w);
uint64_t world_packets(const struct chaos_world *w);
void world_digest(struct chaos_world *w, uint64_t word);

/* --- chaos_conn.c --------------------------------------------------------------------- */

void conn_init(struct chaos_world *w, struct chaos_conn *c);
void conn_fini(struct chaos_conn *c);
/** Advances the connection's phase and enforces the time limit of each. */
void conn_turn(struct chaos_world *w, struct chaos_conn *c);
/** Side @p e stops answering. */
void conn_side_gone(struct chaos_world *w, struct chaos_conn *c, int e);
/** Moves those of the two QPs that still exist to ERR and waits for the flush. */
void conn_close(struct chaos_world *w, struct chaos_conn *c);
/** Allowed in mid-flight. */
void conn_reset(struct chaos_world *w, struct chaos_end *end);
void conn_destroy(struct chaos_world *w, struct chaos_end *end);
/** @return whether the connection has nothing outstanding. */
bool conn_quiet(const struct chaos_conn *c);
/** @return whether sends may be posted on side @p e. */
bool conn_can_post(const struct chaos_conn *c, int e);

/* --- chaos_work.c --------------------------------------------------------------------- */

void work_post(struct chaos_world *w, struct chaos_conn *c, int e);

/* --- chaos_uc.c ------------------------------------------------------------------------- */

/** The outcomes of the messages of all UC connections. */
extern struct uc_totals {
	uint64_t sent;
	uint64_t failed;
	uint64_t received;
	uint64_t lost; /* while the links kept order; includes operations that take no receive */
	uint64_t recovered; /* SQE -> RTS */
} uc_totals;

void uc_init(struct chaos_world *w, struct chaos_uc *u, uint64_t seed);
/** Posts, and returns QPs from SQE to RTS. */
void uc_turn(struct chaos_world *w, struct chaos_uc *u);
/** Takes and checks completions. */
void uc_take(struct chaos_world *w, struct chaos_uc *u);
/** @return whether all sends have completed. */
bool uc_idle(const struct chaos_uc *u);

/* --- chaos_actions.c ------------------------------------------------------------------ */

void actions_turn(struct chaos_world *w);
/** Messages begun in SQD continue. */
void actions_sqd(struct chaos_world *w, struct chaos_conn *c, int e);

/* --- chaos_path.c --------------------------------------------------------------------- */

/** @return a path from side @p e to the other, with any marks. */
struct path_spec path_any(struct chaos_world *w, const struct chaos_conn *c, int e);
void path_change(struct chaos_world *w, struct chaos_conn *c, int e);
void path_change_pkey(struct chaos_world *w);

/* --- chaos_notice.c ------------------------------------------------------------------- */

void notice_any(struct chaos_world *w, struct chaos_conn *c, int e);

/* --- chaos_report.c ------------------------------------------------------------------- */

extern uint64_t chaos_actions[CHAOS_ACTIONS];

void report_run(const struct chaos_world *w);
void report_print(void);
/** Fails when something never happened. */
void report_nothing_is_zero(void);

#endif
