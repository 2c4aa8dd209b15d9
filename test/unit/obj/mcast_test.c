/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast GIDs, their MACs, and the table of groups: MC-01, MC-02. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "bits.h"
#include "mcast.h"
#include "random.h"
#include "tables.h"

static void gid_of(uint8_t gid[16], const char *text)
{
	memset(gid, 0, 16);
	if (inet_pton(AF_INET6, text, gid) == 1)
		return;
	gid[10] = gid[11] = 0xFF;
	assert_int_equal(inet_pton(AF_INET, text, gid + 12), 1);
}

/* proves MC-01 */
static void gid_is_multicast__both_families(void **state)
{
	static const struct {
		const char *gid;
		bool multicast;
	} row[] = {{"224.0.0.1", true}, {"239.255.255.255", true}, {"223.255.255.255", false},
		{"240.0.0.1", false}, {"ff02::1", true}, {"ff12:401b:ffff::1", true},
		{"fe80::1", false}, {"2001:db8::ff00", false}, {"::", false}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		uint8_t gid[16];

		gid_of(gid, row[i].gid);
		assert_int_equal(gid_is_multicast(gid), row[i].multicast);
	}
}

/* proves MC-02, MC-07; RFC 1112 6.4, RFC 2464 7 */
static void mcast_mac__of_groups(void **state)
{
	static const struct {
		const char *gid;
		uint8_t mac[6];
	} row[] = {
		{"224.0.0.1", {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01}},
		{"239.129.2.3", {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}},
		{"232.255.255.255", {0x01, 0x00, 0x5e, 0x7f, 0xff, 0xff}},
		{"ff02::1", {0x33, 0x33, 0, 0, 0, 1}},
		{"ff12:401b:ffff::ffff:fffe", {0x33, 0x33, 0xff, 0xff, 0xff, 0xfe}},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		uint8_t gid[16], mac[6];

		gid_of(gid, row[i].gid);
		mcast_mac(mac, gid);
		assert_memory_equal(mac, row[i].mac, sizeof(mac));
	}
}

/* --- the table ------------------------------------------------------------------------ */

static struct mcast_table table;

static struct mcast_group *make(uint32_t port, const char *gid, uint32_t n)
{
	struct mcast_group *g = calloc(1, sizeof(*g) + n * sizeof(g->member[0]));

	assert_non_null(g);
	gid_of(g->mgid, gid);
	g->port = port;
	g->n = n;
	return g;
}

static const struct mcast_group *look(uint32_t port, const char *gid)
{
	uint8_t mgid[16];

	gid_of(mgid, gid);
	return mcast_find(&table, mgid, port);
}

static void mcast_replace__by_port_and_gid(void **state)
{
	struct mcast_group *a = make(0, "239.1.2.3", 0);
	struct mcast_group *b = make(1, "239.1.2.3", 0); /* the same bucket */
	struct mcast_group *c = make(1, "239.1.2.3", 0);

	assert_null(look(0, "239.1.2.3"));
	mcast_replace(&table, NULL, a);
	mcast_replace(&table, NULL, b);
	assert_ptr_equal(look(0, "239.1.2.3"), a);
	assert_ptr_equal(look(1, "239.1.2.3"), b);
	assert_null(look(0, "239.1.2.4"));
	assert_null(look(2, "239.1.2.3"));
	mcast_replace(&table, b, c);
	assert_ptr_equal(look(1, "239.1.2.3"), c);
	assert_ptr_equal(look(0, "239.1.2.3"), a);
	mcast_replace(&table, a, NULL);
	assert_null(look(0, "239.1.2.3"));
	assert_ptr_equal(look(1, "239.1.2.3"), c);
	mcast_replace(&table, c, NULL);
	assert_null(look(1, "239.1.2.3"));
	free(a);
	free(b);
	free(c);
}

static void mcast_replace__many(void **state)
{
	struct mcast_group *g[1000];
	char gid[32];

	for (unsigned i = 0; i < ARRAY_SIZE(g); i++) {
		snprintf(gid, sizeof(gid), "ff15::%x:1", i);
		g[i] = make(0, gid, 0);
		mcast_replace(&table, NULL, g[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(g); i += 2)
		mcast_replace(&table, g[i], NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(g); i++) {
		snprintf(gid, sizeof(gid), "ff15::%x:1", i);
		assert_ptr_equal(look(0, gid), i % 2 ? g[i] : NULL);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(g); i++) {
		if (i % 2)
			mcast_replace(&table, g[i], NULL);
		free(g[i]);
	}
}

/* Choosing GIDs does not choose buckets. */
static void mcast_bucket__depends_on_all_of_the_gid_and_the_seed(void **state)
{
	static struct mcast_table seeded;
	unsigned in[MCAST_BUCKETS] = {0};
	uint8_t gid[16] = {0xFF, 0x15};
	struct random r = {1};

	random_fill(&r, (uint8_t *)&seeded.seed, sizeof(seeded.seed));
	for (unsigned i = 0; i < MCAST_GROUP_MAX; i++) {
		memcpy(gid + 4, &i, sizeof(i)); /* the last eight bytes are the same */
		in[mcast_bucket(&seeded, gid)]++;
	}
	for (unsigned i = 0; i < MCAST_BUCKETS; i++)
		assert_in_range(in[i], 0, 5 * MCAST_GROUP_MAX / MCAST_BUCKETS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid_is_multicast__both_families),
		cmocka_unit_test(mcast_mac__of_groups),
		cmocka_unit_test(mcast_replace__by_port_and_gid),
		cmocka_unit_test(mcast_replace__many),
		cmocka_unit_test(mcast_bucket__depends_on_all_of_the_gid_and_the_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
