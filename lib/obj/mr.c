/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_ctl.h"
#include "mr.h"

/* Value of mr.windows while a region is being deregistered. */
#define CLOSED UINT32_MAX

void mr_withdraw(struct mr_table *t, struct mr *mr)
{
	struct mr *expected = mr;

	atomic_compare_exchange_strong_explicit(&t->slot[mr->key >> 8], &expected, NULL,
		memory_order_release, memory_order_relaxed);
}

void mr_list_add(struct mr_list *l, struct mr *mr)
{
	struct mr *first = atomic_load_explicit(&l->first, memory_order_relaxed);

	mr->prev = NULL;
	atomic_store_explicit(&mr->next, first, memory_order_relaxed);
	if (first)
		first->prev = mr;
	/* Sequentially consistent: either a handler finds it, or the caller sees `faulted`. */
	atomic_store(&l->first, mr);
}

void mr_list_remove(struct mr_list *l, struct mr *mr)
{
	struct mr *next = atomic_load_explicit(&mr->next, memory_order_relaxed);

	if (next)
		next->prev = mr->prev;
	atomic_store_explicit(mr->prev ? &mr->prev->next : &l->first, next, memory_order_release);
}

void mr_list_withdraw(struct mr_list *l, struct mr_table *t)
{
	struct mr *mr;

	atomic_store(&l->faulted, true);
	for (mr = atomic_load(&l->first); mr;
		mr = atomic_load_explicit(&mr->next, memory_order_acquire))
		mr_withdraw(t, mr);
}

bool mr_hold(struct mr *mr)
{
	uint32_t n = atomic_load_explicit(&mr->windows, memory_order_relaxed);

	do {
		if (n == CLOSED)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&mr->windows, &n, n + 1, memory_order_acq_rel, memory_order_relaxed));
	return true;
}

void mr_let_go(struct mr *mr)
{
	atomic_fetch_sub_explicit(&mr->windows, 1, memory_order_acq_rel);
}

bool mr_close(struct mr *mr)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong(&mr->windows, &none, CLOSED);
}

bool mr_access_valid(uint32_t access)
{
	const uint32_t known = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE |
			       ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC |
			       ABI_ACCESS_MW_BIND | ABI_ACCESS_ZERO_BASED |
			       ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_FLUSH_PERSIST;

	if (access & ~known)
		return false;
	if (access & (ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_ATOMIC))
		return access & ABI_ACCESS_LOCAL_WRITE;
	return true;
}
