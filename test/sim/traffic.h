/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file traffic.h
 * Messages between two connected QPs, and checks of their outcome. Each message's bytes are derived
 * from its key, so that they can be compared wherever they arrive; the memory around them holds
 * TRAFFIC_FILL. A completion is checked against the posted request: its order, its fields, its
 * status, the bytes that were moved and those that were not.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "pair.h"
#include "random.h"

#define TRAFFIC_FILL 0x5A
#define TRAFFIC_GAP  16u	/* maximum number of bytes between the pieces of a message */
#define TRAFFIC_MAX  (1u << 20) /* maximum length of a message in bytes */

enum traffic_op {
	TRAFFIC_SEND,
	TRAFFIC_SEND_IMM,
	TRAFFIC_WRITE,
	TRAFFIC_WRITE_IMM,
	TRAFFIC_READ,
	TRAFFIC_CMP_SWAP, /* every other one finds an equal word, and swaps */
	TRAFFIC_FETCH_ADD,
	TRAFFIC_ATOMIC_WRITE,
	TRAFFIC_FLUSH,	   /* of the whole region */
	TRAFFIC_SEND_INV,  /* of the window that the peer bound for this side, or a SEND */
	TRAFFIC_BIND,	   /* a window, for the peer to use, or a SEND */
	TRAFFIC_LOCAL_INV, /* of that window, when the peer has nothing outstanding, or a SEND */
	TRAFFIC_OPS
};
extern const char *const traffic_op_name[TRAFFIC_OPS];

/** The mistakes of an application in a work request. */
enum traffic_mistake {
	MISTAKE_NONE,
	/* found by the requester */
	MISTAKE_LKEY,	      /* an SGE has a key that does not exist */
	MISTAKE_LOCAL_RANGE,  /* an SGE leaves its region */
	MISTAKE_LOCAL_ACCESS, /* READ into a region without LOCAL_WRITE */
	MISTAKE_OPCODE,	      /* an operation that does not exist */
	MISTAKE_SGES,	      /* more SGEs than the queue has */
	/* found by the responder */
	MISTAKE_RKEY,
	MISTAKE_REMOTE_RANGE,
	MISTAKE_REMOTE_ACCESS, /* the region grants no remote access */
	MISTAKE_REMOTE_PD,     /* the region is of another protection domain */
	MISTAKE_TOO_LONG,      /* for the receive request */
	/* of a receive request */
	MISTAKE_RECV_LKEY,
	MISTAKE_RECV_SGES,
	TRAFFIC_MISTAKES
};
extern const char *const traffic_mistake_name[TRAFFIC_MISTAKES];

/** @return whether it completes a receive request at the peer. */
static inline bool traffic_takes_recv(enum traffic_op op)
{
	return op == TRAFFIC_SEND || op == TRAFFIC_SEND_IMM || op == TRAFFIC_WRITE_IMM ||
	       op == TRAFFIC_SEND_INV;
}

/** @return whether it moves bytes. */
static inline bool traffic_has_data(enum traffic_op op)
{
	return op != TRAFFIC_FLUSH && op != TRAFFIC_BIND && op != TRAFFIC_LOCAL_INV;
}

static inline bool traffic_is_atomic(enum traffic_op op)
{
	return op == TRAFFIC_CMP_SWAP || op == TRAFFIC_FETCH_ADD;
}

/** @return whether it operates on one aligned word. */
static inline bool traffic_is_word(enum traffic_op op)
{
	return traffic_is_atomic(op) || op == TRAFFIC_ATOMIC_WRITE;
}

/** @return whether its bytes come from the peer's memory. */
static inline bool traffic_fetches(enum traffic_op op)
{
	return op == TRAFFIC_READ || traffic_is_atomic(op);
}

/** @return whether it reads or writes memory of the peer. */
static inline bool traffic_has_target(enum traffic_op op)
{
	return (op >= TRAFFIC_WRITE && op <= TRAFFIC_ATOMIC_WRITE);
}

/** @return whether it names memory of the peer. */
static inline bool traffic_names_target(enum traffic_op op)
{
	return traffic_has_target(op) || op == TRAFFIC_FLUSH;
}

/** A send work request. */
struct traffic_wr {
	enum traffic_op op;
	enum traffic_mistake mistake;
	uint32_t len;	/* 8 for a word, 0 if no bytes are moved */
	uint32_t flags; /* ABI_WQE_* */
	unsigned sges;	/* maximum number of pieces; 0: one, for speed */
};

/** Pieces of a buffer inside its place. */
struct traffic_pieces {
	unsigned n;
	uint32_t off[SGE_MAX];
	uint32_t len[SGE_MAX];
};

/** A piece of an area, taken and given back in order. */
struct traffic_place {
	uint64_t begin;
	uint64_t end;
};

struct traffic_area {
	struct app_mr *mr;
	uint32_t size;
	uint64_t head; /* oldest in use */
	uint64_t tail;
	uint8_t *shadow; /* while deregistered: the bytes that the memory must hold */
};

struct traffic_message {
	struct traffic_wr wr;
	uint64_t key; /* its bytes */
	uint32_t imm;
	uint32_t window;      /* SEND_INV, BIND, LOCAL_INV: the key; others: the key used, or 0 */
	uint64_t compare_add; /* atomics */
	uint64_t swap;
	uint64_t result; /* the word's new value */
	struct traffic_place local;
	struct traffic_place target;
	struct traffic_pieces at;     /* in its place of the local area */
	struct traffic_pieces remote; /* in its place of the target area: one */
	bool doomed; /* it cannot succeed: a resource that it needs was gone when it was posted */
	bool done;   /* it succeeded, and its memory was checked */
};

/** A receive request. */
struct traffic_recv {
	struct traffic_place place;
	struct traffic_pieces at;
	enum traffic_mistake mistake;
	bool done;
};

/** A type 2 window for all of a side's target; the peer binds it. The side uses the window's key
 *  from the completion of the bind until it invalidates the window, or until the peer does so while
 *  the side is idle. READs do not use it: a late copy of a READ would fail the QP (RSP-41). */
struct traffic_mw {
	struct app_mw *mw;
	enum {
		WINDOW_FREE,
		WINDOW_BINDING,
		WINDOW_BOUND,
		WINDOW_GOING
	} state;
	uint32_t key;
};

/** Set of enum abi_wc_status. */
#define TRAFFIC_MAY(status) (1u << (status))

struct traffic_side {
	struct app_qp *qp;
	struct app_srq *srq;	    /* receives are posted to it; NULL: to the QP */
	uint32_t srqn;		    /* XRC: the peer's SRQ, which its messages name */
	uint32_t qpn;		    /* kept after the QP is destroyed */
	struct traffic_area local;  /* sources of SEND and WRITE, destinations of READ */
	struct traffic_area target; /* at the peer: what this side WRITEs and READs */
	struct traffic_mw window;   /* for its target */
	struct traffic_area recv;
	struct traffic_area foreign;  /* of another protection domain: for mistakes */
	struct traffic_area readable; /* neither LOCAL_WRITE nor remote access: for mistakes */
	struct traffic_message *msg;
	struct traffic_recv *rq;
	unsigned msgs_room, rq_room;
	unsigned posted; /* send work requests */
	unsigned done;	 /* of those, with a known outcome */
	unsigned recv_posted;
	unsigned recv_done;
	unsigned expect;     /* message of the peer that completes the next receive */
	uint32_t refused;    /* a bit per operation that the peer's QP no longer serves */
	uint32_t may;	     /* statuses that any send may fail with */
	uint32_t recv_may;   /* and any receive */
	uint8_t failed;	     /* first status of a send that was not SUCCESS, 0: none */
	uint8_t recv_failed; /* and of a receive */
	bool cqes_lost;	     /* its CQ overflowed: a missing CQE proves nothing */
	bool unexplained;    /* a receive was flushed for a reason that is not known yet */
	uint32_t quiet;	     /* bytes of messages since the last signaled one */
	uint64_t wr_base;
	unsigned taken; /* CQEs of a struct pair */
};

struct traffic_spec {
	uint64_t seed;
	uint32_t area;	   /* bytes of each area: limits the outstanding messages */
	uint32_t recv_len; /* bytes of a receive request, at most TRAFFIC_MAX */
	bool lossy;	   /* a NAK may be lost while its sender is in ERR: RETRY_EXC instead */
};

struct traffic {
	struct traffic_side side[ENDS];
	struct traffic_spec spec;
	struct random random;
};

/** Lengths of messages: 0, 1, one packet, whole packets, up to 64 KiB, up to 1 MiB, 1 MiB. */
#define TRAFFIC_SIZES 7u
extern const char *const traffic_size_name[TRAFFIC_SIZES];

/** The outcomes of all messages of the process. */
struct traffic_totals {
	uint64_t posted[TRAFFIC_OPS];
	uint64_t completed[TRAFFIC_OPS];
	uint64_t failed[TRAFFIC_OPS];	 /* in error, or flushed */
	uint64_t discarded[TRAFFIC_OPS]; /* by a RESET */
	uint64_t status[32];
	uint64_t recv_status[32];
	uint64_t mistake[TRAFFIC_MISTAKES];
	uint64_t flags[4];	      /* posted: signaled, solicited, fence, inline */
	uint64_t size[TRAFFIC_SIZES]; /* completed */
	uint64_t bytes;
};
extern struct traffic_totals traffic_totals;

/** @param a, b  connected, now or later; their applications get the memory regions. */
void traffic_init(
	struct traffic *t, struct app_qp *a, struct app_qp *b, const struct traffic_spec *spec);
void traffic_fini(struct traffic *t);

/** Posts a send work request of side @p e, and also signals it when otherwise no completion would
 *  free room. A mistake that is impossible in it is left out.
 *  @return false when there is no room for it. */
bool traffic_post(struct traffic *t, int e, const struct traffic_wr *wr);

/** Posts a receive request of the whole length, cut into at most @p sges pieces.
 *  @param mistake  MISTAKE_NONE, MISTAKE_RECV_LKEY or MISTAKE_RECV_SGES  */
bool traffic_post_recv(struct traffic *t, int e, unsigned sges, enum traffic_mistake mistake);

/** Checks a CQE of side @p e's QP. Of CQEs that were taken together, pass those of receives first:
 *  a receive completes before its sender knows. */
void traffic_cqe(struct traffic *t, int e, const struct abi_cqe *cqe);

/** Call it once all CQEs that were taken together have been checked. */
void traffic_settle(const struct traffic *t);

/** Checks the CQEs that pair_step() took since the last call; the sides are A and B. */
void traffic_take(struct traffic *t, struct pair *p);

/** From now on sends of side @p e may fail with one of @p may, receives with one of @p recv_may
 *  (sets of TRAFFIC_MAY()). By default, only success is correct. */
void traffic_allow(struct traffic *t, int e, uint32_t may, uint32_t recv_may);

/** Regions of a side. */
enum traffic_region {
	REGION_LOCAL,
	REGION_TARGET, /* the peer's memory */
	REGION_RECV,
	TRAFFIC_REGIONS
};

/** Deregisters a region of side @p e: outstanding requests for it fail, and the memory must not
 *  change any more. traffic_restart() registers it again. */
void traffic_dereg(struct traffic *t, int e, enum traffic_region region);

/** From now on side @p e's QP does not grant @p access to its peer (RSP-08). */
void traffic_refuse(struct traffic *t, int e, uint32_t access);

/** Side @p e's QP is in ERR and has nothing left to flush: every request has completed, or was
 *  unsignaled and succeeded. */
void traffic_flushed(struct traffic *t, int e);

/** @return whether side @p e has seen an error or a flush. */
bool traffic_broken(const struct traffic *t, int e);

/** @return whether everything that was posted on both sides has completed. */
bool traffic_idle(const struct traffic *t);

/** No QP of the connection can receive any more, and all flushed requests have completed: checks
 *  what unfinished messages left in memory, and forgets them. The next connection may use other QPs
 *  of the same applications. */
void traffic_restart(struct traffic *t, struct app_qp *a, struct app_qp *b);

#endif
