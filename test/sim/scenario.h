/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file scenario.h
 * A scenario is a row of data: the messages that two ends exchange, the faults of links and hosts,
 * the required outcome, and its deadline in virtual time.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "traffic.h"

#define SCENARIO_WORK	6u
#define SCENARIO_PICKS	6u
#define SCENARIO_EVENTS 8u
#define SCENARIO_COUNTS 8u

/** Encodes a value that may be 0 in a member whose 0 means the value of pair_defaults(). */
#define VAL(v) ((v) + 1)

/** Messages that one side posts, item by item, as soon as there is room. */
struct scenario_work {
	int side;
	enum traffic_op op;
	uint32_t count;
	uint32_t len;
	uint32_t flags; /* ABI_WQE_*, UNSIGNALED */
	enum traffic_mistake mistake;
};

/** Only the last of the item's messages requests a completion. */
#define UNSIGNALED (1u << 31)

#define ANY_OPCODE 0xFFu

/** Impairs frames with a certain opcode: `times` of them, from the nth on. */
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
	CUT,	       /* from now on this side's frames are lost */
	MEND,	       /* back to the row's impairments */
	GIVE_RECEIVES, /* post arg receives, at a starved end */
	TO_SQD,	       /* and request SQ_DRAINED */
	TO_RTS,
	TO_ERR,
	DEREGISTER,   /* arg: enum traffic_region */
	ARM_LIMIT,    /* of the SRQ */
	RESIZE_SRQ,   /* to arg */
	BREAK_SRQ,    /* its index claims a receive that was not posted */
	WITHDRAW_SRQ, /* XRC: it is destroyed */
	GHOST_ACK,    /* to this side, with a PSN arg ahead of its newest */
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
	NAMED_PLAIN,   /* an SRQ without a domain */
	NAMED_UNKNOWN, /* no SRQ: its slot holds another number */
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
	uint32_t rd_accept;	   /* READs that it accepts from the other end; 0: as many */
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
	uint32_t event_of[ENDS];    /* the only ABI_EVENT_* that comes, once; 0: none */
	uint32_t also[ENDS];	    /* bits of others that also come, once each */
	uint64_t event_least[ENDS]; /* minimum ns until the first comes */
	struct scenario_count count[SCENARIO_COUNTS];
	uint64_t least, most; /* ns until all is done; most is the bound */
	const char *trace;    /* all frames, one per line, or NULL */
};

/** The rows of one file. */
struct scenario_table {
	const struct scenario *row;
	unsigned rows;
};
extern const struct scenario_table scenario_loss, scenario_reads, scenario_timers, scenario_impair,
	scenario_errors, scenario_shared, scenario_cnp;

#endif
