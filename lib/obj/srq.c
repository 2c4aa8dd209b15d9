/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "srq.h"
#include "uaccess.h"

static uint8_t *entry(const struct srq *srq, const struct srq_ring *ring, uint32_t idx)
{
	return ring->entries + (size_t)(idx & (ring->depth - 1)) * srq->stride;
}

/* Number of entries from @p head on that the application reports as posted. Its index is read again
 * only when our copy covers fewer than @p wanted. */
static uint32_t posted_from(struct srq *srq, uint32_t head, uint32_t wanted)
{
	uint32_t posted = atomic_load_explicit(&srq->posted, memory_order_acquire);

	/* A copy from before `head` advanced must be refreshed. */
	if ((int32_t)(posted - head) >= (int32_t)wanted)
		return posted - head;
	posted = atomic_load_explicit(&srq->shared->producer, memory_order_acquire);
	atomic_store_explicit(&srq->posted, posted, memory_order_release);
	return posted - head;
}

/* Returns the slots below `head` to the application. Two workers may arrive here in the opposite
 * order of their claims, so each rereads `head` and writes again if its value was not the newest.
 */
static void publish_consumer(struct srq *srq, uint32_t claimed)
{
	uint32_t head = claimed;

	do {
		claimed = head;
		atomic_store(&srq->shared->consumer, claimed);
		head = atomic_load(&srq->head);
	} while (head != claimed);
}

/* Copies the entry at @p head, as long as that is the head. */
static enum srq_taken peek(struct srq *srq, uint32_t head, void *copy, uint32_t *phase)
{
	uint32_t posted = posted_from(srq, head, 1);
	/* Read after `posted`: a worker that sees the entries posted to a ring sees the ring. */
	const struct srq_ring *ring = atomic_load_explicit(&srq->ring, memory_order_acquire);

	if (atomic_load_explicit(&srq->broken, memory_order_relaxed))
		return SRQ_BROKEN;
	if (!posted)
		return SRQ_EMPTY;
	if (posted > ring->depth)
		return SRQ_BROKEN;
	uaccess_wqe(copy, entry(srq, ring, head), srq->stride);
	*phase = abi_phase(head, ring->depth);
	return SRQ_TAKEN;
}

enum srq_taken srq_take(struct srq *srq, void *copy)
{
	uint32_t head = atomic_load_explicit(&srq->head, memory_order_acquire);
	uint32_t seen, phase;

	for (;;) {
		enum srq_taken found = peek(srq, head, copy, &phase);

		seen = head;
		if (found != SRQ_TAKEN) {
			/* If the head has advanced meanwhile, this means nothing. */
			head = atomic_load_explicit(&srq->head, memory_order_acquire);
			if (head == seen)
				return found;
			continue;
		}
		/* The loads of the copy precede it; publish_consumer() of others must see it. */
		if (atomic_compare_exchange_strong_explicit(&srq->head, &head, seen + 1,
			    memory_order_seq_cst, memory_order_acquire))
			break;
	}
	publish_consumer(srq, seen + 1);
	if ((((const struct abi_recv_wqe *)copy)->ctl & ABI_WQE_PHASE) != phase)
		return SRQ_BROKEN; /* posted, according to the application, but not there */
	return SRQ_TAKEN;
}

uint32_t srq_waiting(const struct srq *srq, uint32_t depth)
{
	uint32_t head = atomic_load_explicit(&srq->head, memory_order_acquire);
	uint32_t n = atomic_load_explicit(&srq->shared->producer, memory_order_acquire) - head;

	return n < depth ? n : depth;
}

bool srq_limit_reached(struct srq *srq)
{
	uint32_t limit = atomic_load_explicit(&srq->limit, memory_order_relaxed);
	uint32_t head;

	if (likely(!limit))
		return false;
	head = atomic_load_explicit(&srq->head, memory_order_acquire);
	if (posted_from(srq, head, limit) >= limit)
		return false;
	/* Another worker was first, or the control thread has armed another limit meanwhile. */
	if (!atomic_compare_exchange_strong_explicit(
		    &srq->limit, &limit, 0, memory_order_relaxed, memory_order_relaxed))
		return false;
	atomic_fetch_add_explicit(&srq->limits, 1, memory_order_relaxed);
	return true;
}

bool srq_break(struct srq *srq)
{
	return !atomic_exchange(&srq->broken, true);
}

void srq_move_begin(struct srq_move *m, const struct srq *srq, uint32_t depth)
{
	uint32_t n;

	m->head = atomic_load_explicit(&srq->head, memory_order_acquire);
	n = atomic_load_explicit(&srq->shared->producer, memory_order_acquire) - m->head;
	m->waiting = n < depth ? n : depth; /* a hostile application loses only its own entries */
	m->done = 0;
}

bool srq_move_some(struct srq_move *m, const struct srq *srq, const struct srq_ring *to,
	const struct srq_ring *from, uint32_t max)
{
	uint8_t copy[SRQ_ENTRY_MAX] __attribute__((aligned(16)));
	struct abi_recv_wqe *w = (struct abi_recv_wqe *)copy;
	uint32_t end = max < to->depth - m->done ? m->done + max : to->depth;

	for (; m->done < end && m->done < m->waiting; m->done++) {
		uint32_t i = m->head + m->done;

		uaccess_wqe(copy, entry(srq, from, i), srq->stride);
		/* A wrong mark stays wrong (SRQ-08). */
		w->ctl ^= abi_phase(i, from->depth) ^ abi_phase(i, to->depth);
		memcpy(entry(srq, to, i), copy, srq->stride);
	}
	/* Empty slots must not look posted (SRQ-08): zeroes are a valid mark in every other lap. */
	memset(copy, 0, sizeof(copy));
	for (; m->done < end; m->done++) {
		uint32_t i = m->head + m->done;

		w->ctl = abi_phase(i, to->depth) ^ ABI_WQE_PHASE;
		memcpy(entry(srq, to, i), copy, srq->stride);
	}
	return m->done < to->depth;
}
