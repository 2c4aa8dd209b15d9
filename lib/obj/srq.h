/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file srq.h
 * Shared receive queues, the daemon's side. QPs of several workers take WQEs from one, each worker
 * on its own: no lock, no owner, no prefetched stock (doc/decisions/0080-srq.md).
 *
 * A worker copies the entry at `head` and then claims it by advancing `head` from the value at
 * which it copied. A worker that finds `head` changed discards only a copy; another one has made
 * progress. So a claimed entry is already copied: its slot is the application's again at once, and
 * a worker that pauses delays nobody.
 */
#ifndef SRQ_H
#define SRQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "abi_ring.h"
#include "abi_wqe.h"
#include "bits.h"
#include "limits.h"
#include "srq_table.h"

struct cq;

/** Bytes of the largest entry: SGE_MAX SGEs. */
#define SRQ_ENTRY_MAX 512u

/** Location of the entries. Immutable; a resize publishes another one. */
struct srq_ring {
	uint8_t *entries;
	uint32_t depth; /* power of two */
};

struct srq {
	/* control thread, before publication */
	struct abi_queue *shared; /* hostile: only `producer` is read */
	uint32_t stride;
	uint32_t max_sge;
	uint32_t srqn;
	uint32_t pd;	  /* for the keys of its WQEs, whatever the QP's */
	uint32_t handle;  /* in its session */
	uint32_t session; /* number of the session that owns it */
	uint32_t xrcd;	  /* number of its XRC domain; 0: not an XRC SRQ */
	struct cq *cq;	  /* XRC: CQ of its receives */
	/** Control thread: resize. A worker uses it only until its next quiescent state. */
	_Atomic(const struct srq_ring *) ring;
	/* all workers */
	/** Entries claimed, modulo 2^32. */
	_Atomic uint32_t head CACHE_ALIGNED;
	/** A former value of shared->producer, so that the application's cache line is not read
	 *  each time. */
	_Atomic uint32_t posted;
	/** With fewer WQEs than this an event is due, once; 0: not armed (SRQ-04). The control
	 *  thread arms it. */
	_Atomic uint32_t limit;
	/** The application wrote invalid contents (SRQ-08): nothing is taken any more. */
	_Atomic bool broken;
	/** Async events that have not been taken: a bit for each ABI_EVENT_*. */
	_Atomic uint32_t events;
	_Atomic uint64_t starved; /* messages that found it empty */
	_Atomic uint64_t limits;  /* limit events */
};

#define SRQN_SLOT(srqn)	     ((srqn) & (SRQ_MAX - 1))
#define SRQN_MAKE(gen, slot) (((uint32_t)(gen) << SRQN_SLOT_BITS | (uint32_t)(slot)) & 0xFFFFFFu)

/** @return the SRQ with number @p srqn, or NULL. */
static inline struct srq *srq_find(const struct srq_table *t, uint32_t srqn)
{
	struct srq *srq =
		t ? atomic_load_explicit(&t->slot[SRQN_SLOT(srqn)], memory_order_acquire) : NULL;

	return srq && srq->srqn == srqn ? srq : NULL;
}

enum srq_taken {
	SRQ_TAKEN,
	SRQ_EMPTY,
	SRQ_BROKEN,
};

/**
 * Takes the oldest WQE and copies its entry to @p copy: SRQ_ENTRY_MAX bytes, aligned to 16. Any
 * worker.
 */
enum srq_taken srq_take(struct srq *srq, void *copy);

/** @return number of WQEs posted and not taken; at most @p depth, because a hostile application may
 *  claim anything. Any thread. */
uint32_t srq_waiting(const struct srq *srq, uint32_t depth);

/** Whether fewer WQEs are posted than the armed limit; if so disarms it, and the caller raises
 *  SRQ_LIMIT_REACHED (SRQ-04). Any worker. */
bool srq_limit_reached(struct srq *srq);

/** Marks @p srq broken.  @return true the first time: the caller raises SRQ_ERR (SRQ-08). */
bool srq_break(struct srq *srq);

/** A copy from one ring to another, in steps. */
struct srq_move {
	uint32_t head;	  /* `head` when the copy began */
	uint32_t waiting; /* entries from there on to copy */
	uint32_t done;	  /* entries of the new ring that are final */
};

/**
 * Begins to copy the waiting entries to a ring of @p depth, where the same indices have other
 * slots. The entries of the old ring stay unchanged, because workers may be copying them. Entries
 * that they take meanwhile are in the new ring too, with marks that prevent their being taken
 * again. Control thread, while the application posts nothing.
 */
void srq_move_begin(struct srq_move *m, const struct srq *srq, uint32_t depth);

/** Continues with up to @p max entries.  @return true while there is more to do. */
bool srq_move_some(struct srq_move *m, const struct srq *srq, const struct srq_ring *to,
	const struct srq_ring *from, uint32_t max);

#endif
