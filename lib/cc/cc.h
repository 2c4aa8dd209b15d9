/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cc.h
 * The contract between the transport and a congestion control algorithm. An algorithm is one file
 * and its name in meson.build. The transport reports events of a QP to it, and reads how fast the
 * QP may send. An algorithm never calls back, allocates or reads a clock; `now` is nanoseconds of
 * any monotonic clock. It computes with integers, or with doubles without contraction, so that
 * every compiler gives the same digits.
 *
 * An algorithm runs no timer. When called, it computes what its timers would have done since the
 * last call; the results may differ by at most one packet.
 *
 * Only the functions below write, on behalf of the owner of the QP.
 */
#ifndef CC_H
#define CC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cc_algorithms.h"

/** `cc.rate` of a QP without a rate limit. */
#define CC_UNLIMITED 1e18
/** `cc.window` of an algorithm without a window. */
#define CC_NO_WINDOW 1e9
/** From on_time(): the outputs do not change by themselves. */
#define CC_NEVER UINT64_MAX

/** Limits of an algorithm: parameters, profiles, and bytes of state per QP. */
#define CC_PARAMS_MAX	24u
#define CC_PROFILES_MAX 4u
#define CC_STATE_MAX	160u

/* --- parameters ------------------------------------------------------------------------ */

/** The default of a parameter in one profile. */
struct cc_default {
	double value;
	bool per_25g; /* multiply by the line rate / 25 Gb/s */
};

/** A parameter. Options, commands, help and documents are generated from these rows. */
struct cc_param {
	const char *name;
	const char *unit; /* "" for a plain number */
	const char *help;
	double min, max; /* allowed values */
	bool or_zero;	 /* 0 is allowed, too, with the meaning that `help` gives */
	bool fraction;	 /* may have a fraction */
	struct cc_default def[CC_PROFILES_MAX];
};

struct cc_ops;

/** The parameters of a port or QP. Written by the control thread before publication. */
struct cc_config {
	const struct cc_ops *ops;
	double line; /* bit/s of the port */
	uint32_t profile;
	uint32_t set; /* bit i: value i is not the default */
	double value[CC_PARAMS_MAX];
	/** The parameters for packets that are not acknowledged: READ responses, UC and UD. NULL:
	 *  the same. It lives as long as this struct. */
	const struct cc_config *unacked;
};

/* --- state ----------------------------------------------------------------------------- */

/** Congestion control state of a QP: three cache lines. */
struct cc {
	const struct cc_config *cfg;
	double rate;	    /* bit/s on the wire, preamble and gap included, or CC_UNLIMITED */
	double window;	    /* packets in flight, or CC_NO_WINDOW */
	uint32_t ack_every; /* packets per requested ACK; 0: the transport decides */
	uint32_t reserved;
	_Alignas(8) uint8_t state[CC_STATE_MAX]; /* the algorithm's own */
};
_Static_assert(sizeof(struct cc) == 192, "three lines");

/** A QP's state as its algorithm displays it. */
struct cc_view {
	double rate;   /* bit/s; the line rate if unlimited */
	double target; /* bit/s */
	double alpha;
	double window; /* packets; 0: no window */
	uint64_t rtt;  /* ns, latest measurement; 0: none */
	bool limited;
};

/* --- events of a QP ----------------------------------------------------------------------- */

enum cc_notice {
	CC_CNP_PLAIN, /* from the peer */
	CC_CNP_FAST,  /* from a switch */
};

enum cc_loss {
	CC_LOSS_TIMEOUT,
	CC_LOSS_SEQUENCE, /* a PSN sequence NAK */
	CC_LOSS_IMPLIED,  /* an implied NAK */
	CC_LOSS_RNR,	  /* the peer had no receive WQE: not the network's fault */
};

/** Most switches on the path that an algorithm sees. */
#define CC_HOPS_MAX 5u

/** A queue on the path, as its switch recorded it. Time and bytes count modulo 2^32: only
 *  differences are meaningful, and those survive a wrap. */
struct cc_hop {
	double rate;	/* bit/s of its link */
	uint32_t time;	/* 1/256 ns */
	uint32_t sent;	/* 1/32 bytes */
	uint32_t queue; /* bytes queued */
};

struct cc_hops {
	const struct cc_hop *hop;
	unsigned n;
};

struct cc_ack {
	uint32_t psn;	  /* newest PSN that it acknowledges */
	uint32_t packets; /* of requests, newly acknowledged; a READ is one, with its last response
			   */
	uint64_t rtt;	  /* ns; 0: not measured */
	struct cc_hops hops;
};

struct cc_ops {
	const char *name;
	const char *title; /* one line for help and documents */
	const struct cc_param *params;
	unsigned nparams;
	const char *const *profiles; /* the first is the default */
	unsigned nprofiles;
	bool from_start; /* sees all events of a QP from creation; otherwise from its first CNP */
	bool wants_rtt;	 /* on_ack() needs round-trip times */
	bool wants_hops; /* on_ack() needs the queues on the path */
	bool needs_acks; /* only on_ack() steers it: see cc_config_unacked() */
	/** Sets @p c, whose cfg is set and whose other bytes are 0, to its state without
	 *  congestion. */
	void (*init)(struct cc *c, uint64_t now);
	/** One or more packets left together.
	 *  @param bytes  total on the wire
	 *  @param psn    of the last one
	 *  @param again  at least one is a retransmission */
	void (*on_sent)(struct cc *c, uint32_t bytes, uint32_t psn, bool again, uint64_t now);
	/** NULL: the algorithm ignores ACKs. */
	void (*on_ack)(struct cc *c, const struct cc_ack *ack, uint64_t now);
	void (*on_cnp)(struct cc *c, enum cc_notice kind, const struct cc_hops *hops, uint64_t now);
	void (*on_loss)(struct cc *c, enum cc_loss kind, uint64_t now);
	/** Brings the outputs up to @p now. @return when they next change by themselves */
	uint64_t (*on_time)(struct cc *c, uint64_t now);
	/** The worker was stalled until @p now and could not send: of the increases that
	 *  elapsed time alone would cause meanwhile, apply at most one. */
	void (*on_pause)(struct cc *c, uint64_t now);
	void (*look)(const struct cc *c, struct cc_view *v);
};

/* --- configuration ---------------------------------------------------------------------- */

/** @return the algorithm with number @p i, from 0, or NULL. */
const struct cc_ops *cc_algorithm(unsigned i);

/** @return the algorithm called @p name, or NULL. */
const struct cc_ops *cc_find(const char *name);

/** @return the number of the profile of @p ops called @p name, or -1. */
int cc_find_profile(const struct cc_ops *ops, const char *name);

/** @return the number of the parameter of @p ops called @p name, or -1. */
int cc_find_param(const struct cc_ops *ops, const char *name);

/** Gives @p cfg the defaults of @p profile, for a port of @p line bit/s. */
void cc_config_init(struct cc_config *cfg, const struct cc_ops *ops, unsigned profile, double line);

/** The port's rate is @p line bit/s from now on: defaults that depend on it follow. */
void cc_config_line(struct cc_config *cfg, double line);

/** Sets parameter @p i. @return false: @p value is not one of those that the row allows */
bool cc_config_set(struct cc_config *cfg, unsigned i, double value);

/** @return the value of the parameter @p name of notification, which DCQCN has. An algorithm that
 * has no such row leaves it at DCQCN's first default. */
double cc_config_notice(const struct cc_config *cfg, const char *name);

/** If the algorithm of @p cfg needs ACKs, makes @p unacked the parameters for packets that have
 *  none, DCQCN of the same profile, and refers to it. */
void cc_config_unacked(struct cc_config *cfg, struct cc_config *unacked);

/** Prepares @p c for a QP that follows @p cfg, which must outlive it. */
void cc_init(struct cc *c, const struct cc_config *cfg, uint64_t now);

/** The algorithms, one per file: cc_NAME. */
#define CC_ALGORITHM(name) extern const struct cc_ops cc_##name;
CC_ALGORITHMS
#undef CC_ALGORITHM

#endif
