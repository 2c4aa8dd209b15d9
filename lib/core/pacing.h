/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pacing.h
 * The rate of a QP: the lower of the administrator's limit and the rate that the port's congestion
 * control (cc.h) allows. Packets with data leave one quantum at a time: the next departure is the
 * last one plus bytes / rate, with the current rate. Until its departure a QP is not on a ready
 * list but on the core's pacing wheel.
 *
 * Unused rate is not saved up: after an idle time departures start from scratch, and a worker that
 * was late makes up for at most one quantum. ACKs, NAKs, responses without data, flushes and WQEs
 * that send nothing never wait.
 *
 * A QP without a limit that has never been notified of congestion has `limited` 0, and checking
 * that is all that pacing costs its packets.
 */
#ifndef PACING_H
#define PACING_H

#include <stdbool.h>
#include <stdint.h>
#include "bits.h"
#include "cc.h"
#include "core_command.h"
#include "ioam.h"
#include "rtt.h"
#include "wheel.h"

struct core;
struct qp;
struct txd;

/** Fractional bits of limiter.step and limiter.fraction. */
#define PACING_SHIFT 20

/** The algorithm that a QP does not follow now. */
struct limiter_aside {
	const struct cc_ops *ops;
	uint64_t settled;
	struct cc cc;
	uint32_t unsaid;
};

/** The limiter of a QP. Its memory belongs to the QP and is not touched while `qp.limited` is 0,
 *  except by commands and CNPs. Written by pacing.c. */
struct limiter {
	uint64_t last;	    /* ns: when the last packets were to leave */
	uint64_t step;	    /* ns per byte, PACING_SHIFT fractional bits; 0: no rate */
	uint32_t owed;	    /* bytes that left then, on the wire */
	uint32_t fraction;  /* of `last` */
	uint64_t slack;	    /* ns by which a departure may be late and be caught up */
	uint64_t change_at; /* when the algorithm next changes its outputs by itself */
	uint32_t
		ack_every; /* packets after which an ACK is needed, so that its timer is not late */
	uint8_t quantum;   /* packets that leave together */
	uint8_t left;	   /* of them, in later turns; 0 unless `quantum` is more than a turn */
	bool waited;	   /* the QP had more to send before its departure time */
	bool has_own;	   /* `chosen` holds in place of the port's parameters */
	uint32_t unsaid;   /* sent bytes that were not reported to the algorithm yet */
	struct qp *qp;
	struct wheel_timer timer CACHE_ALIGNED; /* on core.pace while it waits */
	uint64_t asked;				/* bit/s, the administrator's; 0: none */
	struct core_shape own;			/* the program's */
	const struct cc_config *chosen;		/* by an administrator; NULL: no algorithm */
	uint64_t settled;			/* when the algorithm was last asked */
	uint64_t since;	  /* when packets began to wait for their departures; 0: they do not */
	uint64_t cnps;	  /* handled */
	uint64_t before;  /* of them, before `since` */
	struct rtt rtt;	  /* for an algorithm that needs it */
	struct ioam echo; /* telemetry.c: the newest trace that was received */
	const struct cc_ops *ops; /* whose state `cc` is; NULL: none yet */
	struct cc cc;
	/* An algorithm that needs ACKs is paired with another one, for packets that have none. */
	bool unacked;		    /* `cc` is for those */
	bool turns;		    /* the QP sends both */
	bool detours;		    /* changes to another path when that is allowed */
	struct limiter_aside aside; /* the other one, meanwhile */
};

/** Prepares the limiter of a new QP. */
void pacing_init(struct qp *qp);

/** INIT -> RTR: discards the algorithm's state. Requested rates are kept. */
void pacing_restart(struct core *c, struct qp *qp, uint64_t now);

/** RESET: the same, and also discards the rate that the program requested. */
void pacing_reset(struct core *c, struct qp *qp, uint64_t now);

/** The path, the MTU or the timeout of @p qp has changed. */
void pacing_refresh(struct core *c, struct qp *qp, uint64_t now);

/** CORE_CMD_SET_RATE: @p rate bit/s on the wire, preamble and gap included; 0: no limit. */
void pacing_set_rate(struct core *c, struct qp *qp, uint64_t rate, uint64_t now);

/** CORE_CMD_SHAPE_QP: the program of @p qp limits its rate. The minimum rate applies. */
void pacing_shape(struct core *c, struct qp *qp, const struct core_shape *shape, uint64_t now);

/** CORE_CMD_SET_CC: an algorithm that stays keeps what it knows, another one starts from scratch.
 */
void pacing_set_cc(struct core *c, struct qp *qp, const struct core_cc *cc, uint64_t now);

/** The limit of @p qp, as of the last time that it was asked. */
void pacing_view(const struct core *c, const struct qp *qp, struct core_limit *out);

/** CORE_CMD_QUERY_RATE: of now. */
void pacing_look(struct core *c, struct qp *qp, struct core_limit *out, uint64_t now);

/* --- what happens to it ------------------------------------------------------------------ */

/** A valid CNP arrived for @p qp. */
void pacing_cnp(struct core *c, struct qp *qp, enum cc_notice kind, uint64_t now);

/** @p qp is to leave its path, which is congested, as soon as no packet can overtake another. */
void pacing_detour(struct core *c, struct qp *qp, uint64_t now);

/** @p packets of @p qp, which is limited, were acknowledged for the first time, up to @p psn. */
void pacing_ack(struct core *c, struct qp *qp, uint32_t psn, uint32_t packets, uint64_t now);

/** Packets of @p qp, which is limited, were lost. */
void pacing_loss(struct core *c, struct qp *qp, enum cc_loss kind, uint64_t now);

/* --- departures --------------------------------------------------------------------------- */

/** @return how many of @p n packets of @p qp, which is limited, may leave now. */
unsigned pacing_room(struct core *c, struct qp *qp, unsigned n, uint64_t now);

/** The @p n packets @p out leave now.
 *  @param again  some of them are retransmissions
 *  @return whether the next may leave at once, too. */
bool pacing_sent(
	struct core *c, struct qp *qp, const struct txd *out, unsigned n, bool again, uint64_t now);

/** Puts @p qp, which has more to send, on the timer wheel until its departure time. */
void pacing_wait(struct core *c, struct qp *qp);

/** @p qp has nothing to send. */
void pacing_rest(struct qp *qp);

/** It does not wait on this core's wheel any longer. */
void pacing_cancel(struct core *c, struct qp *qp);

/** @return whether @p qp waits on the wheel. */
bool pacing_waits(const struct qp *qp);

/** Makes the QPs ready whose departure has come. */
void pacing_expire(struct core *c, uint64_t now);

/** @return the rate that @p qp is limited to, in bit/s; 0: none. Any thread. */
uint64_t pacing_rate(const struct qp *qp);

/** @return whether a packet of @p qp, which is limited, must ask for an ACK now. */
bool pacing_wants_ack(const struct qp *qp);

#endif
