/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: taking, by one and by several workers; limit, corruption, resize. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "srq.h"
#include "step.h"

#define DEPTH	8u
#define DEEPER	32u
#define WORKERS 3u
#define ROUNDS	60000u /* WQEs that several workers take */

static struct abi_queue shared __attribute__((aligned(ABI_LINE)));
static struct abi_recv_wqe entries[DEPTH] __attribute__((aligned(ABI_LINE)));
static struct abi_recv_wqe deeper[DEEPER] __attribute__((aligned(ABI_LINE)));
static struct srq_ring ring, deep;
static struct srq srq;
static uint32_t posted;
static union {
	struct abi_recv_wqe wqe;
	uint8_t bytes[SRQ_ENTRY_MAX];
} copy __attribute__((aligned(16)));

static int setup(void **state)
{
	memset(&shared, 0, sizeof(shared));
	memset(entries, 0, sizeof(entries));
	memset(deeper, 0, sizeof(deeper));
	ring = (struct srq_ring){(uint8_t *)entries, DEPTH};
	deep = (struct srq_ring){(uint8_t *)deeper, DEEPER};
	memset(&srq, 0, sizeof(srq));
	srq.shared = &shared;
	srq.stride = ABI_ENTRY;
	srq.max_sge = 3;
	atomic_store(&srq.ring, &ring);
	posted = 0;
	return 0;
}

/* As an application does. */
static void put(const struct srq_ring *r, uint64_t wr_id)
{
	struct abi_recv_wqe *w = (struct abi_recv_wqe *)r->entries + (posted & (r->depth - 1));

	w->wr_id = wr_id;
	atomic_store_explicit((_Atomic uint32_t *)&w->ctl,
		ABI_WQE_CTL(0, 1, 0) | abi_phase(posted, r->depth), memory_order_release);
	posted++;
	atomic_store_explicit(&shared.producer, posted, memory_order_release);
}

static void assert_taken(uint64_t wr_id)
{
	assert_int_equal(srq_take(&srq, &copy), SRQ_TAKEN);
	assert_int_equal(copy.wqe.wr_id, wr_id);
}

/* proves SRQ-02, SRQ-03: first in, first out, over several laps; and the slots are free at once. */
static void srq_take__fifo(void **state)
{
	for (uint32_t lap = 0; lap < 5; lap++) {
		assert_int_equal(srq_take(&srq, &copy), SRQ_EMPTY);
		for (uint32_t i = 0; i < DEPTH; i++)
			put(&ring, lap * 100 + i);
		assert_int_equal(srq_waiting(&srq, DEPTH), DEPTH);
		for (uint32_t i = 0; i < DEPTH; i++) {
			assert_taken(lap * 100 + i);
			assert_int_equal(atomic_load(&shared.consumer), lap * DEPTH + i + 1);
		}
	}
	assert_int_equal(srq_take(&srq, &copy), SRQ_EMPTY);
}

/* An entry that is not counted yet is not there, although its mark says so. */
static void srq_take__the_index_bounds(void **state)
{
	put(&ring, 1);
	atomic_store(&shared.producer, 0);
	assert_int_equal(srq_take(&srq, &copy), SRQ_EMPTY);
	atomic_store(&shared.producer, 1);
	assert_taken(1);
}

/* proves SRQ-08: the index says that an entry is there, its mark does not. */
static void srq_take__wrong_mark(void **state)
{
	put(&ring, 1);
	entries[0].ctl ^= ABI_WQE_PHASE;
	assert_int_equal(srq_take(&srq, &copy), SRQ_BROKEN);
	assert_true(srq_break(&srq));
	assert_false(srq_break(&srq)); /* told once */
	posted = 1;
	put(&ring, 2);
	assert_int_equal(srq_take(&srq, &copy), SRQ_BROKEN); /* for good */
}

/* proves SRQ-08: more than the ring holds, or a step back. */
static void srq_take__wild_index(void **state)
{
	static const uint32_t wild[] = {DEPTH + 1, 1u << 31, UINT32_MAX};

	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		setup(state);
		atomic_store(&shared.producer, wild[i]);
		assert_int_equal(srq_take(&srq, &copy), SRQ_BROKEN);
		assert_int_equal(atomic_load(&srq.head), 0);
		assert_true(srq_waiting(&srq, DEPTH) <= DEPTH);
	}
}

/* proves SRQ-04: once, when fewer are left, and not before it is armed again. */
static void srq_limit_reached__once(void **state)
{
	for (uint32_t i = 0; i < DEPTH; i++)
		put(&ring, i);
	assert_false(srq_limit_reached(&srq)); /* not armed */
	atomic_store(&srq.limit, 3);
	for (uint32_t left = DEPTH; left > 3; left--) {
		assert_false(srq_limit_reached(&srq));
		assert_taken(DEPTH - left);
	}
	assert_false(srq_limit_reached(&srq)); /* 3 are not fewer than 3 */
	assert_taken(DEPTH - 3);
	assert_true(srq_limit_reached(&srq));
	assert_int_equal(atomic_load(&srq.limit), 0);
	assert_taken(DEPTH - 2);
	assert_false(srq_limit_reached(&srq));
	atomic_store(&srq.limit, 3);
	assert_true(srq_limit_reached(&srq));
	assert_int_equal(atomic_load(&srq.limits), 2);
}

/* Receives posted since the index was copied count. */
static void srq_limit_reached__looks_anew(void **state)
{
	put(&ring, 0);
	put(&ring, 1);
	assert_taken(0); /* copies the index: 2 */
	put(&ring, 2);
	put(&ring, 3);
	atomic_store(&srq.limit, 3);
	assert_false(srq_limit_reached(&srq));
	assert_taken(1);
	assert_true(srq_limit_reached(&srq));
}

static void copy_all(const struct srq_ring *to, const struct srq_ring *from)
{
	struct srq_move m;

	srq_move_begin(&m, &srq, to->depth);
	while (srq_move_some(&m, &srq, to, from, to->depth))
		;
}

/* proves SRQ-05: what waits goes along, with the marks of the other depth, a wrong one too. */
static void srq_move__same_order(void **state)
{
	for (uint32_t i = 0; i < DEPTH + 3; i++) {
		put(&ring, i);
		if (i < 5)
			assert_taken(i);
	}
	copy_all(&deep, &ring);
	atomic_store(&srq.ring, &deep);
	for (uint32_t i = DEPTH + 3; i < DEEPER; i++)
		put(&deep, i);
	for (uint32_t i = 5; i < DEEPER; i++)
		assert_taken(i);
	assert_int_equal(srq_take(&srq, &copy), SRQ_EMPTY);
	for (uint32_t i = 0; i < 4; i++)
		put(&deep, 100 + i);
	copy_all(&ring, &deep); /* and back */
	atomic_store(&srq.ring, &ring);
	for (uint32_t i = 0; i < 4; i++)
		assert_taken(100 + i);
	put(&ring, 7);
	entries[(posted - 1) & (DEPTH - 1)].ctl ^= ABI_WQE_PHASE;
	copy_all(&deep, &ring);
	atomic_store(&srq.ring, &deep);
	assert_int_equal(srq_take(&srq, &copy), SRQ_BROKEN);
}

/* proves SRQ-08: what was never posted to the new ring is not there, whichever lap its head is in.
 */
static void srq_move__free_places(void **state)
{
	for (uint32_t i = 0; i < 3 * DEPTH; i++) {
		put(&ring, i);
		assert_taken(i);
		memset(deeper, 0, sizeof(deeper));
		copy_all(&deep, &ring);
		for (uint32_t k = posted; k != posted + DEEPER; k++)
			assert_int_not_equal(
				deeper[k & (DEEPER - 1)].ctl & ABI_WQE_PHASE, abi_phase(k, DEEPER));
	}
	memset(deeper, 0, sizeof(deeper));
	for (uint32_t i = 3 * DEPTH; i < DEEPER; i++) {
		put(&ring, i);
		assert_taken(i);
	}
	copy_all(&deep, &ring); /* its head is in a lap whose mark is 0 */
	atomic_store(&srq.ring, &deep);
	atomic_store(&shared.producer, posted + 1);
	assert_int_equal(srq_take(&srq, &copy), SRQ_BROKEN);
}

/* Entries that workers take during the copy are taken once, also in the lap after. */
static void srq_move_some__taken_meanwhile(void **state)
{
	struct srq_move m;
	unsigned steps = 1;

	for (uint32_t i = 0; i < DEPTH; i++)
		put(&ring, i);
	srq_move_begin(&m, &srq, DEEPER);
	for (uint32_t i = 0; srq_move_some(&m, &srq, &deep, &ring, 3); steps++)
		if (i < DEPTH / 2)
			assert_taken(i++);
	assert_int_equal(steps, (DEEPER + 2) / 3);
	atomic_store(&srq.ring, &deep);
	for (uint32_t i = atomic_load(&srq.head); i < DEPTH; i++)
		assert_taken(i);
	assert_int_equal(srq_take(&srq, &copy), SRQ_EMPTY);
	for (uint32_t i = DEPTH; i < DEEPER; i++) {
		put(&deep, i);
		assert_taken(i);
	}
	atomic_store(&shared.producer, posted + 1); /* the place of the first one: not posted */
	assert_int_equal(srq_take(&srq, &copy), SRQ_BROKEN);
}

/* --- several workers ---------------------------------------------------------------------- */

static _Atomic uint8_t taken[ROUNDS];
static _Atomic uint32_t total;

static void *worker(void *arg)
{
	union {
		struct abi_recv_wqe wqe;
		uint8_t bytes[SRQ_ENTRY_MAX];
	} mine __attribute__((aligned(16)));
	uint64_t last = 0;
	uint32_t wrong = 0;

	while (atomic_load(&total) < ROUNDS) {
		enum srq_taken how = srq_take(&srq, &mine);

		if (how == SRQ_EMPTY) {
			sched_yield();
			continue;
		}
		/* Whole, for me alone, and later than those that I had before. */
		if (how != SRQ_TAKEN || mine.wqe.wr_id >= ROUNDS || mine.wqe.wr_id + 1 <= last ||
			mine.wqe.sge[0].addr != mine.wqe.wr_id * 3 ||
			mine.wqe.sge[2].addr != ~mine.wqe.wr_id ||
			atomic_fetch_add(&taken[mine.wqe.wr_id % ROUNDS], 1))
			wrong++;
		last = mine.wqe.wr_id + 1;
		atomic_fetch_add(&total, 1);
	}
	return (void *)(uintptr_t)wrong;
}

/* --- several workers, instruction by instruction ------------------------------------------ */

static struct {
	unsigned now;
	unsigned at; /* the step at which the other one comes */
	unsigned events;
	void (*other)(void);
} step;

static void look_at_limit(void)
{
	step.events += srq_limit_reached(&srq);
}

static void arm_lower(void)
{
	atomic_store(&srq.limit, 1);
}

static void at_step(int sig)
{
	if (step.now++ == step.at)
		step.other();
}

/* Looks at a limit of @p limit while 2 are posted; @p other comes at step @p at.
 * @return whether there are more steps. */
static bool look_while(void (*other)(void), uint32_t limit, unsigned at)
{
	setup(NULL);
	put(&ring, 1);
	put(&ring, 2);
	atomic_store(&srq.limit, limit);
	step.now = step.events = 0;
	step.at = at;
	step.other = other;
	step_begin(at_step);
	look_at_limit();
	step_end();
	return step.now > at;
}

/* proves SRQ-04: wherever the other one comes, one of the two raises the event. */
static void srq_limit_reached__two_workers(void **state)
{
	unsigned at = 0;

	for (; look_while(look_at_limit, 3, at); at++) {
		assert_int_equal(step.events, 1);
		assert_int_equal(atomic_load(&srq.limit), 0);
		assert_int_equal(atomic_load(&srq.limits), 1);
	}
	assert_true(at > 10);
}

/* proves SRQ-04: wherever the control thread arms another limit, which is not reached, it stays. */
static void srq_limit_reached__while_it_is_armed(void **state)
{
	unsigned at = 0;

	for (; look_while(arm_lower, 3, at); at++)
		assert_int_equal(atomic_load(&srq.limit), 1);
	assert_true(at > 10);
}

/* An application that posts into each slot as soon as it is free. */
static void srq_take__several_workers(void **state)
{
	pthread_t thread[WORKERS];

	atomic_store(&total, 0);
	memset((void *)taken, 0, sizeof(taken));
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, worker, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct abi_recv_wqe *w = &entries[i & (DEPTH - 1)];

		while (posted - atomic_load_explicit(&shared.consumer, memory_order_acquire) >=
			DEPTH)
			sched_yield();
		w->sge[0].addr = (uint64_t)i * 3;
		w->sge[2].addr = ~(uint64_t)i;
		put(&ring, i);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	for (uint32_t i = 0; i < ROUNDS; i++)
		assert_int_equal(taken[i], 1);
	assert_int_equal(atomic_load(&shared.consumer), ROUNDS); /* none stays behind */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(srq_take__fifo, setup),
		cmocka_unit_test_setup(srq_take__the_index_bounds, setup),
		cmocka_unit_test_setup(srq_take__wrong_mark, setup),
		cmocka_unit_test_setup(srq_take__wild_index, setup),
		cmocka_unit_test_setup(srq_limit_reached__once, setup),
		cmocka_unit_test_setup(srq_limit_reached__looks_anew, setup),
		cmocka_unit_test_setup(srq_move__same_order, setup),
		cmocka_unit_test_setup(srq_move__free_places, setup),
		cmocka_unit_test_setup(srq_move_some__taken_meanwhile, setup),
		cmocka_unit_test_setup(srq_take__several_workers, setup),
		cmocka_unit_test_setup(srq_limit_reached__two_workers, setup),
		cmocka_unit_test_setup(srq_limit_reached__while_it_is_armed, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
