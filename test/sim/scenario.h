/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file scenario.h
 * A scenario is a row of data: what two ends are to move, what the links and hosts do to it, how
 * it must end, and by when in virtual time.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "traffic.h"

#define SCENARIO_WORK	6u
#define SCENARIO_PICKS	6u
#define SCENARIO_EVENTS 8u
#define SCENARIO_COUNTS 8u

/** A value that may be 0, where nothing means "as pair_defaults() has it". */
#define VAL(v) ((v) + 1)

/** Messages that one side posts, one list item after the other, as fast as there is room. */
struct scenario_work {
	int side;
	enum traffic_op op;
	uint32_t count;
	uint32_t len;
	uint32_t flags; /* ABI_WQE_*, UNSIGNALED */
	enum traffic_mistake mistake;
};

/** Of the item's messages only the last asks for a completion. */
#define UNSIGNALED (1u << 31)

#define ANY_OPCODE 0xFFu

/** Impairs frames with a certain opcode: the nth, and so many after it. */
struct scenario_pick {
	int from;
	uint8_t opcode;	  /* OP_*, OPCODE_CNP, or ANY_OPCODE */
	uint8_t syndrome; /* of ACKNOWLEDGE; 0: any, else its type and, of NAKs, code */
	uint32_t nth;	  /* from 0, retransmissions included */
	uint32_t times;	  /* 0: once */
	unsigned fate;	  /* enum link_fate */
};

enum scenario_what {
	STOP_HOST = 1, /* its worker is not scheduled for arg ns */
	STOP_LINK,     /* from this side, for arg ns */
	CUT,	       /* nothing leaves this side any more */
	MEND,	       /* the row's impairments again */
	GIVE_RECEIVES, /* post arg receives, where none are posted by themselves */
	TO_SQD,	       /* and ask for SQ_DRAINED */
	TO_RTS,
	TO_ERR,
	DEREGISTER,   /* arg: enum traffic_region */
	ARM_LIMIT,    /* of the SRQ */
	RESIZE_SRQ,   /* to arg */
	BREAK_SRQ,    /* its index says that something was posted */
	WITHDRAW_SRQ, /* XRC: it is destroyed */
	GHOST_ACK,    /* to this side, of a PSN arg ahead of its newest */
	CNP,	      /* to this side; arg: enum forged_cnp */
	FAST_CNP,     /* to this side; arg: see forge_fast_cnp() */
};

struct scenario_event {
	uint64_t at; /* ns after the start */
	enum scenario_what what;
	int side;
	uint64_t arg;
};

/** A counter of struct core_counters at the end. */
struct scenario_count {
	int side;
	const char *name;
	size_t offset;
	uint64_t least;
	uint64_t most; /* VAL() */
};

/** The XRC SRQ that messages name. */
enum scenario_named {
	NAMED_RIGHT,
	NAMED_STRANGE, /* an SRQ of another domain */
	NAMED_PLAIN,   /* one of no domain */
	NAMED_UNKNOWN, /* none: its slot holds another number */
};

/** B's shared receive queue. */
struct scenario_srq {
	uint32_t depth; /* 0: none */
	bool xrc;	/* and A is an initiator */
	enum scenario_named named;
};

/** Settings of one end; 0: as pair_defaults() has it. */
struct scenario_end {
	uint32_t sq_depth, rq_depth;
	uint32_t window;
	uint32_t sq_psn;	   /* VAL() */
	uint32_t timeout;	   /* VAL() */
	uint32_t retry_cnt;	   /* VAL() */
	uint32_t rnr_retry;	   /* VAL() */
	uint32_t rnr_timer;	   /* VAL() */
	uint32_t rd_atomic;	   /* READs that it may have outstanding */
	uint32_t refuse;	   /* ABI_ACCESS_REMOTE_* that its QP does not grant */
	uint32_t rd_accept;	   /* READs that it accepts of the other end; 0: as many */
	bool starved;		   /* receives are posted by GIVE_RECEIVES only */
	uint32_t bad_recv;	   /* VAL(): this receive request has a key that does not exist */
	struct link_impair impair; /* of what it sends */
	uint64_t queue_ns;	   /* of the link from it */
};

struct scenario {
	const char *name;
	const char *rules; /* what it shows */
	uint32_t mtu;
	uint64_t rate_bps;     /* 0: 10 Gb/s */
	uint32_t cnp_interval; /* ns: both ends manage congestion; 0: they do not */
	bool ipv6;
	struct scenario_end end[ENDS];
	struct scenario_srq srq;
	struct scenario_work work[SCENARIO_WORK];
	struct scenario_pick pick[SCENARIO_PICKS];
	struct scenario_event event[SCENARIO_EVENTS];
	/* how it ends */
	uint8_t status[ENDS];	    /* first failure of sends, 0: none */
	uint8_t recv_status[ENDS];  /* and of receives */
	uint32_t event_of[ENDS];    /* ABI_EVENT_* that comes, once and alone; 0: none */
	uint32_t also[ENDS];	    /* bits of others that come, likewise */
	uint64_t event_least[ENDS]; /* ns until the first comes */
	struct scenario_count count[SCENARIO_COUNTS];
	uint64_t least, most; /* ns until all is done; most is the bound */
	const char *trace;    /* all frames, one a line, or NULL */
};

/** The rows of one file. */
struct scenario_table {
	const struct scenario *row;
	unsigned rows;
};
extern const struct scenario_table scenario_loss, scenario_reads, scenario_timers, scenario_impair,
	scenario_errors, scenario_shared, scenario_cnp;

#endif
