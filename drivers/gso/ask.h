/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file gso/ask.h
 * Asks a queue's peers whether they take super-frames (trial.h), remembers their answers (peers.h),
 * and answers their questions. On the worker's thread.
 */
#ifndef GSO_ASK_H
#define GSO_ASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "gso/peers.h"
#include "gso/trial.h"
#include "limits.h"

struct port;

struct gso_ask {
	int fd;			 /* of its packet socket */
	const struct port *port; /* which owns the addresses that it answers for */
	/** An answer may arrive at any queue of the port. */
	const struct gso_ask *all[WORKER_MAX];
	unsigned queues;
	struct gso_peers peers;
	struct gso_answers answers;
	/** The answer that is owed. There is room for only one, which limits the cost of a flood of
	 *  trials. */
	uint8_t owed[GSO_TRIAL_MAX];
	uint32_t owed_len;		   /* 0: none */
	bool refused;			   /* this kernel sends no super-frames */
	_Atomic uint64_t trials, answered; /* sent trials and answers; written by the worker */
};

/** @p ticks_per_ms of the clock of `now` below. The socket, the port and the other queues are set
 *  by the caller. */
void gso_ask_init(struct gso_ask *a, uint64_t ticks_per_ms);

/**
 * Decides about a run that begins with @p frame, which gso_begin() accepted. Sends a trial if that
 * is due.
 * @return whether its receiver takes runs.
 */
bool gso_ask_takes(struct gso_ask *a, const uint8_t *frame, uint64_t now);

/**
 * Takes note of the single frame of @p len bytes at @p frame, for which gso_trial_long() holds.
 * @param to_us  the kernel found this netdev's MAC in it
 * @return true if it is a trial or an answer, which must not be passed on.
 */
bool gso_ask_heard(struct gso_ask *a, const uint8_t *frame, uint32_t len, bool to_us);

/** Sends the answer that is owed, if there is one. */
void gso_ask_reply(struct gso_ask *a);

#endif
