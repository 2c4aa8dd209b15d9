/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file spin.h
 * A lock for sections of a few dozen instructions. If the holder has lost its CPU, waiters would
 * waste theirs, so they yield after a while.
 */
#ifndef SPIN_H
#define SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct spin {
	atomic_flag held;
};

#define SPIN_PATIENCE 200

static inline void spin_init(struct spin *s)
{
	atomic_flag_clear(&s->held);
}

static inline void spin_lock(struct spin *s)
{
	for (unsigned tries = 0; atomic_flag_test_and_set_explicit(&s->held, memory_order_acquire);)
		if (++tries >= SPIN_PATIENCE)
			sched_yield();
}

/** @return whether it is held now */
static inline bool spin_trylock(struct spin *s)
{
	return !atomic_flag_test_and_set_explicit(&s->held, memory_order_acquire);
}

static inline void spin_unlock(struct spin *s)
{
	atomic_flag_clear_explicit(&s->held, memory_order_release);
}

#endif
