/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mw.h
 * Memory windows: an R_Key for a part of a region, bound and taken back by work requests, without
 * the control thread (IBA 10.6.7; MW-01..13). Type 1 is for all QPs of its protection domain,
 * type 2 (2B: decision 0093) for the QP that bound it, and its peer may invalidate it.
 *
 * A window has a slot in the table of regions, so that keys are of one kind (MR-01); mr_find() and
 * mr_resolve() pass it over, and only an access that they refuse looks for a window.
 *
 * Who writes. The binding is a few words under `version`, which a worker takes by compare and swap
 * from the value that it looked at, for the few instructions in which it writes them. A free type 2
 * window may be taken by any QP of its protection domain; while it is bound, only by the worker of
 * the QP that bound it, so an access by that QP, which is by the same worker, never finds it
 * changing. A type 1 window may be bound anew by another worker while this one uses it: the old
 * binding is over for new accesses at once, and for those under way after a grace period, before
 * which the bind does not complete. Nobody waits for anybody: a reader that finds a window changing
 * refuses the access, as it would a moment later.
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
	struct mr entry; /* in the table; has no key that a look-up finds */
	/* control thread, before publication */
	uint32_t index; /* of its keys, without the key part */
	uint32_t pd;
	uint8_t type; /* enum mw_type */
	/** MW_BUSY: its words are being written; MW_BOUND: they are a binding. */
	_Atomic uint32_t version;
	/* the binding, or the last one */
	_Atomic uint32_t key; /* R_Key */
	_Atomic uint32_t access;
	_Atomic uint32_t qpn;  /* type 2: of the QP that bound it */
	_Atomic uint64_t iova; /* address on the wire of the first byte; 0 of a zero-based window */
	_Atomic uint64_t length;
	_Atomic(uint8_t *) base; /* the first byte in this process */
	_Atomic(struct mr *) mr; /* which it holds */
};

/** Bits of mw.version, which grows by MW_STEP with each change. */
#define MW_BUSY	 1u
#define MW_BOUND 2u
#define MW_STEP	 4u

/** What a bind asks for. */
struct mw_bind {
	uint32_t mw; /* any key of the window */
	uint32_t lkey;
	uint32_t new_key;
	uint32_t access;
	uint64_t addr;
	uint64_t length;
};

enum mw_result {
	MW_DONE,
	MW_RETIRED, /* done; accesses by the former binding end with a grace period */
	MW_AGAIN,   /* another worker is at it: try again later */
	/* refused, and why; the sentences are in ctl/why_window.c, which wants a row for each */
	MW_NO_WINDOW,	 /* the key is no window's of the protection domain (MW-02), or is stale */
	MW_BAD_KEY,	 /* the new key is another window's */
	MW_BAD_ACCESS,	 /* unknown flags */
	MW_ZERO_BASED,	 /* of type 1 (MW-01) */
	MW_NOT_FREE,	 /* MW-03 */
	MW_EMPTY,	 /* type 2 without length (MW-04) */
	MW_NO_REGION,	 /* none of the protection domain (MW-02), or it goes */
	MW_NO_MW_BIND,	 /* MW-06 */
	MW_NO_RIGHT,	 /* MW-07, or to flush */
	MW_OUTSIDE,	 /* MW-08 */
	MW_NOT_BOUND,	 /* to be invalidated: it is free, or has another key */
	MW_TYPE_1_STAYS, /* MW-10 */
	MW_OTHER_QP,	 /* MW-09, INV-03 */
	MW_RESULTS
};

/** Prepares @p w, not bound, with first R_Key @p key. */
void mw_init(struct mw *w, uint32_t key, uint32_t pd, enum mw_type type);

/** @return the window that @p key is of, whatever its key part, or NULL. */
struct mw *mw_find(const struct mr_table *t, uint32_t key);

/** Binds for a QP @p qpn of protection domain @p pd. */
enum mw_result mw_bind(
	const struct mr_table *t, const struct mw_bind *b, uint32_t pd, uint32_t qpn);

/** Invalidates type 2 R_Key @p key, for the QP that bound it (MW-09, MW-10, INV-03). */
enum mw_result mw_invalidate(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn);

/** Control thread: @p w is withdrawn, or the QP that bound it, and a grace period is over. Ends its
 *  binding. */
void mw_release(struct mw *w);

/** A binding as it was at one moment. */
struct mw_view {
	uint32_t key;
	uint32_t access;
	uint32_t qpn;
	uint64_t iova;
	uint64_t length;
	uint8_t *base;
	struct mr *mr;
};

/** @return false when @p w is not bound, or just changing. */
bool mw_view(const struct mw *w, struct mw_view *v);

/** As mr_resolve(), of a window for an access by QP @p qpn (MW-09, MW-12). */
enum mr_status mw_resolve(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn,
	uint32_t access, uint64_t va, uint64_t len, uint8_t **ptr);

/** The range that R_Key @p key gives access to, of a region or a window.
 *  @return false when it is neither's. */
bool mw_range(const struct mr_table *t, uint32_t key, uint64_t *va, uint64_t *len);

/** As mr_resolve(), of an R_Key that came with a packet for QP @p qpn: a region's or a window's. */
static inline enum mr_status rkey_resolve(const struct mr_table *t, uint32_t key, uint32_t pd,
	uint32_t qpn, uint32_t access, uint64_t va, uint64_t len, uint8_t **ptr)
{
	enum mr_status s = mr_resolve(t, key, pd, access, va, len, ptr);

	return likely(s != MR_NO_KEY) ? s : mw_resolve(t, key, pd, qpn, access, va, len, ptr);
}

#endif
