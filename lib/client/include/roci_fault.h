/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci_fault.h
 * Faults that a program injects into the packets of its QPs, to test other devices: part of roci.h,
 * which includes it.
 */
#ifndef ROCI_FAULT_H
#define ROCI_FAULT_H

#include "roci.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What happens to a packet; doc/inject.md tells more. */
enum roci_fault_kind {
	ROCI_FAULT_DROP = 1,  /**< it is lost */
	ROCI_FAULT_DUPLICATE, /**< it goes, or comes, twice */
	ROCI_FAULT_DELAY,     /**< by time_ns */
	ROCI_FAULT_REORDER,   /**< `value` packets (1 to 127) overtake it, or time_ns pass */
	ROCI_FAULT_RNR,	      /**< RX only: RNR NAK with timer code `value` (0 to 31) */
	ROCI_FAULT_ICRC,      /**< `mask` is XORed into its ICRC */
	ROCI_FAULT_CORRUPT, /**< `mask` (1 to 0xFF) into the byte at `offset`, behind a good ICRC */
	ROCI_FAULT_ECN,	    /**< its codepoint becomes `value`: 0, 1, 2, or 3 for CE */
	ROCI_FAULT_SYNDROME, /**< that of its AETH becomes `value`: any of 8 bits */
	ROCI_FAULT_MSN,	     /**< that of its AETH becomes `value`, 24 bits */
	ROCI_FAULT_PSN,	     /**< becomes `value`, 24 bits */
	ROCI_FAULT_OPCODE,   /**< becomes `value`, that of the BTH with its class */
	ROCI_FAULT_PKEY,     /**< becomes `value`, 16 bits */
	ROCI_FAULT_QPN,	     /**< TX only: DestQP becomes `value`, 24 bits */
};

/** Which way the packet goes. */
enum roci_fault_direction {
	ROCI_FAULT_TX, /**< it is sent */
	ROCI_FAULT_RX, /**< it was received */
};

/** How the other members are meant. */
enum roci_fault_flags {
	ROCI_FAULT_ADD = 1 << 0,	/**< PSN, MSN: `value` is added, modulo 2^24 */
	ROCI_FAULT_PSNS = 1 << 1,	/**< only packets with PSNs psn_first to psn_last */
	ROCI_FAULT_IN_PAYLOAD = 1 << 2, /**< CORRUPT: from the payload; else from the BTH */
	ROCI_FAULT_QP_TIMER = 1 << 3,	/**< RNR: the QP's min_rnr_timer in the place of `value` */
};

/** Which packets: one of the upper group, and one of the lower; none of a group is all of it. */
enum roci_fault_packets {
	ROCI_FAULT_ON_SEND = 1 << 0,		/**< SEND, of any kind */
	ROCI_FAULT_ON_WRITE = 1 << 1,		/**< RDMA WRITE */
	ROCI_FAULT_ON_READ = 1 << 2,		/**< RDMA READ request */
	ROCI_FAULT_ON_ATOMIC = 1 << 3,		/**< CmpSwap, FetchAdd */
	ROCI_FAULT_ON_FLUSH = 1 << 4,		/**< FLUSH */
	ROCI_FAULT_ON_ATOMIC_WRITE = 1 << 5,	/**< ATOMIC WRITE */
	ROCI_FAULT_ON_READ_RESPONSE = 1 << 6,	/**< RDMA READ response */
	ROCI_FAULT_ON_ATOMIC_RESPONSE = 1 << 7, /**< the answer to an atomic */
	ROCI_FAULT_ON_ACK = 1 << 8,		/**< a positive ACK */
	ROCI_FAULT_ON_NAK = 1 << 9,		/**< a NAK */
	ROCI_FAULT_ON_RNR_NAK = 1 << 10,	/**< an RNR NAK */
	ROCI_FAULT_ON_FIRST = 1 << 16,		/**< the first packet of a longer message */
	ROCI_FAULT_ON_MIDDLE = 1 << 17,		/**< one in its middle */
	ROCI_FAULT_ON_LAST = 1 << 18,		/**< its last */
	ROCI_FAULT_ON_ONLY = 1 << 19,		/**< the packet of a message of one */
};

/** A fault to inject. Members that a kind does not use are ignored. Packets that fit are counted
 *  from 1, and only those that have what is to change; it happens to the nth, and to each every-th
 *  behind it, `count` times at most, with that probability. */
struct roci_fault {
	size_t size;			     /**< sizeof(struct roci_fault) */
	enum roci_fault_kind kind;	     /**< what happens */
	enum roci_fault_direction direction; /**< to what is sent, or received */
	int flags;			     /**< enum roci_fault_flags */
	uint32_t packets;		     /**< enum roci_fault_packets; 0: any */
	uint32_t psn_first;		     /**< with PSNS */
	uint32_t psn_last;		     /**< with PSNS */
	uint32_t nth;			     /**< 0 is 1: the first */
	uint32_t every;			     /**< 0 is 1: each */
	uint32_t count;			     /**< 0: no end */
	double probability;		     /**< up to 1; 0 is 1: always */
	uint64_t seed;			     /**< of the probability; any number */
	uint64_t time_ns;		     /**< DELAY, REORDER: 1 ns to 10 s */
	uint32_t value;			     /**< see enum roci_fault_kind */
	uint32_t offset;		     /**< CORRUPT: which byte, from 0 */
	uint32_t mask;			     /**< ICRC, CORRUPT: which bits flip */
};

/** How often a fault happened. */
struct roci_fault_count {
	size_t size;	  /**< sizeof(struct roci_fault_count) */
	uint64_t matched; /**< packets that fit */
	uint64_t hits;	  /**< of them were spoilt */
	uint64_t missed;  /**< should have been held back, but 128 of the QP were already */
};

/**
 * Injects a fault into the packets of @p qp, to test how its peer takes it. rocid must have been
 * started with --application-faults; an administrator needs no program for it (rocictl inject).
 * Faults end with the QP. 16 can be armed for a QP, one that can happen no more gives its place up;
 * 16 QPs of a program can have faults.
 * @param qp     of any type, in any state
 * @param fault  its `size` set by the caller
 * @param id     receives its number in this QP; may be NULL
 * @return 0; EPERM: rocid does not allow it; EINVAL: it makes no sense; ENOSPC, EDQUOT or EBUSY:
 * there are too many.
 */
ROCI_API int roci_inject(struct roci_qp *qp, const struct roci_fault *fault, uint32_t *id);

/**
 * Tells how often a fault happened.
 * @param qp     the QP
 * @param id     of roci_inject()
 * @param count  filled in; its `size` set by the caller
 * @return 0; ENOENT: there is no such fault, or another one took its place; EPERM.
 */
ROCI_API int roci_query_fault(struct roci_qp *qp, uint32_t id, struct roci_fault_count *count);

/**
 * Ends a fault, or all of a QP, an administrator's too. With the last one, packets that are held
 * back are lost.
 * @param qp  the QP
 * @param id  of roci_inject(); 0: all
 * @return 0; ENOENT: there is none; EPERM.
 */
ROCI_API int roci_clear_faults(struct roci_qp *qp, uint32_t id);

#ifdef __cplusplus
}
#endif

#endif
