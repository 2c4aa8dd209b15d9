/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_ctl.h"
#include "list.h"
#include "mw.h"

#define ACCESS_RIGHTS                                                                  \
	(ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC | \
		ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_FLUSH_PERSIST)
#define ACCESS_FLUSH  (ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_FLUSH_PERSIST)
#define ACCESS_CHANGE (ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_ATOMIC)
#define KEY_PART      0xFFu

#define get(field)    atomic_load_explicit(field, memory_order_relaxed)
#define set(field, v) atomic_store_explicit(field, v, memory_order_relaxed)

void mw_init(struct mw *w, uint32_t key, uint32_t pd, enum mw_type type)
{
	*w = (struct mw){
		/* a key of another slot, which no look-up here finds */
		.entry = {.key = ~key, .pd = MW_PD},
		.index = key & ~KEY_PART,
		.pd = pd,
		.type = (uint8_t)type,
	};
	set(&w->key, key);
}

struct mw *mw_find(const struct mr_table *t, uint32_t key)
{
	uint32_t slot = key >> 8;
	struct mr *entry;

	if (slot >= MR_MAX)
		return NULL;
	entry = atomic_load_explicit(&t->slot[slot], memory_order_acquire);
	return entry && entry->pd == MW_PD ? container_of(entry, struct mw, entry) : NULL;
}

/* --- reading ---------------------------------------------------------------------------- */

bool mw_view(const struct mw *w, struct mw_view *v)
{
	uint32_t version = atomic_load_explicit(&w->version, memory_order_acquire);

	*v = (struct mw_view){
		.key = get(&w->key),
		.access = get(&w->access),
		.qpn = get(&w->qpn),
		.iova = get(&w->iova),
		.length = get(&w->length),
		.base = get(&w->base),
		.mr = get(&w->mr),
	};
	atomic_thread_fence(memory_order_acquire);
	return (version & (MW_BUSY | MW_BOUND)) == MW_BOUND && get(&w->version) == version;
}

/* MW-12: checks the window's own key, rights and bounds, then whether its region still exists: one
 * whose memory faulted was removed. */
enum mr_status mw_resolve(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn,
	uint32_t access, uint64_t va, uint64_t len, uint8_t **ptr)
{
	const struct mw *w = mw_find(t, key);
	struct mw_view v;
	uint64_t off;

	if (!w || w->pd != pd || !mw_view(w, &v) || v.key != key)
		return MR_NO_KEY;		  /* INV-04 */
	if (w->type == MW_TYPE_2 && v.qpn != qpn) /* MW-09 */
		return MR_NO_KEY;
	if ((v.access & access) != access)
		return MR_NO_ACCESS;
	off = va - v.iova;
	if (!range_inside(off, len, v.length))
		return MR_RANGE;
	if (mr_find(t, v.mr->key) != v.mr)
		return MR_NO_KEY;
	if (ptr)
		*ptr = v.base + off;
	return MR_OK;
}

bool mw_range(const struct mr_table *t, uint32_t key, uint64_t *va, uint64_t *len)
{
	const struct mr *mr = mr_find(t, key);
	const struct mw *w = mr ? NULL : mw_find(t, key);
	struct mw_view v;

	if (mr) {
		*va = mr->iova;
		*len = mr->length;
	} else if (w && mw_view(w, &v)) {
		*va = v.iova;
		*len = v.length;
	} else {
		return false;
	}
	return true;
}

/* --- writing ---------------------------------------------------------------------------- */

/* Takes @p w if it is still at @p version. */
static bool take(struct mw *w, uint32_t version)
{
	if ((version & MW_BUSY) ||
		!atomic_compare_exchange_strong_explicit(&w->version, &version, version | MW_BUSY,
			memory_order_acquire, memory_order_relaxed))
		return false;
	atomic_thread_fence(memory_order_release); /* before the words, for mw_view() */
	return true;
}

/* Ends what take() began at @p version. */
static void leave(struct mw *w, uint32_t version, bool bound)
{
	version = (version & ~(MW_STEP - 1)) + MW_STEP;
	atomic_store_explicit(&w->version, version | (bound ? MW_BOUND : 0), memory_order_release);
}

/* Releases the former region, if any. */
static void let_go(struct mw *w, uint32_t version)
{
	struct mr *mr = get(&w->mr);

	if ((version & MW_BOUND) && mr)
		mr_let_go(mr);
	set(&w->mr, NULL);
}

/* Checks of the window alone. */
static enum mw_result check_window(const struct mw *w, const struct mw_bind *b, uint32_t version)
{
	if ((b->new_key & ~KEY_PART) != w->index)
		return MW_BAD_KEY;
	if (b->access & ~(ACCESS_RIGHTS | ABI_ACCESS_ZERO_BASED))
		return MW_BAD_ACCESS;
	if (w->type == MW_TYPE_1)
		return b->access & ABI_ACCESS_ZERO_BASED ? MW_ZERO_BASED : MW_DONE; /* MW-01 */
	if (version & MW_BOUND)
		return MW_NOT_FREE;	       /* MW-03 */
	return b->length ? MW_DONE : MW_EMPTY; /* MW-04 */
}

/* Checks of its region. */
static enum mw_result check_region(const struct mr *mr, const struct mw_bind *b, uint32_t pd)
{
	if (!mr || mr->pd != pd)
		return MW_NO_REGION; /* MW-02 */
	if (!(mr->access & ABI_ACCESS_MW_BIND))
		return MW_NO_MW_BIND; /* MW-06 */
	if ((b->access & ACCESS_CHANGE) && !(mr->access & ABI_ACCESS_LOCAL_WRITE))
		return MW_NO_RIGHT; /* MW-07 */
	if (b->access & ACCESS_FLUSH & ~mr->access)
		return MW_NO_RIGHT;
	return range_inside(b->addr - mr->iova, b->length, mr->length) ? MW_DONE
								       : MW_OUTSIDE; /* MW-08 */
}

static void write_binding(struct mw *w, const struct mw_bind *b, struct mr *mr, uint32_t qpn)
{
	set(&w->key, b->new_key);
	set(&w->access, b->access & ACCESS_RIGHTS);
	set(&w->qpn, w->type == MW_TYPE_2 ? qpn : 0);
	set(&w->iova, b->access & ABI_ACCESS_ZERO_BASED ? 0 : b->addr);
	set(&w->length, b->length);
	set(&w->base, mr ? mr->base + (b->addr - mr->iova) : NULL);
	set(&w->mr, mr);
}

enum mw_result mw_bind(const struct mr_table *t, const struct mw_bind *b, uint32_t pd, uint32_t qpn)
{
	struct mw *w = mw_find(t, b->mw);
	enum mw_result why;
	struct mr *mr = NULL;
	uint32_t version;

	if (!w || w->pd != pd)
		return MW_NO_WINDOW; /* MW-02 */
	version = atomic_load_explicit(&w->version, memory_order_relaxed);
	why = check_window(w, b, version);
	if (why == MW_DONE && b->length) { /* MW-05: otherwise type 1 is unbound */
		mr = mr_find(t, b->lkey);
		why = check_region(mr, b, pd);
	}
	if (why != MW_DONE)
		return why;
	if (mr && !mr_hold(mr))
		return MW_NO_REGION;
	if (!take(w, version)) {
		if (mr)
			mr_let_go(mr);
		return MW_AGAIN;
	}
	let_go(w, version);
	write_binding(w, b, mr, qpn);
	leave(w, version, mr != NULL);
	return version & MW_BOUND ? MW_RETIRED : MW_DONE;
}

enum mw_result mw_invalidate(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn)
{
	struct mw *w = mw_find(t, key);
	struct mw_view v;
	uint32_t version;

	if (!w || w->pd != pd)
		return MW_NO_WINDOW;
	if (w->type == MW_TYPE_1)
		return MW_TYPE_1_STAYS; /* MW-10 */
	version = atomic_load_explicit(&w->version, memory_order_relaxed);
	if (!mw_view(w, &v) || v.key != key)
		return MW_NOT_BOUND;
	if (v.qpn != qpn)
		return MW_OTHER_QP;
	/* No other worker writes a window that this QP has bound. */
	if (!take(w, version))
		return MW_AGAIN;
	let_go(w, version);
	leave(w, version, false);
	return MW_DONE;
}

void mw_release(struct mw *w)
{
	uint32_t version = get(&w->version);

	let_go(w, version);
	leave(w, version, false);
}
