/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file abi_ring.h
 * Shared memory between rocid and one application: rings, doorbells, CQ lanes. doc/abi.md
 * tells the same in prose.
 *
 * All regions are memfds that rocid creates, sizes and seals; the application maps them
 * read-write. They hold offsets and indices, never pointers. Every word says who writes it:
 * the other side only reads. rocid trusts no word that the application can write.
 *
 * **Phase mark.** Entry i of a ring of `depth` entries (a power of two) is written in lap
 * i / depth. Its mark is 1 in even laps and 0 in odd ones; regions start as zeroes, so before
 * the first lap every mark says "not yet". The producer writes the entry first and its mark
 * last, with release; the consumer reads the mark with acquire.
 */
#ifndef ABI_RING_H
#define ABI_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Bytes between words of different writers: two lines, because CPUs prefetch pairs. */
#define ABI_LINE 128

/** @return the mark of the @p idx-th entry ever put into a ring of @p depth entries. */
static inline uint32_t abi_phase(uint32_t idx, uint32_t depth)
{
	return (idx & depth) ? 0 : 1;
}

/**
 * Head of a send, receive or shared receive queue. Entries follow at the offset that the
 * create reply names; entry i lies at (i & (depth - 1)) * stride. A QP's indices and marks go
 * on through RESET, which takes all entries without executing them.
 */
struct abi_queue {
	/* written by rocid */
	/** 1: ring the doorbell after the next post; 0: the worker is looking anyway. */
	_Atomic uint32_t need_doorbell;
	/** Entries whose slots are free again, modulo 2^32. SQ: completed work requests; RQ and
	 *  SRQ: receive WQEs that were copied out. Stored behind the CQE, perhaps once a burst:
	 *  who has polled a request's CQE need not wait for it. */
	_Atomic uint32_t consumer;
	/** SQ: 0, ring the doorbell of the worker that the create reply names; else of worker
	 *  `bell` - 1, to which the QP has moved. A ring that comes too late is passed on. */
	_Atomic uint32_t bell;
	uint8_t pad0[ABI_LINE - 12];
	/* written by the application */
	/** Entries posted, modulo 2^32. Shared receive queues are bounded by it; for the other
	 *  queues the phase marks decide and this is for diagnosis. */
	_Atomic uint32_t producer;
	uint8_t pad1[ABI_LINE - 4];
};
_Static_assert(sizeof(struct abi_queue) == 2 * ABI_LINE, "abi_queue");

/**
 * Head of a completion queue. After it come `lanes` lanes, each `lane_stride` bytes: a
 * struct abi_cq_lane and then `depth` entries of struct abi_cqe. One worker writes one lane.
 * The region of a resized queue is laid out alike, but this head stays that of the first one.
 */
struct abi_cq {
	/** ABI_CQ_ARM_*: the application sets it, the worker whose compare-and-swap clears it
	 *  sends the event. Bits 31:2 count the arms, so that no two are alike. */
	_Atomic uint32_t arm;
	/** Written by rocid: how often it has replaced the ring. It counts before any worker turns
	 *  to the new one, so who finds a lane empty sees whether he has the newest ring. */
	_Atomic uint32_t resizes;
	uint8_t pad0[ABI_LINE - 8];
};
_Static_assert(sizeof(struct abi_cq) == ABI_LINE, "abi_cq");

#define ABI_CQ_ARM_NONE	     0u
#define ABI_CQ_ARM_SOLICITED 1u /* the next solicited or error CQE */
#define ABI_CQ_ARM_ANY	     2u /* the next CQE */
#define ABI_CQ_ARM_MASK	     3u
#define ABI_CQ_ARM_STEP	     4u

struct abi_cq_lane {
	/** CQEs taken, modulo 2^32; written by the application at least every quarter of the
	 *  depth. A lane whose worker sees it `depth` behind has overflowed (CQ-01). */
	_Atomic uint32_t consumer;
	uint8_t pad0[ABI_LINE - 4];
};
_Static_assert(sizeof(struct abi_cq_lane) == ABI_LINE, "abi_cq_lane");

/* --- doorbells ---------------------------------------------------------------------- */

/** Doorbell slots a session; a QP's slot is in its create reply. */
#define ABI_DB_MAX     16384u
#define ABI_DB_WORDS   (ABI_DB_MAX / 64)
#define ABI_DB_SUMMARY (ABI_DB_WORDS / 64)

/**
 * Doorbell of one (session, worker): a two-level bitmap. The application sets bit
 * `slot % 64` of bits[slot / 64], then bit `(slot / 64) % 64` of summary[slot / 4096], each
 * with an atomic OR; the worker takes words by atomic exchange with 0, summary first.
 *
 * A worker may sleep. Who has an eventfd for it (GET_WAKE) rings, makes a sequentially consistent
 * fence, and writes the eventfd if `asleep` is set: the worker sets it, fences and looks at the
 * bits once more before it sleeps, so that one of the two sees the other.
 */
struct abi_doorbell {
	_Atomic uint64_t summary[ABI_DB_SUMMARY];
	/** Written by rocid: the worker sleeps, or is about to. In the line of `summary` because
	 *  who reads it has just written there. */
	_Atomic uint32_t asleep;
	uint8_t pad0[ABI_LINE - 8 * ABI_DB_SUMMARY - 4];
	_Atomic uint64_t bits[ABI_DB_WORDS];
};
_Static_assert(sizeof(struct abi_doorbell) == ABI_LINE + 8 * ABI_DB_WORDS, "abi_doorbell");

/** Head of the session region (its memfd comes with the hello reply). */
struct abi_session {
	/* written by rocid */
	/** Number of this run of rocid; 0 once it has shut down. An application that finds
	 *  another value than in its hello reply has lost its daemon. */
	_Atomic uint64_t epoch;
	uint8_t pad0[ABI_LINE - 8];
	/* struct abi_doorbell of worker w at doorbell_off + w * doorbell_stride */
};
_Static_assert(sizeof(struct abi_session) == ABI_LINE, "abi_session");

/** Rings slot @p slot of @p db; any thread of the application. */
static inline void abi_doorbell_ring(struct abi_doorbell *db, uint32_t slot)
{
	atomic_fetch_or_explicit(&db->bits[slot / 64], 1ull << (slot % 64), memory_order_release);
	atomic_fetch_or_explicit(
		&db->summary[slot / 4096], 1ull << (slot / 64 % 64), memory_order_release);
}

#endif
