/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci_fault.h
 * Faults that a program injects into the packets of its QPs, to test other devices; a part of
 * roci.h, which includes it.
 */
#ifndef ROCI_FAULT_H
#define ROCI_FAULT_H

#ifndef ROCI_H
#error "include roci.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Effect on a packet; see doc/inject.md. */
enum roci_fault_kind {
	ROCI_FAULT_DROP = 1,  /**< it is lost */
	ROCI_FAULT_DUPLICATE, /**< it is sent, or received, twice */
	ROCI_FAULT_DELAY,     /**< it is delayed by time_ns */
	ROCI_FAULT_REORDER,   /**< `value` packets (1 to 127) overtake it, or time_ns pass */
	ROCI_FAULT_RNR,	      /**< RX only: RNR NAK with timer code `value` (0 to 31) */
	ROCI_FAULT_ICRC,      /**< `mask` is XORed into its ICRC */
	ROCI_FAULT_CORRUPT,   /**< XORs `mask` (1 to 0xFF) into the byte at `offset` */
	ROCI_FAULT_ECN,	      /**< its ECN codepoint becomes `value`: 0, 1, 2, or 3 for CE */
	ROCI_FAULT_SYNDROME,  /**< its AETH syndrome becomes `value`: any 8 bits */
	ROCI_FAULT_MSN,	      /**< its AETH MSN becomes `value`, 24 bits */
	ROCI_FAULT_PSN,	      /**< its PSN becomes `value`, 24 bits */
	ROCI_FAULT_OPCODE,    /**< its BTH opcode, with the class, becomes `value` */
	ROCI_FAULT_PKEY,      /**< its P_Key becomes `value`, 16 bits */
	ROCI_FAULT_QPN,	      /**< TX only: its DestQP becomes `value`, 24 bits */
};

/** Direction of the packet. */
enum roci_fault_direction {
	ROCI_FAULT_TX, /**< packets sent */
	ROCI_FAULT_RX, /**< packets received */
};

/** Modifiers of the other members. */
enum roci_fault_flags {
	ROCI_FAULT_ADD = 1 << 0,	/**< PSN, MSN: `value` is added, modulo 2^24 */
	ROCI_FAULT_PSNS = 1 << 1,	/**< only packets with PSNs psn_first to psn_last */
	ROCI_FAULT_IN_PAYLOAD = 1 << 2, /**< CORRUPT: from the payload; else from the BTH */
	ROCI_FAULT_QP_TIMER = 1 << 3,	/**< RNR: the QP's min_rnr_timer instead of `value` */
};

/** Packets to match: any bit of the upper group and any bit of the lower; no bit of a group matches
 *  all. */
enum roci_fault_packets {
	ROCI_FAULT_ON_SEND = 1 << 0,		/**< SEND, of any kind */
	ROCI_FAULT_ON_WRITE = 1 << 1,		/**< RDMA WRITE */
	ROCI_FAULT_ON_READ = 1 << 2,		/**< RDMA READ request */
	ROCI_FAULT_ON_ATOMIC = 1 << 3,		/**< CmpSwap, FetchAdd */
	ROCI_FAULT_ON_FLUSH = 1 << 4,		/**< FLUSH */
	ROCI_FAULT_ON_ATOMIC_WRITE = 1 << 5,	/**< ATOMIC WRITE */
	ROCI_FAULT_ON_READ_RESPONSE = 1 << 6,	/**< RDMA READ response */
	ROCI_FAULT_ON_ATOMIC_RESPONSE = 1 << 7, /**< ATOMIC response */
	ROCI_FAULT_ON_ACK = 1 << 8,		/**< a positive ACK */
	ROCI_FAULT_ON_NAK = 1 << 9,		/**< a NAK */
	ROCI_FAULT_ON_RNR_NAK = 1 << 10,	/**< an RNR NAK */
	ROCI_FAULT_ON_FIRST = 1 << 16,		/**< the first packet of a longer message */
	ROCI_FAULT_ON_MIDDLE = 1 << 17,		/**< a middle packet */
	ROCI_FAULT_ON_LAST = 1 << 18,		/**< the last packet */
	ROCI_FAULT_ON_ONLY = 1 << 19,		/**< the packet of a single-packet message */
};

/** A fault to inject. Members that a kind does not use are ignored. Matching packets that have the
 *  field to change are counted from 1; the fault is applied to the nth, and to every every-th after
 *  it, at most `count` times, with the given probability. */
struct roci_fault {
	size_t size;			     /**< sizeof(struct roci_fault) */
	enum roci_fault_kind kind;	     /**< effect */
	enum roci_fault_direction direction; /**< packets sent or received */
	int flags;			     /**< enum roci_fault_flags */
	uint32_t packets;		     /**< enum roci_fault_packets; 0: any */
	uint32_t psn_first;		     /**< with PSNS */
	uint32_t psn_last;		     /**< with PSNS */
	uint32_t nth;			     /**< 0 is 1: the first */
	uint32_t every;			     /**< 0 is 1: each */
	uint32_t count;			     /**< 0: unlimited */
	double probability;		     /**< up to 1; 0 is 1: always */
	uint64_t seed;			     /**< of the probability; any number */
	uint64_t time_ns;		     /**< DELAY, REORDER: 1 ns to 10 s */
	uint32_t value;			     /**< see enum roci_fault_kind */
	uint32_t offset;		     /**< CORRUPT: offset of the byte, from 0 */
	uint32_t mask;			     /**< ICRC, CORRUPT: bits to flip */
};

/** How often a fault was applied. */
struct roci_fault_count {
	size_t size;	  /**< sizeof(struct roci_fault_count) */
	uint64_t matched; /**< packets that matched */
	uint64_t hits;	  /**< packets it was applied to */
	uint64_t missed;  /**< not held back, because 128 packets of the QP already were */
};

/**
 * Injects a fault into the packets of @p qp, to test how its peer copes. rocid must run with
 * --application-faults; an administrator can do the same without a program (rocictl inject). Faults
 * end with the QP. A QP can have 16 armed faults, and a new one replaces one that cannot fire any
 * more; 16 QPs of a program can have faults.
 * @param qp     of any type, in any state
 * @param fault  the caller sets its `size`
 * @param id     receives its number within this QP; may be NULL
 * @return 0; EPERM: rocid does not allow it; EINVAL: invalid parameters; ENOSPC, EDQUOT or EBUSY:
 * too many.
 */
ROCI_API int roci_inject(struct roci_qp *qp, const struct roci_fault *fault, uint32_t *id);

/**
 * Returns how often a fault was applied.
 * @param qp     the QP
 * @param id     from roci_inject()
 * @param count  filled in; the caller sets its `size`
 * @return 0; ENOENT: there is no such fault, or another one replaced it; EPERM.
 */
ROCI_API int roci_query_fault(struct roci_qp *qp, uint32_t id, struct roci_fault_count *count);

/**
 * Clears one fault or all faults of a QP, including an administrator's. With the last one, packets
 * that are held back are lost.
 * @param qp  the QP
 * @param id  from roci_inject(); 0: all
 * @return 0; ENOENT: there is none; EPERM.
 */
ROCI_API int roci_clear_faults(struct roci_qp *qp, uint32_t id);

#ifdef __cplusplus
}
#endif

#endif
