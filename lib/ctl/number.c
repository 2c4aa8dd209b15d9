/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <sys/random.h>
#include "number.h"

#define GEN_MASK     ((1u << QPN_GEN_BITS) - 1)
#define QPN_FIRST    2u	       /* QP0 and QP1 are special (A17.5.8, QPS-24) */
#define QPN_RESERVED 0xFFFFFFu /* multicast (VAL-17) */
#define KEY_TRIES    32

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

int qpn_pool_init(struct qpn_pool *p)
{
	uint32_t start;
	int err = random_bytes(p->gen, sizeof(p->gen)); /* QPS-23 */

	if (!err)
		err = random_bytes(&start, sizeof(start));
	if (err)
		return err;
	for (uint32_t i = 0; i < QP_MAX; i++)
		p->line[i] = (uint16_t)((start + i) & (QP_MAX - 1));
	p->head = 0;
	p->count = QP_MAX;
	return 0;
}

int qpn_take(struct qpn_pool *p, uint32_t worker, uint32_t *qpn)
{
	uint32_t slot;

	if (!p->count)
		return -ENOSPC;
	slot = p->line[p->head]; /* QPS-23: the one that rested longest */
	p->head = (p->head + 1) & (QP_MAX - 1);
	p->count--;
	do {
		p->gen[slot]++;
		*qpn = QPN_MAKE(p->gen[slot] & GEN_MASK, worker, slot);
	} while (*qpn < QPN_FIRST || *qpn == QPN_RESERVED);
	return 0;
}

void qpn_release(struct qpn_pool *p, uint32_t qpn)
{
	p->line[(p->head + p->count) & (QP_MAX - 1)] = (uint16_t)QPN_SLOT(qpn);
	p->count++;
}

int srqn_pool_init(struct srqn_pool *p)
{
	int err = random_bytes(p->gen, sizeof(p->gen));

	return err ? err : random_bytes(&p->next, sizeof(p->next));
}

int srqn_choose(struct srqn_pool *p, const struct srq_table *t, uint32_t *srqn)
{
	for (uint32_t i = 0; i < SRQ_MAX; i++) {
		uint32_t slot = p->next++ & (SRQ_MAX - 1);

		if (atomic_load_explicit(&t->slot[slot], memory_order_relaxed))
			continue;
		do /* 0 is no SRQ's: programs take it for "none" */
			*srqn = SRQN_MAKE(++p->gen[slot], slot);
		while (!*srqn);
		return 0;
	}
	return -ENOSPC;
}

static bool slot_free(const struct mr_table *t, uint32_t slot)
{
	/* Slot 0 stays empty: programs take key 0 for "none". */
	return slot && !atomic_load_explicit(&t->slot[slot], memory_order_relaxed);
}

int key_choose(struct key_pool *p, const struct mr_table *t, uint32_t *key)
{
	uint32_t r, slot;
	int err;

	for (unsigned i = 0; i < KEY_TRIES; i++) {
		err = random_bytes(&r, sizeof(r));
		if (err)
			return err;
		slot = r % MR_MAX;
		if (slot_free(t, slot))
			goto found;
	}
	for (uint32_t i = 0; i < MR_MAX; i++) { /* nearly full: the next free one */
		slot = (r + i) % MR_MAX;
		if (slot_free(t, slot))
			goto found;
	}
	return -ENOSPC;
found:
	/* Another part than last time in this slot, so that the stale key fails (MR-01). */
	p->part[slot] = (uint8_t)(p->part[slot] + 1 + (r >> 16) % 255);
	*key = slot << 8 | p->part[slot];
	return 0;
}
