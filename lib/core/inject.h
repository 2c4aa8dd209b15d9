/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file inject.h
 * Faults injected into the packets of one QP, for people who test other devices (`rocictl inject`,
 * roci_inject(); doc/inject.md). abi_fault.h describes the faults.
 *
 * All faults apply to whole frames: to outgoing ones after they are sealed, to incoming ones before
 * anything else looks at them. So they are the same for every service, and work under virtual time
 * too. Frames that are held back are copied to struct inject; no packet buffer is kept.
 *
 * While any QP of the daemon has faults, cores take their steps one at a time (core.careful), as
 * they do for traces; otherwise the data path does not check for them (decision 0062).
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

/** An armed fault. The control thread reads the counters. */
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
	uint64_t due;	   /* latest time of its release */
	uint32_t order;	   /* of those with equal `due`, the lowest leaves first */
	uint32_t waits;	   /* packets that must overtake it; 0: it leaves when it is due */
	uint16_t len;	   /* 0: the slot is free */
	uint8_t direction; /* enum abi_fault_direction */
	uint8_t fault;	   /* enum abi_fault_kind */
	uint8_t port;
	uint8_t queue;	    /* received: pkt.queue */
	uint32_t source_qp; /* received: pkt.source_qp */
	uint8_t l3_off;
	uint8_t net;
	bool local; /* sent: txd.local */
	bool group; /* sent: txd.group */
	uint8_t frame[FRAME_MAX];
};

/** The faults of one QP. The memory is the caller's, zeroed at first; it may be freed when
 *  CORE_CMD_INJECT_QP has detached it from its QP, or the QP is detached. The QP's owner writes it;
 *  the control thread, whose commands alone change the rules, reads them. */
struct inject {
	struct qp *qp;
	struct list node; /* on core.held while it holds frames */
	uint32_t ids;	  /* numbers assigned so far */
	uint32_t order;
	uint32_t nheld;
	struct inject_rule rule[INJECT_RULES];
	uint8_t scratch[FRAME_MAX]; /* a received frame that is altered */
	struct inject_held held[INJECT_HELD];
};

/** Names of enum abi_fault_kind, starting with "none"; terminated by NULL. */
extern const char *const inject_names[ABI_FAULT_KINDS + 1];

/** @return whether @p r cannot fire any more. Control thread too. */
static inline bool inject_is_spent(const struct inject_rule *r)
{
	return r->fault.count && __atomic_load_n(&r->hits, __ATOMIC_RELAXED) >= r->fault.count;
}

/* --- inside the core ------------------------------------------------------------------ */

/** CORE_CMD_INJECT_QP: attaches @p in to @p qp; NULL detaches, and frames held back are lost.
 *  @return 0, -EBUSY: it has one; -EPERM: it is not ours. */
int inject_qp(struct core *c, struct qp *qp, struct inject *in);

/** CORE_CMD_ARM_FAULT: arms @p fault, replacing a spent one if there is no room.
 *  @return 0 and its number in *id, or -ENOSPC. */
int inject_arm(struct qp *qp, const struct abi_fault *fault, uint32_t *id);

/** CORE_CMD_CLEAR_FAULT: removes the fault with that number.  @return 0 or -ENOENT. */
int inject_clear(struct qp *qp, uint32_t id);

/** The QP is reset, or about to be destroyed: frames held back are lost. */
void inject_forget(struct qp *qp);

/** The QP moves from a core, and to another. */
void inject_give(struct qp *qp);
void inject_take(struct core *c, struct qp *qp);

/** Delivers received frames that are due by now, and schedules QPs whose outgoing frames are
 *  due. */
void inject_poll(struct core *c, uint64_t now);

/** @return when inject_poll() has something to do; UINT64_MAX: never. */
uint64_t inject_deadline(const struct core *c);

/** Puts a frame of @p qp that was held back and may leave now into @p t, sealed.
 *  @return false when there is none. */
bool inject_release(struct core *c, struct qp *qp, struct txd *t, uint64_t now);

/** Seals @p t, the packet that @p qp has just built, and applies its faults.
 *  @return packets in @p t: 1, or 0 when it is held back or memory faulted. */
unsigned inject_tx(struct core *c, struct qp *qp, struct txd *t, uint64_t now);

/** Receives @p pkt, which is for @p qp, with its faults applied.
 *  @param fault  the fault applied to it, enum abi_fault_kind
 *  @return as core_rx(). */
uint16_t inject_rx(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now, uint8_t *fault);

/* --- between inject.c and inject_packet.c ------------------------------------------------- */

/** A packet, and what its faults do to it. */
struct inject_victim {
	const struct pkt *pkt;
	uint8_t *frame; /* its bytes once they may be altered; NULL: not yet */
	uint16_t len;
	uint8_t direction;
	/* out */
	uint8_t fault; /* the latest fault applied; 0: none */
	bool changed;
	bool twice;
	bool lost;
	bool refused; /* RNR */
	uint8_t timer;
	uint32_t waits;	    /* held back until this many packets have passed ... */
	uint64_t time;	    /* ... or for this long; 0: not held */
	uint32_t icrc_mask; /* XORed into the ICRC at the end */
	struct inject_rule *holder;
};

/** Applies the faults of @p qp to @p v. */
void inject_spoil(struct core *c, struct qp *qp, struct inject_victim *v, uint64_t now);

#endif
