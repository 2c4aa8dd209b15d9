/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file abi_ring.h
 * Shared memory between rocid and one application: rings, doorbells, CQ lanes. doc/abi.md describes
 * it in prose.
 *
 * All regions are memfds that rocid creates, sizes and seals; the application maps them read-write.
 * They hold offsets and indices, never pointers. Each word has one writer, which its comment names;
 * the other side only reads it. rocid trusts no word that the application can write.
 *
 * **Phase mark.** Entry i of a ring of `depth` entries (a power of two) is written in lap i /
 * depth. Its mark is 1 in even laps and 0 in odd ones; regions are initially zero, so before the
 * first lap every mark means "not yet". The producer writes the entry first and its mark last, with
 * release; the consumer reads the mark with acquire.
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
 * Head of a send, receive or shared receive queue. Entries start at the offset given in the create
 * reply; entry i is at (i & (depth - 1)) * stride. A QP's indices and marks continue through RESET,
 * which takes all entries without executing them.
 */
struct abi_queue {
	/* written by rocid */
	/** 1: ring the doorbell after the next post; 0: the worker polls the ring anyway. */
	_Atomic uint32_t need_doorbell;
	/** Entries whose slots are free again, modulo 2^32. SQ: completed work requests; RQ and
	 *  SRQ: receive WQEs that were copied out. Stored after the CQE, perhaps once per burst: an
	 *  application that has polled a request's CQE need not wait for it. */
	_Atomic uint32_t consumer;
	/** SQ: 0: ring the doorbell of the worker in the create reply; otherwise that of worker
	 *  `bell` - 1, to which the QP has moved. A ring at the old worker is passed on. */
	_Atomic uint32_t bell;
	uint8_t pad0[ABI_LINE - 12];
	/* written by the application */
	/** Entries posted, modulo 2^32. Limits how far a shared receive queue is read; for other
	 *  queues only the phase marks count, and this is for diagnosis. */
	_Atomic uint32_t producer;
	uint8_t pad1[ABI_LINE - 4];
};
_Static_assert(sizeof(struct abi_queue) == 2 * ABI_LINE, "abi_queue");

/**
 * Head of a completion queue, followed by `lanes` lanes of `lane_stride` bytes each: a struct
 * abi_cq_lane and `depth` entries of struct abi_cqe. Each lane is written by one worker. The region
 * of a resized queue has the same layout, but the head in use remains that of the first region.
 */
struct abi_cq {
	/** ABI_CQ_ARM_*: set by the application; the worker whose compare-and-swap clears it sends
	 *  the event. Bits 31:2 count the arms, so that no two are equal. */
	_Atomic uint32_t arm;
	/** Written by rocid: number of times it has replaced the ring. Incremented before any
	 *  worker switches to the new ring, so an application that finds a lane empty can tell
	 *  whether it has the newest ring. */
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
	/** CQEs taken, modulo 2^32; written by the application at least every quarter of the depth.
	 *  If the worker is `depth` entries ahead, the lane has overflowed (CQ-01). */
	_Atomic uint32_t consumer;
	uint8_t pad0[ABI_LINE - 4];
};
_Static_assert(sizeof(struct abi_cq_lane) == ABI_LINE, "abi_cq_lane");

/* --- doorbells ---------------------------------------------------------------------- */

/** Doorbell slots per session; a QP's slot is in its create reply. */
#define ABI_DB_MAX     16384u
#define ABI_DB_WORDS   (ABI_DB_MAX / 64)
#define ABI_DB_SUMMARY (ABI_DB_WORDS / 64)

/**
 * Doorbell of one (session, worker): a two-level bitmap. The application sets bit `slot % 64` of
 * bits[slot / 64], then bit `(slot / 64) % 64` of summary[slot / 4096], each with an atomic OR; the
 * worker takes words by atomic exchange with 0, summary first.
 *
 * A worker may sleep. An application with an eventfd for it (GET_WAKE) rings, executes a
 * sequentially consistent fence, and writes the eventfd if `asleep` is set. The worker sets
 * `asleep`, fences and checks the bits once more before it sleeps, so one of the two sees the
 * other.
 */
struct abi_doorbell {
	_Atomic uint64_t summary[ABI_DB_SUMMARY];
	/** Written by rocid: the worker sleeps, or is about to. In the cache line of `summary`,
	 *  which the reader has just written. */
	_Atomic uint32_t asleep;
	uint8_t pad0[ABI_LINE - 8 * ABI_DB_SUMMARY - 4];
	_Atomic uint64_t bits[ABI_DB_WORDS];
};
_Static_assert(sizeof(struct abi_doorbell) == ABI_LINE + 8 * ABI_DB_WORDS, "abi_doorbell");

/** Head of the session region (its memfd is in the hello reply). */
struct abi_session {
	/* written by rocid */
	/** Number of this run of rocid; 0 once it has shut down. An application that finds a
	 *  different value than in its hello reply has lost its daemon. */
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
