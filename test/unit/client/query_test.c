/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

/* proves GID-08 */
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
	assert_int_equal(port.link_layer, 2); /* IBV_LINK_LAYER_ETHERNET */
}

/* proves GID-10 */
static void query_port__versions_of_roce(void **state)
{
	struct roci_port_attr port = {.size = sizeof(port)};
	struct rig *r = *state;

	assert_int_equal(roci_query_port(r->ctx, 1, &port), 0);
	assert_int_equal(port.roce_versions, ROCI_ROCE_V2);
	rig_drop(r);
	harness_rocev1 = true;
	rig_make(r, 4);
	harness_rocev1 = false;
	assert_int_equal(roci_query_port(r->ctx, 1, &port), 0);
	assert_int_equal(port.roce_versions, ROCI_ROCE_V1 | ROCI_ROCE_V2);
}

/* proves GID-01 */
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

/* proves GID-03: other entries follow an empty one. */
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

/* RoCEv1: 10.0.0.1 at index 1, 2001::1 at index 2. */
static bool gids_of_v1(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	static const struct abi_gid gid[] = {
		[1] = {.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .type = ABI_GID_ROCEV1},
		[2] = {.gid = {0x20, 0x01, [15] = 1}, .type = ABI_GID_ROCEV1},
		[4] = {.type = ABI_GID_ROCEV1},
	};

	if (msg->type != ABI_QUERY_GID)
		return false;
	harness_reply(h, msg, 0, &gid[((const struct abi_query_gid *)body)->index], sizeof(gid[0]),
		NULL, 0);
	return true;
}

/* proves UD-11, GID-06: the answer to what came for a group is of the sender's family */
static void init_ah_from_wc__of_a_rocev1_group(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc = {.wc_flags = ROCI_WC_GRH};
	struct roci_grh_area area = {
		.raw = {[0] = 0x60, [6] = 0x1b, [8] = 0x20, 0x01, [23] = 9, 0xff, 0x15}};
	struct roci_ah_attr attr;

	atomic_store(&r->h->hook, gids_of_v1);
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 2);
	memcpy(area.raw + 8, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x09", 16);
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 1);
	atomic_store(&r->h->hook, NULL);
}

/* One address on two VLANs, and one beside them. */
static bool gids_of_vlans(
	struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	static const struct abi_gid gid[] = {
		{.gid = {0xfe, 0x80, [15] = 1}, .type = ABI_GID_ROCEV2_IPV6},
		{.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .type = ABI_GID_ROCEV2_IPV4, .vid = 7},
		{.gid = {0xfe, 0x80, [15] = 1}, .type = ABI_GID_ROCEV2_IPV6, .vid = 5},
		{.gid = {0xfe, 0x80, [15] = 1}, .type = ABI_GID_ROCEV1, .vid = 6},
		{.gid = {0x20, 0x01, [15] = 1}, .type = ABI_GID_ROCEV2_IPV6, .vid = 5},
	};

	if (msg->type != ABI_QUERY_GID)
		return false;
	harness_reply(h, msg, 0, &gid[((const struct abi_query_gid *)body)->index], sizeof(gid[0]),
		NULL, 0);
	return true;
}

/* proves UD-11, ETH-07, GID-05: the answer goes on the VLAN that the datagram came on */
static void init_ah_from_wc_net__on_the_senders_vlan(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc = {.wc_flags = ROCI_WC_GRH, .sl = 3};
	struct roci_grh_area area = {
		.raw = {[0] = 0x60, [6] = 17, [8] = 0xfe, 0x80, [23] = 9, 0xfe, 0x80, [39] = 1}};
	struct roci_wc_net net = {.type = ROCI_GID_TYPE_ROCE_V2, .vlan_id = 5};
	struct roci_ah_attr attr;

	atomic_store(&r->h->hook, gids_of_vlans);
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 0); /* as verbs: the first */
	assert_int_equal(roci_init_ah_from_wc_net(r->ctx, 1, &wc, &net, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 2);
	assert_int_equal(attr.sl, 3);
	net.vlan_id = 0;
	assert_int_equal(roci_init_ah_from_wc_net(r->ctx, 1, &wc, &net, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 0);
	net = (struct roci_wc_net){.type = ROCI_GID_TYPE_ROCE_V1, .vlan_id = 6};
	assert_int_equal(roci_init_ah_from_wc_net(r->ctx, 1, &wc, &net, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 3);
	net.vlan_id = 8; /* its netdev went meanwhile */
	assert_int_equal(
		roci_init_ah_from_wc_net(r->ctx, 1, &wc, &net, &area, &attr), EADDRNOTAVAIL);
	/* To a group: of the sender's kind, on its VLAN. */
	memcpy(area.raw + 24, "\xff\x15\0\0", 4);
	net = (struct roci_wc_net){.type = ROCI_GID_TYPE_ROCE_V2, .vlan_id = 5};
	assert_int_equal(roci_init_ah_from_wc_net(r->ctx, 1, &wc, &net, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 2);
	memcpy(area.raw + 8, "\x20\x01", 2);
	assert_int_equal(roci_init_ah_from_wc_net(r->ctx, 1, &wc, &net, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 4);
	memset(area.raw, 0, sizeof(area.raw)); /* no checksum is needed where the kind is known */
	memcpy(area.raw + 32, "\x0a\0\0\x09\xe0\1\2\3", 8);
	net = (struct roci_wc_net){.type = ROCI_GID_TYPE_ROCE_V2, .is_ipv4 = 1, .vlan_id = 7};
	assert_int_equal(roci_init_ah_from_wc_net(r->ctx, 1, &wc, &net, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 1);
	assert_int_equal(attr.grh.dgid.raw[12], 10);
	assert_int_equal(attr.grh.dgid.raw[15], 9);
	atomic_store(&r->h->hook, NULL);
}

/* By each protocol: 10.0.0.1 and 2001::1, each twice. */
static bool gids_of_all(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	static const struct abi_gid gid[] = {
		{.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .type = ABI_GID_ROCEV2_IPV4},
		{.gid = {0x20, 0x01, [15] = 1}, .type = ABI_GID_ROCEV2_IPV6},
		{.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .type = ABI_GID_ROCEV1},
		{.gid = {0x20, 0x01, [15] = 1}, .type = ABI_GID_ROCEV1},
		{.type = ABI_GID_ROCEV1},
	};

	if (msg->type != ABI_QUERY_GID)
		return false;
	harness_reply(h, msg, 0, &gid[((const struct abi_query_gid *)body)->index], sizeof(gid[0]),
		NULL, 0);
	return true;
}

/* From 10.0.0.9 to 10.0.0.@p last, after bytes that resemble an IPv6 header. */
static struct roci_grh_area area_of_ip4(uint8_t first, uint8_t last)
{
	struct roci_grh_area area = {.raw = {[0] = 0x6F,
					     [6] = 0x1b,
					     [20] = 0x45,
					     [21] = 0x68,
					     [28] = 64,
					     [29] = 17,
					     [32] = 10,
					     [35] = 9}};
	uint8_t *ip = area.raw + 20;
	uint32_t sum = 0;

	ip[16] = first;
	ip[19] = last;
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xFFFF) + (sum >> 16);
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
	return area;
}

/* proves UD-11: what precedes an IPv4 header says nothing; it is one when its checksum fits. */
static void init_ah_from_wc__ipv4(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc = {.wc_flags = ROCI_WC_GRH, .sl = 5};
	struct roci_grh_area area = area_of_ip4(10, 1);
	struct roci_ah_attr attr;

	atomic_store(&r->h->hook, gids_of_all);
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), 0);
	assert_memory_equal(attr.grh.dgid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x09", 16);
	assert_int_equal(attr.grh.sgid_index, 0);
	assert_int_equal(attr.grh.traffic_class, 0x68);
	assert_int_equal(attr.grh.flow_label, 0);
	assert_int_equal(attr.sl, 5);
	assert_int_equal(attr.port_num, 1);
	assert_true(attr.is_global);
	memset(area.raw, 0, 20); /* as rocid writes it */
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), 0);
	area = area_of_ip4(239, 7); /* to a group */
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 0);
	area = area_of_ip4(10, 2); /* an address that has gone */
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), EADDRNOTAVAIL);
	atomic_store(&r->h->hook, NULL);
}

/* proves UD-11: IPv6 and RoCEv1, also from a GID whose end looks like an IPv4 header. */
static void init_ah_from_wc__ipv6_and_rocev1(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc = {.wc_flags = ROCI_WC_GRH};
	struct roci_ah_attr attr;

	atomic_store(&r->h->hook, gids_of_all);
	for (unsigned i = 0; i < 4; i++) {
		struct roci_grh_area area = {.raw = {0x6A, 0x51, 0x23, 0x45, [6] = 17, [8] = 0x20,
						     0x01, [23] = 9, 0x20, 0x01, [39] = 1}};

		area.raw[6] = i & 1 ? 0x1b : 17;
		area.raw[20] = i & 2 ? 0x45 : 0;
		assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), 0);
		assert_memory_equal(attr.grh.dgid.raw, area.raw + 8, 16);
		assert_int_equal(attr.grh.sgid_index, i & 1 ? 3 : 1);
		assert_int_equal(attr.grh.traffic_class, 0xA5);
		assert_int_equal(attr.grh.flow_label, 0x12345);
	}
	atomic_store(&r->h->hook, NULL);
}

/* proves UD-11: no datagram, no handle. */
static void init_ah_from_wc__of_nothing(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc = {.wc_flags = ROCI_WC_GRH};
	struct roci_grh_area area = area_of_ip4(10, 1);
	struct roci_ah_attr attr;

	wc.wc_flags = 0;
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), EINVAL);
	wc.wc_flags = ROCI_WC_GRH;
	area.raw[0] = 0x40;
	area.raw[31] ^= 1; /* its checksum */
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), EINVAL);
	area.raw[31] ^= 1;
	area.raw[20] = 0x46; /* options */
	area.raw[30]--;
	assert_int_equal(roci_init_ah_from_wc(r->ctx, 1, &wc, &area, &attr), EINVAL);
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

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(query_device__and_port),
		T(query_port__versions_of_roce),
		T(query_gid__types),
		T(find_gid__by_the_peers_family),
		T(init_ah_from_wc__of_a_rocev1_group),
		T(init_ah_from_wc__ipv4),
		T(init_ah_from_wc__ipv6_and_rocev1),
		T(init_ah_from_wc__of_nothing),
		T(init_ah_from_wc_net__on_the_senders_vlan),
		T(find_gid__none),
		cmocka_unit_test(mtu__bytes),
		cmocka_unit_test(names__of_all_and_of_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
