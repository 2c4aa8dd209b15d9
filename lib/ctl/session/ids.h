/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/ids.h
 * Numbers that peers see: QPNs and memory keys. None is reused soon, because packets for its
 * previous holder may still be in flight (QPS-23, MR-01), and none is easy to guess (SEC-04).
 * Control thread.
 */
#ifndef SESSION_IDS_H
#define SESSION_IDS_H

#include <stddef.h>
#include <stdint.h>
#include "limits.h"

struct mr_table;
struct srq_table;

/** QPNs: the free slots of the QP table, and the last generation of each. Resting slots are at the
 *  end of the line, in the order in which they became free. */
struct qpn_pool {
	uint16_t line[QP_MAX];
	uint32_t head;
	uint32_t count;
	uint32_t resting;
	uint8_t gen[QP_MAX];
};

/** @return 0, or a negative errno when the kernel returns no random bytes. */
int qpn_pool_init(struct qpn_pool *p);

/** Takes a random slot among those that have rested, with a random generation.
 *  @return 0; -ENOSPC if QP_MAX QPs exist; or a negative errno of getrandom. */
int qpn_take(struct qpn_pool *p, uint32_t worker, uint32_t *qpn);

/** Returns the slot of @p qpn. */
void qpn_release(struct qpn_pool *p, uint32_t qpn);

/** SRQNs: the last generation per slot of the SRQ table. */
struct srqn_pool {
	uint16_t gen[SRQ_MAX];
};

/** @return 0, or a negative errno when the kernel returns no random bytes. */
int srqn_pool_init(struct srqn_pool *p);

/** Chooses a number in a free slot of @p t; the slot stays free until the caller publishes there.
 *  @return 0; -ENOSPC if SRQ_MAX SRQs exist; or a negative errno of getrandom. */
int srqn_choose(struct srqn_pool *p, const struct srq_table *t, uint32_t *srqn);

/** The last key part per slot of the MR table. */
struct key_pool {
	uint8_t part[MR_MAX];
};

/**
 * Chooses a key in a free slot of @p t; the slot stays free until the caller publishes there.
 * @return 0, -ENOSPC if all slots are taken, or a negative errno of getrandom.
 */
int key_choose(struct key_pool *p, const struct mr_table *t, uint32_t *key);

/** Fills @p buf with random bytes.  @return 0 or a negative errno. */
int random_bytes(void *buf, size_t len);

#endif
