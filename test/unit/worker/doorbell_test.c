/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "eal_test.h"
#include "rig.h"

struct bells {
	struct rig r;
	struct rig_qp q;
};

static int up(void **state)
{
	static struct bells b;

	rig_up(&b.r, 1);
	rig_qp_up(&b.r, &b.q, 4, 0);
	/* one QP in many slots: only the scan is looked at */
	atomic_store(&b.q.db.qp[4], NULL);
	*state = &b;
	return 0;
}

static int down(void **state)
{
	struct bells *b = *state;

	rig_qp_down(&b->r, &b->q, 4);
	rig_down(&b->r);
	return 0;
}

static void doorbell_poll__rung_once_is_served_once(void **state)
{
	struct bells *b = *state;

	atomic_store(&b->q.db.qp[70], b->q.qp);
	assert_int_equal(doorbell_poll(b->q.w), 0);
	abi_doorbell_ring(b->q.bell, 70);
	assert_int_equal(doorbell_poll(b->q.w), 1);
	assert_int_equal(doorbell_poll(b->q.w), 0);
	assert_int_equal(atomic_load(&b->q.bell->bits[1]), 0);
	assert_int_equal(atomic_load(&b->q.bell->summary[0]), 0);
}

static void doorbell_poll__each_slot_is_found(void **state)
{
	struct bells *b = *state;

	for (uint32_t slot = 0; slot < ABI_DB_MAX; slot += slot < 130 ? 1 : 61) {
		atomic_store(&b->q.db.qp[slot], b->q.qp);
		abi_doorbell_ring(b->q.bell, slot);
		assert_int_equal(doorbell_poll(b->q.w), 1);
		atomic_store(&b->q.db.qp[slot], NULL);
	}
}

static void doorbell_poll__free_slots_are_ignored(void **state)
{
	struct bells *b = *state;

	/* hostile: everything rings */
	memset((void *)b->q.bell, 0xFF, sizeof(*b->q.bell));
	for (unsigned i = 0; i < ABI_DB_WORDS; i++)
		assert_int_equal(doorbell_poll(b->q.w), 0);
}

static void doorbell_poll__flood_is_served_in_portions(void **state)
{
	struct bells *b = *state;
	unsigned served = 0;
	unsigned rounds = 0;

	for (uint32_t slot = 0; slot < ABI_DB_MAX; slot++) {
		atomic_store(&b->q.db.qp[slot], b->q.qp);
		abi_doorbell_ring(b->q.bell, slot);
	}
	for (; served < ABI_DB_MAX && rounds < ABI_DB_MAX; rounds++) {
		unsigned n = doorbell_poll(b->q.w);

		assert_in_range(n, 1, DOORBELL_WORDS_POLL * 64);
		served += n;
	}
	assert_int_equal(served, ABI_DB_MAX);
	assert_int_equal(rounds, ABI_DB_WORDS / DOORBELL_WORDS_POLL);
	assert_int_equal(doorbell_poll(b->q.w), 0);
}

static unsigned words_set(const struct abi_doorbell *bell)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ABI_DB_WORDS; i++)
		n += atomic_load(&bell->bits[i]) != 0;
	return n;
}

/* All sessions but one ring everything: a round takes a bounded number of words, and that one is
 * served as soon as each of the others has had its portion. */
static void doorbell_poll__sessions_take_turns(void **state)
{
	static struct abi_doorbell bell[SESSION_MAX - 1];
	static struct worker_doorbell db[SESSION_MAX - 1];
	const unsigned most = SESSION_MAX * DOORBELL_WORDS_POLL / DOORBELL_WORDS_ROUND;
	struct bells *b = *state;
	struct worker *w = b->q.w;
	unsigned rounds = 0;

	memset((void *)bell, 0xFF, sizeof(bell));
	for (unsigned i = 0; i < ARRAY_SIZE(db); i++) {
		db[i] = (struct worker_doorbell){.shared = &bell[i], .qp = b->q.db.qp};
		assert_int_equal(worker_add_doorbell(w, &db[i]), 0);
	}
	doorbell_poll(w); /* it begins after the one that is honest */
	atomic_store(&b->q.db.qp[70], b->q.qp);
	for (unsigned i = 0; i < ARRAY_SIZE(db); i++)
		atomic_store(&bell[i].bits[1], 0);
	abi_doorbell_ring(b->q.bell, 70);
	for (unsigned served = 0; !served; rounds++) {
		unsigned before = 0, after = 0;

		for (unsigned i = 0; i < ARRAY_SIZE(db); i++)
			before += words_set(&bell[i]);
		assert_true(doorbell_left(w));
		served = doorbell_poll(w);
		for (unsigned i = 0; i < ARRAY_SIZE(db); i++)
			after += words_set(&bell[i]);
		assert_in_range(before - after, 1, DOORBELL_WORDS_ROUND + DOORBELL_WORDS_POLL);
	}
	assert_in_range(rounds, 1, most + 1);
	for (unsigned i = 0; i < ARRAY_SIZE(db); i++)
		worker_del_doorbell(w, &db[i]);
}

static void worker_del_doorbell__is_not_looked_at_any_more(void **state)
{
	struct bells *b = *state;

	atomic_store(&b->q.db.qp[9], b->q.qp);
	worker_del_doorbell(b->q.w, &b->q.db);
	abi_doorbell_ring(b->q.bell, 9);
	assert_int_equal(doorbell_poll(b->q.w), 0);
	assert_int_equal(worker_add_doorbell(b->q.w, &b->q.db), 0);
	assert_int_equal(doorbell_poll(b->q.w), 1);
}

static void worker_add_doorbell__room_for_session_max(void **state)
{
	struct bells *b = *state;
	static struct abi_doorbell bell;
	static struct worker_doorbell db = {.shared = &bell};

	for (unsigned i = 1; i < SESSION_MAX; i++)
		assert_int_equal(worker_add_doorbell(b->q.w, &db), 0);
	assert_int_equal(worker_add_doorbell(b->q.w, &db), -ENOSPC);
	worker_del_doorbell(b->q.w, &db); /* all of them */
	assert_int_equal(worker_add_doorbell(b->q.w, &db), 0);
	worker_del_doorbell(b->q.w, &db);
}

#define WITH_BELLS(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_BELLS(doorbell_poll__rung_once_is_served_once),
		WITH_BELLS(doorbell_poll__each_slot_is_found),
		WITH_BELLS(doorbell_poll__free_slots_are_ignored),
		WITH_BELLS(doorbell_poll__flood_is_served_in_portions),
		WITH_BELLS(doorbell_poll__sessions_take_turns),
		WITH_BELLS(worker_del_doorbell__is_not_looked_at_any_more),
		WITH_BELLS(worker_add_doorbell__room_for_session_max),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
