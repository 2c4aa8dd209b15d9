/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file abi_fault.h
 * Faults injected into the packets of a QP (INJECT_FAULT; doc/inject.md): which packets they match,
 * and what they do. The values are libroci's own.
 */
#ifndef ABI_FAULT_H
#define ABI_FAULT_H

#include <stdint.h>

/** If you add one: extend fault.c and text/fault.c of lib/ctl, inject_packet.c of lib/core,
 *  roci.h. */
enum abi_fault_kind {
	ABI_FAULT_NONE,
	ABI_FAULT_DROP,	     /* the packet is lost */
	ABI_FAULT_DUPLICATE, /* it is sent, or received, twice */
	ABI_FAULT_DELAY,     /* it is delayed by `time` */
	ABI_FAULT_REORDER,   /* `value` packets overtake it, or `time` passes */
	ABI_FAULT_RNR,	     /* received: answers with an RNR NAK, timer code `value` */
	ABI_FAULT_ICRC,	     /* `mask` is XORed into the ICRC */
	ABI_FAULT_CORRUPT,   /* XORs `mask` into the byte at `offset`; the ICRC is corrected */
	ABI_FAULT_ECN,	    /* the codepoint becomes `value`: 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE */
	ABI_FAULT_SYNDROME, /* of the AETH */
	ABI_FAULT_MSN,	    /* of the AETH */
	ABI_FAULT_PSN,
	ABI_FAULT_OPCODE,
	ABI_FAULT_PKEY,
	ABI_FAULT_QPN, /* sent only: DestQP */
	ABI_FAULT_KINDS
};

enum abi_fault_direction {
	ABI_FAULT_TX,
	ABI_FAULT_RX,
};

/* abi_fault.flags */
#define ABI_FAULT_ADD  (1u << 0) /* PSN, MSN: `value` is added, modulo 2^24 */
#define ABI_FAULT_PSNS (1u << 1) /* only packets with PSNs psn_first .. psn_last */
#define ABI_FAULT_IN_PAYLOAD                                                                   \
	(1u << 2)		     /* CORRUPT: `offset` counts from the payload, not the BTH \
				      */
#define ABI_FAULT_QP_TIMER (1u << 3) /* RNR: the QP's own min_rnr_timer, not `value` */
#define ABI_FAULT_FLAGS	   0xFu

/* abi_fault.packets: 0 matches all; with bits of both groups a packet must match one of each. By
 * kind: */
#define ABI_FAULT_SEND		  (1u << 0)
#define ABI_FAULT_WRITE		  (1u << 1)
#define ABI_FAULT_READ		  (1u << 2)
#define ABI_FAULT_ATOMIC	  (1u << 3)
#define ABI_FAULT_FLUSH		  (1u << 4)
#define ABI_FAULT_ATOMIC_WRITE	  (1u << 5)
#define ABI_FAULT_READ_RESPONSE	  (1u << 6)
#define ABI_FAULT_ATOMIC_RESPONSE (1u << 7)
#define ABI_FAULT_ACK		  (1u << 8)
#define ABI_FAULT_NAK		  (1u << 9)
#define ABI_FAULT_RNR_NAK	  (1u << 10)
#define ABI_FAULT_REQUEST	  0x03Fu
#define ABI_FAULT_RESPONSE	  0x7C0u
#define ABI_FAULT_WHAT		  0x7FFu
/* by place in the message: */
#define ABI_FAULT_FIRST	 (1u << 16)
#define ABI_FAULT_MIDDLE (1u << 17)
#define ABI_FAULT_LAST	 (1u << 18)
#define ABI_FAULT_ONLY	 (1u << 19)
#define ABI_FAULT_PLACE	 0xF0000u

/** `chance` of a fault that always happens. */
#define ABI_FAULT_ALWAYS 1000000000u

/** Matching packets are counted from 1: the fault is applied to the nth, and to every `every`-th
 *  after it, at most `count` times. */
struct abi_fault {
	uint8_t kind;	   /* enum abi_fault_kind */
	uint8_t direction; /* enum abi_fault_direction */
	uint16_t flags;
	uint32_t packets;
	uint32_t psn_first;
	uint32_t psn_last;
	uint32_t nth;	 /* 1 or more */
	uint32_t every;	 /* 1 or more */
	uint32_t count;	 /* 0: unlimited */
	uint32_t chance; /* in billionths; ABI_FAULT_ALWAYS */
	uint64_t seed;	 /* for `chance` */
	uint64_t time;	 /* ns */
	uint32_t value;
	uint32_t offset;
	uint32_t mask;
	uint32_t reserved;
};
_Static_assert(sizeof(struct abi_fault) == 64, "abi_fault");

/** State of a fault. */
struct abi_fault_count {
	uint32_t id; /* within its QP, from 1 */
	uint32_t reserved;
	uint64_t matched; /* packets that matched */
	uint64_t hits;	  /* packets it was applied to */
	uint64_t missed;  /* not held back, because too many packets already were */
};

/* INJECT_FAULT: EPERM when rocid does not let programs inject faults. The reply is a struct
 * abi_fault_id. */
struct abi_inject_fault {
	uint32_t qp; /* handle */
	uint32_t reserved;
	struct abi_fault fault;
};
/* QUERY_FAULT: the reply is a struct abi_fault_count. CLEAR_FAULT: id 0 clears all of the QP. */
struct abi_fault_id {
	uint32_t qp; /* handle */
	uint32_t id;
};

#endif
