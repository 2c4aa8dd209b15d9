/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "frame.h"
#include "gso/run.h"
#include "guard.h"
#include "icrc.h"
#include "packet.h"
#include "path.h"
#include "path_write.h"
#include "random.h"

#define FRAMES	  130u
#define ROOM	  4608u
#define HEAD(net) (ETH_HLEN + ((net) == NET_IPV4 ? IP4_HLEN : IP6_HLEN) + UDP_HLEN)

struct frame {
	uint8_t b[ROOM];
	uint32_t len;
};

static struct frame frame[FRAMES];

static struct path path_of(unsigned net)
{
	static struct gid_entry sgid = {.valid = true, .mac = {2, 0, 0, 0, 0, 1}};
	struct path_spec s = {.sgid = &sgid,
		.dmac = {2, 0, 0, 0, 0, 2},
		.traffic_class = 0x68,
		.hop_limit = 9,
		.src_qpn = 77,
		.dst_qpn = 1234567};
	struct path p;

	sgid.net = (uint8_t)net;
	memcpy(sgid.gid, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\x0A\x09\x08\x07", 16);
	memcpy(s.dgid, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\x0A\x09\x08\xF6", 16);
	path_init(&p, &s);
	return p;
}

/* A frame as a worker sends it, sealed, of @p body bytes between BTH and ICRC. */
static void make(struct frame *f, unsigned net, uint16_t id, uint32_t psn, uint32_t body)
{
	struct path p = path_of(net);
	uint16_t rest = (uint16_t)(BTH_HLEN + body + ICRC_LEN);
	uint8_t *bth;

	memset(f, 0, sizeof(*f));
	bth = path_write(&p, f->b, rest, id);
	f->len = (uint32_t)(bth - f->b) + rest;
	memset(bth, 0, BTH_HLEN);
	bth[BTH_OPCODE] = 0x07; /* RC RDMA WRITE MIDDLE */
	put_be16(bth + BTH_PKEY, 0xFFFF);
	put_be32(bth + BTH_RESV8A, 1234567);
	put_be32(bth + BTH_ACKREQ, psn);
	for (uint32_t i = 0; i < body; i++)
		bth[BTH_HLEN + i] = (uint8_t)(psn * 31 + i);
	icrc_store(f->b + f->len - ICRC_LEN, icrc_header(icrc_by_name("table"), f->b + ETH_HLEN,
						     net, f->len - ETH_HLEN - ICRC_LEN));
}

static void make_all(unsigned net, uint16_t id, uint32_t body)
{
	for (uint32_t i = 0; i < FRAMES; i++)
		make(&frame[i], net, (uint16_t)(id + i), 0x80000000u + i, body);
}

static void resum(struct frame *f)
{
	uint8_t *ip = f->b + ETH_HLEN;
	uint32_t sum = 0;

	put_be16(ip + IP4_CSUM, 0);
	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(ip + i);
	put_be16(ip + IP4_CSUM, (uint16_t)~path_csum_fold(sum));
}

/* The run of all that go with the first. */
static struct gso_run run_of_all(void)
{
	struct gso_run r;

	assert_true(gso_begin(&r, frame[0].b, frame[0].len));
	while (r.count < FRAMES && gso_add(&r, frame[r.count].b, frame[r.count].len))
		;
	return r;
}

/* As the kernel gets it: one frame at @p to. */
static uint32_t join(const struct gso_run *r, uint8_t *to)
{
	uint32_t len = r->head;

	gso_write_head(r, to);
	for (unsigned i = 0; i < r->count; i++) {
		memcpy(to + len, frame[i].b + r->head, frame[i].len - r->head);
		len += frame[i].len - r->head;
	}
	assert_int_equal(len, r->bytes);
	return len;
}

static bool begins(const struct frame *f)
{
	struct gso_run r;

	return gso_begin(&r, f->b, f->len);
}

static void gso_begin__takes_what_a_worker_sends(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		make(&frame[0], net, 5, 6, 100);
		assert_true(begins(&frame[0]));
		make(&frame[0], net, 5, 6, 0);
		assert_true(begins(&frame[0]));
	}
	make(&frame[0], NET_ROCEV1, 5, 6, 100);
	assert_false(begins(&frame[0]));
}

/* A frame that is wrong, on purpose or by mistake, must arrive as it is. */
static void gso_begin__what_is_wrong_goes_singly(void **state)
{
	static const unsigned wrong[] = {ETH_TYPE, ETH_HLEN + IP4_VIHL, ETH_HLEN + IP4_TOTLEN,
		ETH_HLEN + IP4_TOTLEN + 1, ETH_HLEN + IP4_FRAG, ETH_HLEN + IP4_PROTO,
		ETH_HLEN + IP4_HLEN + UDP_DPORT, ETH_HLEN + IP4_HLEN + UDP_LEN,
		ETH_HLEN + IP4_HLEN + UDP_LEN + 1, ETH_HLEN + IP4_HLEN + UDP_CSUM};

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		make(&frame[0], NET_IPV4, 5, 6, 100);
		frame[0].b[wrong[i]] ^= 1;
		resum(&frame[0]);
		assert_false(begins(&frame[0]));
	}
	for (unsigned i = 0; i < IP4_HLEN; i++) { /* a checksum that is wrong */
		make(&frame[0], NET_IPV4, 5, 6, 100);
		frame[0].b[ETH_HLEN + i] ^= 0x10;
		assert_false(begins(&frame[0]));
	}
	make(&frame[0], NET_IPV6, 5, 6, 100);
	frame[0].b[ETH_HLEN] = 0x40;
	assert_false(begins(&frame[0]));
	make(&frame[0], NET_IPV6, 5, 6, 100);
	frame[0].b[ETH_HLEN + IP6_NXT] = IP6_NXT_DSTOPTS;
	assert_false(begins(&frame[0]));
}

static void gso_begin__reads_no_further_than_the_frame(void **state)
{
	struct guard g = guard_map(ROOM);

	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		make(&frame[0], net, 5, 6, 100);
		for (uint32_t len = 0; len < frame[0].len; len++) {
			struct gso_run r;

			memcpy(g.end - len, frame[0].b, len);
			assert_false(gso_begin(&r, g.end - len, len));
		}
	}
	guard_unmap(&g);
}

static void gso_add__a_run(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		struct gso_run r;

		make_all(net, 0xFFF0, 200); /* the identification wraps */
		r = run_of_all();
		assert_int_equal(r.count, GSO_RUN_MAX);
		assert_int_equal(gso_size(&r), BTH_HLEN + 200 + ICRC_LEN);
		assert_int_equal(r.bytes, HEAD(net) + GSO_RUN_MAX * (BTH_HLEN + 200u + ICRC_LEN));
	}
}

static void gso_add__eight_of_path_mtu_4096_are_full(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		make_all(net, 7, 4096);
		assert_int_equal(run_of_all().count, 8);
	}
}

static void gso_add__a_shorter_one_is_the_last(void **state)
{
	struct gso_run r;

	make_all(NET_IPV4, 7, 256);
	make(&frame[2], NET_IPV4, 9, 0, 100);
	make(&frame[3], NET_IPV4, 10, 0, 100);
	r = run_of_all();
	assert_int_equal(r.count, 3);
	assert_int_equal(r.bytes, frame[0].len + frame[1].len + frame[2].len - 2 * r.head);
	make(&frame[1], NET_IPV4, 8, 0, 257);
	assert_int_equal(run_of_all().count, 1);
}

/* Another flow, another mark, another identification: any bit of the headers. */
static void gso_add__any_other_header(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		for (unsigned bit = 0; bit < HEAD(net) * 8u; bit++) {
			make_all(net, 7, 64);
			frame[1].b[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (net == NET_IPV4 && bit / 8 - ETH_HLEN - IP4_CSUM > 1)
				resum(&frame[1]);
			assert_int_equal(run_of_all().count, 1);
		}
	}
	make_all(NET_IPV4, 7, 64);
	make(&frame[1], NET_IPV4, 7, 0, 64); /* an identification twice */
	assert_int_equal(run_of_all().count, 1);
	make(&frame[1], NET_IPV6, 8, 0, 64);
	assert_int_equal(run_of_all().count, 1);
}

/* RFC 768, RFC 8200 8.1: what CHECKSUM_PARTIAL wants there. */
static uint32_t pseudo_sum(const uint8_t *frame, unsigned net, uint32_t udp_len)
{
	unsigned from = ETH_HLEN + (net == NET_IPV4 ? IP4_SRC : IP6_SRC);
	unsigned to = HEAD(net) - UDP_HLEN;
	uint32_t sum = 17 + udp_len;

	for (unsigned i = from; i < to; i++)
		sum += i % 2 ? frame[i] : frame[i] * 256u;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return sum;
}

static void gso_write_head__lengths_and_checksums(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		uint8_t head[GSO_HEAD_MAX];
		struct gso_run r;
		uint32_t udp_len;

		make_all(net, 7, 4096);
		r = run_of_all();
		gso_write_head(&r, head);
		udp_len = r.bytes - r.head + UDP_HLEN;
		assert_int_equal(r.head, HEAD(net));
		assert_int_equal(get_be16(head + r.head - UDP_HLEN + UDP_LEN), udp_len);
		assert_int_equal(get_be16(head + r.head - UDP_HLEN + UDP_CSUM),
			pseudo_sum(head, net, udp_len));
		if (net == NET_IPV4) {
			struct frame f;

			assert_int_equal(
				get_be16(head + ETH_HLEN + IP4_TOTLEN), r.bytes - ETH_HLEN);
			memcpy(f.b, head, HEAD(net));
			resum(&f);
			assert_memory_equal(f.b, head, HEAD(net));
		} else {
			assert_int_equal(get_be16(head + ETH_HLEN + IP6_PLEN), udp_len);
		}
	}
}

/* proves IP4-17: the ICRC that was made of each frame holds for what comes out */
static void gso_split_next__gives_what_was_joined(void **state)
{
	static uint8_t whole[GSO_FRAME_MAX], out[ROOM];

	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		for (unsigned body = 0; body <= 4096; body += 512) {
			struct gso_split s;
			struct gso_run r;
			struct pkt p;

			make_all(net, 0xFFFE, body);
			if (body)
				make(&frame[5], net, 3, 0, body - 4);
			r = run_of_all();
			assert_true(gso_split_begin(
				&s, whole, join(&r, whole), gso_size(&r), sizeof(out)));
			assert_int_equal(gso_split_count(&s), r.count);
			for (unsigned i = 0; i < r.count; i++) {
				assert_int_equal(gso_split_next(&s, out), frame[i].len);
				assert_memory_equal(out, frame[i].b, frame[i].len);
				assert_int_equal(frame_parse(&p, out, frame[i].len), DROP_NONE);
				assert_true(icrc_check(icrc_by_name("table"), &p));
			}
			assert_int_equal(gso_split_count(&s), 0);
		}
	}
}

static void gso_split_begin__refuses(void **state)
{
	static uint8_t whole[GSO_FRAME_MAX];
	struct gso_split s;
	struct gso_run r;
	uint32_t len;

	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		make_all(net, 7, 200);
		r = run_of_all();
		len = join(&r, whole);
		assert_true(gso_split_begin(&s, whole, len, 216, HEAD(net) + 216));
		assert_false(gso_split_begin(&s, whole, len, 216, HEAD(net) + 215));
		assert_false(gso_split_begin(&s, whole, len, 0, ROOM));
		assert_false(gso_split_begin(&s, whole, len, 15, ROOM));
		assert_false(gso_split_begin(&s, whole, len, 0xFFFF, ROOM));
		assert_false(gso_split_begin(&s, whole, len, 100, ROOM)); /* 138 parts */
		assert_true(gso_split_begin(&s, whole, len, 108, ROOM));  /* 128 */
		assert_false(gso_split_begin(&s, whole, len - 1, 216, ROOM));
		assert_false(gso_split_begin(&s, whole, len + 1, 216, ROOM));
		whole[ETH_HLEN + (net == NET_IPV4 ? IP4_CSUM : IP6_NXT)] ^= 1;
		assert_false(gso_split_begin(&s, whole, len, 216, ROOM));
	}
}

/* The IP length can say no more. */
static void gso_split_begin__the_longest(void **state)
{
	static uint8_t whole[GSO_FRAME_MAX], out[ROOM];

	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		struct gso_split s;
		struct gso_run r;

		make(&frame[0], net, 7, 0, 1000);
		assert_true(gso_begin(&r, frame[0].b, frame[0].len));
		r.bytes = ETH_HLEN + UINT16_MAX + (net == NET_IPV6 ? IP6_HLEN : 0);
		gso_write_head(&r, whole);
		assert_true(gso_split_begin(&s, whole, r.bytes, gso_size(&r), sizeof(out)));
		assert_int_equal(gso_split_count(&s), 65);
		while (gso_split_count(&s))
			assert_in_range(gso_split_next(&s, out), r.head + 1u, r.first_len);
	}
}

/* Any bytes, any lengths: nothing beyond the frame is read, nothing beyond the room written. proves
 * SEC-01 */
static void gso_split__hostile_frames(void **state)
{
	static uint8_t whole[GSO_FRAME_MAX];
	struct guard in = guard_map(sizeof(whole));
	struct guard out = guard_map(ROOM);
	struct random random = {77};
	unsigned accepted = 0;
	unsigned net;

	for (unsigned i = 0; i < 20000; i++) {
		uint32_t body = (uint32_t)(random_next(&random) % 64);
		uint16_t size = (uint16_t)(random_next(&random) % 200);
		struct gso_split s;
		struct gso_run r;
		uint32_t len;

		if (i % 16 == 0) {
			net = (unsigned)(i / 16 % 2);
			make_all(net, 7, body);
		}
		r = run_of_all();
		len = join(&r, whole);
		if (i % 4 < 2)
			whole[random_next(&random) % GSO_HEAD_MAX] ^= (uint8_t)random_next(&random);
		if (i % 8 < 4)
			len = (uint32_t)(random_next(&random) % (len + 1));
		memcpy(in.end - len, whole, len);
		if (gso_split_begin(&s, in.end - len, len, size, 200)) {
			accepted++;
			while (gso_split_count(&s))
				assert_in_range(gso_split_next(&s, out.end - 200), 42 + 1, 200);
		}
	}
	guard_unmap(&in);
	guard_unmap(&out);
	assert_in_range(accepted, 1000, 19000); /* or there is nothing to test */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gso_begin__takes_what_a_worker_sends),
		cmocka_unit_test(gso_begin__what_is_wrong_goes_singly),
		cmocka_unit_test(gso_begin__reads_no_further_than_the_frame),
		cmocka_unit_test(gso_add__a_run),
		cmocka_unit_test(gso_add__eight_of_path_mtu_4096_are_full),
		cmocka_unit_test(gso_add__a_shorter_one_is_the_last),
		cmocka_unit_test(gso_add__any_other_header),
		cmocka_unit_test(gso_write_head__lengths_and_checksums),
		cmocka_unit_test(gso_split_next__gives_what_was_joined),
		cmocka_unit_test(gso_split_begin__refuses),
		cmocka_unit_test(gso_split_begin__the_longest),
		cmocka_unit_test(gso_split__hostile_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
