/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mw.h
 * Memory windows: an R_Key for part of a region, bound and invalidated by work requests, without
 * the control thread (IBA 10.6.7; MW-01..13). Type 1 is for all QPs of its protection domain, type
 * 2 (2B: decision 0093) for the QP that bound it, and its peer may invalidate it.
 *
 * A window has a slot in the table of regions, so that all keys are alike (MR-01); mr_find() and
 * mr_resolve() skip it, and only an access that they refuse looks for a window.
 *
 * Writers. The binding is a few words protected by `version`, which a worker takes with a
 * compare-and-swap from the value that it read, for the few instructions that write them. Any QP of
 * its protection domain may take a free type 2 window; while it is bound, only the worker of the QP
 * that bound it may, so an access for that QP, on the same worker, never finds it changing. A type
 * 1 window may be bound again by another worker while this one uses it: the old binding ends at
 * once for new accesses, and after a grace period for accesses in progress; the bind does not
 * complete before that. Nobody waits: a reader that finds a window changing refuses the access, as
 * it would a moment later.
 */
#ifndef MW_H
#define MW_H

#include "mr.h"

/** Value of mr.pd in a window's entry: no protection domain has it. */
#define MW_PD UINT32_MAX

/** The values are those of enum ibv_mw_type. */
enum mw_type {
	MW_TYPE_1 = 1,
	MW_TYPE_2 = 2,
};

struct mw {
	struct mr entry; /* in the table; its key matches no look-up */
	/* control thread, before publication */
	uint32_t index; /* common part of its keys, without the key part */
	uint32_t pd;
	uint8_t type; /* enum mw_type */
	/** MW_BUSY: its words are being written; MW_BOUND: they are valid. */
	_Atomic uint32_t version;
	/* the current or the last binding */
	_Atomic uint32_t key; /* R_Key */
	_Atomic uint32_t access;
	_Atomic uint32_t qpn;  /* type 2: the QP that bound it */
	_Atomic uint64_t iova; /* wire address of the first byte; 0 if zero-based */
	_Atomic uint64_t length;
	_Atomic(uint8_t *) base; /* the first byte in this process */
	_Atomic(struct mr *) mr; /* the region that it holds */
};

/** Bits of mw.version, which is incremented by MW_STEP with each change. */
#define MW_BUSY	 1u
#define MW_BOUND 2u
#define MW_STEP	 4u

/** Operands of a bind. */
struct mw_bind {
	uint32_t mw; /* any rkey of the window */
	uint32_t lkey;
	uint32_t new_key;
	uint32_t access;
	uint64_t addr;
	uint64_t length;
};

enum mw_result {
	MW_DONE,
	MW_RETIRED, /* done; accesses through the former binding end after a grace period */
	MW_AGAIN,   /* another worker is changing it: try again later */
	/* reasons for refusal; the sentences are in ctl/diagnose/window.c, which needs a row for
	 * each */
	MW_NO_WINDOW,  /* no window of the protection domain has the key (MW-02), or it is stale */
	MW_BAD_KEY,    /* the new key belongs to another window */
	MW_BAD_ACCESS, /* unknown flags */
	MW_ZERO_BASED, /* for type 1 (MW-01) */
	MW_NOT_FREE,   /* MW-03 */
	MW_EMPTY,      /* type 2 without length (MW-04) */
	MW_NO_REGION,  /* none in the protection domain (MW-02), or being deregistered */
	MW_NO_MW_BIND, /* MW-06 */
	MW_NO_RIGHT,   /* MW-07, or for a flush */
	MW_OUTSIDE,    /* MW-08 */
	MW_NOT_BOUND,  /* for an invalidation: it is free, or has another key */
	MW_TYPE_1_STAYS, /* MW-10 */
	MW_OTHER_QP,	 /* MW-09, INV-03 */
	MW_RESULTS
};

/** Prepares @p w, unbound, with first R_Key @p key. */
void mw_init(struct mw *w, uint32_t key, uint32_t pd, enum mw_type type);

/** @return the window of @p key, whatever its key part, or NULL. */
struct mw *mw_find(const struct mr_table *t, uint32_t key);

/** Binds for a QP @p qpn of protection domain @p pd. */
enum mw_result mw_bind(
	const struct mr_table *t, const struct mw_bind *b, uint32_t pd, uint32_t qpn);

/** Invalidates type 2 R_Key @p key, for the QP that bound it (MW-09, MW-10, INV-03). */
enum mw_result mw_invalidate(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn);

/** Control thread: ends the binding of @p w, after the window or the QP that bound it was removed
 *  and a grace period has passed. */
void mw_release(struct mw *w);

/** A consistent copy of a binding. */
struct mw_view {
	uint32_t key;
	uint32_t access;
	uint32_t qpn;
	uint64_t iova;
	uint64_t length;
	uint8_t *base;
	struct mr *mr;
};

/** @return false when @p w is not bound, or is being changed. */
bool mw_view(const struct mw *w, struct mw_view *v);

/** Like mr_resolve(), for a window and an access by QP @p qpn (MW-09, MW-12). */
enum mr_status mw_resolve(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn,
	uint32_t access, uint64_t va, uint64_t len, uint8_t **ptr);

/** Finds the range that R_Key @p key, of a region or a window, gives access to.
 *  @return false when it is of neither. */
bool mw_range(const struct mr_table *t, uint32_t key, uint64_t *va, uint64_t *len);

/** Like mr_resolve(), for an R_Key in a packet for QP @p qpn: of a region or a window. */
static inline enum mr_status rkey_resolve(const struct mr_table *t, uint32_t key, uint32_t pd,
	uint32_t qpn, uint32_t access, uint64_t va, uint64_t len, uint8_t **ptr)
{
	enum mr_status s = mr_resolve(t, key, pd, access, va, len, ptr);

	return likely(s != MR_NO_KEY) ? s : mw_resolve(t, key, pd, qpn, access, va, len, ptr);
}

#endif
