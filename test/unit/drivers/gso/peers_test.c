/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "gso/peers.h"
#include "headers.h"

#define MS 1000u
#define T0 (1000000u * MS)

static struct gso_peers peers;

static int begin(void **state)
{
	gso_peers_init(&peers, MS);
	return 0;
}

/* A frame to host @p n; only its addresses matter. */
static const uint8_t *frame_to(uint32_t n, bool ip4)
{
	static uint8_t f[64];

	memset(f, 0, sizeof(f));
	f[ETH_DST] = 2;
	put_be32(f + ETH_DST + 2, n);
	put_be16(f + ETH_TYPE, ip4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	put_be32(f + ETH_HLEN + (ip4 ? IP4_DST : IP6_DST), n);
	return f;
}

static struct gso_peer *find(uint32_t n, uint64_t now)
{
	return gso_peers_find(&peers, frame_to(n, true), now);
}

static void gso_peers_find__by_mac_and_address(void **state)
{
	struct gso_peer *one = find(1, T0), *other;
	uint8_t f[64];

	assert_ptr_equal(find(1, T0 + 1), one);
	memcpy(f, frame_to(1, true), sizeof(f));
	f[ETH_DST + 1] ^= 4; /* another router */
	other = gso_peers_find(&peers, f, T0);
	assert_ptr_not_equal(other, one);
	memcpy(f, frame_to(1, true), sizeof(f));
	f[ETH_HLEN + IP4_DST] ^= 1; /* another host that the same router leads to */
	assert_ptr_not_equal(gso_peers_find(&peers, f, T0), one);
	assert_ptr_not_equal(gso_peers_find(&peers, f, T0), other);
	assert_ptr_not_equal(gso_peers_find(&peers, frame_to(1, false), T0), one);
	memcpy(f, frame_to(1, false), sizeof(f));
	f[ETH_HLEN + IP6_DST + 15] ^= 1;
	assert_ptr_not_equal(
		gso_peers_find(&peers, f, T0), gso_peers_find(&peers, frame_to(1, false), T0));
	assert_ptr_equal(find(1, T0), one);
}

static void gso_peers_find__nobody_of_a_group(void **state)
{
	uint8_t f[64];

	memcpy(f, frame_to(1, true), sizeof(f));
	f[ETH_DST] |= 1;
	assert_null(gso_peers_find(&peers, f, T0));
}

/* However many there are: one that is in use stays, and a new one is asked anew. */
static void gso_peers_find__the_oldest_makes_room(void **state)
{
	struct gso_peer *one = find(1, T0);

	gso_peer_ask(&peers, one, 77, T0);
	gso_peer_answered(&peers, one);
	for (uint32_t n = 2; n < 10000; n++) {
		struct gso_peer *p = find(n, T0 + 2 * n);

		assert_false(gso_peer_known(p, T0));
		assert_int_equal(p->cookie, 0);
		assert_ptr_equal(find(1, T0 + 2 * n + 1), one);
	}
	assert_true(gso_peer_known(one, T0 + 1));
}

static void gso_peer_known__as_long_as_it_answers(void **state)
{
	struct gso_peer *p = find(1, T0);
	uint64_t now = T0;

	assert_false(gso_peer_known(p, T0));
	for (unsigned i = 0; i < 10; i++) {
		assert_true(gso_peer_due(&peers, p, now));
		gso_peer_ask(&peers, p, 100 + i, now);
		assert_false(gso_peer_due(&peers, p, now));
		assert_true(gso_peer_waits(&peers, p, now + 1));
		gso_peer_answered(&peers, p);
		assert_false(gso_peer_waits(&peers, p, now + 1));
		assert_true(gso_peer_known(p, now + GSO_KNOWN_MS * MS - 1));
		assert_false(gso_peer_known(p, now + GSO_KNOWN_MS * MS));
		assert_false(gso_peer_due(&peers, p, now + GSO_AGAIN_MS * MS - 1));
		now += GSO_AGAIN_MS * MS;
	}
}

/* Time runs from the trial: what was true then need not be when the answer is looked at. */
static void gso_peer_answered__counts_from_the_question(void **state)
{
	struct gso_peer *p = find(1, T0);

	gso_peer_ask(&peers, p, 1, T0);
	assert_true(gso_peer_waits(&peers, p, T0 + GSO_KNOWN_MS * MS - 1));
	assert_false(gso_peer_waits(&peers, p, T0 + GSO_KNOWN_MS * MS));
	gso_peer_answered(&peers, p);
	assert_false(gso_peer_known(p, T0 + GSO_KNOWN_MS * MS));
}

/* Several questions are lost before a known peer is sent single frames. */
static void gso_peer_due__a_known_one_is_asked_in_time(void **state)
{
	struct gso_peer *p = find(1, T0);
	uint64_t now;
	unsigned asked = 0;

	gso_peer_ask(&peers, p, 1, T0);
	gso_peer_answered(&peers, p);
	for (now = T0; now < T0 + 2 * GSO_KNOWN_MS * MS && gso_peer_known(p, now); now += MS)
		if (gso_peer_due(&peers, p, now)) {
			gso_peer_ask(&peers, p, 2, now);
			asked++;
		}
	assert_in_range(now, T0, T0 + GSO_KNOWN_MS * MS);
	assert_true(asked >= 3);
}

static void gso_peer_due__ever_more_rarely(void **state)
{
	struct gso_peer *p = find(1, T0);
	uint64_t last = 0, gap = 0;
	unsigned asked = 0;

	for (uint64_t now = T0; now < T0 + 100000 * (uint64_t)MS; now += MS) {
		if (!gso_peer_due(&peers, p, now))
			continue;
		gso_peer_ask(&peers, p, 1 + asked++, now);
		gap = now - last;
		last = now;
	}
	assert_int_equal(gap, GSO_WAIT_MAX_MS * MS);
	assert_in_range(asked, 15, 25);
	/* One answer, and it begins again. */
	gso_peer_answered(&peers, p);
	gso_peer_ask(&peers, p, 1, last + 20000 * MS);
	assert_true(gso_peer_due(&peers, p, last + (20000 + GSO_WAIT_MIN_MS) * MS));
}

/* Peers that take each other's places in the table cost no more than one question a millisecond. */
static void gso_peer_due__one_at_a_time(void **state)
{
	unsigned asked = 0;

	for (uint32_t n = 0; n < 100; n++) {
		struct gso_peer *p = find(n, T0 + n);

		if (gso_peer_due(&peers, p, T0)) {
			gso_peer_ask(&peers, p, 1, T0);
			asked++;
		}
	}
	assert_int_equal(asked, 1);
	assert_true(gso_peer_due(&peers, find(7, T0), T0 + GSO_PACE_MS * MS));
}

static void gso_answers__that_cookie_only(void **state)
{
	static struct gso_answers a;

	assert_false(gso_answers_has(&a, 5));
	gso_answers_put(&a, 5);
	assert_true(gso_answers_has(&a, 5));
	assert_false(gso_answers_has(&a, 5 + GSO_ANSWER_SLOTS));
	for (uint64_t c = 6; c < 5 + GSO_ANSWER_SLOTS; c++)
		gso_answers_put(&a, c);
	assert_true(gso_answers_has(&a, 5));
	gso_answers_put(&a, 5 + GSO_ANSWER_SLOTS);
	assert_false(gso_answers_has(&a, 5));
}

int main(void)
{
#define test(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
		test(gso_peers_find__by_mac_and_address),
		test(gso_peers_find__nobody_of_a_group),
		test(gso_peers_find__the_oldest_makes_room),
		test(gso_peer_known__as_long_as_it_answers),
		test(gso_peer_answered__counts_from_the_question),
		test(gso_peer_due__a_known_one_is_asked_in_time),
		test(gso_peer_due__ever_more_rarely),
		test(gso_peer_due__one_at_a_time),
		test(gso_answers__that_cookie_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
