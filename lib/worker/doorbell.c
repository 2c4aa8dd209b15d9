/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "qp.h"
#include "qp_impl.h"
#include "qp_table.h"
#include "worker_impl.h"

_Static_assert(ABI_DB_MAX == QP_MAX, "a doorbell by slot of the QP table");

static void pass(struct worker *w, const struct qp *qp, uint32_t owner)
{
	w->stats.bells_passed++;
	abi_doorbell_ring(&w->dp->worker[owner]->passed, QPN_SLOT(qp->qpn));
	if (w->dp->idle == IDLE_ADAPTIVE)
		worker_wake(w->dp->worker[owner]);
}

static struct qp *qp_of(const struct worker_doorbell *db, uint32_t word, uint64_t set)
{
	uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(set);

	return atomic_load_explicit(&db->qp[slot], memory_order_acquire);
}

/* Prefetch all before the first is served, so that their cache misses overlap. */
static void prefetch_word(const struct worker_doorbell *db, uint32_t word, uint64_t set)
{
	for (; set; set &= set - 1) {
		const struct qp *qp = qp_of(db, word, set);

		if (qp)
			qp_prefetch(qp);
	}
}

/* Takes one word of 64 doorbells. */
static unsigned serve_word(struct worker *w, struct worker_doorbell *db, uint32_t word)
{
	_Atomic uint64_t *bits = &db->shared->bits[word];
	uint64_t set = atomic_exchange_explicit(bits, 0, memory_order_acquire);
	unsigned served = 0;

	if (set & (set - 1))
		prefetch_word(db, word, set);
	for (; set; set &= set - 1) {
		struct qp *qp = qp_of(db, word, set);
		uint32_t owner;

		if (!qp) /* hostile, or destroyed meanwhile */
			continue;
		owner = qp_owner(qp);
		if (likely(owner == w->index))
			core_doorbell(&w->core, qp, w->now);
		else
			pass(w, qp, owner);
		served++;
	}
	return served;
}

/* Summary first, as abi_ring.h requires. The exchange, a locked instruction, is executed only if a
 * plain load saw a bit; bits that are not served in this round stay in `pending`. */
static NOINLINE unsigned serve_some(
	struct worker *w, struct doorbell_slot *s, struct worker_doorbell *db, unsigned *words)
{
	unsigned budget = DOORBELL_WORDS_POLL;
	unsigned served = 0;

	for (uint32_t i = 0; i < ABI_DB_SUMMARY; i++) {
		_Atomic uint64_t *summary = &db->shared->summary[i];

		if (atomic_load_explicit(summary, memory_order_relaxed))
			s->pending[i] |= atomic_exchange_explicit(summary, 0, memory_order_acquire);
		while (s->pending[i] && budget) {
			uint32_t bit = (uint32_t)__builtin_ctzll(s->pending[i]);

			s->pending[i] &= s->pending[i] - 1;
			served += serve_word(w, db, i * 64 + bit);
			budget--;
			++*words;
		}
	}
	return served;
}

/* In most rounds nobody has rung. */
static ALWAYS_INLINE unsigned serve(struct worker *w, struct doorbell_slot *s, unsigned *words)
{
	struct worker_doorbell *db = atomic_load_explicit(&s->db, memory_order_acquire);
	uint64_t any = 0;

	if (!db)
		return 0;
#pragma GCC unroll 4
	for (uint32_t i = 0; i < ABI_DB_SUMMARY; i++)
		any |= s->pending[i] |
		       atomic_load_explicit(&db->shared->summary[i], memory_order_relaxed);
	return likely(!any) ? 0 : serve_some(w, s, db, words);
}

unsigned doorbell_poll(struct worker *w)
{
	uint32_t n = atomic_load_explicit(&w->doorbells, memory_order_acquire);
	unsigned words = 0;
	unsigned served = serve(w, &w->passed_slot, &words);
	uint32_t i = w->first_doorbell < n ? w->first_doorbell : 0;

	w->cut_short = false;
	for (uint32_t left = n; left; left--) {
		served += serve(w, &w->doorbell[i], &words);
		i = i + 1 < n ? i + 1 : 0;
		if (unlikely(words >= DOORBELL_WORDS_ROUND)) {
			w->cut_short = left > 1;
			break;
		}
	}
	w->first_doorbell = i;
	return served;
}

static bool is_pending(const struct doorbell_slot *s)
{
	for (uint32_t i = 0; i < ABI_DB_SUMMARY; i++)
		if (s->pending[i])
			return true;
	return false;
}

bool doorbell_left(const struct worker *w)
{
	uint32_t n = atomic_load_explicit(&w->doorbells, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++)
		if (is_pending(&w->doorbell[i]))
			return true;
	return w->cut_short || is_pending(&w->passed_slot);
}

int worker_add_doorbell(struct worker *w, struct worker_doorbell *db)
{
	uint32_t n = atomic_load_explicit(&w->doorbells, memory_order_relaxed);

	for (uint32_t i = 0; i < SESSION_MAX; i++) {
		if (atomic_load_explicit(&w->doorbell[i].db, memory_order_relaxed))
			continue;
		/* `pending` may still hold bits of the slot's last session. They are harmless: the
		 * doorbell words that they name are empty. */
		atomic_fetch_add_explicit(&w->doorbell[i].serial, 1, memory_order_relaxed);
		atomic_store_explicit(&w->doorbell[i].db, db, memory_order_release);
		if (i >= n)
			atomic_store_explicit(&w->doorbells, i + 1, memory_order_release);
		worker_wake(w); /* it has not announced to this session that it sleeps */
		return 0;
	}
	return -ENOSPC;
}

void worker_del_doorbell(struct worker *w, struct worker_doorbell *db)
{
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (atomic_load_explicit(&w->doorbell[i].db, memory_order_relaxed) == db)
			atomic_store_explicit(&w->doorbell[i].db, NULL, memory_order_release);
	sleeper_forget(w, db);
}
