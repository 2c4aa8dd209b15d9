/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file scenario.h
 * A scenario: a network, flows on it, events, what is measured, and expected results. It is read
 * from text with one statement per line; doc/rocilab.md describes the statements.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include "aqm.h"
#include "cc.h"
#include "network.h"
#include "pfc.h"
#include "sizes.h"

struct metric;

#define FLOW_LINES    64u
#define TRAFFIC_LINES 8u
#define EVENTS_MAX    256u
#define EXPECT_MAX    64u
#define NAME_SIZE     64u

enum flow_op {
	FLOW_WRITE,
	FLOW_READ, /* the receiver reads */
	FLOW_SEND,
	FLOW_UD, /* datagrams: each message is one packet and is never retransmitted */
	FLOW_OPS
};

/** A `flow` statement: a flow from each of its sources. */
struct flow_line {
	uint32_t first, last; /* hosts that send the data */
	uint32_t to;
	uint32_t qps; /* flows from each */
	enum flow_op op;
	uint64_t size;	   /* bytes of a message */
	uint64_t count;	   /* messages; 0: without end */
	uint64_t start[2]; /* ns: at random between them */
	uint64_t gap;	   /* ns of pause after each message */
	unsigned text_line;
};

enum traffic_pattern {
	TRAFFIC_POISSON,     /* messages come at random */
	TRAFFIC_PERMUTATION, /* each host sends to one, and receives from one */
	TRAFFIC_ALL_TO_ALL,
	TRAFFIC_FILE, /* as a file says */
};

/** A `traffic` statement: flows between hosts line.first..line.last. */
struct traffic_line {
	enum traffic_pattern pattern;
	struct flow_line line; /* of each flow; Poisson: `qps` in all, messages from start[0] to
				* start[1] */
	double load;	       /* of each host's cable, without headers */
	struct sizes sizes;
	struct flow_line *flow; /* of a file; flow_file_free() */
	unsigned flows;
};

enum frame_kind {
	FRAME_CNP,
	FRAME_ACK, /* NAKs, too */
	FRAME_DATA,
	FRAME_KINDS
};

/** An `impair` statement: applies to a fraction of the frames of one kind that hosts send. */
struct impair_line {
	double loss;
	double duplicate; /* come twice */
	double late;	  /* come after those that were sent up to `delay` later */
	uint64_t delay;	  /* ns; 0: none is late */
};

enum event_kind {
	EVENT_STOP,
	EVENT_CNP,
};

/** An `at` statement, for flows first..last. */
struct event_line {
	uint64_t at; /* ns */
	enum event_kind kind;
	uint32_t first, last;
	unsigned line; /* of the text */
};

enum expect_sign {
	EXPECT_NEAR, /* value +- tolerance */
	EXPECT_LEAST,
	EXPECT_MOST,
};

/** An `expect` statement. */
struct expectation {
	unsigned line;
	const struct metric *metric;
	uint32_t index; /* of the port or flow; METRIC_ALL */
	uint64_t at;	/* ns, for values at one moment */
	enum expect_sign sign;
	double value;
	double tolerance; /* part of the value */
	char text[96];	  /* as it was written */
};

struct scenario {
	char name[NAME_SIZE];
	char title[128];
	bool quick; /* `verify --quick` runs it */
	/* topology */
	struct network net;
	uint64_t rate; /* bit/s of the hosts' cables: the line of congestion control */
	/* switch */
	struct aqm_config aqm;
	struct switch_memory memory;
	uint64_t fastcnp; /* ns between Fast CNPs for a flow; 0: switches make none */
	struct impair_line impair[FRAME_KINDS];
	/* host */
	uint64_t mtu;
	uint64_t window;
	uint64_t timeout; /* code */
	uint64_t retries;
	uint64_t quantum; /* packets of a limited QP that leave together */
	bool ip6;
	/* cc */
	bool control; /* there is congestion control */
	struct cc_config cc;
	/* flow, at, measure, expect */
	struct flow_line flow[FLOW_LINES];
	unsigned flow_lines;
	struct traffic_line traffic[TRAFFIC_LINES];
	unsigned traffic_lines;
	struct event_line event[EVENTS_MAX];
	unsigned events;
	uint64_t from, to; /* ns */
	struct expectation expect[EXPECT_MAX];
	unsigned expects;
	uint64_t seed;
};

#endif
