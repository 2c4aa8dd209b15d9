/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file scenario.h
 * A scenario is a row of data: what two ends are to move, what the links and hosts do to it, how
 * it must end, and by when in virtual time.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "traffic.h"

#define SCENARIO_WORK	 6u
#define SCENARIO_PICKS	 6u
#define SCENARIO_EVENTS	 8u
#define SCENARIO_COUNTS	 8u
#define SCENARIO_FOREVER UINT32_MAX

/** A value that may be 0, in a row where nothing means "as pair_defaults() has it". */
#define VAL(v) ((v) + 1)

/** Messages that one side posts, one list item after the other, as fast as there is room. */
struct scenario_work {
	int side;
	enum traffic_op op;
	uint32_t count;
	uint32_t len;
	uint32_t flags; /* ABI_WQE_* */
	enum traffic_mistake mistake;
};

#define ANY_OPCODE 0xFFu

/** What happens to frames with a certain opcode: the nth, and so many after it. */
struct scenario_pick {
	int from;
	uint8_t opcode;	  /* OP_*, or ANY_OPCODE */
	uint8_t syndrome; /* of ACKNOWLEDGE; 0: any, else its type and, of NAKs, code */
	uint32_t nth;	  /* from 0, retransmissions included */
	uint32_t times;	  /* 0: once */
	unsigned fate;	  /* enum link_fate */
};

enum scenario_what {
	NOTHING,
	STOP_HOST,     /* its worker is not scheduled for arg ns */
	STOP_LINK,     /* from this side, for arg ns */
	CUT,	       /* nothing leaves this side any more */
	MEND,	       /* as the row's faults say again */
	GIVE_RECEIVES, /* post arg receives, where none are posted by themselves */
	TO_SQD,	       /* and ask for SQ_DRAINED */
	TO_RTS,
	TO_ERR,
	DEREGISTER, /* arg: enum traffic_region */
	GHOST_ACK,  /* to this side, of a PSN arg ahead of its newest */
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
	size_t offset;
	uint64_t least;
	uint64_t most;
};
/* The range is two values, or a name for them. */
#define COUNT(side, field, ...)                                          \
	{                                                                \
		side, offsetof(struct core_counters, field), __VA_ARGS__ \
	}
#define DROPS(side, why, ...)                                                                      \
	{                                                                                          \
		side, offsetof(struct core_counters, drop) + (why) * sizeof(uint64_t), __VA_ARGS__ \
	}

/** Settings of one end; 0: as pair_defaults() has it. */
struct scenario_end {
	uint32_t sq_depth, rq_depth;
	uint32_t window;
	uint32_t sq_psn;	   /* VAL() */
	uint32_t timeout;	   /* VAL() */
	uint32_t retry_cnt;	   /* VAL() */
	uint32_t rnr_retry;	   /* VAL() */
	uint32_t rnr_timer;	   /* VAL() */
	uint32_t rd_atomic;	   /* READs that it may have outstanding, at both ends */
	bool starved;		   /* receives are posted by GIVE_RECEIVES only */
	struct link_faults faults; /* of what it sends */
	uint64_t queue_ns;	   /* of the link from it */
};

struct scenario {
	const char *name;
	const char *rules; /* what it shows */
	uint32_t mtu;
	uint64_t rate_bps; /* 0: 10 Gb/s */
	struct scenario_end end[ENDS];
	struct scenario_work work[SCENARIO_WORK];
	struct scenario_pick pick[SCENARIO_PICKS];
	struct scenario_event event[SCENARIO_EVENTS];
	/* how it ends */
	uint8_t status[ENDS];	   /* first failure of sends, 0: none */
	uint8_t recv_status[ENDS]; /* and of receives */
	uint64_t drained[ENDS];	   /* SQ_DRAINED comes, once, not earlier than this; 0: never */
	struct scenario_count count[SCENARIO_COUNTS];
	uint64_t least, most; /* ns until all is done; most is the bound */
	const char *trace;    /* all frames, one a line, or NULL */
};

extern const struct scenario scenario_table[];
extern const unsigned scenario_rows;

#endif
