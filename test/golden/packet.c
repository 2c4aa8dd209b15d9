/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets, received and sent, against what a file says of them. */
#include <stdio.h>
#include <string.h>
#include "frame.h"
#include "golden.h"
#include "icrc.h"
#include "opcode.h"

/* --- received: bth_fields -------------------------------------------------------------- */

struct field {
	const char *name;
	uint64_t value;
};

/* Compares the members of the extended header @p name, each of which must be one of @p f. */
static void check_header(struct golden *g, const char *name, bool present, const json_t *want,
	const struct field *f, unsigned n)
{
	char what[64];
	const char *key;
	json_t *v;

	if (present != json_is_object(want))
		item_fail(g, "the parser finds %s %s", present ? "a" : "no", name);
	if (!present)
		return;
	for (unsigned i = 0; i < n; i++)
		if (!json_object_get(want, f[i].name))
			item_fail(g, "%s.%s is not given", name, f[i].name);
	json_object_foreach((json_t *)want, key, v)
	{
		unsigned i = 0;

		while (i < n && strcmp(f[i].name, key))
			i++;
		snprintf(what, sizeof(what), "%s.%.30s", name, key);
		if (i < n)
			same_number(g, what, f[i].value, v);
		else
			item_fail(g, "field %s is not handled", what);
	}
}

static void check_headers(struct golden *g, const struct pkt *p, const json_t *fields)
{
	const struct opcode *op = p->op;
	const struct {
		const char *name;
		bool present;
		struct field f[4];
	} h[] = {
		{"xrceth", op->xrceth, {{"srqn", p->srqn}}},
		{"deth", op->deth, {{"qkey", p->qkey}, {"src_qp", p->src_qp}}},
		{"feth", op->feth, {{"plt", p->feth & 0xF}, {"sel", p->feth >> 4 & 3}}},
		{"reth", op->reth, {{"va", p->va}, {"rkey", p->rkey}, {"dmalen", p->dma_len}}},
		{"atomiceth", op->atomiceth,
			{{"va", p->va}, {"rkey", p->rkey}, {"swap_add", p->swap_add},
				{"cmp", p->compare}}},
		{"aeth", op->aeth, {{"syndrome", p->syndrome}, {"msn", p->msn}}},
		{"atomicacketh", op->atomicack, {{"orig", p->atomic_orig}}},
		{"immdt", op->immdt, {{"value", __builtin_bswap32(p->imm)}}},
		{"ieth", op->ieth, {{"rkey", p->rkey}}},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(h); i++) {
		unsigned n = 0;

		while (n < 4 && h[i].f[n].name)
			n++;
		check_header(
			g, h[i].name, h[i].present, json_object_get(fields, h[i].name), h[i].f, n);
	}
}

/* The 16 bytes of a CNP; a receiver ignores what is in them (A17 Figure 6). */
static void check_cnp_reserved(struct golden *g, const struct pkt *p, const json_t *want)
{
	static const char *const known[] = {"zero_bytes"};
	const json_t *zeros = json_object_get(want, "zero_bytes");
	const uint8_t *end = p->l3 + p->icrc_off;
	size_t n = 0;

	if (p->op->kind != KIND_CNP || !KNOWN(g, "cnp_reserved", want, known)) {
		item_fail(g, "cnp_reserved is of no CNP");
		return;
	}
	if (end - p->payload != 16)
		item_fail(g, "%zd reserved bytes instead of 16", end - p->payload);
	while (p->payload + n < end && !p->payload[n])
		n++;
	if (zeros)
		same_number(g, "cnp_reserved.zero_bytes", n, zeros);
	else if (p->payload + n == end)
		item_fail(g, "the reserved bytes are zero");
}

void check_fields(struct golden *g, const struct pkt *p, const json_t *fields)
{
	static const char *const headers[] = {"xrceth", "deth", "feth", "reth", "atomiceth", "aeth",
		"atomicacketh", "immdt", "ieth"};
	static const char *const needed[] = {"opcode", "se", "m", "pad", "tver", "pkey", "dest_qp",
		"ackreq", "psn", "payload_len"};
	const struct field f[] = {{"opcode", p->op->code}, {"se", p->se}, {"m", p->migreq},
		{"pad", p->pad}, {"tver", p->bth[BTH_FLAGS] & BTH_TVER_MASK}, {"pkey", p->pkey},
		{"dest_qp", p->dest_qp}, {"ackreq", p->ackreq}, {"psn", p->psn},
		{"payload_len", p->payload_len}, {"fecn", p->bth[BTH_RESV8A] >> 7},
		{"becn", p->bth[BTH_RESV8A] >> 6 & 1}, {"resv6", p->bth[BTH_RESV8A] & 0x3F},
		{"resv7", p->bth[BTH_ACKREQ] & 0x7F}};
	const char *key;
	json_t *v;

	for (unsigned i = 0; i < ARRAY_SIZE(needed); i++)
		if (!json_object_get(fields, needed[i]))
			item_fail(g, "field %s is not given", needed[i]);
	check_headers(g, p, fields);
	json_object_foreach((json_t *)fields, key, v)
	{
		unsigned i = 0, h = 0;

		while (i < ARRAY_SIZE(f) && strcmp(f[i].name, key))
			i++;
		while (h < ARRAY_SIZE(headers) && strcmp(headers[h], key))
			h++;
		if (i < ARRAY_SIZE(f))
			same_number(g, key, f[i].value, v);
		else if (!strcmp(key, "cnp_reserved"))
			check_cnp_reserved(g, p, v);
		else if (h == ARRAY_SIZE(headers))
			item_fail(g, "field %.40s is not handled", key);
	}
}

/* --- sent: below the BTH ----------------------------------------------------------------- */

static uint8_t *put_ethernet(const struct node *n, uint8_t *h)
{
	static const uint16_t types[] = {
		[NET_IPV4] = 0x0800, [NET_IPV6] = 0x86DD, [NET_ROCEV1] = 0x8915};
	const json_t *c = n->g->context;

	mac_of(text(json_object_get(c, n->spec.is_a ? "B" : "A"), "mac"), h);
	mac_of(text(json_object_get(c, n->spec.is_a ? "A" : "B"), "mac"), h + 6);
	h += 12;
	if (n->spec.vid) {
		put_be16(h, 0x8100);
		put_be16(h + 2, n->spec.vid);
		h += 4;
	}
	put_be16(h, types[n->spec.net]);
	return h + 2;
}

/* The header that a packet of @p len bytes must have up to the BTH, for hop limit 64 and
 * traffic class 0; identification and checksum of IPv4 are as in @p frame, where the parser
 * has looked at them. @return its length. */
static size_t expected_header(const struct node *n, const uint8_t *frame, size_t len, uint8_t *h)
{
	const struct node_spec *s = &n->spec;
	uint32_t label = flow_label_of_qpns(s->qpn, s->peer_qpn);
	uint8_t *l3 = put_ethernet(n, h);
	uint16_t rest = (uint16_t)(len - (size_t)(l3 - h));
	uint8_t *udp = l3 + 40;

	if (s->net == NET_IPV4) {
		const uint8_t fixed[] = {0x45, 0, rest >> 8, (uint8_t)rest, 0, 0, 0x40, 0, 64, 17};

		udp = l3 + 20;
		memcpy(l3, fixed, sizeof(fixed));
		memcpy(l3 + 4, frame + (l3 + 4 - h), 2);
		memcpy(l3 + 10, frame + (l3 + 10 - h), 2);
		memcpy(l3 + 12, s->gid + 12, 4);
		memcpy(l3 + 16, s->peer_gid + 12, 4);
	} else {
		put_be32(l3, 6u << 28 | (s->net == NET_IPV6 ? label : 0));
		put_be16(l3 + 4, (uint16_t)(rest - 40));
		l3[6] = s->net == NET_IPV6 ? 17 : 0x1B;
		l3[7] = 64;
		memcpy(l3 + 8, s->gid, 16);
		memcpy(l3 + 24, s->peer_gid, 16);
	}
	if (s->net == NET_ROCEV1)
		return (size_t)(udp - h);
	put_be16(udp, flow_label_to_sport(label));
	put_be16(udp + 2, 4791);
	put_be16(udp + 4, (uint16_t)(len - (size_t)(udp - h)));
	put_be16(udp + 6, 0);
	return (size_t)(udp + 8 - h);
}

bool wire_ok(const struct node *n, const uint8_t *frame, size_t len, char *why, size_t room)
{
	uint8_t h[128];
	struct pkt p = {0};
	size_t hdr;

	if (frame_parse(&p, frame, len) || !p.op->name || !icrc_check(icrc_by_name("table"), &p)) {
		snprintf(why, room, "a malformed packet is sent");
		return false;
	}
	hdr = expected_header(n, frame, len, h);
	for (size_t i = 0; i < hdr; i++) {
		if (h[i] == frame[i])
			continue;
		snprintf(why, room, "byte %zu of %s is 0x%02x, not 0x%02x", i, p.op->name, frame[i],
			h[i]);
		return false;
	}
	if (p.pkey != n->spec.pkey[0] || p.dest_qp != n->spec.peer_qpn || p.bth[BTH_RESV8A] ||
		(p.bth[BTH_ACKREQ] & 0x7F) || p.pad != (-p.payload_len & 3)) {
		snprintf(why, room, "P_Key, QPN, pad or a reserved bit of %s is wrong", p.op->name);
		return false;
	}
	for (unsigned i = 0; i < p.pad; i++) {
		if (!p.payload[p.payload_len + i])
			continue;
		snprintf(why, room, "a pad byte of %s is not 0", p.op->name); /* BTH-05 */
		return false;
	}
	if (p.op->response && (p.se || p.ackreq)) {
		snprintf(why, room, "SE or AckReq is set in %s", p.op->name); /* RSP-50 */
		return false;
	}
	return true;
}

/* --- sent: what a step lists --------------------------------------------------------------- */

static bool payload_matches(const struct pkt *p, const json_t *want)
{
	const char *hex = json_string_value(want);

	if (!hex || strlen(hex) != 2u * p->payload_len)
		return false;
	for (unsigned i = 0; i < p->payload_len; i++) {
		char pair[3];

		snprintf(pair, sizeof(pair), "%02x", p->payload[i]);
		if (strncasecmp(pair, hex + (size_t)2 * i, 2))
			return false;
	}
	return true;
}

bool packet_matches(struct golden *g, const uint8_t *frame, size_t len, const json_t *want,
	char *why, size_t room)
{
	struct pkt p = {0};
	const char *key;
	json_t *v;

	if (frame_parse(&p, frame, len)) {
		snprintf(why, room, "a malformed packet is sent");
		return false;
	}
	json_object_foreach((json_t *)want, key, v)
	{
		const struct {
			const char *key;
			bool there;
			uint64_t value;
		} f[] = {{"opcode", true, p.op->code}, {"psn", true, p.psn},
			{"dest_qp", true, p.dest_qp}, {"payload_len", true, p.payload_len},
			{"ackreq", true, p.ackreq}, {"se", true, p.se}, {"m", true, p.migreq},
			{"pad", true, p.pad}, {"pkey", true, p.pkey},
			{"syndrome", p.op->aeth, p.syndrome}, {"msn", p.op->aeth, p.msn},
			{"va", p.op->reth || p.op->atomiceth, p.va},
			{"rkey", p.op->reth || p.op->atomiceth || p.op->ieth, p.rkey},
			{"dmalen", p.op->reth, p.dma_len},
			{"imm", p.op->immdt, __builtin_bswap32(p.imm)},
			{"orig", p.op->atomicack, p.atomic_orig},
			{"swap_add", p.op->atomiceth, p.swap_add},
			{"cmp", p.op->atomiceth, p.compare}};
		unsigned i = 0;

		while (i < ARRAY_SIZE(f) && strcmp(f[i].key, key))
			i++;
		if (!strcmp(key, "payload")) {
			if (payload_matches(&p, v))
				continue;
			snprintf(why, room, "the payload of %s differs", p.op->name);
			return false;
		}
		if (i == ARRAY_SIZE(f)) {
			item_fail(g, "field tx.%.40s is not handled", key);
			continue;
		}
		if (!strcmp(key, "syndrome") && json_is_string(v) &&
			!strcmp(json_string_value(v), "ack")) {
			if (p.op->aeth && p.syndrome <= 0x1F)
				continue;
		} else if (f[i].there && number(g, key, v) == f[i].value) {
			continue;
		}
		snprintf(why, room, "%s of %s is 0x%llx", key, p.op->name ? p.op->name : "?",
			(unsigned long long)f[i].value);
		return false;
	}
	return true;
}
