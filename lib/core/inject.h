/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file inject.h
 * Faults that are injected into the packets of one QP, for people who test other devices
 * (`rocictl inject`, roci_inject(); doc/inject.md). What they are: abi_fault.h.
 *
 * All of it happens to whole frames: to those that the QP sends once they are sealed, to those that
 * come for it before anything looks at them. So it is the same for each service, and runs
 * under virtual time too. What is held back lies in the memory of struct inject; no packet buffer
 * is kept.
 *
 * While any QP of the daemon has faults, cores take their steps one at a time (core.careful), as
 * they do for traces; else nobody asks (decision 0062).
 */
#ifndef INJECT_H
#define INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_fault.h"
#include "bits.h"
#include "limits.h"
#include "list.h"
#include "random.h"

struct core;
struct pkt;
struct qp;
struct txd;

/** A fault that is armed. The counters are read by the control thread. */
struct inject_rule {
	struct abi_fault fault;
	uint32_t id; /* 0: none */
	struct random random;
	uint64_t matched;
	uint64_t hits;
	uint64_t missed;
};

/** A frame that is held back. */
struct inject_held {
	uint64_t due;	   /* when it goes at the latest */
	uint32_t order;	   /* of those with the same `due` the lower goes first */
	uint32_t waits;	   /* packets that must overtake it; 0: it goes when it is due */
	uint16_t len;	   /* 0: the slot is free */
	uint8_t direction; /* enum abi_fault_direction */
	uint8_t fault;	   /* enum abi_fault_kind */
	uint8_t port;
	uint8_t queue;	    /* received: pkt.queue, */
	uint32_t source_qp; /* and pkt.source_qp */
	uint8_t l3_off;
	uint8_t net;
	bool local; /* sent: txd.local */
	bool group; /* sent: txd.group */
	uint8_t frame[FRAME_MAX];
};

/** Of one QP. Its memory is the caller's, zeroes at first; it may be freed when CORE_CMD_INJECT_QP
 *  has taken it off its QP, or the QP is detached. The QP's owner writes it; the control thread,
 *  whose commands alone change the rules, reads them. */
struct inject {
	struct qp *qp;
	struct list node; /* on core.held while frames are */
	uint32_t ids;	  /* given so far */
	uint32_t order;
	uint32_t nheld;
	struct inject_rule rule[INJECT_RULES];
	uint8_t scratch[FRAME_MAX]; /* a received frame that is changed */
	struct inject_held held[INJECT_HELD];
};

/** Names of enum abi_fault_kind, "none" the first; NULL behind the last. */
extern const char *const inject_names[ABI_FAULT_KINDS + 1];

/** @return whether @p r can happen no more. Control thread too. */
static inline bool inject_is_spent(const struct inject_rule *r)
{
	return r->fault.count && __atomic_load_n(&r->hits, __ATOMIC_RELAXED) >= r->fault.count;
}

/* --- inside the core ------------------------------------------------------------------ */

/** CORE_CMD_INJECT_QP: @p qp has @p in for faults from here on; NULL: no more, what is held back is
 *  lost.  @return 0, -EBUSY: it has one; -EPERM: it is not ours. */
int inject_qp(struct core *c, struct qp *qp, struct inject *in);

/** CORE_CMD_ARM_FAULT: @p fault is armed, in the place of one that is spent if there is no room.
 *  @return 0 and its number in *id, or -ENOSPC. */
int inject_arm(struct qp *qp, const struct abi_fault *fault, uint32_t *id);

/** CORE_CMD_CLEAR_FAULT: the fault of that number goes.  @return 0 or -ENOENT. */
int inject_clear(struct qp *qp, uint32_t id);

/** The QP starts anew, or is about to be destroyed: what is held back is lost. */
void inject_forget(struct qp *qp);

/** The QP moves: to another core, and from one. */
void inject_give(struct qp *qp);
void inject_take(struct core *c, struct qp *qp);

/** Lets what was received and is due by now go on, and has QPs whose frames are due to be sent take
 *  their turn. */
void inject_poll(struct core *c, uint64_t now);

/** @return when inject_poll() has something to do; UINT64_MAX: never. */
uint64_t inject_deadline(const struct core *c);

/** Puts a frame of @p qp that was held back, and may go now, into @p t, sealed.
 *  @return false when there is none. */
bool inject_release(struct core *c, struct qp *qp, struct txd *t, uint64_t now);

/** Seals @p t, the packet that @p qp has just built, and lets its faults happen.
 *  @return packets in @p t: 1, or 0 when it is held back or memory faulted. */
unsigned inject_tx(struct core *c, struct qp *qp, struct txd *t, uint64_t now);

/** Receives @p pkt, which is for @p qp, as its faults want it.  @param fault  what befell it, enum
 *  abi_fault_kind  @return as core_rx(). */
uint16_t inject_rx(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now, uint8_t *fault);

/* --- between inject.c and inject_packet.c ------------------------------------------------- */

/** A packet, and what is to become of it. */
struct inject_victim {
	const struct pkt *pkt;
	uint8_t *frame; /* its bytes when they may be changed; NULL: not yet */
	uint16_t len;
	uint8_t direction;
	/* out */
	uint8_t fault; /* the latest that befell it; 0: none */
	bool changed;
	bool twice;
	bool lost;
	bool refused; /* RNR */
	uint8_t timer;
	uint32_t waits;	    /* held back until so many have passed ... */
	uint64_t time;	    /* ... or so much time; 0: not */
	uint32_t icrc_mask; /* XORed into the ICRC at the end */
	struct inject_rule *holder;
};

/** Lets the faults of @p qp happen to @p v. */
void inject_spoil(struct core *c, struct qp *qp, struct inject_victim *v, uint64_t now);

#endif
