/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file plan.h
 * The parameters of a measurement, on which both ends must agree. The client sends its plan; the
 * server adopts it, or refuses it if it contradicts the server's own options.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "group.h"
#include "op.h"

enum test {
	TEST_BW,   /* many messages in flight: bytes and messages per second */
	TEST_RATE, /* the same with defaults for small messages */
	TEST_LAT,  /* one message in flight: its time */
	TEST_COUNT,
};

/* If you add one: here, with a row in plan.c, and in doc/man/rociperf.1. */
enum param {
	PARAM_OP,
	PARAM_TEST,
	PARAM_GROUP_HIGH,    /* the first half of the MGID; the second is PARAM_GROUP */
	PARAM_SIZE,	     /* bytes; 0: the default of the test */
	PARAM_ALL,	     /* sizes 2 B .. 8 MiB */
	PARAM_QPS,	     /* queue pairs of each end */
	PARAM_TX_DEPTH,	     /* requests in flight per QP; 0: automatic */
	PARAM_RX_DEPTH,	     /* receives per QP; 0: automatic */
	PARAM_ITERATIONS,    /* messages per QP; 0: by time */
	PARAM_DURATION,	     /* microseconds; 0: one second, unless by iterations */
	PARAM_BIDIRECTIONAL, /* both ends send */
	PARAM_INLINE,	     /* bytes up to which data is inline */
	PARAM_EVENTS,	     /* sleep instead of polling */
	PARAM_MTU,	     /* bytes; 0: the largest that both ends support */
	PARAM_CQ_MOD,	     /* requests per completion; 0: automatic */
	PARAM_POST_LIST,     /* requests per post call; 0: automatic */
	PARAM_OUTS,	     /* READs outstanding; 0: the maximum of both ends, at most 16 */
	PARAM_TIMEOUT,	     /* code of the local ACK timeout */
	PARAM_SL,	     /* of the address vector, */
	PARAM_TCLASS,	     /* and this, */
	PARAM_FLOW_LABEL,    /* and this; 0: derived from the QPNs */
	PARAM_MEMORY,	     /* bytes that messages cycle through, each direction; 0: automatic */
	PARAM_VERIFY,	     /* compare all data */
	PARAM_SRQ,	     /* one shared receive queue for all QPs of an end */
	PARAM_CONNECTION,    /* place in plan_services[] */
	PARAM_WINDOW,	     /* the target's memory is accessed through a memory window */
	PARAM_GROUP,	     /* the multicast group for datagrams; 0: none */
	PARAM_COUNT,
};

enum unit {
	UNIT_NONE, /* no argument */
	UNIT_NUMBER,
	UNIT_BYTES,
	UNIT_SECONDS,
	UNIT_SERVICE,
	UNIT_GROUP,
};

/** A transport service that QPs can have. */
struct service {
	const char *name;
	enum roci_qp_type type; /**< of the QPs that send */
	enum op_wants gives;
	uint32_t header; /**< bytes before the data in a receive */
};

/** How a parameter is written. */
struct param_info {
	const char *name; /**< as a long option, perftest's name if it has one; in JSON with _ for
			   * - */
	char letter;	  /**< 0: it has none */
	enum unit unit;
	uint64_t min, max;
	uint64_t usual;
	const char *help;
};

extern const struct param_info param_info[PARAM_COUNT];

struct plan {
	uint64_t value[PARAM_COUNT];
	bool given[PARAM_COUNT]; /* by the user of this end */
};

/** Sizes from 2^1 to 2^23 bytes with -a. */
#define PLAN_SIZE_MIN 2u
#define PLAN_SIZE_MAX (8u << 20)

static inline const struct op *plan_op(const struct plan *p)
{
	return &op_table[p->value[PARAM_OP]];
}

static inline enum test plan_test(const struct plan *p)
{
	return (enum test)p->value[PARAM_TEST];
}

/** The transport services; to add one, add a row. */
extern const struct service plan_services[];

static inline const struct service *plan_service(const struct plan *p)
{
	return &plan_services[p->value[PARAM_CONNECTION]];
}

/** @return whether sent messages either arrive or fail. */
static inline bool plan_reliable(const struct plan *p)
{
	return plan_service(p)->gives == OP_WANTS_ANSWERS;
}

/** @return whether messages are datagrams, of one packet each. */
static inline bool plan_datagrams(const struct plan *p)
{
	return plan_service(p)->type == ROCI_QPT_UD;
}

static inline bool plan_xrc(const struct plan *p)
{
	return plan_service(p)->type == ROCI_QPT_XRC_SEND;
}

/** @return whether all QPs of an end take their receives from one queue. */
static inline bool plan_shares_receives(const struct plan *p)
{
	return p->value[PARAM_SRQ] || (plan_xrc(p) && plan_op(p)->receives);
}

/** @return whether datagrams go to a multicast group: one QP of the client sends, all QPs of the
 * server are members. */
static inline bool plan_mcast(const struct plan *p)
{
	return p->value[PARAM_GROUP_HIGH] || p->value[PARAM_GROUP];
}

static inline union roci_gid plan_group(const struct plan *p)
{
	return group_gid(p->value[PARAM_GROUP_HIGH], p->value[PARAM_GROUP]);
}

/** @return how many QPs of an end send. */
static inline uint64_t plan_senders(const struct plan *p)
{
	return plan_mcast(p) ? 1 : p->value[PARAM_QPS];
}

/** @return how many QPs get each message. */
static inline uint64_t plan_members(const struct plan *p)
{
	return plan_mcast(p) ? p->value[PARAM_QPS] : 1;
}

/** @return whether the number of received messages is reported: they may be lost, and the target
 * notices those that are not. */
static inline bool plan_counts_lost(const struct plan *p)
{
	return !plan_reliable(p) && plan_op(p)->receives && plan_test(p) != TEST_LAT;
}

/** Sets all values to their defaults. */
void plan_usual(struct plan *p);

/** @return "bw", "rate" or "lat". */
const char *plan_test_name(enum test test);

/** @return true and the test if @p name is that of one. */
bool plan_test_find(const char *name, uint64_t *test);

/** Reads @p text as parameter @p i.  @return false with a sentence in @p why. */
bool plan_set(struct plan *p, enum param i, const char *text, char *why, size_t room);

/** Checks for values that contradict each other. @return false with a sentence in @p why. */
bool plan_check(const struct plan *p, char *why, size_t room);

/** Adopts the client's plan @p theirs. @return false: it contradicts options given here, or is out
 * of range; a sentence in @p why. */
bool plan_adopt(struct plan *p, const uint64_t theirs[PARAM_COUNT], char *why, size_t room);

/** @return the first size, and the size after @p size; 0: there is none. */
uint32_t plan_first_size(const struct plan *p);
uint32_t plan_next_size(const struct plan *p, uint32_t size);

/** @return the largest size. */
uint32_t plan_largest(const struct plan *p);

#endif
