/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frame parser against anything. The input is a frame. Its mutator makes lengths, checksum and
 * ICRC right again, most of the time, or hardly any input would get past IP.
 */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "expect.h"
#include "fast_cnp.h"
#include "frame.h"
#include "opcode.h"
#include "icrc.h"
#include "input.h"
#include "oracle.h"
#include "random.h"
#include "target.h"
#include "write.h"

#define TRAILER_MAX 64u

/* --- helpers -------------------------------------------------------------------------- */

static enum drop parse(struct pkt *p, const uint8_t *frame, size_t len)
{
	enum drop d;

	memset(p, 0xEE, sizeof(*p)); /* what is not filled in is garbage */
	d = frame_parse(p, frame, len);
	MUST(drop_name(d));
	return d;
}

/* All fields of the packet headers that the opcode has. */
static void must_be_same(const struct pkt *a, const struct pkt *b)
{
	const struct opcode *op = a->op;

	MUST(a->op == b->op && a->net == b->net && a->vid == b->vid);
	MUST(a->payload_len == b->payload_len && a->pkey == b->pkey);
	MUST(!memcmp(a->payload, b->payload, a->payload_len));
	MUST(a->se == b->se && a->migreq == b->migreq && a->ackreq == b->ackreq);
	MUST(a->dest_qp == b->dest_qp && a->psn == b->psn);
	if (op->reth || op->atomiceth)
		MUST(a->va == b->va && a->rkey == b->rkey);
	if (op->reth)
		MUST(a->dma_len == b->dma_len);
	if (op->atomiceth)
		MUST(a->swap_add == b->swap_add && a->compare == b->compare);
	if (op->aeth)
		MUST(a->syndrome == b->syndrome && a->msn == b->msn);
	if (op->atomicack)
		MUST(a->atomic_orig == b->atomic_orig);
	if (op->deth)
		MUST(a->qkey == b->qkey && a->src_qp == b->src_qp);
	if (op->xrceth)
		MUST(a->srqn == b->srqn);
	if (op->feth)
		MUST(a->feth == b->feth);
	if (op->immdt)
		MUST(a->imm == b->imm);
	if (op->ieth)
		MUST(a->rkey == b->rkey);
}

/* --- what holds for an accepted frame -------------------------------------------------- */

/* Everything lies inside the frame, and the parts add up to what IP or the GRH says. */
static void check_places(const struct pkt *p, const uint8_t *frame, size_t len)
{
	size_t l3_len = (size_t)p->icrc_off + ICRC_LEN;
	size_t said = p->net == NET_IPV4 ? get_be16(p->l3 + IP4_TOTLEN)
					 : (size_t)IP6_HLEN + get_be16(p->l3 + IP6_PLEN);
	size_t pad = p->op->kind == KIND_CNP ? 0 : p->pad;
	const uint8_t *end = p->l3 + p->icrc_off;

	MUST(p->l3 >= frame + ETH_HLEN && l3_len <= len - (size_t)(p->l3 - frame));
	MUST(l3_len == said);
	if (p->net != NET_ROCEV1) /* CA17-21 */
		MUST(get_be16(p->bth - UDP_HLEN + UDP_LEN) == end - p->bth + UDP_HLEN + ICRC_LEN);
	MUST(p->dmac == frame);
	MUST(p->bth > p->l3 && p->payload == p->bth + p->op->hdr_len);
	if (p->op->kind == KIND_CNP)
		MUST(p->payload_len == 0 && p->payload <= end);
	else
		MUST(p->payload + p->payload_len + pad == end);
	MUST(p->op->payload || p->payload_len == 0);
	MUST(p->pcp < 8 && p->vid < 4096 && p->dest_qp <= 0xFFFFFF && p->psn <= 0xFFFFFF);
	MUST((l3_len - (size_t)(p->bth - p->l3)) % 4 == 0); /* BTH-05 */
}

/* All implementations agree; and one bit more or less in what it covers is noticed. */
static void check_icrc(const struct pkt *p)
{
	bool good = icrc_check(icrc_by_name("table"), p);
	size_t at = (size_t)(p->bth - p->l3) + BTH_OPCODE;
	uint8_t *byte = (uint8_t *)p->l3 + at;

	for (unsigned i = 0; icrc_nth(i); i++)
		MUST(icrc_check(icrc_nth(i), p) == good);
	*byte ^= 0x10;
	MUST(!good || !icrc_check(icrc_best(), p));
	*byte ^= 0x10;
	byte = (uint8_t *)p->bth + BTH_RESV8A; /* ICRC-07: FECN and BECN may change on the way */
	*byte ^= BTH_FECN | BTH_BECN;
	MUST(icrc_check(icrc_best(), p) == good);
	*byte ^= BTH_FECN | BTH_BECN;
}

static void check_gids(const struct pkt *p)
{
	uint8_t sgid[16], dgid[16];

	frame_gids(p, sgid, dgid);
	if (p->net == NET_IPV4)
		MUST(sgid[10] == 0xFF && dgid[11] == 0xFF &&
			!memcmp(dgid + 12, p->l3 + IP4_DST, 4));
}

/* Shorter than it says: not acceptable. */
static void check_cut(const struct pkt *p, const uint8_t *frame)
{
	size_t whole = (size_t)(p->l3 - frame) + p->icrc_off + ICRC_LEN;
	size_t cut = whole - 1 - p->psn % whole; /* any of them */
	uint8_t *copy = copy_of(frame, cut, 0, 0);
	struct pkt q;

	MUST(parse(&q, copy, cut) != DROP_NONE);
	free(copy);
}

/* The path that the packet came on. */
static struct path path_of(const struct pkt *p, const uint8_t *frame, struct gid_entry *sgid)
{
	struct path_spec s = {
		.sgid = sgid, .traffic_class = p->tclass, .hop_limit = 1, .pcp = p->pcp};
	struct path path;

	*sgid = (struct gid_entry){.net = p->net, .valid = true, .vid = p->vid};
	frame_gids(p, sgid->gid, s.dgid);
	memcpy(sgid->mac, frame + ETH_SRC, 6);
	memcpy(s.dmac, frame + ETH_DST, 6);
	path_init(&path, &s);
	return path;
}

/* A packet of the same fields, written by us, is the same packet. */
static void check_rewritten(const struct pkt *p, const uint8_t *frame)
{
	static uint8_t again[WRITE_MAX];
	struct gid_entry sgid;
	struct path path = path_of(p, frame, &sgid);
	size_t len = packet_write(again, &path, p, p->payload);
	uint8_t *copy = copy_of(again, len, 0, 0);
	uint8_t tclass = p->net == NET_ROCEV1 ? p->tclass : p->tclass & 0xFC; /* CA17-5 */
	struct pkt q;

	MUST(parse(&q, copy, len) == DROP_NONE);
	check_places(&q, copy, len);
	MUST(icrc_check(icrc_best(), &q));
	must_be_same(p, &q);
	MUST(!memcmp(q.dmac, p->dmac, 6) && q.tclass == tclass);
	MUST(!p->vid || q.pcp == p->pcp);
	free(copy);
}

/* --- what holds for every frame -------------------------------------------------------- */

/* ETH-08, ETH-09: Ethernet padding changes nothing, whatever is in it. */
static void check_trailer(const struct pkt *p, enum drop d, const uint8_t *frame, size_t len)
{
	for (unsigned i = 0; i < 2; i++) {
		size_t more = 1 + (len + 13 * i) % TRAILER_MAX;
		uint8_t *copy = copy_of(frame, len, more, i ? 0xFF : 0);
		struct pkt q;
		enum drop e = parse(&q, copy, len + more);

		if (!d) {
			MUST(e == DROP_NONE);
			must_be_same(p, &q);
			MUST(p->icrc_off == q.icrc_off && p->tclass == q.tclass);
			MUST(icrc_check(icrc_best(), p) == icrc_check(icrc_best(), &q));
		} else if (d != DROP_ETH_SHORT && d != DROP_IP_LENGTH) {
			MUST(e == d);
		}
		free(copy);
	}
}

/* A QP whose peer sends such headers. @return false: it is not one that expects anything. */
static bool expecter(struct expect *e, const uint8_t *frame, size_t len)
{
	static _Atomic uint64_t mac;
	const uint8_t *ip = frame + ETH_HLEN;
	const uint8_t *bth = ip + IP4_HLEN + UDP_HLEN;
	struct expect_spec s = {
		.src_ip = ip + IP4_SRC, .dst_ip = ip + IP4_DST, .mac = &mac, .opc = OPC_RC};

	if (len < EXPECT_MIN || (bth[BTH_OPCODE] & OPC_CLASS_MASK) != OPC_RC)
		return false;
	mac = mac_word(frame);
	s.dest_qp = expect_qpn(frame);
	s.pkey = get_be16(bth + BTH_PKEY);
	expect_set(e, &s);
	return true;
}

/* It takes the frames that frame_parse() accepts, no others, for the same packets. */
static void check_expected(const struct pkt *p, enum drop d, const uint8_t *frame, size_t len)
{
	struct expect e;
	struct pkt q;

	if (!expecter(&e, frame, len))
		return;
	memset(&q, 0xEE, sizeof(q));
	q.port = e.port;
	if (!frame_expected(&q, frame, len, &e)) {
		MUST(d || p->net != NET_IPV4 || p->l3 != frame + ETH_HLEN);
		return;
	}
	MUST(!d && q.expected == &e && !p->expected);
	must_be_same(p, &q);
	MUST(p->dmac == q.dmac && p->l3 == q.l3 && p->bth == q.bth && p->payload == q.payload);
	MUST(p->icrc_off == q.icrc_off && p->tclass == q.tclass && p->pad == q.pad);
	MUST(p->named == q.named && p->pcp == q.pcp);
}

/* --- Fast CNPs ------------------------------------------------------------------------ */

static const uint8_t types[FAST_CNP_OPTIONS] = {FAST_CNP_TYPE_PLAIN, FAST_CNP_TYPE_TRACE};

static enum drop parse_fast(struct pkt *p, struct fast_cnp *f, const uint8_t *frame, size_t len)
{
	enum drop d;

	memset(p, 0xEE, sizeof(*p));
	memset(f, 0xEE, sizeof(*f));
	d = fast_cnp_parse(p, f, frame, len, types);
	MUST(drop_name(d));
	return d;
}

/* All implementations agree, and a bit of an option matters (ICRC-10). */
static void check_fast_icrc(const struct pkt *p, const struct fast_cnp *f)
{
	bool good = fast_cnp_icrc_check(icrc_by_name("table"), p);
	uint8_t *bit = (uint8_t *)f->dip;

	for (unsigned i = 0; icrc_nth(i); i++)
		MUST(fast_cnp_icrc_check(icrc_nth(i), p) == good);
	*bit ^= 1;
	MUST(!good || !fast_cnp_icrc_check(icrc_best(), p));
	*bit ^= 1;
}

/* One that says the same, written by us, is read as the same. */
static void check_fast_rewritten(const struct pkt *p, const struct fast_cnp *f)
{
	struct fast_cnp_spec s = {.vid = p->vid,
		.pcp = p->pcp,
		.dest_qpn = p->dest_qp,
		.pkey = p->pkey,
		.type = types[f->trace ? FAST_CNP_TRACE : FAST_CNP_PLAIN],
		.trace = f->trace,
		.trace_len = f->trace_len};
	uint8_t again[FAST_CNP_FRAME_MAX];
	struct fast_cnp g;
	struct pkt q;
	size_t len;

	memcpy(s.dip, f->dip, sizeof(s.dip));
	memcpy(s.dest, p->l3 + IP6_DST, sizeof(s.dest));
	len = fast_cnp_write(again, &s, icrc_best());
	MUST(len <= sizeof(again) && parse_fast(&q, &g, again, len) == DROP_NONE);
	MUST(fast_cnp_icrc_check(icrc_best(), &q));
	MUST(q.dest_qp == p->dest_qp && q.pkey == p->pkey && q.vid == p->vid);
	MUST(!memcmp(g.dip, f->dip, FAST_CNP_DIP_LEN) && g.trace_len == f->trace_len);
	MUST(!f->trace == !g.trace && (!f->trace || !memcmp(g.trace, f->trace, f->trace_len)));
}

/* To frame_parse() it is none of RoCE's (FCN-14). */
static void check_fast(enum drop plain, const uint8_t *frame, size_t len)
{
	size_t more = 1 + len % TRAILER_MAX;
	struct fast_cnp f, g;
	struct pkt p, q;
	enum drop d = parse_fast(&p, &f, frame, len);
	uint8_t *copy;

	MUST(d || (frame_is_fast_cnp(frame, len) && plain == DROP_IP_NEXT_HEADER));
	if (d)
		return;
	MUST(p.op->kind == KIND_CNP && p.net == NET_IPV6 && !p.payload_len);
	MUST((size_t)(p.l3 - frame) + p.icrc_off + ICRC_LEN <= len);
	MUST(f.dip > p.l3 && f.dip + FAST_CNP_DIP_LEN <= p.bth - UDP_HLEN);
	MUST(!f.trace || (f.trace > p.l3 && f.trace + f.trace_len == f.dip));
	check_fast_icrc(&p, &f);
	check_fast_rewritten(&p, &f);
	copy = copy_of(frame, len, more, 0xFF);
	MUST(parse_fast(&q, &g, copy, len + more) == DROP_NONE && p.icrc_off == q.icrc_off);
	free(copy);
	copy = copy_of(frame, (size_t)(p.l3 - frame) + p.icrc_off + ICRC_LEN - 1, 0, 0);
	MUST(parse_fast(&q, &g, copy, (size_t)(p.l3 - frame) + p.icrc_off + ICRC_LEN - 1));
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *frame = copy_of(data, size, 0, 0);
	bool roce = frame_is_roce(frame, size);
	struct pkt p;
	enum drop d = parse(&p, frame, size);

	check_trailer(&p, d, frame, size);
	check_expected(&p, d, frame, size);
	check_fast(d, frame, size);
	if (!d) {
		MUST(roce);
		check_places(&p, frame, size);
		check_icrc(&p);
		check_gids(&p);
		check_cut(&p, frame);
		check_rewritten(&p, frame);
	}
	free(frame);
	return 0;
}

/* --- mutations ------------------------------------------------------------------------ */

static void repair_ip4(uint8_t *ip, size_t len)
{
	uint32_t sum = 0;

	ip[IP4_VIHL] = 0x45;
	ip[IP4_PROTO] = IPPROTO_ROCEV2;
	put_be16(ip + IP4_FRAG, IP4_FLAG_DF);
	put_be16(ip + IP4_TOTLEN, (uint16_t)len);
	put_be16(ip + IP4_CSUM, 0);
	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(ip + i);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	put_be16(ip + IP4_CSUM, (uint16_t)~sum);
}

static void repair_ip6(uint8_t *ip, size_t len, unsigned net)
{
	ip[IP6_VTCFL] = (uint8_t)(0x60 | (ip[IP6_VTCFL] & 0xF));
	if (net == NET_ROCEV1)
		ip[IP6_NXT] = GRH_NXT_IBA;
	else if (ip[IP6_NXT] != IP6_NXT_DSTOPTS)
		ip[IP6_NXT] = IPPROTO_ROCEV2;
	put_be16(ip + IP6_PLEN, (uint16_t)(len - IP6_HLEN));
}

/* @return bytes of the Destination Options header that it has, which leads to UDP then. */
static size_t repair_options(uint8_t *ip, size_t room)
{
	uint8_t *header = ip + IP6_HLEN;
	size_t len;

	if (ip[IP6_NXT] != IP6_NXT_DSTOPTS || room < 8)
		return 0;
	header[0] = IPPROTO_ROCEV2;
	len = ((size_t)header[1] + 1) * 8;
	while (len > room) {
		header[1] /= 2;
		if (len == 8)
			return 0;
		len = ((size_t)header[1] + 1) * 8;
	}
	return len;
}

/* BTH: a version and a pad that go with the opcode. */
static void repair_bth(uint8_t *bth, size_t rest)
{
	const struct opcode *op = opcode_row(bth[BTH_OPCODE]);

	bth[BTH_FLAGS] &= (uint8_t)~BTH_TVER_MASK;
	if (!op->payload || rest < op->hdr_len + ICRC_LEN + 4u)
		bth[BTH_FLAGS] &= (uint8_t)~BTH_PAD_MASK;
}

/* Where the L3 header is, and what it should be. @return its offset, 0: there is none. */
static size_t find_l3(uint8_t *frame, size_t len, unsigned *net, struct random *r)
{
	static const uint16_t types[] = {ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROCEV1};
	size_t at = ETH_TYPE;
	uint16_t type;

	if (len >= ETH_HLEN + VLAN_HLEN && get_be16(frame + at) == ETHERTYPE_VLAN)
		at += VLAN_HLEN;
	if (len < at + 2)
		return 0;
	type = get_be16(frame + at);
	for (*net = 0; *net < ARRAY_SIZE(types) && types[*net] != type;)
		++*net;
	if (*net == ARRAY_SIZE(types)) {
		*net = (unsigned)random_below(r, ARRAY_SIZE(types));
		put_be16(frame + at, types[*net]);
	}
	return at + 2;
}

/* Puts right what says how long the rest is. Some bytes may be left over as Ethernet padding. */
static void repair(uint8_t *frame, size_t len, struct random *r)
{
	unsigned net;
	size_t l3 = find_l3(frame, len, &net, r);
	size_t ip = net == NET_IPV4 ? IP4_HLEN : IP6_HLEN;
	size_t l4 = net == NET_ROCEV1 ? 0 : UDP_HLEN;
	size_t left = random_below(r, 4) ? 0 : random_below(r, TRAILER_MAX);
	size_t options = 0;
	size_t l3_len;

	if (!l3 || len < l3 + ip + l4 + BTH_HLEN + ICRC_LEN)
		return;
	if (net == NET_IPV6)
		options = repair_options(frame + l3, len - l3 - ip - l4 - BTH_HLEN - ICRC_LEN);
	ip += options;
	l3_len = len - l3;
	if (l3_len > 0xFFFF)
		l3_len = 0xFFFF;
	if (l3_len - left >= ip + l4 + BTH_HLEN + ICRC_LEN && left < l3_len)
		l3_len -= left;
	l3_len -= (l3_len - ip - l4) % 4;
	if (net == NET_IPV4)
		repair_ip4(frame + l3, l3_len);
	else
		repair_ip6(frame + l3, l3_len, net);
	if (l4) {
		put_be16(frame + l3 + ip + UDP_DPORT, UDP_PORT_ROCEV2);
		put_be16(frame + l3 + ip + UDP_LEN, (uint16_t)(l3_len - ip));
	}
	repair_bth(frame + l3 + ip + l4, l3_len - ip - l4);
	if (!random_below(r, 4))
		return;
	if (options)
		icrc_store(frame + l3 + l3_len - ICRC_LEN,
			icrc_with_options(icrc_best(), frame + l3, frame + l3 + IP6_HLEN, options,
				l3_len - ICRC_LEN));
	else
		packet_seal(frame + l3, net, l3_len);
}

/* Cuts or grows a frame to just what its opcode wants, with no payload. */
static size_t fit_opcode(uint8_t *frame, size_t len, size_t max, struct random *r)
{
	unsigned net;
	size_t l3 = find_l3(frame, len, &net, r);
	size_t bth =
		l3 + (net == NET_IPV4 ? IP4_HLEN : IP6_HLEN) + (net == NET_ROCEV1 ? 0 : UDP_HLEN);
	size_t want;

	if (!l3 || len < bth + BTH_HLEN)
		return len;
	want = bth + opcode_row(frame[bth])->hdr_len + ICRC_LEN;
	if (want > max)
		return len;
	if (want > len)
		memset(frame + len, 0, want - len);
	return want;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct random r = {(uint64_t)seed << 1 | 1};

	random_next(&r);
	size = LLVMFuzzerMutate(data, size, max);
	if (random_below(&r, 4) == 0)
		size = fit_opcode(data, size, max, &r);
	if (random_below(&r, 8))
		repair(data, size, &r);
	if (random_below(&r, 8) == 0) /* and one thing wrong again */
		size = LLVMFuzzerMutate(data, size, max);
	return size;
}
