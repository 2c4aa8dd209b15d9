/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums and segments that the kernel leaves to the netdev, and segments put together for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/virtio_net.h>
#include "bits.h"
#include "cut.h"
#include "encap.h"
#include "inet.h"
#include "merge.h"

#define ROOM 4400u
#define MTU  2044u
#define SIZE 20000u

enum {
	FLAGS_DATA = TCP_ACK,
	TCP_SYN = 2,
	TCP_URG = 32,
	TCP_ECE = 64,
};

static uint8_t big[SIZE + 200];
static uint8_t piece[MERGE_MAX + 1][ROOM];

static uint32_t l4_of(bool v6)
{
	return ETHER_HLEN + (v6 ? IP6_HLEN : IP4_HLEN);
}

/* The checksums of a frame, computed octet by octet. */
static uint16_t slow_sum(const uint8_t *p, uint32_t len, uint32_t start)
{
	uint32_t sum = start;

	for (uint32_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

static bool tcp_right(const uint8_t *f, uint32_t len, bool v6)
{
	uint32_t l4 = l4_of(v6), n = len - l4;
	const uint8_t *ip = f + ETHER_HLEN;
	uint16_t pseudo = slow_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, 6 + n);

	return slow_sum(f + l4, n, pseudo) == 0xFFFF;
}

/* A frame with 12 octets of TCP options, whose payload counts up; its TCP checksum is right. */
static uint32_t make(uint8_t *f, bool v6, uint32_t seq, uint32_t payload, uint8_t flags)
{
	uint32_t l4 = l4_of(v6), len = l4 + 32 + payload;
	uint8_t *ip = f + ETHER_HLEN, *tcp = f + l4;

	memset(f, 0, l4 + 32);
	memset(f, 2, 12);
	put_be16(f + ETHER_TYPE, v6 ? IPOIB_IP6 : IPOIB_IP4);
	ip[0] = v6 ? 0x60 : 0x45;
	ip[v6 ? IP6_NEXT : IP4_PROTOCOL] = 6;
	if (v6) {
		put_be16(ip + IP6_PLEN, (uint16_t)(len - l4));
	} else {
		put_be16(ip + IP4_LEN, (uint16_t)(len - ETHER_HLEN));
		put_be16(ip + IP4_ID, 0xFFFE);
		put_be16(ip + IP4_FRAGMENT, 0x4000);
		put_be16(ip + IP4_SUM, (uint16_t)~slow_sum(ip, 20, 0));
	}
	put_be32(tcp + TCP_SEQ, seq);
	tcp[TCP_OFFSET] = 0x80;
	tcp[TCP_FLAGS] = flags;
	for (uint32_t i = 0; i < payload; i++)
		tcp[32 + i] = (uint8_t)((seq + i) * 7);
	put_be16(tcp + TCP_SUM, (uint16_t)~slow_sum(tcp, len - l4,
					slow_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, 6 + len - l4)));
	return len;
}

/* As the kernel leaves it to the netdev: with the sum of the pseudo-header for a checksum. */
static uint32_t make_partial(uint8_t *f, bool v6, uint32_t seq, uint32_t payload, uint8_t flags)
{
	uint32_t len = make(f, v6, seq, payload, flags), l4 = l4_of(v6);
	const uint8_t *ip = f + ETHER_HLEN;

	put_be16(f + l4 + TCP_SUM, slow_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, 6 + len - l4));
	return len;
}

static struct virtio_net_hdr segments(bool v6, uint16_t size)
{
	return (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
		.gso_size = size,
		.csum_start = (uint16_t)l4_of(v6),
		.csum_offset = TCP_SUM};
}

static void cut_into(bool v6, uint16_t size, uint32_t mtu, uint32_t expect)
{
	uint32_t len =
		make_partial(big, v6, 0xFFFFFF00, SIZE, FLAGS_DATA | TCP_PSH | TCP_FIN | TCP_CWR);
	struct virtio_net_hdr h = segments(v6, size);
	uint32_t l4 = l4_of(v6), at = 0, i = 0, n;
	uint8_t f[ROOM];
	struct cut c;

	h.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	assert_true(cut_begin(&c, &h, big, len, mtu));
	while ((n = cut_next(&c, f, sizeof(f))) != 0) {
		uint32_t payload = n - l4 - 32;
		uint8_t flags = FLAGS_DATA | (at ? 0 : TCP_CWR) |
				(at + payload == SIZE ? TCP_PSH | TCP_FIN : 0);

		assert_true(n - ETHER_HLEN <= mtu);
		assert_true(payload == expect || at + payload == SIZE);
		assert_true(tcp_right(f, n, v6));
		assert_int_equal(get_be32(f + l4 + TCP_SEQ), 0xFFFFFF00 + at);
		assert_int_equal(f[l4 + TCP_FLAGS], flags);
		assert_memory_equal(f + l4 + 32, big + l4 + 32 + at, payload);
		if (v6) {
			assert_int_equal(get_be16(f + ETHER_HLEN + IP6_PLEN), n - l4);
		} else {
			assert_int_equal(get_be16(f + ETHER_HLEN + IP4_LEN), n - ETHER_HLEN);
			assert_int_equal(get_be16(f + ETHER_HLEN + IP4_ID), (0xFFFE + i) & 0xFFFF);
			assert_int_equal(slow_sum(f + ETHER_HLEN, 20, 0), 0xFFFF);
		}
		at += payload;
		i++;
	}
	assert_true(c.done);
	assert_int_equal(at, SIZE);
}

static void cut__segments(void **state)
{
	cut_into(false, 1992, MTU, 1992);
	cut_into(true, 1000, MTU, 1000);
	cut_into(false, SIZE, 4092, 4040);
}

/* The kernel's MTU may be larger than the link's. */
static void cut__to_the_mtu_of_the_link(void **state)
{
	cut_into(false, 4000, MTU, MTU - 52);
	cut_into(true, 4000, MTU, MTU - 72);
}

#define ROUTE 24u /* octets of a routing header with one address */

/* The IP header names the next hop, the checksum covers the last (RFC 8200 8.1). */
static void cut__source_route(void **state)
{
	static const uint8_t last[16] = {0xFD, 2, [15] = 9};
	const uint32_t l4 = l4_of(true) + ROUTE, len = l4 + TCP_HLEN + SIZE / 2;
	struct virtio_net_hdr h = segments(true, 1000);
	uint8_t f[ROOM], pseudo[32] = {0}, *ip = big + ETHER_HLEN;
	uint32_t n, sent = 0;
	struct cut c;

	make(big, true, 1, SIZE / 2, FLAGS_DATA);
	memset(ip + IP6_HLEN, 0, ROUTE + TCP_HLEN);
	ip[IP6_NEXT] = 43;
	ip[IP6_DST] = 0xFE;
	ip[IP6_HLEN] = 6;
	ip[IP6_HLEN + 1] = ROUTE / 8 - 1;
	ip[IP6_HLEN + 3] = 1;
	memcpy(ip + IP6_HLEN + 8, last, sizeof(last));
	big[l4 + TCP_OFFSET] = 0x50;
	memcpy(pseudo + 16, last, sizeof(last));
	put_be16(big + l4 + TCP_SUM, slow_sum(pseudo, sizeof(pseudo), 6 + len - l4));
	h.csum_start = (uint16_t)l4;
	assert_true(cut_begin(&c, &h, big, len, MTU));
	for (; (n = cut_next(&c, f, sizeof(f))) != 0; sent++)
		assert_int_equal(
			slow_sum(f + l4, n - l4, slow_sum(pseudo, sizeof(pseudo), 6 + n - l4)),
			0xFFFF);
	assert_int_equal(sent, SIZE / 2 / 1000);
}

static void cut__nothing_left_for_payload(void **state)
{
	uint32_t len = make(big, false, 1, SIZE, FLAGS_DATA);
	struct virtio_net_hdr h = segments(false, 1000);
	struct cut c;

	assert_false(cut_begin(&c, &h, big, len, 52));
	assert_true(cut_begin(&c, &h, big, len, 53));
}

static void cut__checksum_only(void **state)
{
	uint32_t len = make_partial(big, false, 1, 333, FLAGS_DATA), l4 = l4_of(false);
	struct virtio_net_hdr h = segments(false, 0);
	uint8_t f[ROOM];
	struct cut c;

	h.gso_type = VIRTIO_NET_HDR_GSO_NONE;
	assert_true(cut_begin(&c, &h, big, len, MTU));
	assert_int_equal(cut_next(&c, f, sizeof(f)), len);
	assert_true(tcp_right(f, len, false));
	assert_int_equal(cut_next(&c, f, sizeof(f)), 0);
	h.flags = 0;
	big[l4 + TCP_SUM] ^= 1;
	assert_true(cut_begin(&c, &h, big, len, MTU));
	assert_int_equal(cut_next(&c, f, sizeof(f)), len);
	assert_memory_equal(f, big, len);
}

/* In UDP a checksum of 0 means none. */
static void cut__checksum_of_zero(void **state)
{
	struct virtio_net_hdr h = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 34, .csum_offset = 6};
	uint8_t frame[64] = {[34] = 0xFF, 0xFF};
	struct cut c;

	assert_true(cut_begin(&c, &h, frame, sizeof(frame), MTU));
	assert_int_equal(get_be16(frame + 40), 0xFFFF);
}

static void cut__longer_than_its_room(void **state)
{
	struct virtio_net_hdr h = {0};
	uint8_t f[100];
	struct cut c;

	assert_true(cut_begin(&c, &h, big, sizeof(f) + 1, MTU));
	assert_int_equal(cut_next(&c, f, sizeof(f)), 0);
	assert_false(c.done);
}

static void cut__refuses(void **state)
{
	const uint32_t l4 = l4_of(false);
	struct virtio_net_hdr good = segments(false, 1000), h;
	uint32_t len = make(big, false, 1, 3000, FLAGS_DATA);
	struct cut c;

	assert_true(cut_begin(&c, &good, big, len, MTU));
	assert_false(cut_begin(&c, &good, big, ETHER_HLEN - 1, MTU));
	assert_false(cut_begin(&c, &good, big, l4 + 32, MTU)); /* no payload */
	assert_false(cut_begin(&c, &good, big, l4 + 19, MTU));
	for (unsigned i = 0; i < 6; i++) {
		h = good;
		if (i == 0)
			h.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
		else if (i == 1)
			h.gso_type = VIRTIO_NET_HDR_GSO_UDP;
		else if (i == 2)
			h.gso_size = 0;
		else if (i == 3)
			h.csum_start = (uint16_t)(l4 - 1);
		else if (i == 4)
			h.csum_start = 65535;
		else
			h.csum_start = (uint16_t)(l4 + 4);
		assert_false(cut_begin(&c, &h, big, len, MTU));
	}
	h = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = (uint16_t)(len - 17),
		.csum_offset = 16};
	assert_false(cut_begin(&c, &h, big, len, MTU));
	h.csum_start--;
	assert_true(cut_begin(&c, &h, big, len, MTU));
	h = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 13, .csum_offset = 2};
	assert_false(cut_begin(&c, &h, big, len, MTU));
	for (unsigned i = 0; i < 5; i++) {
		static const struct {
			uint32_t at;
			uint8_t value;
		} bad[] = {{ETHER_TYPE, 0x86}, {ETHER_HLEN, 0x65}, {ETHER_HLEN, 0x46},
			{ETHER_HLEN + IP4_PROTOCOL, 17}, {ETHER_HLEN + IP4_FRAGMENT, 0x20}};
		uint8_t was = big[bad[i].at];

		big[bad[i].at] = bad[i].value;
		assert_false(cut_begin(&c, &good, big, len, MTU));
		big[bad[i].at] = was;
	}
	big[l4 + TCP_OFFSET] = 0x40;
	assert_false(cut_begin(&c, &good, big, len, MTU));
}

/* A frame that was cut is put together as it was, and the kernel could cut it again. */
static void merge_all(bool v6)
{
	uint32_t len = make_partial(big, v6, 5, SIZE, FLAGS_DATA | TCP_PSH), l4 = l4_of(v6), at = 0,
		 n, i = 0;
	struct virtio_net_hdr h = segments(v6, 1900);
	static uint8_t whole[SIZE + 200];
	struct merge m = {0};
	struct cut c;

	assert_true(cut_begin(&c, &h, big, len, MTU));
	for (; (n = cut_next(&c, piece[i], ROOM)) != 0; i++)
		assert_true(merge_take(&m, piece[i], n));
	assert_int_equal(m.n, i);
	assert_true(m.closed);
	merge_finish(&m, &h);
	for (i = 0; i < m.n; i++) {
		memcpy(whole + at, m.piece[i].at, m.piece[i].len);
		at += m.piece[i].len;
	}
	assert_int_equal(at, len);
	assert_int_equal(h.gso_size, 1900);
	assert_int_equal(h.hdr_len, l4 + 32);
	h.gso_type = VIRTIO_NET_HDR_GSO_NONE; /* and the checksum is what its header says */
	assert_true(cut_begin(&c, &h, whole, len, MTU));
	assert_true(tcp_right(whole, len, v6));
	make(big, v6, 5, SIZE, FLAGS_DATA | TCP_PSH);
	assert_memory_equal(whole, big, len);
}

static void merge__what_was_cut(void **state)
{
	merge_all(false);
	merge_all(true);
}

static void merge__one_alone(void **state)
{
	struct merge m = {0};
	struct virtio_net_hdr h;
	uint8_t before[ROOM];
	uint32_t len = make(piece[0], false, 1, 1000, FLAGS_DATA);

	memcpy(before, piece[0], len);
	assert_true(merge_take(&m, piece[0], len));
	merge_finish(&m, &h);
	assert_memory_equal(before, piece[0], len);
	assert_int_equal(h.flags, VIRTIO_NET_HDR_F_DATA_VALID);
	assert_int_equal(h.gso_type, VIRTIO_NET_HDR_GSO_NONE);
}

/* Anything but data, or with a wrong checksum, goes to the kernel as it is. */
static void merge__refuses(void **state)
{
	static const uint8_t flags[] = {0, TCP_ACK | TCP_FIN, TCP_ACK | TCP_SYN, TCP_ACK | 4,
		TCP_ACK | TCP_URG, TCP_ACK | TCP_ECE, TCP_ACK | TCP_CWR};
	const uint32_t l4 = l4_of(false);
	struct merge m = {0};
	uint32_t len;

	for (unsigned i = 0; i < ARRAY_SIZE(flags); i++)
		assert_false(merge_take(&m, piece[0], make(piece[0], i & 1, 1, 1000, flags[i])));
	assert_false(merge_take(&m, piece[0], make(piece[0], false, 1, 0, FLAGS_DATA)));
	for (uint32_t at = ETHER_TYPE; at < l4 + 40; at++) { /* any bit of the heads */
		len = make(piece[0], false, 1, 1000, FLAGS_DATA);
		piece[0][at] ^= 0x40;
		assert_false(merge_take(&m, piece[0], len));
	}
	len = make(piece[0], true, 1, 1000, FLAGS_DATA);
	piece[0][len - 1] ^= 1;
	assert_false(merge_take(&m, piece[0], len));
	len = make(piece[0], false, 1, 1000, FLAGS_DATA);
	assert_false(merge_take(&m, piece[0], len + 1)); /* padding */
	assert_false(merge_take(&m, piece[0], len - 1));
	for (uint32_t n = 0; n < l4 + 33; n++)
		assert_false(merge_take(&m, piece[0], n));
	assert_int_equal(m.n, 0);
}

static bool second(
	struct merge *m, void (*change)(uint8_t *ip, uint8_t *tcp), uint32_t seq, uint32_t payload)
{
	uint32_t l4 = l4_of(false), len;
	uint8_t *ip = piece[1] + ETHER_HLEN, *tcp = piece[1] + l4;

	m->n = 0;
	assert_true(merge_take(m, piece[0], make(piece[0], false, 1, 1000, FLAGS_DATA)));
	len = make(piece[1], false, seq, payload, FLAGS_DATA);
	if (change) {
		change(ip, tcp);
		put_be16(ip + IP4_SUM, 0);
		put_be16(ip + IP4_SUM, (uint16_t)~slow_sum(ip, 20, 0));
		put_be16(tcp + TCP_SUM, 0);
		put_be16(tcp + TCP_SUM,
			(uint16_t)~slow_sum(tcp, len - l4, slow_sum(ip + 12, 8, 6 + len - l4)));
	}
	return merge_take(m, piece[1], len);
}

static void other_source(uint8_t *ip, uint8_t *tcp)
{
	ip[IP4_SRC]++;
}

static void other_hops(uint8_t *ip, uint8_t *tcp)
{
	ip[IP4_TTL]++;
}

static void other_tos(uint8_t *ip, uint8_t *tcp)
{
	ip[1]++;
}

static void other_port(uint8_t *ip, uint8_t *tcp)
{
	tcp[1]++;
}

static void other_ack(uint8_t *ip, uint8_t *tcp)
{
	tcp[11]++;
}

static void other_window(uint8_t *ip, uint8_t *tcp)
{
	tcp[15]++;
}

static void other_option(uint8_t *ip, uint8_t *tcp)
{
	tcp[31]++;
}

static void other_mac(uint8_t *ip, uint8_t *tcp)
{
	ip[-5]++;
}

static void other_id(uint8_t *ip, uint8_t *tcp)
{
	ip[IP4_ID]++;
}

static void merge__what_follows(void **state)
{
	static void (*const other[])(uint8_t *, uint8_t *) = {other_source, other_hops, other_tos,
		other_port, other_ack, other_window, other_option, other_mac};
	struct merge m = {0};

	assert_true(second(&m, NULL, 1001, 1000));
	assert_true(second(&m, other_id, 1001, 1000)); /* means nothing with DF */
	for (unsigned i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(second(&m, other[i], 1001, 1000));
	assert_false(second(&m, NULL, 1002, 1000));
	assert_false(second(&m, NULL, 1, 1000));
	assert_false(second(&m, NULL, 1001, 1001)); /* longer than the first */
	assert_true(second(&m, NULL, 1001, 999));
	assert_false(merge_take(&m, piece[2],
		make(piece[2], false, 2000, 10, FLAGS_DATA))); /* only the last is shorter */
	m.n = 0;
	assert_true(merge_take(&m, piece[0], make(piece[0], false, 1, 1000, FLAGS_DATA | TCP_PSH)));
	assert_false(merge_take(&m, piece[1], make(piece[1], false, 1001, 1000, FLAGS_DATA)));
}

static void merge__is_bounded(void **state)
{
	struct virtio_net_hdr h;
	struct merge m = {0};
	uint32_t n = 0;

	while (merge_take(&m, piece[n], make(piece[n], true, 1 + n * 100, 100, FLAGS_DATA)))
		n++;
	assert_int_equal(n, MERGE_MAX);
	m.n = n = 0;
	while (merge_take(&m, piece[n], make(piece[n], false, 1 + n * 4000, 4000, FLAGS_DATA)))
		n++;
	assert_int_equal(n, 16);
	merge_finish(&m, &h);
	assert_int_equal(get_be16(piece[0] + ETHER_HLEN + IP4_LEN), 52 + 16 * 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut__segments),
		cmocka_unit_test(cut__to_the_mtu_of_the_link),
		cmocka_unit_test(cut__source_route),
		cmocka_unit_test(cut__nothing_left_for_payload),
		cmocka_unit_test(cut__checksum_only),
		cmocka_unit_test(cut__checksum_of_zero),
		cmocka_unit_test(cut__longer_than_its_room),
		cmocka_unit_test(cut__refuses),
		cmocka_unit_test(merge__what_was_cut),
		cmocka_unit_test(merge__one_alone),
		cmocka_unit_test(merge__refuses),
		cmocka_unit_test(merge__what_follows),
		cmocka_unit_test(merge__is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
