/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "harness.h"

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	rig_make(r, 4);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_drop(*state);
	free(*state);
	return 0;
}

static void query_device__and_port(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr device = {.size = sizeof(device)};
	struct roci_port_attr port = {.size = sizeof(port)};

	assert_int_equal(roci_query_device(r->ctx, &device), 0);
	assert_int_equal(device.phys_port_cnt, 1);
	assert_int_equal(device.max_qp, 123);
	assert_string_equal(device.fw_ver, "harness");
	assert_int_equal(device.size, sizeof(device));
	assert_int_equal(roci_query_port(r->ctx, 1, &port), 0);
	assert_int_equal(port.state, ROCI_PORT_ACTIVE);
	assert_int_equal(port.max_mtu, ROCI_MTU_4096);
	assert_int_equal(port.active_mtu, ROCI_MTU_1024);
	assert_int_equal(port.bad_pkey_cntr, 9);
}

static void query_gid__types(void **state)
{
	struct rig *r = *state;
	struct roci_gid_entry e = {.size = sizeof(e)};
	uint16_t pkey;

	assert_int_equal(roci_query_gid(r->ctx, 1, 0, &e), 0);
	assert_int_equal(e.gid_type, ROCI_GID_TYPE_ROCE_V1);
	assert_int_equal(roci_query_gid(r->ctx, 1, 3, &e), 0);
	assert_int_equal(e.gid_type, ROCI_GID_TYPE_ROCE_V2);
	assert_int_equal(e.gid_index, 3);
	assert_int_equal(e.port_num, 1);
	assert_int_equal(e.vid, 5);
	assert_int_equal(e.gid.raw[15], 1);
	assert_int_equal(roci_query_gid(r->ctx, 1, 4, &e), 0);
	assert_int_equal(e.gid_type, ROCI_GID_TYPE_ROCE_V2);
	assert_int_equal(roci_query_gid(r->ctx, 1, 1, &e), ENODATA);
	assert_int_equal(roci_query_pkey(r->ctx, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
}

static void find_gid__by_the_peers_family(void **state)
{
	struct rig *r = *state;
	struct roci_gid_entry e = {.size = sizeof(e)};
	union roci_gid ipv4 = {.raw = {[10] = 0xff, 0xff, 10, 9, 9, 9}};
	union roci_gid ipv6 = {.raw = {0x20, 0x01, [15] = 9}};
	union roci_gid local = {.raw = {0xfe, 0x80, [15] = 9}};

	assert_int_equal(roci_find_gid(r->ctx, 1, &ipv4, &e), 0);
	assert_int_equal(e.gid_index, 3);
	assert_int_equal(roci_find_gid(r->ctx, 1, &ipv6, &e), 0);
	assert_int_equal(e.gid_index, 4);
	assert_int_equal(roci_find_gid(r->ctx, 1, &local, &e), 0);
	assert_int_equal(e.gid_index, 2);
	assert_int_equal(roci_find_gid(r->ctx, 1, NULL, &e), 0);
	assert_int_equal(e.gid_index, 3);
}

static bool no_gids(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	struct abi_gid none = {.type = ABI_GID_ROCEV2_IPV6};

	if (msg->type != ABI_QUERY_GID)
		return false;
	harness_reply(h, msg, 0, &none, sizeof(none), NULL, 0);
	return true;
}

static void find_gid__none(void **state)
{
	struct rig *r = *state;
	struct roci_gid_entry e = {.size = sizeof(e)};

	atomic_store(&r->h->hook, no_gids);
	assert_int_equal(roci_find_gid(r->ctx, 1, NULL, &e), EADDRNOTAVAIL);
	assert_int_equal(r->h->calls[ABI_QUERY_GID], 5);
	atomic_store(&r->h->hook, NULL);
}

static void mtu__bytes(void **state)
{
	assert_int_equal(roci_mtu_bytes(ROCI_MTU_256), 256);
	assert_int_equal(roci_mtu_bytes(ROCI_MTU_4096), 4096);
	assert_int_equal(roci_mtu_of_bytes(1024), ROCI_MTU_1024);
	assert_int_equal(roci_mtu_of_bytes(1500), 0);
	assert_int_equal(roci_mtu_of_bytes(128), 0);
	assert_int_equal(roci_mtu_of_bytes(8192), 0);
}

static void names__of_all_and_of_none(void **state)
{
	for (int i = 0; i <= ROCI_WC_GENERAL_ERR; i++)
		assert_string_not_equal(roci_wc_status_str((enum roci_wc_status)i), "unknown");
	for (int i = 0; i <= ROCI_QPS_ERR; i++)
		assert_string_not_equal(roci_qp_state_str((enum roci_qp_state)i), "unknown");
	assert_string_equal(roci_wc_status_str((enum roci_wc_status)22), "unknown");
	assert_string_equal(roci_wc_status_str((enum roci_wc_status) - 1), "unknown");
	assert_string_equal(roci_event_type_str((enum roci_event_type)7), "unknown");
	assert_string_equal(roci_event_type_str(ROCI_EVENT_GID_CHANGE), "GID table changed");
	assert_string_equal(roci_port_state_str(ROCI_PORT_ACTIVE), "ACTIVE");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(query_device__and_port),
		T(query_gid__types),
		T(find_gid__by_the_peers_family),
		T(find_gid__none),
		cmocka_unit_test(mtu__bytes),
		cmocka_unit_test(names__of_all_and_of_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
