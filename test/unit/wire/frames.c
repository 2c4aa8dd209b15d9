/* SPDX-License-Identifier: BSD-3-Clause */
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

void frame_ip4_sum(struct frame *f)
{
	uint8_t *ip = f->b + f->l3;
	uint32_t sum = 0;

	put_be16(ip + IP4_CSUM, 0);
	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(ip + i);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	put_be16(ip + IP4_CSUM, (uint16_t)~sum);
}

static void put_ip4(struct frame *f, size_t l4_len)
{
	uint8_t *ip = f->b + f->l3;

	ip[IP4_VIHL] = 0x45;
	ip[IP4_TOS] = 0x68;
	put_be16(ip + IP4_TOTLEN, (uint16_t)(IP4_HLEN + l4_len));
	put_be16(ip + IP4_FRAG, IP4_FLAG_DF);
	ip[IP4_TTL] = 1;
	ip[IP4_PROTO] = IPPROTO_ROCEV2;
	memcpy(ip + IP4_SRC, "\xc0\x00\x02\x0a", 4);
	memcpy(ip + IP4_DST, "\xc0\x00\x02\x0b", 4);
	frame_ip4_sum(f);
}

static void put_ip6(struct frame *f, size_t l4_len)
{
	uint8_t *ip = f->b + f->l3;

	put_be32(ip + IP6_VTCFL, 6u << 28 | 0x68u << 20 | 0x12345);
	put_be16(ip + IP6_PLEN, (uint16_t)l4_len);
	ip[IP6_NXT] = f->net == NET_IPV6 ? IPPROTO_ROCEV2 : GRH_NXT_IBA;
	ip[IP6_HLIM] = 64;
	for (uint8_t i = 0; i < 32; i++)
		ip[IP6_SRC + i] = i;
}

static void put_udp(struct frame *f, size_t l4_len)
{
	uint8_t *udp = f->b + f->udp;

	put_be16(udp + UDP_SPORT, 0xC123);
	put_be16(udp + UDP_DPORT, UDP_PORT_ROCEV2);
	put_be16(udp + UDP_LEN, (uint16_t)l4_len);
}

struct frame frame_of(unsigned net, uint8_t opcode, size_t tail)
{
	static const uint16_t types[] = {ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROCEV1};
	struct frame f = {.net = net, .l3 = ETH_HLEN};
	size_t ip_len = net == NET_IPV4 ? IP4_HLEN : IP6_HLEN;
	size_t udp_len = net == NET_ROCEV1 ? 0 : UDP_HLEN;
	size_t l4_len = udp_len + BTH_HLEN + tail + ICRC_LEN;

	f.udp = udp_len ? f.l3 + ip_len : 0;
	f.bth = f.l3 + ip_len + udp_len;
	f.len = f.bth + BTH_HLEN + tail + ICRC_LEN;
	assert_true(f.len <= sizeof(f.b));
	memset(f.b, 2, ETH_TYPE);
	put_be16(f.b + ETH_TYPE, types[net]);
	if (net == NET_IPV4)
		put_ip4(&f, l4_len);
	else
		put_ip6(&f, l4_len);
	if (udp_len)
		put_udp(&f, l4_len);
	f.b[f.bth + BTH_OPCODE] = opcode;
	put_be16(f.b + f.bth + BTH_PKEY, 0xFFFF);
	put_be32(f.b + f.bth + BTH_RESV8A, 0x00000011);
	put_be32(f.b + f.bth + BTH_ACKREQ, 0x80FFFFFE);
	for (size_t i = 0; i < tail; i++)
		f.b[f.bth + BTH_HLEN + i] = (uint8_t)(i + 1);
	icrc_store(f.b + f.len - ICRC_LEN,
		icrc_header(icrc_by_name("table"), f.b + f.l3, net, f.len - f.l3 - ICRC_LEN));
	return f;
}

void frame_tag(struct frame *f, uint16_t tpid, uint16_t tci)
{
	memmove(f->b + ETH_TYPE + VLAN_HLEN, f->b + ETH_TYPE, f->len - ETH_TYPE);
	put_be16(f->b + ETH_TYPE, tpid);
	put_be16(f->b + ETH_TYPE + 2, tci);
	f->len += VLAN_HLEN;
	f->l3 += VLAN_HLEN;
	f->bth += VLAN_HLEN;
	if (f->udp)
		f->udp += VLAN_HLEN;
}

void frame_set_l4_len(struct frame *f, uint16_t l4_len)
{
	if (f->net == NET_IPV4) {
		put_be16(f->b + f->l3 + IP4_TOTLEN, (uint16_t)(IP4_HLEN + l4_len));
		frame_ip4_sum(f);
	} else {
		put_be16(f->b + f->l3 + IP6_PLEN, l4_len);
	}
	if (f->udp)
		put_be16(f->b + f->udp + UDP_LEN, l4_len);
}

enum drop frame_parse_at_edge(const uint8_t *frame, size_t len)
{
	static struct guard g;
	uint8_t *at;
	uint8_t gid[16];
	struct pkt p;
	enum drop d;

	if (!g.begin)
		g = guard_map(FRAMES_EDGE_MAX);
	at = g.end - len;
	memcpy(at, frame, len);
	(void)frame_is_roce(at, len);
	d = frame_parse(&p, at, len);
	assert_non_null(drop_name(d));
	if (d)
		return d;
	assert_true(p.bth > p.l3 && p.payload >= p.bth + BTH_HLEN);
	assert_true(p.payload + p.payload_len + ICRC_LEN <= g.end);
	assert_true(p.payload + p.payload_len <= p.l3 + p.icrc_off);
	assert_true(p.l3 + p.icrc_off + ICRC_LEN <= g.end);
	frame_gids(&p, gid, gid);
	(void)icrc_check(icrc_best(), &p);
	return DROP_NONE;
}
