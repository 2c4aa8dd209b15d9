/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the outside in: Ethernet, IP or GRH, UDP, BTH, extended headers. Each rule is one function,
 * each layer lists its rules in order, and the first violated rule names the drop. A layer passes
 * its payload to the next one; Ethernet padding ends there (ETH-08, ETH-09), so all inner lengths
 * come from IP or the GRH.
 */
#include "bits.h"
#include "fast_cnp.h"
#include "frame.h"
#include "frame_fields.h"
#include "headers.h"
#include "opcode.h"

/* The part of the frame that has not been parsed yet. */
struct rest {
	const uint8_t *at;
	size_t len;
};

FLAT void skip(struct rest *r, size_t n)
{
	r->at += n;
	r->len -= n;
}

/* --- Ethernet ---------------------------------------------------------------------------- */

/* ETH-01, ETH-02, ETH-04, ICRC-09. @return the EtherType in @p type, in host order. */
FLAT enum drop eth_parse(struct pkt *p, struct rest *r, uint16_t *type)
{
	p->vid = 0;
	p->pcp = 0;
	if (unlikely(r->len < ETH_HLEN))
		return DROP_ETH_SHORT;
	p->dmac = r->at + ETH_DST;
	*type = get_be16(r->at + ETH_TYPE);
	skip(r, ETH_HLEN);
	if (*type == ETHERTYPE_VLAN) {
		uint16_t tci;

		if (unlikely(r->len < VLAN_HLEN))
			return DROP_ETH_SHORT;
		tci = get_be16(r->at);
		p->vid = tci & 0xFFF;
		p->pcp = (uint8_t)(tci >> 13);
		*type = get_be16(r->at + 2);
		skip(r, VLAN_HLEN);
	}
	/* ETH-03: an end station accepts no provider tags or double tags. */
	if (unlikely(*type == ETHERTYPE_VLAN || *type == ETHERTYPE_QINQ))
		return DROP_VLAN_STACKED;
	return DROP_NONE;
}

/* --- IPv4 -------------------------------------------------------------------------------- */

/* CA17-27, IP4-03. */
static enum drop ip4_version(const uint8_t *ip)
{
	return likely(ip[IP4_VIHL] >> 4 == 4) ? DROP_NONE : DROP_IP_VERSION;
}

/* CA17-3, IP4-02: no options. */
static enum drop ip4_ihl(const uint8_t *ip)
{
	return likely((ip[IP4_VIHL] & 0xF) * 4 == IP4_HLEN) ? DROP_NONE : DROP_IP4_IHL;
}

/* CA17-2, IP4-16, RFC 1071: the ones' complement sum of a good header is all ones, in any byte
 * order. */
static enum drop ip4_checksum(const uint8_t *ip)
{
	uint64_t a;
	uint64_t b;
	uint32_t c;
	uint64_t sum;

	memcpy(&a, ip, sizeof(a));
	memcpy(&b, ip + 8, sizeof(b));
	memcpy(&c, ip + 16, sizeof(c));
	sum = (a >> 32) + (uint32_t)a + (b >> 32) + (uint32_t)b + c;
	return likely(ip4_sum_is_good(sum)) ? DROP_NONE : DROP_IP4_CHECKSUM;
}

/* CA17-8, IP4-11: never reassemble. Checked before DF, which fragments do not have either. */
static enum drop ip4_fragment(const uint8_t *ip)
{
	return likely(!(get_be16(ip + IP4_FRAG) & (IP4_FLAG_MF | IP4_OFFSET_MASK)))
		       ? DROP_NONE
		       : DROP_IP4_FRAGMENT;
}

/* CA17-7, IP4-10: Flags must be 010. rxe does not check this; we do, with a counter (spec-errors
 * 33). */
static enum drop ip4_not_df(const uint8_t *ip)
{
	return likely((get_be16(ip + IP4_FRAG) & ~IP4_OFFSET_MASK) == IP4_FLAG_DF)
		       ? DROP_NONE
		       : DROP_IP4_NOT_DF;
}

/* CA17-6, IP4-08: Total Length covers at least UDP and fits in the frame. */
static enum drop ip4_total_length(const struct rest *r)
{
	uint16_t total = get_be16(r->at + IP4_TOTLEN);

	return likely(total >= IP4_HLEN + UDP_HLEN && total <= r->len) ? DROP_NONE : DROP_IP_LENGTH;
}

/* CA17-10, IP4-13. */
static enum drop ip4_protocol(const uint8_t *ip)
{
	return likely(ip[IP4_PROTO] == IPPROTO_ROCEV2) ? DROP_NONE : DROP_IP_NEXT_HEADER;
}

/* Only routers check the TTL (IP4-19). */
static enum drop ip4_check(const struct rest *r)
{
	const uint8_t *ip = r->at;

	if (unlikely(r->len < IP4_HLEN))
		return DROP_IP_LENGTH;
	return ip4_version(ip) ?:
		ip4_ihl(ip) ?:
		ip4_checksum(ip) ?:
		ip4_fragment(ip) ?:
		ip4_not_df(ip) ?:
		ip4_total_length(r) ?:
		ip4_protocol(ip);
}

FLAT enum drop ip4_parse(struct pkt *p, struct rest *r)
{
	enum drop d = ip4_check(r);

	if (unlikely(d))
		return d;
	p->net = NET_IPV4;
	p->tclass = r->at[IP4_TOS];
	r->len = get_be16(r->at + IP4_TOTLEN);
	skip(r, IP4_HLEN);
	return DROP_NONE;
}

/* --- IPv6, and the GRH with the same layout ----------------------------------------------- */

/* CA17-27, C9-45, IP6-01, V1-02. */
static enum drop ip6_version(const uint8_t *ip)
{
	return likely(ip[IP6_VTCFL] >> 4 == 6) ? DROP_NONE : DROP_IP_VERSION;
}

/* CA17-15, IP6-04, V1-03: Payload Length fits in the frame. The next layer checks its minimum. */
static enum drop ip6_payload_length(const struct rest *r)
{
	return likely(get_be16(r->at + IP6_PLEN) <= r->len - IP6_HLEN) ? DROP_NONE : DROP_IP_LENGTH;
}

/* IP6-12: it is 0 in a jumbogram; no RoCEv2 payload is shorter than UDP. */
static enum drop ip6_room_for_udp(const struct rest *r)
{
	return likely(get_be16(r->at + IP6_PLEN) >= UDP_HLEN) ? DROP_NONE : DROP_IP_LENGTH;
}

/* CA17-16, IP6-06: no extension headers, not even Fast CNP's Destination Options (spec-errors 36).
 */
static enum drop ip6_next_header(const uint8_t *ip)
{
	return likely(ip[IP6_NXT] == IPPROTO_ROCEV2) ? DROP_NONE : DROP_IP_NEXT_HEADER;
}

/* C9-44, V1-02. */
static enum drop grh_next_header(const uint8_t *grh)
{
	return likely(grh[IP6_NXT] == GRH_NXT_IBA) ? DROP_NONE : DROP_GRH_NEXT_HEADER;
}

/* Flow label, traffic class and hop limit may have any value (IP6-10). */
static enum drop ip6_lengths(const struct rest *r)
{
	if (unlikely(r->len < IP6_HLEN))
		return DROP_IP_LENGTH;
	return ip6_version(r->at) ?: ip6_payload_length(r) ?: ip6_room_for_udp(r);
}

static enum drop ip6_check(const struct rest *r)
{
	return ip6_lengths(r) ?: ip6_next_header(r->at);
}

static enum drop grh_check(const struct rest *r)
{
	if (unlikely(r->len < GRH_HLEN))
		return DROP_IP_LENGTH;
	return ip6_version(r->at) ?: ip6_payload_length(r) ?: grh_next_header(r->at);
}

FLAT void ip6_enter(struct pkt *p, struct rest *r, enum net_type net)
{
	p->net = (uint8_t)net;
	p->tclass = (uint8_t)(get_be16(r->at + IP6_VTCFL) >> 4);
	r->len = IP6_HLEN + get_be16(r->at + IP6_PLEN);
	skip(r, IP6_HLEN);
}

FLAT enum drop ip6_parse(struct pkt *p, struct rest *r)
{
	enum drop d = ip6_check(r);

	if (likely(!d))
		ip6_enter(p, r, NET_IPV6);
	return d;
}

FLAT enum drop grh_parse(struct pkt *p, struct rest *r)
{
	enum drop d = grh_check(r);

	if (likely(!d))
		ip6_enter(p, r, NET_ROCEV1);
	return d;
}

/* --- UDP --------------------------------------------------------------------------------- */

/* CA17-20, UDP-02. Any source port is valid (UDP-09). */
static enum drop udp_port(const struct rest *r)
{
	return likely(get_be16(r->at + UDP_DPORT) == UDP_PORT_ROCEV2) ? DROP_NONE : DROP_UDP_PORT;
}

/* CA17-21, IP4-08, IP6-04, SEC-02: the lengths of UDP and IP agree. */
static enum drop udp_length(const struct rest *r)
{
	return likely(get_be16(r->at + UDP_LEN) == r->len) ? DROP_NONE : DROP_UDP_LENGTH;
}

/* The checksum is ignored: it is usually 0, even over IPv6, and other values that some senders
 * write are no reason to drop (UDP-06, IP6-11, spec-errors 29); the ICRC protects the packet. */
FLAT enum drop udp_parse(struct rest *r)
{
	enum drop d = udp_port(r) ?: udp_length(r);

	if (likely(!d))
		skip(r, UDP_HLEN);
	return d;
}

/* --- BTH --------------------------------------------------------------------------------- */

/* VAL-18, UDP-04, V1-03: room for BTH and ICRC. */
static enum drop bth_short(const struct rest *r)
{
	return likely(r->len >= BTH_HLEN + ICRC_LEN) ? DROP_NONE : DROP_BTH_SHORT;
}

/* BTH-02. */
static enum drop bth_tver(const struct rest *r)
{
	return likely(!(r->at[BTH_FLAGS] & BTH_TVER_MASK)) ? DROP_NONE : DROP_BTH_TVER;
}

/* BTH-05: headers are words and payload is padded to words. */
static enum drop bth_align(const struct rest *r)
{
	return likely(r->len % 4 == 0) ? DROP_NONE : DROP_BTH_ALIGN;
}

/* VAL-21, CA17-28: no QP has this class. */
static enum drop opcode_class(const struct opcode *op)
{
	return likely(op->hdr_len) ? DROP_NONE : DROP_OPCODE_CLASS;
}

/* VAL-18, SEC-01: room for the opcode's headers, checked before any of them is read. */
static enum drop header_short(const struct rest *r, const struct opcode *op)
{
	return likely(r->len >= (size_t)op->hdr_len + ICRC_LEN) ? DROP_NONE : DROP_HEADER_SHORT;
}

/* BTH-06, SEC-02: not more pad than payload bytes. BTH-07: no payload bytes if the opcode has none,
 * except for the 16 reserved bytes of a CNP, which are ignored (CNP-03, spec-errors 39). */
static enum drop bth_pad(const struct rest *r, const struct opcode *op)
{
	size_t room = r->len - op->hdr_len - ICRC_LEN;
	unsigned pad = (r->at[BTH_FLAGS] & BTH_PAD_MASK) >> BTH_PAD_SHIFT;

	if (op->payload || op->kind == KIND_CNP)
		return likely(pad <= room) ? DROP_NONE : DROP_PAD;
	return likely(!(pad | room)) ? DROP_NONE : DROP_PAD;
}

FLAT enum drop bth_check(const struct rest *r)
{
	const struct opcode *op;
	enum drop d = bth_short(r) ?: bth_tver(r) ?: bth_align(r);

	if (unlikely(d))
		return d;
	op = opcode_row(r->at[BTH_OPCODE]);
	return opcode_class(op) ?: header_short(r, op) ?: bth_pad(r, op);
}

/* BTH-01. Reserved bits, FECN, BECN are ignored (BTH-03, BTH-04). */
FLAT void bth_fields(struct pkt *p, const uint8_t *bth)
{
	uint32_t psn = get_be32(bth + BTH_ACKREQ);

	bth_flags(p, bth[BTH_FLAGS]);
	p->pkey = get_be16(bth + BTH_PKEY);
	p->dest_qp = get_be32(bth + BTH_RESV8A) & 0xFFFFFF;
	p->ackreq = (int32_t)psn < 0;
	p->psn = psn & 0xFFFFFF;
}

FLAT enum drop bth_parse(struct pkt *p, const struct rest *r)
{
	const struct opcode *op;
	enum drop d = bth_check(r);

	if (unlikely(d))
		return d;
	op = opcode_row(r->at[BTH_OPCODE]);
	p->op = op;
	p->bth = r->at;
	p->expected = NULL;
	p->named = PKT_WHOLE;
	p->payload = r->at + op->hdr_len;
	bth_fields(p, r->at);
	if (op->hdr_len != BTH_HLEN)
		eth_fields(p, op, r->at + BTH_HLEN);
	p->payload_len = op->payload ? (uint16_t)(r->len - op->hdr_len - ICRC_LEN - p->pad) : 0;
	p->icrc_off = (uint32_t)(r->at + r->len - ICRC_LEN - p->l3);
	return DROP_NONE;
}

/* --- whole frames ------------------------------------------------------------------------ */

enum drop frame_parse(struct pkt *p, const uint8_t *frame, size_t len)
{
	struct rest r = {frame, len};
	uint16_t type;
	enum drop d = eth_parse(p, &r, &type);

	if (unlikely(d))
		return d;
	p->l3 = r.at;
	switch (type) {
	case ETHERTYPE_IPV4:
		return ip4_parse(p, &r) ?: udp_parse(&r) ?: bth_parse(p, &r);
	case ETHERTYPE_IPV6:
		return ip6_parse(p, &r) ?: udp_parse(&r) ?: bth_parse(p, &r);
	case ETHERTYPE_ROCEV1:
		return grh_parse(p, &r) ?: bth_parse(p, &r);
	default:
		return DROP_NOT_ROCE;
	}
}

/* FCN-03: one Destination Options header between IPv6 and UDP, and a CNP after them. */
enum drop fast_cnp_parse(struct pkt *p, struct fast_cnp *f, const uint8_t *frame, size_t len,
	const uint8_t types[FAST_CNP_OPTIONS])
{
	struct rest r = {frame, len};
	uint16_t type;
	size_t options = 0;
	enum drop d = eth_parse(p, &r, &type);

	if (d)
		return d;
	if (type != ETHERTYPE_IPV6)
		return DROP_NOT_ROCE; /* FCN-02 */
	p->l3 = r.at;
	d = ip6_lengths(&r);
	if (!d && r.at[IP6_NXT] != IP6_NXT_DSTOPTS)
		d = DROP_IP_NEXT_HEADER;
	if (d)
		return d;
	ip6_enter(p, &r, NET_IPV6);
	d = fast_cnp_options(f, r.at, r.len, types, &options);
	if (d)
		return d;
	skip(&r, options);
	if (r.len < UDP_HLEN)
		return DROP_FAST_CNP_HEADER;
	d = udp_parse(&r) ?: bth_parse(p, &r);
	if (d)
		return d;
	return p->op->kind == KIND_CNP ? DROP_NONE : DROP_FAST_CNP_OPCODE;
}

/* @return the offset of UDP after the IP header at @p r, or 0 for another protocol or a later
 * fragment, which has no UDP header. */
static size_t udp_offset(const struct rest *r, uint16_t type)
{
	const uint8_t *ip = r->at;

	if (type == ETHERTYPE_IPV4 && r->len >= IP4_HLEN && ip[IP4_PROTO] == IPPROTO_ROCEV2 &&
		!(get_be16(ip + IP4_FRAG) & IP4_OFFSET_MASK))
		return (ip[IP4_VIHL] & 0xFu) * 4;
	if (type == ETHERTYPE_IPV6 && r->len >= IP6_HLEN && ip[IP6_NXT] == IPPROTO_ROCEV2)
		return IP6_HLEN;
	return 0;
}

bool frame_is_roce(const uint8_t *frame, size_t len)
{
	struct rest r = {frame, len};
	struct pkt tag;
	uint16_t type;
	size_t udp;

	if (eth_parse(&tag, &r, &type))
		return false;
	if (type == ETHERTYPE_ROCEV1)
		return true;
	udp = udp_offset(&r, type);
	return udp && r.len >= udp + UDP_DPORT + 2 &&
	       get_be16(r.at + udp + UDP_DPORT) == UDP_PORT_ROCEV2;
}

bool frame_is_fast_cnp(const uint8_t *frame, size_t len)
{
	struct rest r = {frame, len};
	const uint8_t *options;
	struct pkt tag;
	uint16_t type;
	size_t udp;

	if (eth_parse(&tag, &r, &type) || type != ETHERTYPE_IPV6 || r.len < IP6_HLEN + 2 ||
		r.at[IP6_NXT] != IP6_NXT_DSTOPTS)
		return false;
	options = r.at + IP6_HLEN;
	udp = IP6_HLEN + ((size_t)options[1] + 1) * 8;
	return options[0] == IPPROTO_ROCEV2 && r.len >= udp + UDP_DPORT + 2 &&
	       get_be16(r.at + udp + UDP_DPORT) == UDP_PORT_ROCEV2;
}

void frame_gids(const struct pkt *p, uint8_t sgid[16], uint8_t dgid[16])
{
	static const uint8_t v4_mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	if (p->net == NET_IPV4) {
		memcpy(sgid, v4_mapped, sizeof(v4_mapped));
		memcpy(sgid + sizeof(v4_mapped), p->l3 + IP4_SRC, 4);
		memcpy(dgid, v4_mapped, sizeof(v4_mapped));
		memcpy(dgid + sizeof(v4_mapped), p->l3 + IP4_DST, 4);
	} else {
		memcpy(sgid, p->l3 + IP6_SRC, 16);
		memcpy(dgid, p->l3 + IP6_DST, 16);
	}
}
