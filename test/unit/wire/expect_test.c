/* SPDX-License-Identifier: BSD-3-Clause */
/* An expected frame is one that frame_parse() accepts, with the same fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "expect.h"
#include "frame.h"
#include "frames.h"
#include "guard.h"
#include "headers.h"
#include "limits.h"
#include "opcode.h"

#define PORT 3
#define QPN  0x11u

static _Atomic uint64_t mac;

/* The headers of frame_of(NET_IPV4, ...). */
static struct expect expect(void)
{
	static const uint8_t src[4] = {192, 0, 2, 10}, dst[4] = {192, 0, 2, 11};
	struct expect e;

	mac = 0x020202020202;
	expect_set(&e, &(struct expect_spec){.src_ip = src,
			       .dst_ip = dst,
			       .mac = &mac,
			       .dest_qp = QPN,
			       .pkey = 0xFFFF,
			       .opc = OPC_RC,
			       .port = PORT});
	return e;
}

/* At the end of memory. */
static const uint8_t *at_edge(const struct frame *f)
{
	static struct guard g;

	if (!g.begin)
		g = guard_map(FRAMES_EDGE_MAX);
	memcpy(g.end - f->len, f->b, f->len);
	return g.end - f->len;
}

static void same_fields(const struct pkt *a, const struct pkt *b)
{
	struct pkt x = *a, y = *b;

	x.expected = y.expected = NULL;
	assert_memory_equal(&x, &y, sizeof(x)); /* what is not filled in is the same garbage */
}

/* @return whether @p f is as expected; if so it must be a packet, and the same one. */
static bool is_expected(const struct frame *f, const struct expect *e)
{
	const uint8_t *at = at_edge(f);
	struct pkt p, q;

	memset(&p, 0xEE, sizeof(p));
	p.port = PORT;
	q = p;
	if (!frame_expected(&p, at, f->len, e))
		return false;
	assert_int_equal(frame_parse(&q, at, f->len), DROP_NONE);
	assert_ptr_equal(p.expected, e);
	assert_null(q.expected);
	same_fields(&p, &q);
	return true;
}

static bool is_packet(const struct frame *f)
{
	struct pkt p = {.port = PORT};

	return frame_parse(&p, at_edge(f), f->len) == DROP_NONE;
}

/* Every opcode of RC, with every pad, and a payload shorter or longer than that. proves BTH-05,
 * BTH-06, BTH-07, VAL-18: no others than frame_parse() accepts, and none fewer. */
static void frame_expected__any_opcode(void **state)
{
	struct expect e = expect();

	(void)state;
	for (unsigned op = 0; op < 32; op++)
		for (size_t tail = 2; tail < 48; tail++)
			for (unsigned pad = 0; pad < 16; pad++) {
				struct frame f = frame_of(NET_IPV4, (uint8_t)op, tail);

				f.b[f.bth + BTH_FLAGS] = (uint8_t)(pad << 4);
				assert_int_equal(is_expected(&f, &e), is_packet(&f));
			}
}

/* The bits that may have any value: TOS, identification, TTL, source port, UDP checksum, and of BTH
 * opcode, SE, MigReq, FECN, BECN and what is reserved beside them. Lengths, checksum and pad have
 * their own tests. */
static bool may_vary(unsigned byte, uint8_t bit)
{
	static const uint8_t any[EXPECT_MIN] = {[15] = 0xFF,
		[18] = 0xFF,
		[19] = 0xFF,
		[22] = 0xFF,
		[34] = 0xFF,
		[35] = 0xFF,
		[40] = 0xFF,
		[41] = 0xFF,
		[42] = 0x0F, /* to another of SEND and WRITE; with bit 4 it is ACKNOWLEDGE */
		[43] = 0xC0,
		[46] = 0xFF};

	return (byte >= ETH_SRC && byte < ETH_TYPE) || byte >= 50 || (any[byte] & bit);
}

/* proves ETH-10, ETH-01, CA17-27, CA17-3, CA17-7, CA17-8, CA17-10, VAL-12, CA17-20, VAL-04, BTH-02,
 * VAL-09, VAL-03, IP4-19, UDP-09, UDP-06, BTH-03: one bit differs */
static void frame_expected__any_bit(void **state)
{
	struct expect e = expect();

	(void)state;
	for (unsigned at = 0; at < EXPECT_MIN; at++)
		for (unsigned bit = 1; bit < 0x100; bit <<= 1) {
			struct frame f = frame_of(NET_IPV4, OP_SEND_MIDDLE, 32);

			if (at == 16 || at == 17 || at == 24 || at == 25 || at == 38 || at == 39 ||
				(at == 43 && bit & BTH_PAD_MASK))
				continue;
			f.b[at] ^= (uint8_t)bit;
			frame_ip4_sum(&f);
			assert_int_equal(is_expected(&f, &e), may_vary(at, (uint8_t)bit));
		}
}

/* proves CA17-2, IP4-16 */
static void frame_expected__checksum(void **state)
{
	struct expect e = expect();
	struct frame f = frame_of(NET_IPV4, OP_WRITE_ONLY, 80);

	(void)state;
	for (unsigned sum = 0; sum < 0x10000; sum++) {
		put_be16(f.b + f.l3 + IP4_CSUM, (uint16_t)sum);
		assert_int_equal(is_expected(&f, &e), is_packet(&f));
	}
	f = frame_of(NET_IPV4, OP_WRITE_ONLY, 80);
	for (unsigned byte = 0; byte < IP4_HLEN; byte++) {
		f.b[f.l3 + byte] ^= 1;
		assert_false(is_expected(&f, &e));
		f.b[f.l3 + byte] ^= 1;
	}
}

/* proves CA17-6, CA17-21, BTH-05: lengths that do not agree, or exceed the frame */
static void frame_expected__lengths(void **state)
{
	struct expect e = expect();

	(void)state;
	for (unsigned total = 0; total < 200; total++)
		for (unsigned udp = 0; udp < 200; udp++) {
			struct frame f = frame_of(NET_IPV4, OP_WRITE_ONLY, 80);

			put_be16(f.b + f.l3 + IP4_TOTLEN, (uint16_t)total);
			put_be16(f.b + f.udp + UDP_LEN, (uint16_t)udp);
			frame_ip4_sum(&f);
			assert_int_equal(is_expected(&f, &e), is_packet(&f));
		}
}

/* proves ETH-08, ETH-09 */
static void frame_expected__trailer(void **state)
{
	struct expect e = expect();

	(void)state;
	for (size_t more = 0; more < 64; more++) {
		struct frame f = frame_of(NET_IPV4, OP_ACKNOWLEDGE, 4);

		memset(f.b + f.len, 0xFF, more);
		f.len += more;
		assert_true(is_expected(&f, &e));
	}
}

static void frame_expected__port_and_mac(void **state)
{
	struct frame f = frame_of(NET_IPV4, OP_ACKNOWLEDGE, 4);
	struct expect e = expect();
	struct pkt p = {.port = PORT + 1};

	(void)state;
	assert_false(frame_expected(&p, f.b, f.len, &e));
	mac ^= 1; /* ETH-10: it is asked each time */
	assert_false(is_expected(&f, &e));
	mac ^= 1;
	assert_true(is_expected(&f, &e));
}

/* Not the peer's either, by any port. */
static void expect_nothing__no_frame(void **state)
{
	struct frame f = frame_of(NET_IPV4, OP_ACKNOWLEDGE, 4);
	struct expect e = expect();
	struct pkt p = {.port = PORT};

	(void)state;
	expect_nothing(&e);
	assert_false(is_expected(&f, &e));
	for (unsigned port = 0; port < PORT_MAX; port++) {
		p.port = (uint8_t)port;
		assert_false(frame_expected(&p, f.b, f.len, &e));
	}
}

/* IPv6, RoCEv1, a tag, another UDP port */
static void expect_may__other_frames(void **state)
{
	struct frame f = frame_of(NET_IPV4, OP_ACKNOWLEDGE, 4);
	const struct frame v6 = frame_of(NET_IPV6, OP_ACKNOWLEDGE, 4);
	const struct frame v1 = frame_of(NET_ROCEV1, OP_ACKNOWLEDGE, 4);

	(void)state;
	assert_true(expect_may(f.b));
	assert_false(expect_may(v6.b));
	assert_false(expect_may(v1.b));
	put_be16(f.b + f.udp + UDP_DPORT, UDP_PORT_ROCEV2 + 1);
	assert_false(expect_may(f.b));
	f = frame_of(NET_IPV4, OP_ACKNOWLEDGE, 4);
	frame_tag(&f, ETHERTYPE_VLAN, 5);
	assert_false(expect_may(f.b));
}

static void expect_qpn__of_any_frame(void **state)
{
	struct frame f = frame_of(NET_IPV4, OP_ACKNOWLEDGE, 4);

	(void)state;
	put_be32(f.b + f.bth + BTH_RESV8A, 0xFFABCDEF);
	assert_int_equal(expect_qpn(f.b), 0xABCDEF);
}

static void expect_opcode__of_a_frame(void **state)
{
	static const uint8_t codes[] = {OP_ACKNOWLEDGE, OP_READ_RESP_ONLY, OP_WRITE_ONLY};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(codes); i++)
		assert_ptr_equal(expect_opcode(frame_of(NET_IPV4, codes[i], 32).b),
			opcode_row(OPC_RC | codes[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_expected__any_opcode),
		cmocka_unit_test(frame_expected__any_bit),
		cmocka_unit_test(frame_expected__checksum),
		cmocka_unit_test(frame_expected__lengths),
		cmocka_unit_test(frame_expected__trailer),
		cmocka_unit_test(frame_expected__port_and_mac),
		cmocka_unit_test(expect_nothing__no_frame),
		cmocka_unit_test(expect_may__other_frames),
		cmocka_unit_test(expect_qpn__of_any_frame),
		cmocka_unit_test(expect_opcode__of_a_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
