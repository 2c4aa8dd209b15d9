/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Most bits of the headers that the peer of a QP sends are known in advance, and are compared as
 * one block: if they are equal, the rules of frame_parse() and of classify.c about them hold, and
 * only the rest is checked, which varies: lengths, IPv4 checksum, MAC. Nothing is dropped here:
 * frame_parse() decides about all frames that differ.
 */
#include "expect.h"
#include "frame_fields.h"
#include "pkt.h"

/* Indexes of struct expect.byte. */
#define IN_ETH(field) (ETH_##field - EXPECT_AT)
#define IN_IP4(field) (ETH_HLEN + IP4_##field - EXPECT_AT)
#define IN_UDP(field) (ETH_HLEN + IP4_HLEN + UDP_##field - EXPECT_AT)
#define IN_BTH(field) (ETH_HLEN + IP4_HLEN + UDP_HLEN + BTH_##field - EXPECT_AT)

_Static_assert(IN_BTH(DESTQP) + 3 <= EXPECT_LEN, "the DestQP is compared");

#define ALL_OF_2(at) [at] = 0xFF, [(at) + 1] = 0xFF
#define ALL_OF_3(at) ALL_OF_2(at), [(at) + 2] = 0xFF
#define ALL_OF_4(at) ALL_OF_2(at), ALL_OF_2((at) + 2)

/* The bits that are compared, and which rules hold because they are equal. */
static const union {
	uint8_t byte[EXPECT_LEN];
	expect_piece piece[EXPECT_LEN / sizeof(expect_piece)];
} compared = {{
	/* IPv4 without a tag: ETH-01, ETH-02, ETH-03, and the protocol of VAL-13 */
	ALL_OF_2(IN_ETH(TYPE)),
	/* CA17-27, IP4-03, CA17-3, IP4-02 */
	[IN_IP4(VIHL)] = 0xFF,
	/* TOS may be any; a mark in it is the notification point's (CNP-01). Total Length:
	 * lengths_fit(). Identification may be any. */
	/* CA17-7, CA17-8, IP4-10, IP4-11 */
	ALL_OF_2(IN_IP4(FRAG)),
	/* Routers change the TTL (IP4-19). CA17-10, IP4-13: */
	[IN_IP4(PROTO)] = 0xFF,
	/* Checksum: sum_is_good(). VAL-12, SEC-03, and VAL-11 and VAL-15, since a path has neither
	 * a multicast source nor a destination that is not ours: */
	ALL_OF_4(IN_IP4(SRC)),
	ALL_OF_4(IN_IP4(DST)),
	/* The source port may be any (UDP-09). CA17-20, UDP-02: */
	ALL_OF_2(IN_UDP(DPORT)),
	/* Length: lengths_fit(). The checksum is ignored (UDP-06). VAL-04, VAL-21: */
	[IN_BTH(OPCODE)] = OPC_CLASS_MASK,
	/* SE and MigReq may be any. PadCnt: lengths_fit(). BTH-02: */
	[IN_BTH(FLAGS)] = BTH_TVER_MASK,
	/* VAL-08, VAL-09 */
	ALL_OF_2(IN_BTH(PKEY)),
	/* FECN, BECN and what is reserved are ignored (BTH-03, BTH-04). VAL-03: */
	ALL_OF_3(IN_BTH(DESTQP)),
}};

static uint16_t word16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

void expect_set(struct expect *e, const struct expect_spec *s)
{
	memset(e, 0, sizeof(*e));
	put_be16(e->byte + IN_ETH(TYPE), ETHERTYPE_IPV4);
	e->byte[IN_IP4(VIHL)] = 0x45;
	put_be16(e->byte + IN_IP4(FRAG), IP4_FLAG_DF);
	e->byte[IN_IP4(PROTO)] = IPPROTO_ROCEV2;
	memcpy(e->byte + IN_IP4(SRC), s->src_ip, 4);
	memcpy(e->byte + IN_IP4(DST), s->dst_ip, 4);
	put_be16(e->byte + IN_UDP(DPORT), UDP_PORT_ROCEV2);
	e->byte[IN_BTH(OPCODE)] = s->opc;
	put_be16(e->byte + IN_BTH(PKEY), s->pkey);
	put_be32(e->byte + IN_BTH(RESV8A), s->dest_qp);
	for (unsigned at = IP4_FRAG; at < IP4_HLEN; at += at == IP4_FRAG ? 6 : 2)
		e->sum += word16(e->byte + ETH_HLEN - EXPECT_AT + at);
	e->mac = s->mac;
	e->pkey = s->pkey;
	e->port = s->port;
}

/* One compare for each packet. Where other frames have UDP's destination port is a part of an
 * address, or anything: hardly ever this number. */
bool expect_may(const uint8_t *frame)
{
	return get_be16(frame + ETH_HLEN + IP4_HLEN + UDP_DPORT) == UDP_PORT_ROCEV2;
}

uint32_t expect_qpn(const uint8_t *frame)
{
	return get_be32(frame + ETH_HLEN + IP4_HLEN + UDP_HLEN + BTH_RESV8A) & 0xFFFFFF;
}

const struct opcode *expect_opcode(const uint8_t *frame)
{
	return opcode_row(frame[ETH_HLEN + IP4_HLEN + UDP_HLEN + BTH_OPCODE]);
}

typedef expect_piece piece_unaligned __attribute__((aligned(1)));

/* ETH-10: the port's MAC as it is now, whatever it was when the QP was connected. */
FLAT bool to_mac(const uint8_t *frame, const struct expect *e)
{
	uint64_t is;

	memcpy(&is, frame + ETH_DST, sizeof(is));
	return !((is ^ atomic_load_explicit(e->mac, memory_order_relaxed)) << 16);
}

FLAT bool same_headers(const uint8_t *frame, const struct expect *e)
{
	const piece_unaligned *is = (const piece_unaligned *)(frame + EXPECT_AT);
	expect_piece diff = (is[0] ^ e->piece[0]) & compared.piece[0];

	_Static_assert(EXPECT_LEN == 3 * sizeof(expect_piece), "three pieces");
	diff |= (is[1] ^ e->piece[1]) & compared.piece[1];
	diff |= (is[2] ^ e->piece[2]) & compared.piece[2];
	return !(diff[0] | diff[1]);
}

/* As ip4_checksum(), given the sum of the fields that are equal. */
FLAT bool sum_is_good(const uint8_t *ip, const struct expect *e)
{
	uint32_t a;
	uint16_t b;
	uint32_t c;

	memcpy(&a, ip, sizeof(a));
	memcpy(&b, ip + IP4_ID, sizeof(b));
	memcpy(&c, ip + IP4_TTL, sizeof(c));
	return ip4_sum_is_good((uint64_t)e->sum + a + b + c);
}

/* The lengths, which frame_parse() checks one by one: ip4_total_length(), udp_length(),
 * bth_short(), bth_align(), header_short(), bth_pad(). Headers are whole words, and `room` is the
 * number of bytes left for payload and pad; it is negative if the headers do not fit.
 * @param l3_len  Total Length */
FLAT bool lengths_fit(
	const uint8_t *ip, int l3_len, size_t len, const struct opcode *op, int room, int pad)
{
	if (unlikely((size_t)l3_len > len || l3_len % 4 ||
		     get_be16(ip + IP4_HLEN + UDP_LEN) != l3_len - IP4_HLEN))
		return false;
	return likely(op->payload) ? room >= pad : !(room | pad);
}

bool frame_expected(struct pkt *restrict p, const uint8_t *restrict frame, size_t len,
	const struct expect *restrict e)
{
	const uint8_t *ip = frame + ETH_HLEN;
	const uint8_t *bth = ip + IP4_HLEN + UDP_HLEN;
	const struct opcode *op = opcode_row(bth[BTH_OPCODE]);
	unsigned flags = bth[BTH_FLAGS];
	int hdr_len = op->hdr_len;
	int pad = (flags & BTH_PAD_MASK) >> BTH_PAD_SHIFT;
	int l3_len = get_be16(ip + IP4_TOTLEN);
	int room = l3_len - IP4_HLEN - UDP_HLEN - hdr_len - ICRC_LEN;
	uint32_t psn = get_be32(bth + BTH_ACKREQ);

	if (unlikely(p->port != e->port || !to_mac(frame, e) || !same_headers(frame, e) ||
		     !sum_is_good(ip, e)))
		return false;
	if (unlikely(!lengths_fit(ip, l3_len, len - ETH_HLEN, op, room, pad)))
		return false;
	p->op = op;
	p->dmac = frame + ETH_DST;
	p->l3 = ip;
	p->bth = bth;
	p->payload = bth + hdr_len;
	p->expected = e;
	p->icrc_off = (uint32_t)(l3_len - ICRC_LEN);
	p->payload_len = (uint16_t)(room - pad);
	p->net = NET_IPV4;
	p->pcp = 0;
	p->vid = 0;
	p->named = PKT_WHOLE;
	p->tclass = ip[IP4_TOS];
	p->pkey = e->pkey;
	p->dest_qp = expect_qpn(frame);
	bth_flags(p, flags);
	p->ackreq = (int32_t)psn < 0;
	p->psn = psn & 0xFFFFFF;
	if (hdr_len != BTH_HLEN)
		eth_fields(p, op, bth + BTH_HLEN);
	return true;
}
