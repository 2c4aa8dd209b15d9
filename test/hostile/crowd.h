/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file crowd.h
 * Many QPs of one session that share one region, for attacks by sheer number.
 */
#ifndef CROWD_H
#define CROWD_H

#include "attack.h"

#define CROWD_MAX 2048u

struct crowd {
	struct raw s;
	struct raw_mr mr;
	int channel;
	unsigned n, ncqs;
	struct raw_cq cq[CROWD_MAX];
	struct raw_qp qp[CROWD_MAX];
};

/** The attributes of the QPs of a crowd. */
struct crowd_spec {
	unsigned n;
	unsigned cqs;	   /* CQs, assigned to the QPs in turn */
	bool channel;	   /* the CQs have a channel, which is never read */
	uint32_t depth;	   /* of each queue */
	uint32_t sges;	   /* of a work request */
	size_t memory;	   /* bytes of the region, which is not touched */
	uint32_t cq_depth; /* 0: what the queues need */
};

/** Opens a session with QPs in RESET, fewer than requested if the user's quota allows no more. */
void crowd_open(struct crowd *c, const struct arena *a, const struct crowd_spec *spec);
void crowd_close(struct crowd *c);

/** Connects QP 2 i with QP 2 i + 1. */
void crowd_pair(struct crowd *c);

/** [@p at, @p at + @p len) of the region as an SGE. */
struct abi_sge crowd_sge(const struct crowd *c, size_t at, uint32_t len);

/** Posts a work request of @p n SGEs. */
void crowd_post(struct raw_qp *qp, unsigned opcode, const struct abi_sge *sge, unsigned n,
	uint64_t remote, uint32_t rkey);

/** Discards all completions.  @return how many there were. */
unsigned crowd_drain(struct crowd *c);

#endif
