/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cq.h
 * Completion queues, the daemon's side: one lane per worker, so that no two workers ever
 * write the same ring (design.md 4). Overflow is per lane (CQ-01).
 */
#ifndef CQ_H
#define CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "abi_ring.h"
#include "abi_wqe.h"
#include "limits.h"
#include "list.h"

/** Written by its worker only; the ring pointers are set before the CQ is published. */
struct cq_lane {
	struct abi_cqe *ring;
	const _Atomic uint32_t *consumer; /* the application's */
	uint32_t depth;			  /* power of two */
	uint32_t head;			  /* CQEs written */
	uint32_t seen; /* copy of *consumer, refreshed when the lane looks full */
	bool overflow;
	/* what this burst added, for cq_notify_wanted() */
	bool added;
	bool added_solicited;
	struct list touched; /* on the core's list of lanes with news */
	struct cq *cq;
} __attribute__((aligned(64)));

struct cq {
	_Atomic uint32_t *arm; /* shared with the application */
	uint32_t handle;       /* in its session */
	uint32_t session;      /* number of the session that owns it */
	uint32_t channel;      /* handle of its completion channel, ABI_NO_HANDLE: none */
	uint32_t lanes;
	struct cq_lane lane[WORKER_MAX];
};

/**
 * Sets up lane @p i over memory that is laid out as abi_ring.h says. Control thread, before
 * the CQ is published.
 * @param depth power of two, at most CQE_MAX
 */
void cq_lane_init(struct cq *cq, uint32_t i, struct abi_cq_lane *shared, uint32_t depth);

/**
 * Appends @p cqe to @p lane, as completion number @p number of its queue; its mark is filled in
 * here. The lane's worker.
 * @return false when the lane is full: nothing was written, the lane is marked overflown and
 * the caller raises CQ_ERR and moves the QP to ERR (CQ-01).
 */
bool cq_push(struct cq_lane *lane, const struct abi_cqe *cqe, uint32_t number);

/** @return how many CQEs of @p lane wait to be taken, as far as the application has told. The
 *  lane's worker. */
uint32_t cq_lane_waiting(const struct cq_lane *lane);

/**
 * Has @p lane go on at the start of a new ring, laid out as for cq_lane_init(). What lies in
 * the old one stays there for the application (CQ-11); an overflow is not forgotten. The
 * lane's worker.
 */
void cq_lane_move(struct cq_lane *lane, struct abi_cq_lane *shared, uint32_t depth);

/**
 * Whether what was added since the last call must raise an event (CQ-03..06), and if so
 * disarms. Call after a sequentially consistent fence that follows the burst's last cq_push(),
 * so that an application that arms and then polls cannot miss both (design.md 4).
 */
bool cq_notify_wanted(struct cq_lane *lane);

#endif
