/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rule broken by itself in an otherwise good frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "frame.h"
#include "frames.h"
#include "headers.h"
#include "icrc.h"
#include "opcode.h"

static const char *parse(const struct frame *f)
{
	struct pkt p;

	return drop_name(frame_parse(&p, f->b, f->len));
}

#define assert_drop(f, reason) assert_string_equal(parse(f), drop_name(DROP_##reason))

/* --- good frames --------------------------------------------------------------------------- */

/* proves BTH-01, BTH-03, BTH-04 */
static void frame_parse__bth_fields(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++) {
		struct frame f = frame_of(net, OP_SEND_ONLY, 8);
		struct pkt p = {.port = 7};

		f.b[f.bth + BTH_FLAGS] = BTH_SE | BTH_MIGREQ | 3 << BTH_PAD_SHIFT;
		f.b[f.bth + BTH_RESV8A] = 0xFF; /* ignored: BTH-03, BTH-04 */
		f.b[f.bth + BTH_ACKREQ] = 0x7F;
		put_be16(f.b + f.bth + BTH_PKEY, 0x7ABC);
		assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
		assert_string_equal(p.op->name, "RC_SEND_ONLY");
		assert_int_equal(p.net, net);
		assert_int_equal(p.port, 7);
		assert_int_equal(p.tclass, 0x68);
		assert_int_equal(p.pkey, 0x7ABC);
		assert_int_equal(p.se, 1);
		assert_int_equal(p.migreq, 1);
		assert_int_equal(p.ackreq, 0);
		assert_int_equal(p.pad, 3);
		assert_int_equal(p.dest_qp, 0x11);
		assert_int_equal(p.psn, 0xFFFFFE);
		assert_int_equal(p.payload_len, 5);
		assert_ptr_equal(p.l3, f.b + f.l3);
		assert_ptr_equal(p.bth, f.b + f.bth);
		assert_ptr_equal(p.payload, f.b + f.bth + BTH_HLEN);
		assert_int_equal(p.icrc_off, f.len - ICRC_LEN - f.l3);
	}
}

/* proves BTH-18, BTH-19, BTH-20, BTH-21, BTH-22, BTH-23, BTH-24, BTH-25, BTH-26: the bytes after
 * BTH are 1, 2, 3..., so each field shows where it was read. */
static void frame_parse__extended_headers(void **state)
{
	struct frame f = frame_of(NET_IPV4, OPC_XRC | OP_WRITE_ONLY_WITH_IMM, 28);
	struct pkt p;

	assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
	assert_int_equal(p.srqn, 0x020304);
	assert_int_equal(p.va, 0x05060708090A0B0C);
	assert_int_equal(p.rkey, 0x0D0E0F10);
	assert_int_equal(p.dma_len, 0x11121314);
	assert_memory_equal(&p.imm, "\x15\x16\x17\x18", 4);
	assert_int_equal(p.payload_len, 4);

	f = frame_of(NET_IPV6, OP_CMP_SWAP, 28);
	assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
	assert_int_equal(p.va, 0x0102030405060708);
	assert_int_equal(p.rkey, 0x090A0B0C);
	assert_int_equal(p.swap_add, 0x0D0E0F1011121314);
	assert_int_equal(p.compare, 0x15161718191A1B1C);

	f = frame_of(NET_ROCEV1, OP_ATOMIC_ACK, 12);
	assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
	assert_int_equal(p.syndrome, 1);
	assert_int_equal(p.msn, 0x020304);
	assert_int_equal(p.atomic_orig, 0x05060708090A0B0C);

	f = frame_of(NET_IPV4, OPC_UD | OP_SEND_ONLY_WITH_IMM, 12);
	assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
	assert_int_equal(p.qkey, 0x01020304);
	assert_int_equal(p.src_qp, 0x060708);
	assert_memory_equal(&p.imm, "\x09\x0A\x0B\x0C", 4);
	assert_int_equal(p.payload_len, 0);

	f = frame_of(NET_IPV4, OP_FLUSH, 20);
	assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
	assert_int_equal(p.feth, 0x01020304);
	assert_int_equal(p.va, 0x05060708090A0B0C);

	f = frame_of(NET_IPV4, OP_SEND_ONLY_WITH_INV, 8);
	assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
	assert_int_equal(p.rkey, 0x01020304);
	assert_int_equal(p.payload_len, 4);
}

/* proves ETH-02, ETH-03, ICRC-09 */
static void frame_parse__vlan(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++) {
		struct frame f = frame_of(net, OP_SEND_ONLY, 4);
		struct pkt p;

		assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
		assert_int_equal(p.vid, 0);
		assert_int_equal(p.pcp, 0);
		frame_tag(&f, ETHERTYPE_VLAN, 5 << 13 | 1 << 12 | 100);
		assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
		assert_int_equal(p.vid, 100);
		assert_int_equal(p.pcp, 5);
		assert_ptr_equal(p.l3, f.b + ETH_HLEN + VLAN_HLEN);
		assert_true(icrc_check(icrc_best(), &p)); /* ICRC-09 */
		frame_tag(&f, ETHERTYPE_VLAN, 1);
		assert_drop(&f, VLAN_STACKED);
	}
}

/* proves ETH-08, ETH-09, ICRC-09 */
static void frame_parse__ethernet_padding_is_ignored(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++) {
		struct frame f = frame_of(net, OP_SEND_ONLY, 0);
		struct pkt p;

		f.len += 100;
		assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
		assert_int_equal(p.payload_len, 0);
		assert_true(icrc_check(icrc_best(), &p));
	}
}

static void frame_parse__cnp_with_and_without_reserved_bytes(void **state)
{
	for (size_t tail = 0; tail <= 16; tail += 16) {
		struct frame f = frame_of(NET_IPV4, OPCODE_CNP, tail);
		struct pkt p;

		assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
		assert_int_equal(p.op->kind, KIND_CNP);
		assert_int_equal(p.payload_len, 0);
		assert_true(icrc_check(icrc_best(), &p));
	}
}

/* proves UDP-06, UDP-09, IP6-11 */
static void frame_parse__udp_checksum_and_source_port_are_not_looked_at(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		struct frame f = frame_of(net, OP_SEND_ONLY, 4);

		put_be16(f.b + f.udp + UDP_CSUM, 0xBEEF);
		for (unsigned port = 0; port < 0x10000; port++) {
			put_be16(f.b + f.udp + UDP_SPORT, (uint16_t)port);
			assert_drop(&f, NONE);
		}
	}
}

static void frame_parse__reserved_opcodes_of_a_class_that_qps_have(void **state)
{
	static const uint8_t codes[] = {
		0x15, 0x18, 0x1B, 0x1E, 0x1F, 0x2C, 0x3F, 0x60, 0x66, 0x7F, 0xB5, 0xBF};

	for (size_t i = 0; i < sizeof(codes); i++) {
		struct frame f = frame_of(NET_IPV4, codes[i], 0);
		struct pkt p;

		assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
		assert_null(p.op->name);
		assert_int_equal(p.op->code, codes[i]);
	}
}

/* --- one rule broken at a time --------------------------------------------------------------- */

/* proves ETH-01, ETH-03 */
static void frame_parse__ethernet(void **state)
{
	struct frame f = frame_of(NET_IPV4, OP_SEND_ONLY, 4);

	put_be16(f.b + ETH_TYPE, 0x0806);
	assert_drop(&f, NOT_ROCE);
	put_be16(f.b + ETH_TYPE, ETHERTYPE_QINQ);
	assert_drop(&f, VLAN_STACKED);
	f.len = ETH_HLEN - 1;
	assert_drop(&f, ETH_SHORT);
	f.len = ETH_HLEN + VLAN_HLEN - 1;
	put_be16(f.b + ETH_TYPE, ETHERTYPE_VLAN);
	assert_drop(&f, ETH_SHORT);
}

/* Sets one 16-bit field of the IP header of a good frame and makes the checksum good again. */
static const char *parse_ip4_with(size_t off, uint16_t value)
{
	struct frame f = frame_of(NET_IPV4, OP_SEND_ONLY, 4);

	put_be16(f.b + f.l3 + off, value);
	frame_ip4_sum(&f);
	return parse(&f);
}

/* proves IP4-02, IP4-03, IP4-08, IP4-10, IP4-11, IP4-13, IP4-19, SEC-02 */
static void frame_parse__ip4(void **state)
{
	struct frame f = frame_of(NET_IPV4, OP_SEND_ONLY, 4);
	uint16_t total = get_be16(f.b + f.l3 + IP4_TOTLEN);

	for (unsigned other = 0; other < 16; other++) {
		if (other != 4)
			assert_string_equal(
				parse_ip4_with(IP4_VIHL, (uint16_t)(other << 12 | 0x500)),
				"ip_version");
		if (other != 5)
			assert_string_equal(
				parse_ip4_with(IP4_VIHL, (uint16_t)(0x4000 | other << 8)),
				"ip4_ihl");
	}
	assert_string_equal(parse_ip4_with(IP4_VIHL, 0x45FF), "none"); /* any TOS */
	assert_string_equal(parse_ip4_with(IP4_FRAG, 0x0000), "ip4_not_df");
	assert_string_equal(parse_ip4_with(IP4_FRAG, 0xC000), "ip4_not_df"); /* reserved bit */
	assert_string_equal(parse_ip4_with(IP4_FRAG, 0x6000), "ip4_fragment");
	assert_string_equal(parse_ip4_with(IP4_FRAG, 0x2000), "ip4_fragment");
	assert_string_equal(parse_ip4_with(IP4_FRAG, 0x4001), "ip4_fragment");
	assert_string_equal(parse_ip4_with(IP4_TOTLEN, (uint16_t)(total + 1)), "ip_length");
	assert_string_equal(parse_ip4_with(IP4_TOTLEN, 0x8000), "ip_length");
	assert_string_equal(parse_ip4_with(IP4_TOTLEN, 0xFFFF), "ip_length");
	assert_string_equal(parse_ip4_with(IP4_TOTLEN, 0), "ip_length");
	assert_string_equal(parse_ip4_with(IP4_TOTLEN, IP4_HLEN + UDP_HLEN - 1), "ip_length");
	assert_string_equal(parse_ip4_with(IP4_TOTLEN, (uint16_t)(total - 1)), "udp_length");
	assert_string_equal(parse_ip4_with(IP4_TTL, 0 << 8 | 17), "none"); /* IP4-19 */
	for (unsigned proto = 0; proto < 256; proto++)
		assert_string_equal(parse_ip4_with(IP4_TTL, (uint16_t)(64 << 8 | proto)),
			proto == 17 ? "none" : "ip_next_header");
}

/* proves IP4-16 */
static void frame_parse__ip4_checksum(void **state)
{
	struct frame good = frame_of(NET_IPV4, OP_SEND_ONLY, 4);

	for (unsigned bit = 0; bit < 16; bit++) {
		struct frame f = good;

		f.b[f.l3 + IP4_CSUM + bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_drop(&f, IP4_CHECKSUM);
	}
	good.b[good.l3 + IP4_CSUM] = good.b[good.l3 + IP4_CSUM + 1] = 0; /* is no "not computed" */
	assert_drop(&good, IP4_CHECKSUM);
	/* every value of a field, so that all carries occur */
	for (unsigned id = 0; id < 0x10000; id++)
		assert_string_equal(parse_ip4_with(IP4_ID, (uint16_t)id), "none");
}

/* Those that say they are longer than the frame, by little and so that a sign could flip. */
static void assert_too_long(const struct frame *good, uint16_t plen)
{
	const uint16_t wrong[] = {(uint16_t)(plen + 1), 0x7FFF, 0x8000, 0xFFFF};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct frame f = *good;

		put_be16(f.b + f.l3 + IP6_PLEN, wrong[i]);
		assert_drop(&f, IP_LENGTH);
	}
}

/* A version that is not 6. */
static void assert_other_versions_drop(const struct frame *good)
{
	for (unsigned version = 0; version < 16; version++) {
		struct frame f = *good;

		f.b[f.l3] = (uint8_t)(version << 4 | (f.b[f.l3] & 0xF));
		if (version != 6)
			assert_drop(&f, IP_VERSION);
	}
}

/* A next header that is not @p right. */
static void assert_other_protocols_drop(const struct frame *good, unsigned right, enum drop why)
{
	for (unsigned next = 0; next < 256; next++) {
		struct frame f = *good;

		f.b[f.l3 + IP6_NXT] = (uint8_t)next;
		assert_string_equal(parse(&f), drop_name(next == right ? DROP_NONE : why));
	}
}

/* proves IP6-01, IP6-04, IP6-06, IP6-10, IP6-12, SEC-02 */
static void frame_parse__ip6(void **state)
{
	struct frame good = frame_of(NET_IPV6, OP_SEND_ONLY, 4);
	uint16_t plen = get_be16(good.b + good.l3 + IP6_PLEN);
	struct frame f = good;

	assert_other_versions_drop(&good);
	assert_too_long(&good, plen);
	assert_other_protocols_drop(&good, IPPROTO_ROCEV2, DROP_IP_NEXT_HEADER);
	for (uint32_t label = 1; label < 1u << 20; label <<= 1) { /* any: IP6-10 */
		put_be32(f.b + f.l3, 6u << 28 | label);
		assert_drop(&f, NONE);
	}
	put_be32(f.b + f.l3, 0x60000000);
	assert_drop(&f, NONE);
	put_be32(f.b + f.l3, 0x6FFFFFFF); /* and any traffic class */
	f.b[f.l3 + IP6_HLIM] = 0;
	assert_drop(&f, NONE);
	f = good;
	put_be16(f.b + f.l3 + IP6_PLEN, 0); /* jumbogram */
	assert_drop(&f, IP_LENGTH);
	put_be16(f.b + f.l3 + IP6_PLEN, UDP_HLEN - 1);
	assert_drop(&f, IP_LENGTH);
	put_be16(f.b + f.l3 + IP6_PLEN, (uint16_t)(plen - 4));
	assert_drop(&f, UDP_LENGTH);
	f = good;
	f.len = f.l3 + IP6_HLEN - 1;
	assert_drop(&f, IP_LENGTH);
}

/* proves V1-02, V1-03 */
static void frame_parse__grh(void **state)
{
	struct frame good = frame_of(NET_ROCEV1, OP_SEND_ONLY, 4);
	struct frame f = good;

	assert_other_versions_drop(&good);
	assert_too_long(&good, get_be16(good.b + good.l3 + IP6_PLEN));
	assert_other_protocols_drop(&good, GRH_NXT_IBA, DROP_GRH_NEXT_HEADER);
	put_be16(f.b + f.l3 + IP6_PLEN, 19);
	assert_drop(&f, BTH_ALIGN);
	put_be16(f.b + f.l3 + IP6_PLEN, 15);
	assert_drop(&f, BTH_SHORT);
	put_be16(f.b + f.l3 + IP6_PLEN, 0);
	assert_drop(&f, BTH_SHORT);
}

/* proves SEC-02, UDP-02, IP4-08, IP6-04 */
static void frame_parse__udp(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		struct frame good = frame_of(net, OP_SEND_ONLY, 4);
		uint16_t len = get_be16(good.b + good.udp + UDP_LEN);
		const int wrong[] = {0, 7, 8, 23, len - 1, len + 1, 0xFFFF};
		struct frame f = good;

		put_be16(f.b + f.udp + UDP_DPORT, 4792);
		assert_drop(&f, UDP_PORT);
		for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
			f = good;
			put_be16(f.b + f.udp + UDP_LEN, (uint16_t)wrong[i]);
			assert_drop(&f, UDP_LENGTH);
		}
	}
}

/* proves BTH-02, UDP-04, V1-03, SEC-02 */
static void frame_parse__bth(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++) {
		struct frame good = frame_of(net, OP_SEND_ONLY, 4);
		uint16_t udp_len = net == NET_ROCEV1 ? 0 : UDP_HLEN;
		struct frame f = good;

		for (uint8_t tver = 1; tver < 16; tver++) {
			f.b[f.bth + BTH_FLAGS] = tver;
			assert_drop(&f, BTH_TVER);
		}
		f = good;
		frame_set_l4_len(&f, udp_len + BTH_HLEN + ICRC_LEN - 1);
		assert_drop(&f, BTH_SHORT);
		for (uint16_t odd = 1; odd < 4; odd++) {
			frame_set_l4_len(&f, udp_len + BTH_HLEN + ICRC_LEN + odd);
			assert_drop(&f, BTH_ALIGN);
		}
	}
}

/* proves VAL-21 (CA17-28): RD, the manufacturers' and the other opcodes of CNP's class. */
static void frame_parse__opcode_class(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		struct frame f = frame_of(NET_IPV6, (uint8_t)code, 64);
		unsigned cls = code & OPC_CLASS_MASK;
		bool rd_or_manufacturer = cls == OPC_RD || cls == 0xC0 || cls == 0xE0;

		if (rd_or_manufacturer || (cls == OPC_CNP && code != OPCODE_CNP))
			assert_drop(&f, OPCODE_CLASS);
		else
			assert_string_not_equal(parse(&f), "opcode_class");
	}
}

/* proves VAL-18, SEC-02, BTH-07 for every opcode: one word too few, just enough, one word more. */
static void frame_parse__header_length(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct opcode *op = opcode_row((uint8_t)code);
		size_t need = op->hdr_len - BTH_HLEN;
		struct frame f;

		if (!op->name)
			continue;
		f = frame_of(NET_IPV4, (uint8_t)code, need);
		assert_drop(&f, NONE);
		if (need) {
			f = frame_of(NET_IPV4, (uint8_t)code, need - 4);
			assert_drop(&f, HEADER_SHORT);
		}
		f = frame_of(NET_IPV4, (uint8_t)code, need + 4);
		if (op->payload || op->kind == KIND_CNP)
			assert_drop(&f, NONE);
		else
			assert_drop(&f, PAD);
	}
}

/* proves BTH-06, BTH-07, SEC-02 */
static void frame_parse__pad(void **state)
{
	struct frame f = frame_of(NET_IPV4, OP_SEND_ONLY, 0);

	f.b[f.bth + BTH_FLAGS] = 1 << BTH_PAD_SHIFT; /* more pad than there are bytes */
	assert_drop(&f, PAD);
	f = frame_of(NET_IPV4, OP_WRITE_ONLY, RETH_LEN); /* its headers are no pad */
	f.b[f.bth + BTH_FLAGS] = 1 << BTH_PAD_SHIFT;
	assert_drop(&f, PAD);
	f = frame_of(NET_IPV4, OP_ACKNOWLEDGE, AETH_LEN);
	f.b[f.bth + BTH_FLAGS] = 3 << BTH_PAD_SHIFT;
	assert_drop(&f, PAD);
	f = frame_of(NET_IPV4, OP_SEND_ONLY, 4);
	f.b[f.bth + BTH_FLAGS] = 3 << BTH_PAD_SHIFT;
	assert_drop(&f, NONE);
}

/* proves SEC-02: longer than 16-bit offsets reach: nothing wraps. */
static void frame_parse__longest_payload_length(void **state)
{
	static uint8_t big[ETH_HLEN + IP6_HLEN + 65535 + 8];
	struct frame f = frame_of(NET_IPV6, OP_SEND_ONLY, 0);
	struct pkt p;

	frame_set_l4_len(&f, 65532);
	memcpy(big, f.b, f.len);
	assert_int_equal(frame_parse(&p, big, sizeof(big)), DROP_NONE);
	assert_int_equal(p.payload_len, 65532 - UDP_HLEN - BTH_HLEN - ICRC_LEN);
	assert_int_equal(p.icrc_off, IP6_HLEN + 65532 - ICRC_LEN);
	assert_false(icrc_check(icrc_best(), &p));
}

/* --- frame_is_roce, frame_gids --------------------------------------------------------------- */

static void frame_is_roce__by_ethertype_or_port(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++) {
		struct frame f = frame_of(net, OP_SEND_ONLY, 4);
		struct frame other = f;

		assert_true(frame_is_roce(f.b, f.len));
		for (size_t len = 0; len < f.len; len++) {
			size_t need = f.udp ? f.udp + UDP_DPORT + 2 : ETH_HLEN;

			assert_int_equal(frame_is_roce(f.b, len), len >= need);
		}
		if (f.udp) {
			put_be16(other.b + f.udp + UDP_DPORT, 53);
			assert_false(frame_is_roce(other.b, other.len));
			other = f;
			other.b[f.l3 + (net == NET_IPV4 ? (int)IP4_PROTO : (int)IP6_NXT)] = 6;
			assert_false(frame_is_roce(other.b, other.len));
		}
		frame_tag(&f, ETHERTYPE_VLAN, 100);
		assert_true(frame_is_roce(f.b, f.len));
	}
}

static void frame_is_roce__ip4_options_and_fragments(void **state)
{
	struct frame f = frame_of(NET_IPV4, OP_SEND_ONLY, 4);

	memmove(f.b + f.udp + 4, f.b + f.udp, f.len - f.udp);
	f.b[f.l3] = 0x46;
	assert_true(frame_is_roce(f.b, f.len)); /* ours to drop (CA17-3) */
	f = frame_of(NET_IPV4, OP_SEND_ONLY, 4);
	put_be16(f.b + f.l3 + IP4_FRAG, 10);
	assert_false(frame_is_roce(f.b, f.len));
}

static void frame_gids__of_each_type(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++) {
		struct frame f = frame_of(net, OP_SEND_ONLY, 4);
		uint8_t sgid[16], dgid[16];
		struct pkt p;

		assert_int_equal(frame_parse(&p, f.b, f.len), DROP_NONE);
		frame_gids(&p, sgid, dgid);
		if (net == NET_IPV4) {
			assert_memory_equal(sgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\x0a", 16);
			assert_memory_equal(dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\x0b", 16);
		} else {
			assert_memory_equal(sgid, f.b + f.l3 + 8, 16);
			assert_memory_equal(dgid, f.b + f.l3 + 24, 16);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_parse__bth_fields),
		cmocka_unit_test(frame_parse__extended_headers),
		cmocka_unit_test(frame_parse__vlan),
		cmocka_unit_test(frame_parse__ethernet_padding_is_ignored),
		cmocka_unit_test(frame_parse__cnp_with_and_without_reserved_bytes),
		cmocka_unit_test(frame_parse__udp_checksum_and_source_port_are_not_looked_at),
		cmocka_unit_test(frame_parse__reserved_opcodes_of_a_class_that_qps_have),
		cmocka_unit_test(frame_parse__ethernet),
		cmocka_unit_test(frame_parse__ip4),
		cmocka_unit_test(frame_parse__ip4_checksum),
		cmocka_unit_test(frame_parse__ip6),
		cmocka_unit_test(frame_parse__grh),
		cmocka_unit_test(frame_parse__udp),
		cmocka_unit_test(frame_parse__bth),
		cmocka_unit_test(frame_parse__opcode_class),
		cmocka_unit_test(frame_parse__header_length),
		cmocka_unit_test(frame_parse__pad),
		cmocka_unit_test(frame_parse__longest_payload_length),
		cmocka_unit_test(frame_is_roce__by_ethertype_or_port),
		cmocka_unit_test(frame_is_roce__ip4_options_and_fragments),
		cmocka_unit_test(frame_gids__of_each_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
