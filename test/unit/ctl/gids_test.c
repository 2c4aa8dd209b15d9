/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "headers.h"
#include "net/gids.h"
#include "text/sentence.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static uint8_t address[GID_MAX + 8][16];
static struct gids gids;
static char why[ABI_SENTENCE_MAX];

static const uint8_t peer4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 0, 0, 99};
static const uint8_t peer6[16] = {0x20, 1, 0xd, 0xb8, [15] = 99};

/* address[i]: 10.0.0.i */
static int setup(void **state)
{
	for (unsigned i = 0; i < GID_MAX + 8; i++) {
		memset(address[i], 0, 16);
		memset(address[i] + 10, 0xFF, 2);
		address[i][12] = 10;
		address[i][15] = (uint8_t)i;
	}
	gids_init(&gids, false);
	return 0;
}

static int add(const uint8_t gid[16], uint16_t vid, uint32_t ifindex, bool kernel)
{
	struct gid_address a = {.vid = vid, .ifindex = ifindex};

	memcpy(a.gid, gid, 16);
	memcpy(a.mac, mac, 6);
	return gids_add(&gids, &a, kernel);
}

/* The netdev, 3, has these addresses and no others. */
static void sync_to(uint8_t gid[][16], unsigned n, const uint8_t of[6])
{
	struct gid_address a[GID_MAX] = {0};

	for (unsigned i = 0; i < n; i++) {
		a[i].ifindex = 3;
		memcpy(a[i].gid, gid[i], 16);
		memcpy(a[i].mac, of, 6);
	}
	assert_int_equal(gids_sync(&gids, a, n), 0);
}

static void gid_of_mac__is_eui64(void **state)
{
	static const uint8_t want[16] = {
		0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFE, 0, 0, 1};
	uint8_t gid[16];

	gid_of_mac(gid, mac);
	assert_memory_equal(gid, want, 16);
}

/* proves GID-01, GID-04 */
static void gids_add__type_follows_the_address(void **state)
{
	static const uint8_t nat64[16] = {0, 0x64, 0xff, 0x9b, [12] = 10, [15] = 1};
	static const uint8_t zeroes[16] = {[8] = 1, [10] = 0xFF, [11] = 0xFF, 10, [15] = 1};

	assert_int_equal(add(peer6, 0, 3, false), 0);
	assert_int_equal(add(peer4, 7, 3, false), 0);
	assert_int_equal(add(nat64, 0, 3, false), 0);
	assert_int_equal(add(zeroes, 0, 3, false), 0);
	assert_int_equal(gids.table.count, 4);
	assert_int_equal(gids.table.entry[2].net, NET_IPV6);
	assert_int_equal(gids.table.entry[3].net, NET_IPV6);
	assert_int_equal(gids.table.entry[0].net, NET_IPV6);
	assert_int_equal(gids.table.entry[1].net, NET_IPV4); /* GID-04 */
	assert_int_equal(gids.table.entry[1].vid, 7);
	assert_memory_equal(gids.table.entry[1].mac, mac, 6);
	assert_int_equal(gid_abi_type(NET_IPV4), ABI_GID_ROCEV2_IPV4);
	assert_int_equal(gid_abi_type(NET_IPV6), ABI_GID_ROCEV2_IPV6);
	assert_int_equal(gid_abi_type(NET_ROCEV1), ABI_GID_ROCEV1);
}

/* proves VAL-15: such a GID would have a QP listen where no frame may be sent. */
static void gids_add__refuses_loopback(void **state)
{
	static const uint8_t lo4[16] = {[10] = 0xFF, 0xFF, 127, 0, 0, 1}, lo6[16] = {[15] = 1};
	static const uint8_t none[16];

	assert_int_equal(add(lo4, 0, 3, true), -EADDRNOTAVAIL);
	assert_int_equal(add(lo6, 0, 3, true), -EADDRNOTAVAIL);
	assert_int_equal(add(none, 0, 3, false), -EADDRNOTAVAIL);
	assert_int_equal(gids.table.count, 0);
}

/* proves GID-02 */
static void gids_add__rocev1_forms(void **state)
{
	gids_init(&gids, true);
	assert_int_equal(add(peer4, 0, 3, false), 0);
	assert_int_equal(gids.table.entry[0].net, NET_IPV4);
	assert_int_equal(gids.table.entry[GID_ROCEV1_FIRST].net, NET_ROCEV1); /* GID-02 */
	assert_memory_equal(gids.table.entry[GID_ROCEV1_FIRST].gid, peer4, 16);
	assert_int_equal(gids.table.count, GID_ROCEV1_FIRST + 1);
	for (unsigned i = 1; i < GID_ROCEV1_FIRST; i++)
		assert_int_equal(add(address[i], 0, 3, false), 0);
	assert_int_equal(add(address[GID_ROCEV1_FIRST], 0, 3, false), -ENOSPC);
}

/* proves GID-03: others do not move; what comes back gets its index back. */
static void gids_sync__indices_are_stable(void **state)
{
	uint8_t some[2][16];

	sync_to(address, 4, mac);
	memcpy(some[0], address[3], 16);
	memcpy(some[1], address[1], 16);
	gids.changed = false;
	sync_to(some, 2, mac);
	assert_true(gids.changed); /* those that went are news */
	assert_false(gids.table.entry[0].valid);
	assert_true(gids.table.entry[1].valid);
	assert_false(gids.table.entry[2].valid);
	assert_true(gids.table.entry[3].valid);
	assert_memory_equal(gids.table.entry[1].gid, address[1], 16);
	assert_memory_equal(gids.table.entry[3].gid, address[3], 16);
	/* a new one does not take a former one's place while there are fresh ones */
	sync_to(address, 6, mac);
	for (unsigned i = 0; i < 6; i++) {
		assert_true(gids.table.entry[i].valid);
		assert_memory_equal(gids.table.entry[i].gid, address[i], 16);
	}
}

/* proves GID-03 */
static void gids_sync__used_entry_is_not_given_away(void **state)
{
	sync_to(address, GID_MAX, mac);
	assert_int_equal(gids.table.count, GID_MAX);
	gids.users[0] = 1;
	sync_to(address + 2, GID_MAX - 2, mac); /* 0 and 1 go */
	assert_int_equal(add(address[GID_MAX], 0, 3, true), 0);
	assert_memory_equal(gids.table.entry[0].gid, address[0], 16);
	assert_false(gids.table.entry[0].valid);
	assert_memory_equal(gids.table.entry[1].gid, address[GID_MAX], 16);
	assert_int_equal(add(address[GID_MAX + 1], 0, 3, true), -ENOSPC);
	gids.users[0] = 0; /* released */
	assert_int_equal(add(address[GID_MAX + 1], 0, 3, true), 0);
	assert_memory_equal(gids.table.entry[0].gid, address[GID_MAX + 1], 16);
}

/* proves GID-03: a QP that uses the RoCEv1 form alone keeps the index as well. */
static void gids_sync__used_rocev1_form_is_not_given_away(void **state)
{
	gids_init(&gids, true);
	sync_to(address, GID_ROCEV1_FIRST, mac);
	gids.users[GID_ROCEV1_FIRST + 5] = 1;
	sync_to(address + 6, GID_ROCEV1_FIRST - 6, mac); /* 0 to 5 go */
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(add(address[GID_ROCEV1_FIRST + i], 0, 3, true), 0);
	assert_int_equal(add(address[GID_ROCEV1_FIRST + 5], 0, 3, true), -ENOSPC);
	assert_memory_equal(gids.table.entry[GID_ROCEV1_FIRST + 5].gid, address[5], 16);
	assert_false(gids.table.entry[GID_ROCEV1_FIRST + 5].valid);
	gids.users[GID_ROCEV1_FIRST + 5] = 0;
	assert_int_equal(add(address[GID_ROCEV1_FIRST + 5], 0, 3, true), 0);
}

static void gids_sync__leaves_static_entries(void **state)
{
	add(peer4, 0, 0, false);
	sync_to(address, 1, mac);
	sync_to(NULL, 0, mac);
	assert_true(gids.table.entry[0].valid);
	assert_false(gids.table.entry[1].valid);
}

static void gids_sync__mac_changes(void **state)
{
	const uint8_t other[6] = {2, 9, 9, 9, 9, 9};

	sync_to(address, 2, mac);
	gids.changed = false;
	sync_to(address, 2, mac);
	assert_false(gids.changed); /* nothing new, nothing to publish */
	sync_to(address, 2, other);
	assert_true(gids.changed);
	assert_memory_equal(gids.table.entry[1].mac, other, 6);
}

/* The same address on the port's netdev and in a VLAN on top of it is two GIDs. */
static void gids_sync__vlan_entries_are_their_own(void **state)
{
	static const uint8_t vlan_mac[6] = {2, 0, 0, 0, 0, 5}, port_mac[6] = {2, 0, 0, 0, 0, 6};
	struct gid_address a[2] = {{.ifindex = 3}, {.vid = 5, .ifindex = 4}};

	memcpy(a[0].gid, peer4, 16);
	memcpy(a[0].mac, mac, 6);
	memcpy(a[1].gid, peer4, 16);
	memcpy(a[1].mac, vlan_mac, 6);
	assert_int_equal(gids_sync(&gids, a, 2), 0);
	assert_int_equal(gids.table.count, 2);
	assert_int_equal(gids.table.entry[1].vid, 5);
	assert_int_equal(gids.table.entry[1].ifindex, 4);
	gids_set_netdev(&gids, 9, port_mac);
	assert_int_equal(gids.table.entry[0].ifindex, 9);
	assert_int_equal(gids.table.entry[1].ifindex, 4);
	assert_memory_equal(gids.table.entry[1].mac, vlan_mac, 6);
	assert_int_equal(gids_sync(&gids, a, 1), 0); /* the VLAN netdev goes */
	assert_true(gids.table.entry[0].valid);
	assert_false(gids.table.entry[1].valid);
	assert_int_equal(gids_sync(&gids, a, 2), 0);
	assert_int_equal(gids.table.count, 2); /* GID-03 */
	assert_true(gids.table.entry[1].valid);
}

/* Else it would change with each look at the netdevs. */
static void gids_sync__static_entry_in_a_vlan_stays(void **state)
{
	struct gid_address a = {.vid = 7, .ifindex = 4};

	assert_int_equal(add(peer4, 7, 3, false), 0);
	gids.changed = false;
	memcpy(a.gid, peer4, 16);
	assert_int_equal(gids_sync(&gids, &a, 1), 0);
	assert_false(gids.changed);
	assert_int_equal(gids.table.entry[0].ifindex, 3);
	assert_int_equal(gids_sync(&gids, NULL, 0), 0);
	assert_true(gids.table.entry[0].valid);
}

static void gids_publish__whole_copies(void **state)
{
	const struct gid_table *first, *second;
	static struct port port; /* zeroes */

	assert_null(gids_publish(&gids, &port)); /* there was none before */
	first = atomic_load(&port.gids);
	assert_non_null(first);
	assert_null(gids_publish(&gids, &port)); /* unchanged */
	assert_ptr_equal(atomic_load(&port.gids), first);
	add(peer4, 0, 3, false);
	assert_int_equal(first->count, 0);
	assert_ptr_equal(gids_publish(&gids, &port), first);
	second = atomic_load(&port.gids);
	assert_int_equal(second->count, 1);
	free((void *)first);
	free((void *)second);
}

/* proves GID-06 */
static void gids_select__names_the_right_index(void **state)
{
	uint8_t ll[16];

	gid_of_mac(ll, mac);
	add(ll, 0, 3, true);
	add(address[1], 0, 3, true);
	assert_non_null(gids_select(&gids, 1, peer4, why));
	assert_null(gids_select(&gids, 0, peer4, why)); /* GID-06 */
	assert_string_equal(why, "GID 0 is link-local; the peer's GID is IPv4: use GID 1");
	assert_null(gids_select(&gids, 1, peer6, why));
	assert_string_equal(why, "GID 1 is IPv4; the peer's GID is IPv6: use GID 0");
	assert_null(gids_select(&gids, 9, peer4, why));
	assert_string_equal(why, "GID 9 is empty; the peer's GID is IPv4: use GID 1");
	assert_null(gids_select(&gids, 255, peer6, why));
	sync_to(NULL, 0, mac);
	assert_null(gids_select(&gids, 1, peer4, why));
	assert_non_null(strstr(why, "an IPv4 address"));
}

static void gids_select__prefers_the_same_scope(void **state)
{
	const uint8_t global[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
	uint8_t ll[16];

	gid_of_mac(ll, mac);
	add(ll, 0, 3, true);
	add(address[1], 0, 3, true);
	add(global, 0, 3, true);
	assert_null(gids_select(&gids, 1, peer6, why));
	assert_non_null(strstr(why, "use GID 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(gid_of_mac__is_eui64, setup),
		cmocka_unit_test_setup(gids_add__type_follows_the_address, setup),
		cmocka_unit_test_setup(gids_add__refuses_loopback, setup),
		cmocka_unit_test_setup(gids_add__rocev1_forms, setup),
		cmocka_unit_test_setup(gids_sync__indices_are_stable, setup),
		cmocka_unit_test_setup(gids_sync__used_entry_is_not_given_away, setup),
		cmocka_unit_test_setup(gids_sync__used_rocev1_form_is_not_given_away, setup),
		cmocka_unit_test_setup(gids_sync__leaves_static_entries, setup),
		cmocka_unit_test_setup(gids_sync__mac_changes, setup),
		cmocka_unit_test_setup(gids_sync__vlan_entries_are_their_own, setup),
		cmocka_unit_test_setup(gids_sync__static_entry_in_a_vlan_stays, setup),
		cmocka_unit_test_setup(gids_publish__whole_copies, setup),
		cmocka_unit_test_setup(gids_select__names_the_right_index, setup),
		cmocka_unit_test_setup(gids_select__prefers_the_same_scope, setup),
	};

	return cmocka_run_group_tests_name("gids", tests, NULL, NULL);
}
