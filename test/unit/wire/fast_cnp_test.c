/* SPDX-License-Identifier: BSD-3-Clause */
/* Fast CNPs: written by the builder, then broken; and one that others have made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "fast_cnp.h"
#include "frame.h"
#include "frames.h"
#include "guard.h"
#include "icrc.h"
#include "opcode.h"

#define L3   14u
#define OPTS (L3 + IP6_HLEN)

static const uint8_t types[FAST_CNP_OPTIONS] = {0x9E, 0x9F};
static const uint8_t trace[28] = {0, 1, 0, 1, 8, 2, 0, 0, 0xF0};

/* A frame with room for more options. */
struct made {
	uint8_t b[FAST_CNP_FRAME_MAX + 2048];
	size_t len;
};

static struct fast_cnp_spec spec_of(uint8_t type)
{
	struct fast_cnp_spec s = {.dmac = {2, 0, 0, 0, 0, 10},
		.smac = {2, 0, 0, 0, 0, 11},
		.source = {0x20, 1, 13, 0xB8, 0, 5, [15] = 1},
		.dest = {0x20, 1, 13, 0xB8, [15] = 0x0A},
		.dip = {0x20, 1, 13, 0xB8, [15] = 0x0B},
		.dest_qpn = 0x11,
		.pkey = 0xFFFF,
		.tclass = 48 << 2,
		.hop_limit = 64,
		.sport = 0xC123,
		.becn = true,
		.type = type};

	if (type == types[FAST_CNP_TRACE]) {
		s.trace = trace;
		s.trace_len = sizeof(trace);
	}
	return s;
}

static struct made make(uint8_t type)
{
	struct fast_cnp_spec s = spec_of(type);
	struct made m;

	m.len = fast_cnp_write(m.b, &s, icrc_best());
	return m;
}

/* A copy that ends where memory ends. */
static enum drop parse_at_edge(struct pkt *p, struct fast_cnp *f, const uint8_t *frame, size_t len)
{
	static struct guard g;
	uint8_t *copy;

	if (!g.begin)
		g = guard_map(sizeof(struct made));
	copy = g.end - len;
	memcpy(copy, frame, len);
	memset(p, 0xEE, sizeof(*p));
	if (fast_cnp_parse(p, f, copy, len, types))
		return fast_cnp_parse(p, f, copy, len, types);
	assert_true(frame_is_fast_cnp(copy, len));
	assert_true(f->dip >= copy && f->dip + FAST_CNP_DIP_LEN <= copy + len);
	for (unsigned i = 0; icrc_nth(i); i++)
		fast_cnp_icrc_check(icrc_nth(i), p);
	return DROP_NONE;
}

static const char *verdict(const struct made *m)
{
	struct fast_cnp f;
	struct pkt p;

	return drop_name(parse_at_edge(&p, &f, m->b, m->len));
}

/* --- what is right ---------------------------------------------------------------------------- */

/* proves FCN-03, FCN-05, FCN-06, FCN-08 */
static void fast_cnp_parse__both_options(void **state)
{
	for (unsigned i = 0; i < FAST_CNP_OPTIONS; i++) {
		struct made m = make(types[i]);
		struct fast_cnp f;
		struct pkt p;

		assert_int_equal(fast_cnp_parse(&p, &f, m.b, m.len, types), DROP_NONE);
		assert_int_equal(p.op->kind, KIND_CNP);
		assert_int_equal(p.net, NET_IPV6);
		assert_int_equal(p.dest_qp, 0x11);
		assert_int_equal(p.pkey, 0xFFFF);
		assert_int_equal(p.payload_len, 0);
		assert_ptr_equal(p.l3, m.b + L3);
		assert_int_equal(f.dip[15], 0x0B);
		assert_int_equal(f.trace_len, i ? sizeof(trace) : 0);
		assert_int_equal(f.trace != NULL, i);
		if (i)
			assert_memory_equal(f.trace, trace, sizeof(trace));
	}
}

/* proves ICRC-10: of a frame that this code has not written (spec-errors 43). */
static void fast_cnp_icrc__covers_the_options(void **state)
{
	static const uint8_t opt2[] =
		"\x02\0\0\0\0\x0a\x02\0\0\0\0\x0b\x86\xdd\x6c\0\0\0\0\x58\x3c\x40"
		"\x20\x01\x0d\xb8\0\x05\0\0\0\0\0\0\0\0\0\x01"
		"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x0a"
		"\x11\x05\x9f\x2c\0\x01\0\x01\x08\x02\0\0\xf0\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0\0\0\0\0"
		"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x0b"
		"\xc1\x23\x12\xb7\0\x28\0\0\x81\0\xff\xff\x40\0\0\x11\0\0\0\0"
		"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xdc\xa4\xc8\x41";
	uint8_t copy[sizeof(opt2) - 1];
	struct fast_cnp f;
	struct pkt p;

	memcpy(copy, opt2, sizeof(copy));
	assert_int_equal(fast_cnp_parse(&p, &f, copy, sizeof(copy), types), DROP_NONE);
	for (unsigned i = 0; icrc_nth(i); i++)
		assert_true(fast_cnp_icrc_check(icrc_nth(i), &p));
	for (size_t at = L3; at < sizeof(copy); at++) {
		/* class, label, hop limit; checksum; FECN and BECN */
		bool variant = (at > L3 && at < L3 + 4) || at == L3 + IP6_HLIM ||
			       at == OPTS + 48 + UDP_CSUM || at == OPTS + 48 + UDP_CSUM + 1 ||
			       at == OPTS + 48 + UDP_HLEN + BTH_RESV8A;
		uint8_t bit = at == L3 ? 0x10 : 0x01;

		copy[at] ^= bit;
		for (unsigned i = 0; icrc_nth(i); i++)
			assert_int_equal(fast_cnp_icrc_check(icrc_nth(i), &p), variant);
		copy[at] ^= bit;
	}
}

/* proves FCN-03, ICRC-10: what the builder writes is what the parser accepts, for each length */
static void fast_cnp_write__any_trace(void **state)
{
	static const uint8_t data[FAST_CNP_TRACE_MAX] = {1, 2, 3};
	struct fast_cnp_spec s = spec_of(types[FAST_CNP_TRACE]);

	s.trace = data;
	for (unsigned len = FAST_CNP_TRACE_MIN; len <= FAST_CNP_TRACE_MAX; len++) {
		uint8_t b[FAST_CNP_FRAME_MAX];
		struct fast_cnp f;
		struct pkt p;
		size_t n;

		s.trace_len = (uint8_t)len;
		s.vid = len & 1 ? 291 : 0;
		n = fast_cnp_write(b, &s, icrc_best());
		assert_true(n <= sizeof(b));
		assert_int_equal(parse_at_edge(&p, &f, b, n), DROP_NONE);
		assert_int_equal(p.vid, s.vid);
		assert_int_equal(f.trace_len, len);
		assert_memory_equal(f.trace, data, len);
		assert_memory_equal(f.dip, s.dip, sizeof(s.dip));
		assert_true(fast_cnp_icrc_check(icrc_best(), &p));
		assert_int_equal((p.bth - UDP_HLEN - p.l3) % 8, 0);
	}
}

/* proves FCN-03, FCN-08: what a switch says of a packet */
static void fast_cnp_answer__goes_back(void **state)
{
	const uint8_t source[16] = {0x20, 1, [15] = 0x77};
	struct frame data = frame_of(NET_IPV6, 0x04, 8);
	uint8_t b[FAST_CNP_FRAME_MAX];
	struct fast_cnp_spec s;
	struct fast_cnp f;
	struct pkt p, of;
	size_t n;

	frame_tag(&data, ETHERTYPE_VLAN, 5);
	assert_int_equal(frame_parse(&of, data.b, data.len), DROP_NONE);
	fast_cnp_answer(&s, &of, source, types[0]);
	n = fast_cnp_write(b, &s, icrc_best());
	assert_int_equal(fast_cnp_parse(&p, &f, b, n, types), DROP_NONE);
	assert_true(fast_cnp_icrc_check(icrc_best(), &p));
	assert_memory_equal(b + ETH_DST, data.b + ETH_SRC, 6);
	assert_memory_equal(b + ETH_SRC, data.b + ETH_DST, 6);
	assert_memory_equal(p.l3 + IP6_SRC, source, 16);
	assert_memory_equal(p.l3 + IP6_DST, of.l3 + IP6_SRC, 16);
	assert_memory_equal(f.dip, of.l3 + IP6_DST, 16);
	assert_int_equal(p.dest_qp, of.dest_qp);
	assert_int_equal(p.pkey, of.pkey);
	assert_int_equal(p.vid, 5);
	assert_int_equal(p.tclass & ECN_MASK, 0);
}

/* --- what is wrong ---------------------------------------------------------------------------- */

/* Puts @p n bytes of options in front of the first one, with the lengths that go with them. */
static void insert(struct made *m, const uint8_t *bytes, size_t n)
{
	memmove(m->b + OPTS + 2 + n, m->b + OPTS + 2, m->len - OPTS - 2);
	memcpy(m->b + OPTS + 2, bytes, n);
	m->len += n;
	m->b[OPTS + 1] = (uint8_t)(m->b[OPTS + 1] + n / 8);
	put_be16(m->b + L3 + IP6_PLEN, (uint16_t)(get_be16(m->b + L3 + IP6_PLEN) + n));
}

/* proves FCN-07: Pad1 and PadN wherever they are */
static void fast_cnp_parse__skips_padding(void **state)
{
	static const uint8_t pads[][8] = {
		{0}, {1, 6}, {1, 0, 0, 0, 1, 2}, {0, 1, 5, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE}};
	struct made m = make(types[0]);

	for (unsigned i = 0; i < ARRAY_SIZE(pads); i++) {
		insert(&m, pads[i], 8);
		assert_string_equal(verdict(&m), "none");
	}
	while (m.b[OPTS + 1] < 255) {
		insert(&m, pads[1], 8);
		assert_string_equal(verdict(&m), "none"); /* up to the longest header */
	}
	/* padding after it: the option first, then PadN of four */
	m = make(types[0]);
	memmove(m.b + OPTS + 2, m.b + OPTS + 6, 18);
	memcpy(m.b + OPTS + 20, "\x01\x02\0\0", 4);
	assert_string_equal(verdict(&m), "none");
	memcpy(m.b + OPTS + 20, "\0\0\0\0", 4);
	assert_string_equal(verdict(&m), "none");
}

/* proves FCN-07: what does not fit */
static void fast_cnp_parse__overruns(void **state)
{
	struct made m = make(types[0]);

	m.b[OPTS + 1] = 255; /* beyond the packet */
	assert_string_equal(verdict(&m), "fast_cnp_header");
	m = make(types[0]);
	m.b[OPTS + 1] = 3; /* UDP is in it, and padding is not what it was */
	assert_string_not_equal(verdict(&m), "none");
	m = make(types[0]);
	m.b[OPTS + 1] = 1; /* ends within the option */
	assert_string_equal(verdict(&m), "fast_cnp_header");
	m = make(types[0]);
	memcpy(m.b + OPTS + 2, "\x01\xff", 2); /* PadN beyond the header */
	assert_string_equal(verdict(&m), "fast_cnp_header");
	m = make(types[0]);
	memmove(m.b + OPTS + 2, m.b + OPTS + 6, 18);
	memcpy(m.b + OPTS + 20, "\x01\x01\0\x9e", 4); /* one byte is left, which is no option */
	assert_string_equal(verdict(&m), "fast_cnp_header");
	m = make(types[0]);
	put_be16(m.b + L3 + IP6_PLEN, 24 + 4); /* no room for UDP */
	assert_string_equal(verdict(&m), "fast_cnp_header");
}

/* proves FCN-05, FCN-06 */
static void fast_cnp_parse__option_length(void **state)
{
	struct made m;

	for (unsigned len = 0; len < 18; len++) { /* PadN takes what the option does not */
		m = make(types[0]);
		memset(m.b + OPTS + 2, 0, 22);
		m.b[OPTS + 2] = types[0];
		m.b[OPTS + 3] = (uint8_t)len;
		assert_string_equal(verdict(&m), len == 16 ? "none" : "fast_cnp_length");
		m.b[OPTS + 2] = types[1];
		assert_string_equal(verdict(&m), "fast_cnp_length");
	}
	for (unsigned len = 20; len < 28; len++) {
		m = make(types[1]);
		memset(m.b + OPTS + 2, 0, 46);
		m.b[OPTS + 2] = types[1];
		m.b[OPTS + 3] = (uint8_t)len;
		assert_string_equal(verdict(&m), len >= 24 ? "none" : "fast_cnp_length");
	}
}

/* proves FCN-03, FCN-04, FCN-12, FCN-14 */
static void fast_cnp_parse__one_known_option(void **state)
{
	static const uint8_t other[FAST_CNP_OPTIONS] = {0x80, 0x81};
	static const uint8_t pad[24] = {1, 22};
	uint8_t again[24] = {1, 4};
	struct made m = make(types[0]);
	struct fast_cnp f;
	struct pkt p;

	assert_int_equal(fast_cnp_parse(&p, &f, m.b, m.len, other), DROP_FAST_CNP_UNKNOWN);
	m.b[OPTS + 6] = other[1];
	m.b[OPTS + 7] = 16;
	assert_int_equal(fast_cnp_parse(&p, &f, m.b, m.len, other), DROP_FAST_CNP_LENGTH);
	m.b[OPTS + 6] = other[0];
	assert_int_equal(fast_cnp_parse(&p, &f, m.b, m.len, other), DROP_NONE);
	m.b[OPTS + 6] = 0x1E; /* also one that RFC 8200 allows to skip */
	assert_string_equal(verdict(&m), "fast_cnp_unknown");
	memset(m.b + OPTS + 2, 0, 22); /* padding only */
	assert_string_equal(verdict(&m), "fast_cnp_unknown");
	m = make(types[0]);
	insert(&m, pad, sizeof(pad));
	memcpy(again + 6, m.b + OPTS + 2 + 24 + 4, 18);
	for (unsigned i = 0; i < FAST_CNP_OPTIONS; i++) {
		again[6] = types[i];
		memcpy(m.b + OPTS + 2, again, sizeof(again));
		assert_string_equal(verdict(&m), i ? "fast_cnp_length" : "fast_cnp_twice");
	}
	again[6] = 0x1E; /* beside a good one */
	memcpy(m.b + OPTS + 2, again, sizeof(again));
	assert_string_equal(verdict(&m), "fast_cnp_unknown");
}

/* proves FCN-02, FCN-03 */
static void fast_cnp_parse__the_rest_of_the_frame(void **state)
{
	struct frame ip4 = frame_of(NET_IPV4, 0x81, 16), plain = frame_of(NET_IPV6, 0x81, 16);
	struct frame v1 = frame_of(NET_ROCEV1, 0x81, 16);
	struct made m = make(types[0]);
	struct fast_cnp f;
	struct pkt p;
	size_t bth = m.len - ICRC_LEN - CNP_RESERVED - BTH_HLEN;

	assert_int_equal(fast_cnp_parse(&p, &f, ip4.b, ip4.len, types), DROP_NOT_ROCE);
	assert_int_equal(fast_cnp_parse(&p, &f, v1.b, v1.len, types), DROP_NOT_ROCE);
	assert_int_equal(fast_cnp_parse(&p, &f, plain.b, plain.len, types), DROP_IP_NEXT_HEADER);
	m.b[bth] = 0x04; /* SEND_ONLY */
	assert_string_equal(verdict(&m), "fast_cnp_opcode");
	m.b[bth] = 0x80;
	assert_string_equal(verdict(&m), "opcode_class");
	m.b[bth] = 0x81;
	m.b[bth + BTH_FLAGS] = 1;
	assert_string_equal(verdict(&m), "bth_tver");
	m.b[bth + BTH_FLAGS] = 0;
	m.b[OPTS] = IP6_NXT_DSTOPTS; /* two headers */
	assert_string_equal(verdict(&m), "ip_next_header");
	m.b[OPTS] = IPPROTO_ROCEV2;
	m.b[bth - UDP_HLEN + UDP_LEN + 1]++;
	assert_string_equal(verdict(&m), "udp_length");
	m.b[bth - UDP_HLEN + UDP_LEN + 1]--;
	m.b[bth - UDP_HLEN + UDP_DPORT]++;
	assert_string_equal(verdict(&m), "udp_port");
	assert_false(frame_is_fast_cnp(m.b, m.len));
}

/* proves SEC-01, SEC-02: cut off anywhere */
static void fast_cnp_parse__cut(void **state)
{
	for (unsigned i = 0; i < FAST_CNP_OPTIONS; i++) {
		struct made m = make(types[i]);
		size_t whole = m.len;

		for (m.len = 0; m.len < whole; m.len++)
			assert_string_not_equal(verdict(&m), "none");
		/* and with lengths that go with it */
		for (m.len = OPTS; m.len < whole; m.len++) {
			put_be16(m.b + L3 + IP6_PLEN, (uint16_t)(m.len - OPTS));
			assert_string_not_equal(verdict(&m), "none");
		}
	}
}

/* proves FCN-01, FCN-14: to others it is no RoCE */
static void fast_cnp__is_none_of_frame_parse(void **state)
{
	struct made m = make(types[0]);
	struct pkt p;

	assert_int_equal(frame_parse(&p, m.b, m.len), DROP_IP_NEXT_HEADER);
	assert_false(frame_is_roce(m.b, m.len));
	for (size_t len = 0; len <= m.len; len++)
		assert_int_equal(frame_is_fast_cnp(m.b, len), len >= OPTS + 24 + 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fast_cnp_parse__both_options),
		cmocka_unit_test(fast_cnp_icrc__covers_the_options),
		cmocka_unit_test(fast_cnp_write__any_trace),
		cmocka_unit_test(fast_cnp_answer__goes_back),
		cmocka_unit_test(fast_cnp_parse__skips_padding),
		cmocka_unit_test(fast_cnp_parse__overruns),
		cmocka_unit_test(fast_cnp_parse__option_length),
		cmocka_unit_test(fast_cnp_parse__one_known_option),
		cmocka_unit_test(fast_cnp_parse__the_rest_of_the_frame),
		cmocka_unit_test(fast_cnp_parse__cut),
		cmocka_unit_test(fast_cnp__is_none_of_frame_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
