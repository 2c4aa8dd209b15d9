/* SPDX-License-Identifier: BSD-3-Clause */
/* Address vectors become header bytes: ENT-*, IP4-*, IP6-*, UDP-*, ETH-05, GID-09, VAL-08. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "path.h"
#include "path_match.h"
#include "path_write.h"

/* proves ENT-01, UDP-10: values from the entropy tables of the specification's mail. */
static void flow_label_to_sport__folds(void **state)
{
	assert_int_equal(flow_label_to_sport(0), 0xC000);
	assert_int_equal(flow_label_to_sport(0x00001), 0xC001);
	assert_int_equal(flow_label_to_sport(0x03FFF), 0xFFFF);
	assert_int_equal(flow_label_to_sport(0x04000), 0xC001);
	assert_int_equal(flow_label_to_sport(0x12345), 0xE341);
	assert_int_equal(flow_label_to_sport(0xABCDE), 0xFCF4);
	assert_int_equal(flow_label_to_sport(0xFC000), 0xC03F);
	assert_int_equal(flow_label_to_sport(0xFFFFF), 0xFFC0);
}

/* proves ENT-02, ENT-03, ENT-04 */
static void flow_label_of_qpns__hashes(void **state)
{
	assert_int_equal(flow_label_of_qpns(0x10A, 0x109), 0x1135A);
	assert_int_equal(flow_label_of_qpns(0x109, 0x10A), 0x1135A);
	assert_int_equal(flow_label_of_qpns(0, 0x55), 0);
	/* 0xFFFFFE000001: 48 bits */
	assert_int_equal(flow_label_of_qpns(0xFFFFFF, 0xFFFFFF),
		(0xFFFFFE000001ull ^ 0xFFFFFE0ull ^ ((0xFFFFFE000001ull ^ 0xFFFFFE0ull) >> 40)) &
			0xFFFFF);
}

/* proves GID-09 */
static void mtu_of_ethernet__leaves_96_bytes(void **state)
{
	static const uint32_t row[][2] = {{576, 256}, {1280, 1024}, {1500, 1024}, {2044, 1024},
		{2143, 1024}, {2144, 2048}, {4096, 2048}, {4200, 4096}, {9000, 4096}, {351, 0},
		{352, 256}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		assert_int_equal(mtu_of_ethernet(row[i][0]), row[i][1]);
}

/* proves VAL-08 */
static void pkey_match__needs_one_full_member(void **state)
{
	assert_true(pkey_match(0xFFFF, 0xFFFF));
	assert_true(pkey_match(0x7FFF, 0xFFFF));
	assert_true(pkey_match(0x8001, 0x0001));
	assert_false(pkey_match(0x7FFF, 0x7FFF));
	assert_false(pkey_match(0x8001, 0x8002));
	assert_false(pkey_match(0x8000, 0x8000));
	assert_false(pkey_match(0, 0));
}

static struct gid_entry v4 = {.gid = {[10] = 0xFF, [11] = 0xFF, 192, 0, 2, 10},
	.net = NET_IPV4,
	.valid = true,
	.mac = {2, 0, 0, 0, 0, 10}};
static struct gid_entry v6 = {.gid = {0x20, 1, 0xD, 0xB8, [15] = 10},
	.net = NET_IPV6,
	.valid = true,
	.mac = {2, 0, 0, 0, 0, 10}};
static struct gid_entry v1 = {.gid = {0xFE, 0x80, [15] = 10},
	.net = NET_ROCEV1,
	.valid = true,
	.mac = {2, 0, 0, 0, 0, 10}};

static struct path_spec spec_of(const struct gid_entry *sgid)
{
	struct path_spec s = {.sgid = sgid,
		.dmac = {2, 0, 0, 0, 0, 11},
		.traffic_class = 0x6B,
		.hop_limit = 33,
		.src_qpn = 0x10A,
		.dst_qpn = 0x109};

	memcpy(s.dgid, sgid->gid, 16);
	s.dgid[15] = 11;
	return s;
}

/* proves ETH-11: the two MACs and nothing else. */
static void path_readdress__changes_the_macs(void **state)
{
	static const uint8_t dmac[6] = {2, 1, 2, 3, 4, 5}, smac[6] = {2, 6, 7, 8, 9, 10};
	struct path_spec s = spec_of(&v6);
	struct path p, before;

	path_init(&p, &s);
	before = p;
	path_readdress(&p, dmac, smac, true);
	assert_memory_equal(p.hdr, dmac, 6);
	assert_memory_equal(p.hdr + 6, smac, 6);
	assert_true(p.local);
	memcpy(p.hdr, before.hdr, 12);
	p.local = false;
	assert_memory_equal(&p, &before, sizeof(p));
}

/* proves IP4-01, IP4-03, IP4-04, IP4-05, IP4-06, IP4-07, IP4-09, IP4-11, IP4-12, IP4-13, IP4-14,
 * IP4-15, IP4-16, IP4-17, UDP-01, UDP-03, UDP-05, UDP-10, ENT-02, ETH-11 */
static void path_write__ipv4(void **state)
{
	struct path_spec s = spec_of(&v4);
	uint8_t f[FRAME_MAX];
	struct path p;
	uint32_t sum;
	uint8_t *bth;

	memset(f, 0xEE, sizeof(f));
	path_init(&p, &s);
	for (uint32_t rest = 16; rest < 4200; rest += 61) {
		bth = path_write(&p, f, (uint16_t)rest, (uint16_t)(rest * 77));
		assert_int_equal(bth - f, 42);
		assert_memory_equal(f, "\x02\0\0\0\0\x0b\x02\0\0\0\0\x0a\x08\0", 14);
		assert_int_equal(f[14], 0x45);
		assert_int_equal(f[15], 0x68); /* DSCP of 0x6B, ECN 0 */
		assert_int_equal(get_be16(f + 16), 28 + rest);
		assert_int_equal(get_be16(f + 18), (uint16_t)(rest * 77));
		assert_int_equal(get_be16(f + 20), 0x4000);
		assert_int_equal(f[22], 33);
		assert_int_equal(f[23], 17);
		assert_memory_equal(f + 26, "\xc0\0\x02\x0a\xc0\0\x02\x0b", 8);
		sum = 0;
		for (unsigned i = 14; i < 34; i += 2)
			sum += get_be16(f + i);
		sum = (sum & 0xFFFF) + (sum >> 16);
		assert_int_equal((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
		assert_int_equal(get_be16(f + 34), 0xD35E); /* ENT-02 of these QPNs */
		assert_int_equal(get_be16(f + 36), 4791);
		assert_int_equal(get_be16(f + 38), 8 + rest);
		assert_int_equal(get_be16(f + 40), 0);
	}
}

/* proves IP4-16, IP4-04, IP4-05: whatever Identification, so that all carries occur, and whatever
 * traffic class. */
static void path_write__ipv4_sums_right(void **state)
{
	struct path_spec s = spec_of(&v4);
	uint8_t f[FRAME_MAX];
	struct path p;

	for (uint32_t i = 0; i < 0x100000; i++) {
		uint16_t id = (uint16_t)(0xF000 | i);
		uint32_t sum = 0;

		s.traffic_class = s.dgid[12] = (uint8_t)(i >> 12);
		if (!(i & 0xFFF))
			path_init(&p, &s);
		path_write(&p, f, 1000, id);
		assert_int_equal(f[15], s.traffic_class & 0xFC);
		for (unsigned k = 14; k < 34; k += 2)
			sum += get_be16(f + k);
		sum = (sum & 0xFFFF) + (sum >> 16);
		if ((sum & 0xFFFF) + (sum >> 16) != 0xFFFF)
			fail_msg("class %u, ID %#x", s.traffic_class, id);
	}
}

/* proves IP6-01, IP6-02, IP6-03, IP6-05, IP6-07, IP6-08, IP6-09, ENT-05, UDP-01, UDP-03, ETH-02,
 * ETH-05, ETH-07 */
static void path_write__ipv6_in_a_vlan(void **state)
{
	struct path_spec s = spec_of(&v6);
	uint8_t f[FRAME_MAX];
	struct path p;

	memset(f, 0xEE, sizeof(f));
	v6.vid = 100;
	s.pcp = 3;
	s.flow_label = 0x12345;
	path_init(&p, &s);
	v6.vid = 0;
	assert_int_equal(path_write(&p, f, 100, 7) - f, 66);
	assert_int_equal(get_be32(f + 12), 0x81006064);
	assert_int_equal(get_be16(f + 16), 0x86DD);
	assert_int_equal(get_be32(f + 18), 0x66812345); /* 6, class 0x68, label */
	assert_int_equal(get_be16(f + 22), 108);
	assert_int_equal(f[24], 17);
	assert_int_equal(f[25], 33);
	assert_memory_equal(f + 26, v6.gid, 16);
	assert_memory_equal(f + 42, s.dgid, 16);
	assert_int_equal(get_be16(f + 58), 0xE341);
	assert_int_equal(get_be16(f + 62), 108);
}

static unsigned tclass_of(const struct path *p, unsigned *sum)
{
	uint8_t f[FRAME_MAX];
	const uint8_t *ip = f + p->l3_off;

	path_write(p, f, 100, 7);
	*sum = 0xFFFF;
	if (p->net != NET_IPV4)
		return get_be16(ip) >> 4 & 0xFF;
	*sum = 0;
	for (unsigned i = 0; i < 20; i += 2)
		*sum += get_be16(ip + i);
	*sum = path_csum_fold(*sum);
	return ip[1];
}

/* proves IP4-05, IP6-02, IP4-16: ECT(0) where the port manages congestion, but not by RoCEv1 and
 * not within the daemon, with any DSCP; and what a CNP has instead. */
static void path_init__ecn_capable(void **state)
{
	static struct gid_entry *const sgid[] = {&v4, &v6, &v1};

	for (unsigned i = 0; i < ARRAY_SIZE(sgid); i++) {
		unsigned ect = sgid[i] == &v1 ? 0 : 2, none = sgid[i] == &v1 ? 3 : 0, sum;
		struct path_spec s = spec_of(sgid[i]);
		struct path p, before;

		s.ect = true;
		for (unsigned class = 0; class < 256; class ++) {
			unsigned own = class & (0xFC | none);

			s.traffic_class = (uint8_t) class;
			s.local = false;
			path_init(&p, &s);
			assert_int_equal(tclass_of(&p, &sum), own | ect);
			assert_int_equal(sum, 0xFFFF);
			before = p;
			path_readdress(&p, s.dmac, s.sgid->mac, true);
			assert_int_equal(tclass_of(&p, &sum), own);
			path_readdress(&p, s.dmac, s.sgid->mac, false);
			assert_memory_equal(&p, &before, sizeof(p));
			path_set_ect(&p, false);
			assert_int_equal(tclass_of(&p, &sum), own);
			assert_int_equal(sum, 0xFFFF);
			path_set_class(&p, 0xC0, 6);
			assert_int_equal(tclass_of(&p, &sum), 0xC0);
			assert_int_equal(sum, 0xFFFF);
			s.local = true;
			path_init(&p, &s);
			assert_int_equal(tclass_of(&p, &sum), own);
		}
	}
}

static void path_set_class__in_a_vlan(void **state)
{
	struct path_spec s = spec_of(&v6);
	struct path p;

	v6.vid = 0xABC;
	s.pcp = 3;
	s.flow_label = 0x12345;
	path_init(&p, &s);
	v6.vid = 0;
	path_set_class(&p, 0xC0, 6);
	assert_int_equal(path_tci(&p), 6 << 13 | 0xABC);
	assert_int_equal(get_be32(p.hdr + p.l3_off), 0x6C012345);
}

/* proves V1-07, GID-05: the SGID entry says how, whatever the peer's GID looks like. */
static void path_init__protocol_of_the_sgid(void **state)
{
	static const uint8_t dgid[][16] = {{[10] = 0xFF, [11] = 0xFF, 192, 0, 2, 11},
		{0xFE, 0x80, [15] = 11}, {0x20, 1, 0xD, 0xB8, [15] = 11}};
	static const uint16_t ethertype[] = {
		[NET_IPV4] = 0x0800, [NET_IPV6] = 0x86DD, [NET_ROCEV1] = 0x8915};
	static struct gid_entry *const sgid[] = {&v4, &v6, &v1};

	for (unsigned i = 0; i < ARRAY_SIZE(sgid); i++) {
		for (unsigned k = 0; k < ARRAY_SIZE(dgid); k++) {
			struct path_spec s = spec_of(sgid[i]);
			struct path p;

			memcpy(s.dgid, dgid[k], 16);
			path_init(&p, &s);
			assert_int_equal(p.net, sgid[i]->net);
			assert_int_equal(get_be16(p.hdr + 12), ethertype[sgid[i]->net]);
		}
	}
}

/* proves ENT-02, ENT-03, ENT-05, UDP-11: given, else of the AV's label, else of the QPNs, which are
 * the same from the other end. */
static void path_init__source_port(void **state)
{
	static struct gid_entry *const sgid[] = {&v4, &v6};
	struct path p;

	for (unsigned i = 0; i < ARRAY_SIZE(sgid); i++) {
		struct path_spec s = spec_of(sgid[i]);

		path_init(&p, &s);
		assert_int_equal(path_sport(&p), 0xD35E);
		s.src_qpn = 0x109;
		s.dst_qpn = 0x10A;
		path_init(&p, &s);
		assert_int_equal(path_sport(&p), 0xD35E);
		s.flow_label = 0x12345;
		path_init(&p, &s);
		assert_int_equal(path_sport(&p), 0xE341);
		s.sport = 0xC123;
		path_init(&p, &s);
		assert_int_equal(path_sport(&p), 0xC123);
		assert_int_equal(get_be16(p.hdr + p.hdr_len - 6), 4791);
	}
}

/* proves IP6-09: of the QPNs where the AV says 0, as ENT-02; or 0, as Linux. The source port is the
 * same.
 */
static void path_init__flow_label(void **state)
{
	struct path_spec s = spec_of(&v6);
	struct path p;

	path_init(&p, &s);
	assert_int_equal(path_flow_label(&p), 0x1135A);
	s.plain_label = true;
	path_init(&p, &s);
	assert_int_equal(path_flow_label(&p), 0);
	assert_int_equal(path_sport(&p), 0xD35E);
	s.flow_label = 0x12345;
	path_init(&p, &s);
	assert_int_equal(path_flow_label(&p), 0x12345);
	s.sgid = &v4;
	path_init(&p, &s);
	assert_int_equal(path_flow_label(&p), 0);
}

/* proves ETH-05 (ETH-04): VID 0 with a priority; the receiver takes it for untagged. */
static void path_init__priority_tag(void **state)
{
	struct path_spec s = spec_of(&v1);
	uint8_t f[FRAME_MAX];
	struct path p;

	s.pcp = 5;
	path_init(&p, &s);
	assert_int_equal(path_tci(&p), -1);
	s.priority_tag = true;
	path_init(&p, &s);
	assert_int_equal(path_tci(&p), 0xA000);
	assert_int_equal(path_write(&p, f, 100, 7) - f, 58);
	assert_int_equal(get_be32(f + 12), 0x8100A000);
	assert_int_equal(get_be16(f + 16), 0x8915);
}

/* proves ETH-05 */
static void priority_of__service_level_unless_the_dscp_says(void **state)
{
	struct priority_map m;

	priority_init(&m);
	for (uint8_t sl = 0; sl < 8; sl++)
		for (unsigned tclass = 0; tclass < 256; tclass++)
			assert_int_equal(priority_of(&m, sl, (uint8_t)tclass), sl);
	m.of_sl[3] = 6;
	m.of_dscp[46] = 1;
	assert_int_equal(priority_of(&m, 3, 0), 6);
	for (uint8_t ecn = 0; ecn < 4; ecn++)
		assert_int_equal(priority_of(&m, 3, (uint8_t)(46 << 2 | ecn)), 1);
	assert_int_equal(priority_of(&m, 3, 45 << 2), 6);
}

/* proves V1-01, V1-07: the AV's own traffic class, flow label and hop limit. */
static void path_write__rocev1(void **state)
{
	struct path_spec s = spec_of(&v1);
	uint8_t f[FRAME_MAX];
	struct path p;

	memset(f, 0xEE, sizeof(f));
	path_init(&p, &s);
	assert_int_equal(path_write(&p, f, 100, 7) - f, 54);
	assert_int_equal(get_be16(f + 12), 0x8915);
	assert_int_equal(get_be32(f + 14), 0x66B00000);
	assert_int_equal(get_be16(f + 18), 100);
	assert_int_equal(f[20], 0x1B);
	assert_int_equal(f[21], 33);
	assert_memory_equal(f + 22, v1.gid, 16);
	assert_memory_equal(f + 38, s.dgid, 16);
	assert_int_equal(path_sport(&p), 0);
	s.flow_label = 0x12345;
	path_init(&p, &s);
	assert_int_equal(path_flow_label(&p), 0x12345);
}

/* proves VAL-12, VAL-13, ETH-07 */
static void path_matches__only_the_way_back(void **state)
{
	struct path_spec s = spec_of(&v4), back = spec_of(&v4);
	uint8_t f[FRAME_MAX];
	struct path p, q;
	struct pkt pkt = {.net = NET_IPV4, .l3 = f + 14};
	struct gid_entry peer = v4;

	path_init(&p, &s);
	peer.gid[15] = 11;
	back.sgid = &peer;
	back.dgid[15] = 10;
	path_init(&q, &back);
	path_write(&q, f, 100, 7);
	assert_true(path_matches(&p, &pkt));
	assert_false(path_matches(&q, &pkt));
	pkt.vid = 5;
	assert_false(path_matches(&p, &pkt));
	pkt.vid = 0;
	pkt.net = NET_ROCEV1;
	assert_false(path_matches(&p, &pkt));
	pkt.net = NET_IPV4;
	pkt.port = 1;
	assert_false(path_matches(&p, &pkt));
	pkt.port = 0;
	for (unsigned i = 14 + IP4_SRC; i < 14 + IP4_HLEN; i++) { /* each byte of both addresses */
		f[i] ^= 1;
		assert_false(path_matches(&p, &pkt));
		f[i] ^= 1;
	}
	assert_true(path_matches(&p, &pkt));
}

/* proves VAL-15 */
static void gid_is_local_only__unspecified_and_loopback(void **state)
{
	static const struct {
		uint8_t gid[16];
		bool local;
	} row[] = {{{0}, true}, {{[15] = 1}, true}, {{[15] = 2}, false}, {{[14] = 1}, false},
		{{[10] = 0xFF, 0xFF, 127, 0, 0, 1}, true}, {{[10] = 0xFF, 0xFF, 127, 255, 1}, true},
		{{[10] = 0xFF, 0xFF}, true}, {{[10] = 0xFF, 0xFF, 10, 0, 0, 1}, false},
		{{[10] = 0xFF, 0xFF, 128, 0, 0, 1}, false}, {{0xFE, 0x80, [15] = 1}, false}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		assert_int_equal(gid_is_local_only(row[i].gid), row[i].local);
}

/* proves VAL-11 (GID-03) */
static void gid_find__wants_protocol_and_vlan(void **state)
{
	static struct gid_table t;

	t.count = 3;
	t.entry[1] = v4;
	t.entry[2] = v4;
	t.entry[2].net = NET_ROCEV1;
	assert_int_equal(gid_find(&t, v4.gid, NET_IPV4, 0), 1);
	assert_int_equal(gid_find(&t, v4.gid, NET_ROCEV1, 0), 2);
	assert_int_equal(gid_find(&t, v4.gid, NET_IPV6, 0), -1);
	assert_int_equal(gid_find(&t, v4.gid, NET_IPV4, 9), -1);
	assert_true(gid_is_own(&t, v4.gid, 0));
	assert_false(gid_is_own(&t, v4.gid, 9));
	t.entry[1].valid = false;
	assert_int_equal(gid_find(&t, v4.gid, NET_IPV4, 0), -1);
	assert_int_equal(gid_find(&t, v6.gid, NET_IPV6, 0), -1);
}

static void gid_has_mac__of_a_valid_entry_in_the_vlan(void **state)
{
	static struct gid_table t;
	static const uint8_t other[6] = {2, 0, 0, 0, 0, 0x77};

	t.count = 2;
	t.entry[1] = v4;
	t.entry[1].vid = 9;
	assert_true(gid_has_mac(&t, 9, v4.mac));
	assert_false(gid_has_mac(&t, 0, v4.mac));
	assert_false(gid_has_mac(&t, 8, v4.mac));
	assert_false(gid_has_mac(&t, 9, other));
	t.entry[1].valid = false;
	assert_false(gid_has_mac(&t, 9, v4.mac));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_label_to_sport__folds),
		cmocka_unit_test(flow_label_of_qpns__hashes),
		cmocka_unit_test(mtu_of_ethernet__leaves_96_bytes),
		cmocka_unit_test(pkey_match__needs_one_full_member),
		cmocka_unit_test(path_readdress__changes_the_macs),
		cmocka_unit_test(path_write__ipv4),
		cmocka_unit_test(path_write__ipv4_sums_right),
		cmocka_unit_test(path_write__ipv6_in_a_vlan),
		cmocka_unit_test(path_init__protocol_of_the_sgid),
		cmocka_unit_test(path_init__ecn_capable),
		cmocka_unit_test(path_set_class__in_a_vlan),
		cmocka_unit_test(path_init__source_port),
		cmocka_unit_test(path_init__flow_label),
		cmocka_unit_test(path_init__priority_tag),
		cmocka_unit_test(priority_of__service_level_unless_the_dscp_says),
		cmocka_unit_test(path_write__rocev1),
		cmocka_unit_test(path_matches__only_the_way_back),
		cmocka_unit_test(gid_is_local_only__unspecified_and_loopback),
		cmocka_unit_test(gid_find__wants_protocol_and_vlan),
		cmocka_unit_test(gid_has_mac__of_a_valid_entry_in_the_vlan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
