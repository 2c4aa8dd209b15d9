/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/random.h>
#include "core.h"
#include "limits.h"
#include "mr.h"
#include "qp_table.h"
#include "session/ids.h"
#include "srq.h"

#define GENERATIONS  (1u << QPN_GEN_BITS)
#define SRQN_GENS    (1u << (24 - SRQN_SLOT_BITS))
#define KEY_PARTS    256u
#define QPN_FIRST    2u	       /* QP0 and QP1 are special (A17.5.8, QPS-24) */
#define QPN_RESERVED 0xFFFFFFu /* multicast (VAL-17) */
#define SLOT_TRIES   32

int random_bytes(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* A random number in [0, @p n). */
static int pick_below(uint32_t n, uint32_t *out)
{
	uint32_t r = 0;
	int err = random_bytes(&r, sizeof(r));

	*out = (uint32_t)((uint64_t)r * n >> 32);
	return err;
}

/* A random number in [0, @p n) other than @p last, so that packets for the previous holder do not
 * reach the new one. */
static int pick_another(uint32_t n, uint32_t last, uint32_t *out)
{
	uint32_t step;
	int err = pick_below(n - 1, &step);

	*out = (last + 1 + step) % n;
	return err;
}

/* --- QPNs ----------------------------------------------------------------------------- */

int qpn_pool_init(struct qpn_pool *p)
{
	for (uint32_t i = 0; i < QP_MAX; i++)
		p->line[i] = (uint16_t)i;
	p->head = 0;
	p->count = QP_MAX;
	p->resting = 0;
	return random_bytes(p->gen, sizeof(p->gen)); /* QPS-23 */
}

/* Moves a random slot that has rested to the front (SEC-04). The last ones to become free rest
 * (QPS-23); when few are free, half of them do. */
static int choose_front(struct qpn_pool *p)
{
	uint32_t rest = p->count / 2 < p->resting ? p->count / 2 : p->resting;
	uint16_t *front = &p->line[p->head], *chosen;
	uint32_t i;
	int err = pick_below(p->count - rest, &i);
	uint16_t slot = *front;

	if (err)
		return err;
	chosen = &p->line[(p->head + i) & (QP_MAX - 1)];
	*front = *chosen;
	*chosen = slot;
	return 0;
}

int qpn_take(struct qpn_pool *p, uint32_t worker, uint32_t *qpn)
{
	uint32_t slot, gen;
	int err = p->count ? choose_front(p) : -ENOSPC;

	if (err)
		return err;
	slot = p->line[p->head];
	do {
		err = pick_another(GENERATIONS, p->gen[slot] % GENERATIONS, &gen);
		if (err)
			return err;
		*qpn = QPN_MAKE(gen, worker, slot);
	} while (*qpn < QPN_FIRST || *qpn == QPN_RESERVED);
	p->gen[slot] = (uint8_t)gen;
	p->head = (p->head + 1) & (QP_MAX - 1);
	p->count--;
	if (p->resting > p->count)
		p->resting = p->count;
	return 0;
}

void qpn_release(struct qpn_pool *p, uint32_t qpn)
{
	p->line[(p->head + p->count) & (QP_MAX - 1)] = (uint16_t)QPN_SLOT(qpn);
	p->count++;
	if (p->resting < QPN_REST)
		p->resting++;
}

/* --- SRQNs and keys ------------------------------------------------------------------- */

/* A random free slot of @p n; when nearly all are taken, the next free one. */
static int choose_slot(bool (*is_free)(const void *table, uint32_t slot), const void *table,
	uint32_t n, uint32_t *slot)
{
	uint32_t first = 0;

	for (unsigned i = 0; i < SLOT_TRIES; i++) {
		int err = pick_below(n, &first);

		*slot = first;
		if (err || is_free(table, first))
			return err;
	}
	for (uint32_t i = 1; i < n; i++) {
		*slot = (first + i) % n;
		if (is_free(table, *slot))
			return 0;
	}
	return -ENOSPC;
}

int srqn_pool_init(struct srqn_pool *p)
{
	return random_bytes(p->gen, sizeof(p->gen));
}

static bool srq_slot_is_free(const void *table, uint32_t slot)
{
	const struct srq_table *t = table;

	return !atomic_load_explicit(&t->slot[slot], memory_order_relaxed);
}

int srqn_choose(struct srqn_pool *p, const struct srq_table *t, uint32_t *srqn)
{
	uint32_t slot, gen;
	int err = choose_slot(srq_slot_is_free, t, SRQ_MAX, &slot);

	while (!err) {
		err = pick_another(SRQN_GENS, p->gen[slot] % SRQN_GENS, &gen);
		*srqn = err ? 0 : SRQN_MAKE(gen, slot);
		if (*srqn) /* never 0: programs take it for "none" */
			break;
	}
	if (!err)
		p->gen[slot] = (uint16_t)gen;
	return err;
}

static bool key_slot_is_free(const void *table, uint32_t slot)
{
	const struct mr_table *t = table;

	/* Slot 0 stays empty: programs take key 0 for "none". */
	return slot && !atomic_load_explicit(&t->slot[slot], memory_order_relaxed);
}

int key_choose(struct key_pool *p, const struct mr_table *t, uint32_t *key)
{
	uint32_t slot, part;
	int err = choose_slot(key_slot_is_free, t, MR_MAX, &slot);

	/* Not the last part of this slot, so that a stale key fails (MR-01). */
	if (!err)
		err = pick_another(KEY_PARTS, p->part[slot], &part);
	if (err)
		return err;
	p->part[slot] = (uint8_t)part;
	*key = slot << 8 | part;
	return 0;
}
