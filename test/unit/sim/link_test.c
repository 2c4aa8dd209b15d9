/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "link.h"

#define ROOM 64u

static struct sim_frame frames[ROOM];
static struct sim_frame *places[ROOM];
static struct sim_link l;

static void start(const struct link_config *cfg, uint64_t seed)
{
	for (unsigned i = 0; i < ROOM; i++)
		places[i] = &frames[i];
	link_init(&l, places, ROOM, cfg, seed);
}

static void send_numbered(unsigned n, uint64_t now)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t f[100] = {(uint8_t)i};

		link_send(&l, f, sizeof(f), now);
	}
}

static void link_send__delays_and_serialises(void **state)
{
	struct link_config cfg = {.delay_ns = 1000, .rate_bps = 1000000000};
	const uint64_t one = (100 + 24) * 8; /* ns at 1 Gb/s */

	start(&cfg, 1);
	send_numbered(3, 5000);
	for (unsigned i = 0; i < 3; i++) {
		const struct sim_frame *f;

		assert_int_equal(link_due(&l), 6000 + (i + 1) * one);
		assert_null(link_receive(&l, link_due(&l) - 1));
		f = link_receive(&l, link_due(&l));
		assert_non_null(f);
		assert_int_equal(f->bytes[0], i);
		assert_int_equal(f->len, 100);
	}
	assert_true(link_due(&l) == SIM_NEVER);
}

static void link_pause__holds_the_sender(void **state)
{
	struct link_config cfg = {.delay_ns = 10};

	start(&cfg, 1);
	link_pause(&l, 9000);
	send_numbered(1, 100);
	assert_int_equal(link_due(&l), 9010);
}

static void link_send__loses_by_mask(void **state)
{
	struct link_config cfg = {.impair.loss_mask = 0x5};

	start(&cfg, 1);
	send_numbered(4, 0);
	assert_int_equal(link_receive(&l, 0)->bytes[0], 1);
	assert_int_equal(link_receive(&l, 0)->bytes[0], 3);
	assert_null(link_receive(&l, 0));
	link_set_impair(&l, &(struct link_impair){.loss_mask = 1}); /* counts anew */
	send_numbered(2, 0);
	assert_int_equal(link_receive(&l, 0)->bytes[0], 1);
	assert_int_equal(l.count.lost, 3);
}

/* Each impairment happens about as often as asked, and the same seed repeats it exactly. */
static void link_send__impairments_follow_the_seed(void **state)
{
	struct link_config cfg = {.impair = {.loss = 100000,
					  .duplicate = 100000,
					  .reorder = 100000,
					  .reorder_ns = 50,
					  .corrupt = 100000,
					  .truncate = 100000}};
	uint64_t hash[3];

	for (unsigned run = 0; run < 3; run++) {
		const struct sim_frame *f;

		start(&cfg, run == 2 ? 8 : 7);
		hash[run] = 1;
		for (unsigned i = 0; i < 2000; i++) {
			send_numbered(1, i * 100);
			while ((f = link_receive(&l, i * 100 + 99)))
				hash[run] = (hash[run] ^ f->len ^ f->bytes[0] ^ f->bytes[50]) *
					    0x100000001B3ull;
		}
		assert_in_range(l.count.lost, 120, 280);
		assert_in_range(l.count.duplicated, 110, 280);
		assert_in_range(l.count.reordered, 110, 300);
		assert_in_range(l.count.corrupted, 110, 300);
		assert_in_range(l.count.truncated, 110, 300);
		assert_int_equal(
			l.count.delivered, l.count.frames - l.count.lost + l.count.duplicated);
	}
	assert_true(hash[0] == hash[1]);
	assert_true(hash[0] != hash[2]);
}

static void link_send__corruption_is_one_bit(void **state)
{
	struct link_config cfg = {.impair.corrupt = 1000000};
	static const uint8_t zero[100];
	unsigned bits = 0;

	start(&cfg, 3);
	link_send(&l, zero, sizeof(zero), 0);
	for (unsigned i = 0; i < 100; i++)
		bits += (unsigned)__builtin_popcount(l.frame[0]->bytes[i]);
	assert_int_equal(bits, 1);
}

/* The chosen frames, and no others, whatever chance says of the rest. */
static unsigned by_number(void *arg, const uint8_t *frame, size_t len)
{
	static const unsigned fate[] = {LINK_PASS, LINK_LOSE, LINK_DUPLICATE, LINK_CORRUPT,
		LINK_TRUNCATE, LINK_REORDER, LINK_DUPLICATE | LINK_REORDER};

	assert_int_equal(len, 100);
	++*(unsigned *)arg;
	return fate[frame[0]];
}

static void link_send__does_what_was_picked(void **state)
{
	struct link_config cfg = {.impair.reorder_ns = 700};
	static const uint8_t order[] = {0, 2, 2, 3, 4, 6, 5, 6};
	unsigned asked = 0;

	start(&cfg, 1);
	l.pick = (struct link_pick){.fate = by_number, .arg = &asked};
	send_numbered(7, 50);
	assert_int_equal(asked, 7);
	for (unsigned i = 0; i < sizeof(order); i++) {
		const struct sim_frame *f = link_receive(&l, 1000);
		static const uint8_t same[100];

		assert_non_null(f);
		assert_int_equal(f->due, i < 6 ? 50 : 750);
		assert_int_equal(f->len < 100, order[i] == 4);
		if (order[i] == 3)
			assert_true(f->bytes[0] != 3 || memcmp(f->bytes + 1, same, 99) != 0);
		else if (order[i] != 4)
			assert_int_equal(f->bytes[0], order[i]);
	}
	assert_null(link_receive(&l, SIM_NEVER - 1));
	assert_int_equal(l.count.lost, 1);
	assert_int_equal(l.count.duplicated, 2);
	assert_int_equal(l.count.corrupted, 1);
	assert_int_equal(l.count.truncated, 1);
	assert_int_equal(l.count.reordered, 2);
}

/* It stands still, for no longer than asked, and what waits stays in order. */
static void link_send__pauses_by_chance(void **state)
{
	struct link_config cfg = {
		.rate_bps = 1000000000, .impair = {.pause = 500000, .pause_ns = 10000}};
	const uint64_t one = (100 + 24) * 8;
	uint64_t due = 0;

	start(&cfg, 5);
	send_numbered(ROOM, 0);
	assert_in_range(l.count.paused, ROOM / 4, ROOM * 3 / 4);
	for (unsigned i = 0; i < ROOM; i++) {
		const struct sim_frame *f = link_receive(&l, SIM_NEVER - 1);

		assert_int_equal(f->bytes[0], i);
		assert_in_range(f->due, due + one, due + one + 10000);
		due = f->due;
	}
	assert_true(due > ROOM * one + l.count.paused * 2500); /* some 5,000 each */
}

/* A queue of 3 us: the frame that would have to wait longer is lost, until there is room again. */
static void link_send__drops_behind_a_full_queue(void **state)
{
	struct link_config cfg = {.rate_bps = 1000000000, .queue_ns = 3000};

	start(&cfg, 1);
	send_numbered(10, 0); /* 992 ns each: they begin at 0, 992, 1984, 2976 */
	assert_int_equal(l.count.lost, 6);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(link_receive(&l, 5000)->bytes[0], i);
	assert_null(link_receive(&l, 5000));
	send_numbered(1, 967);
	assert_int_equal(l.count.lost, 7);
	send_numbered(1, 968);
	assert_int_equal(l.count.lost, 7);
}

/* A heap of random due times comes out sorted, equal ones in the order they went in. */
static void link_receive__is_sorted(void **state)
{
	struct link_config cfg = {.impair = {.reorder = 500000, .reorder_ns = 20}};
	const struct sim_frame *f;
	uint64_t due = 0, seq = 0;

	start(&cfg, 9);
	send_numbered(ROOM, 0);
	assert_int_equal(link_room(&l), 0);
	for (unsigned i = 0; i < ROOM; i++) {
		f = link_receive(&l, 1000);
		assert_non_null(f);
		assert_true(f->due > due || (f->due == due && (i == 0 || f->seq > seq)));
		due = f->due;
		seq = f->seq;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_send__delays_and_serialises),
		cmocka_unit_test(link_pause__holds_the_sender),
		cmocka_unit_test(link_send__loses_by_mask),
		cmocka_unit_test(link_send__impairments_follow_the_seed),
		cmocka_unit_test(link_send__corruption_is_one_bit),
		cmocka_unit_test(link_send__does_what_was_picked),
		cmocka_unit_test(link_send__pauses_by_chance),
		cmocka_unit_test(link_send__drops_behind_a_full_queue),
		cmocka_unit_test(link_receive__is_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
