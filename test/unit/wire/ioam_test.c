/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry in an IPv6 extension header: written, added to by switches, returned, taken out; and
 * frames that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "frame.h"
#include "frames.h"
#include "guard.h"
#include "headers.h"
#include "icrc.h"
#include "ioam.h"
#include "opcode.h"

#define EXT_OFF (14u + IP6_HLEN)
#define PAYLOAD 64u

static const struct icrc_ops *ops;

/* A frame with room before it. */
static struct room {
	uint8_t before[IOAM_LEN];
	uint8_t b[512];
} room;
static size_t len;
static struct guard guard;

static int setup(void **state)
{
	ops = icrc_best();
	guard = guard_map(1024);
	return 0;
}

/* A plain packet, sealed. */
static void begin(unsigned net, bool tagged)
{
	struct frame f = frame_of(net, OPC_RC | OP_SEND_ONLY, PAYLOAD);

	if (tagged)
		frame_tag(&f, ETHERTYPE_VLAN, 5);
	memset(&room, 0, sizeof(room));
	memcpy(room.b, f.b, f.len);
	len = f.len;
	icrc_store(room.b + len - ICRC_LEN,
		icrc_header(ops, room.b + f.l3, net, len - f.l3 - ICRC_LEN));
}

static const struct ioam_node node = {
	.rate = 100000000000, .time = 0x123456, .sent = 0xABCDE, .queue = 8000};

/* The CRC-32 of IEEE, bit by bit. */
static uint32_t crc(uint32_t state, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		state ^= b[i];
		for (unsigned k = 0; k < 8; k++)
			state = state >> 1 ^ (state & 1 ? 0xEDB88320u : 0);
	}
	return state;
}

/* The ICRC of the untagged frame @p b, by the rule: all that changes on the way is ones. */
static uint32_t icrc_by_rule(const uint8_t *b, size_t n, bool trace)
{
	static const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
	uint8_t copy[640];

	memcpy(copy, b + 14, n - 14);
	copy[0] |= 0x0F;
	memset(copy + 1, 0xFF, 3);
	copy[7] = 0xFF;
	if (trace)
		memset(copy + IP6_HLEN + 6, 0xFF, IOAM_LEN - 6);
	memset(copy + IP6_HLEN + IOAM_LEN + UDP_CSUM, 0xFF, 2);
	copy[IP6_HLEN + IOAM_LEN + UDP_HLEN + BTH_RESV8A] = 0xFF;
	return ~crc(crc(~0u, ones, 8), copy, n - 14 - ICRC_LEN);
}

static uint32_t stored(const uint8_t *b, size_t n)
{
	return (uint32_t)b[n - 4] | (uint32_t)b[n - 3] << 8 | (uint32_t)b[n - 2] << 16 |
	       (uint32_t)b[n - 1] << 24;
}

/* RFC 9486: option 0x31 at a multiple of 4; RFC 9197: pre-allocated trace, namespace, two words
 * per node, ten left, trace type bit 10. */
static void push__writes_an_empty_trace(void **state)
{
	static const uint8_t ext[16] = {
		17, 6, 1, 0, 0x31, 50, 0, 0, 0x80, 0, 0x10, 0x0A, 0, 0x20, 0, 0};
	static const uint8_t zero[IOAM_LEN - 16];
	uint8_t *at;

	begin(NET_IPV6, false);
	at = ioam_push(ops, room.b, len, NULL);
	assert_ptr_equal(at, room.before);
	len += IOAM_LEN;
	assert_int_equal(at[14 + IP6_NXT], 0);
	assert_int_equal(get_be16(at + 14 + IP6_PLEN), len - EXT_OFF);
	assert_memory_equal(at + EXT_OFF, ext, sizeof(ext));
	assert_memory_equal(at + EXT_OFF + 16, zero, sizeof(zero));
	assert_int_equal(stored(at, len), icrc_by_rule(at, len, true));
	ioam_add(at, len, &node);
	assert_int_equal(stored(at, len), icrc_by_rule(at, len, true)); /* switches have no ICRC */
}

/* The first switch is at the end. */
static void add__fills_from_the_end(void **state)
{
	struct ioam_node n = node;
	uint8_t *at;

	begin(NET_IPV6, false);
	at = ioam_push(ops, room.b, len, NULL);
	len += IOAM_LEN;
	ioam_add(at, len, &n);
	assert_int_equal(get_be16(at + EXT_OFF + 10), 0x1008);
	/* 100 Gb/s is number 10 */
	assert_int_equal(get_be64(at + EXT_OFF + 48), 0xA123456ABCDE0064u);
	n.queue = UINT32_MAX;
	n.time = 0xFF000001;
	n.sent = 0xFFF00002;
	n.rate = 123;
	ioam_add(at, len, &n);
	assert_int_equal(get_be64(at + EXT_OFF + 40), 0x000000100002FFFFu);
	for (unsigned i = 2; i < IOAM_NODES; i++)
		ioam_add(at, len, &node);
	assert_int_equal(get_be16(at + EXT_OFF + 10), 0x1000);
	ioam_add(at, len, &node);
	assert_int_equal(get_be16(at + EXT_OFF + 10), 0x1400); /* overflow */
	assert_int_equal(get_be64(at + EXT_OFF + 16), 0xA123456ABCDE0064u);
}

static void pop_plain(uint8_t *at, struct ioam *t)
{
	struct pkt pkt;

	at = ioam_pop(ops, at, len, t);
	assert_non_null(at);
	len -= IOAM_LEN;
	assert_int_equal(frame_parse(&pkt, at, len), DROP_NONE);
	assert_true(icrc_check(ops, &pkt));
	assert_int_equal(pkt.payload_len, PAYLOAD);
}

/* With and without a VLAN, and with Ethernet padding. */
static void pop__gives_the_packet_back(void **state)
{
	for (unsigned tagged = 0; tagged < 2; tagged++) {
		for (unsigned pad = 0; pad < 8; pad += 7) {
			struct ioam t;
			struct ioam_node n;
			uint8_t plain[512];
			uint8_t *at;

			begin(NET_IPV6, tagged);
			memcpy(plain, room.b, len);
			at = ioam_push(ops, room.b, len, NULL);
			len += IOAM_LEN + pad;
			ioam_add(at, len, &node);
			ioam_add(at, len, &(struct ioam_node){.rate = 40000000000, .queue = 80});
			assert_int_equal(ioam_dest_qp(at, len), 0x11);
			at[ETH_HLEN + 4 * tagged + IP6_HLEN + IOAM_LEN + UDP_DPORT] ^= 1;
			assert_int_equal(ioam_dest_qp(at, len), 0); /* another protocol's */
			at[ETH_HLEN + 4 * tagged + IP6_HLEN + IOAM_LEN + UDP_DPORT] ^= 1;
			pop_plain(at, &t);
			assert_int_equal(t.kind, IOAM_TRACE);
			assert_int_equal(t.nodes, 2);
			n = ioam_node(&t, 0);
			assert_true(n.rate == node.rate && n.time == node.time &&
				    n.sent == node.sent && n.queue == node.queue);
			n = ioam_node(&t, 1);
			assert_true(n.rate == 40000000000 && n.queue == 80);
			assert_memory_equal(room.b, plain, len - pad);
		}
	}
}

/* The receiver's ACK returns the records in an option that switches leave alone. */
static void echo__returns_the_records(void **state)
{
	struct ioam t = {.nodes = IOAM_NODES}, back;
	uint8_t *at;

	for (unsigned i = 0; i < sizeof(t.node); i++)
		t.node[i] = (uint8_t)i;
	for (t.nodes = 0; t.nodes <= IOAM_NODES; t.nodes++) {
		begin(NET_IPV6, false);
		at = ioam_push(ops, room.b, len, &t);
		len += IOAM_LEN;
		assert_int_equal(at[14 + IP6_NXT], IP6_NXT_DSTOPTS);
		assert_int_equal(at[EXT_OFF + 4], 0x1E);
		assert_int_equal(stored(at, len), icrc_by_rule(at, len, false));
		ioam_add(at, len, &node);
		assert_int_equal(stored(at, len), icrc_by_rule(at, len, false));
		pop_plain(at, &back);
		assert_int_equal(back.kind, IOAM_ECHO);
		assert_int_equal(back.nodes, t.nodes);
		assert_memory_equal(back.node, t.node, t.nodes * IOAM_NODE);
	}
}

/* A copy that ends where memory ends. */
static uint8_t *at_edge(const uint8_t *b, size_t n)
{
	return memcpy(guard.end - n, b, n);
}

static void push__is_for_ipv6_alone(void **state)
{
	begin(NET_IPV4, false);
	assert_null(ioam_push(ops, room.b, len, NULL));
	begin(NET_ROCEV1, false);
	assert_null(ioam_push(ops, room.b, len, NULL));
	begin(NET_IPV6, false);
	room.b[14 + IP6_NXT] = 6;
	assert_null(ioam_push(ops, room.b, len, NULL));
}

/* Every byte of the headers, changed: the ICRC notices all but those that may change on the way,
 * and nothing is read beyond the frame. */
static void pop__is_hostile(void **state)
{
	uint8_t good[640];
	struct ioam t;

	begin(NET_IPV6, false);
	memcpy(good, ioam_push(ops, room.b, len, NULL), len + IOAM_LEN);
	len += IOAM_LEN;
	ioam_add(good, len, &node);
	for (size_t i = 12; i < len; i++) {
		bool data = i >= EXT_OFF + 15 && i < EXT_OFF + IOAM_LEN;
		bool words = i == EXT_OFF + 10 || i == EXT_OFF + 11;
		bool variant = (i >= 14 && i < 18) || i == 14 + IP6_HLIM || data || words ||
			       i == EXT_OFF + IOAM_LEN + UDP_CSUM ||
			       i == EXT_OFF + IOAM_LEN + UDP_CSUM + 1 ||
			       i == EXT_OFF + IOAM_LEN + UDP_HLEN + BTH_RESV8A;
		uint8_t *b = at_edge(good, len);

		b[i] ^= 0x01;
		if (variant != (ioam_pop(ops, b, len, &t) != NULL))
			fail_msg("byte %zu of %zu", i, len);
	}
	for (size_t n = 0; n < len; n++) {
		uint8_t *b = at_edge(good, n);

		assert_null(ioam_pop(ops, b, n, &t));
		ioam_add(b, n, &node);
		(void)ioam_dest_qp(b, n);
	}
}

/* Words that are left: odd, more than there are, overflow. */
static void pop__lies_about_records(void **state)
{
	static const struct {
		uint16_t word;
		unsigned nodes;
	} row[] = {{0x100A, 0}, {0x1008, 1}, {0x1000, 5}, {0x1009, 0}, {0x100C, 0}, {0x107F, 0},
		{0x1400, 0}, {0x1300, 5}};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct ioam t;
		uint8_t *at;

		begin(NET_IPV6, false);
		at = ioam_push(ops, room.b, len, NULL);
		len += IOAM_LEN;
		put_be16(at + EXT_OFF + 10, row[i].word);
		assert_non_null(ioam_pop(ops, at, len, &t));
		assert_int_equal(t.nodes, row[i].nodes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push__writes_an_empty_trace),
		cmocka_unit_test(add__fills_from_the_end),
		cmocka_unit_test(pop__gives_the_packet_back),
		cmocka_unit_test(echo__returns_the_records),
		cmocka_unit_test(push__is_for_ipv6_alone),
		cmocka_unit_test(pop__is_hostile),
		cmocka_unit_test(pop__lies_about_records),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
