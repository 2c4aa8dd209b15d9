/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "headers.h"
#include "opcode.h"
#include "seq24.h"
#include "wirecheck.h"

#define NOTHING_OPEN 0xFF

/* A frame as this file parses it, without the product's parser. */
struct packet {
	uint8_t code; /* as of the RC class */
	enum wire_service service;
	bool group; /* to more than one station */
	uint8_t flags;
	bool ackreq;
	uint32_t psn;
	uint32_t dest_qp;
	const uint8_t *bth;
	const uint8_t *payload;
	uint32_t len;
	uint32_t pad;
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len;
	uint8_t syndrome;
	uint32_t msn;
	uint64_t orig;	       /* AtomicAckETH */
	uint32_t srqn;	       /* XRCETH */
	uint32_t qkey, src_qp; /* DETH */
};

static const char *const name[] = {"SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM",
	"SEND_ONLY", "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_LAST_IMM",
	"WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST", "READ_RESP_FIRST", "READ_RESP_MIDDLE",
	"READ_RESP_LAST", "READ_RESP_ONLY", "ACKNOWLEDGE", "ATOMIC_ACK", "CMP_SWAP",
	"FETCH_ADD", [OP_SEND_LAST_WITH_INV] = "SEND_LAST_INV",
	"SEND_ONLY_INV", [OP_FLUSH] = "FLUSH", "ATOMIC_WRITE"};

static void complain(const struct packet *p, const char *rule, const char *what)
{
	fail_msg("%s: %s PSN %06X, %u bytes, syndrome %02X, MSN %u to QP %06X: %s", rule,
		name[p->code], p->psn, p->len, p->syndrome, p->msn, p->dest_qp, what);
}

static void must(bool ok, const struct packet *p, const char *rule, const char *what)
{
	if (!ok)
		complain(p, rule, what);
}

/* --- opcodes, without the product's table --------------------------------------------- */

static bool is_write(uint8_t code)
{
	return code >= OP_WRITE_FIRST && code <= OP_WRITE_ONLY_WITH_IMM;
}

static bool is_response(uint8_t code)
{
	return code >= OP_READ_RESP_FIRST && code <= OP_ATOMIC_ACK;
}

static bool is_atomic(uint8_t code)
{
	return code == OP_CMP_SWAP || code == OP_FETCH_ADD;
}

/* A request that is done once and answered like a READ of no bytes. */
static bool is_flush_or_word(uint8_t code)
{
	return code == OP_FLUSH || code == OP_ATOMIC_WRITE;
}

/* A request that is answered by more than an ACK. */
static bool is_read_atomic(uint8_t code)
{
	return code == OP_READ_REQUEST || is_atomic(code) || is_flush_or_word(code);
}

static bool is_first(uint8_t code)
{
	return code == OP_SEND_FIRST || code == OP_WRITE_FIRST;
}

static bool is_middle(uint8_t code)
{
	return code == OP_SEND_MIDDLE || code == OP_WRITE_MIDDLE;
}

static bool is_only(uint8_t code)
{
	return code == OP_SEND_ONLY || code == OP_SEND_ONLY_WITH_IMM || code == OP_WRITE_ONLY ||
	       code == OP_WRITE_ONLY_WITH_IMM || code == OP_SEND_ONLY_WITH_INV;
}

static bool is_last(uint8_t code)
{
	return !is_first(code) && !is_middle(code);
}

static bool has_imm(uint8_t code)
{
	return code == OP_SEND_LAST_WITH_IMM || code == OP_SEND_ONLY_WITH_IMM ||
	       code == OP_WRITE_LAST_WITH_IMM || code == OP_WRITE_ONLY_WITH_IMM;
}

static bool has_ieth(uint8_t code)
{
	return code == OP_SEND_LAST_WITH_INV || code == OP_SEND_ONLY_WITH_INV;
}

static bool has_reth(uint8_t code)
{
	return is_flush_or_word(code) || code == OP_WRITE_FIRST || code == OP_WRITE_ONLY ||
	       code == OP_WRITE_ONLY_WITH_IMM || code == OP_READ_REQUEST;
}

static bool has_aeth(uint8_t code)
{
	return is_response(code) && code != OP_READ_RESP_MIDDLE;
}

/* --- parsing -------------------------------------------------------------------------- */

/* The length of IP or GRH and what it carries, from its own field (ETH-08). */
static uint32_t l3_length(const uint8_t *l3, uint16_t type)
{
	return type == ETHERTYPE_IPV4 ? get_be16(l3 + IP4_TOTLEN) : IP6_HLEN + get_be16(l3 + 4);
}

/* The header that a service has first. @return its end */
static const uint8_t *parse_service(struct packet *p, const uint8_t *eth)
{
	if (p->service == WIRE_XRC && !is_response(p->code)) { /* XRC-03 */
		p->srqn = get_be32(eth);
		return eth + 4;
	}
	if (p->service != WIRE_UD)
		return eth;
	p->qkey = get_be32(eth);
	p->src_qp = get_be32(eth + 4);
	return eth + 8;
}

/* CNP-02, CNP-03, CNP-04: all of it but P_Key, DestQP and BECN is fixed. */
static void check_cnp(const uint8_t *bth, const uint8_t *end)
{
	static const uint8_t zeros[20];

	if (end - bth != 32 || bth[BTH_FLAGS] || (bth[BTH_RESV8A] & ~BTH_BECN) ||
		memcmp(bth + BTH_ACKREQ, zeros, sizeof(zeros)) != 0)
		fail_msg("CNP-02: a CNP of %td bytes with flags %02X", end - bth, bth[BTH_FLAGS]);
}

static bool parse(const uint8_t *frame, size_t len, struct packet *p)
{
	bool tagged = get_be16(frame + ETH_TYPE) == ETHERTYPE_VLAN;
	const uint8_t *l3 = frame + ETH_HLEN + (tagged ? VLAN_HLEN : 0);
	uint16_t type = get_be16(l3 - 2);
	const uint8_t *end = l3 + l3_length(l3, type);
	const uint8_t *eth;

	memset(p, 0, sizeof(*p));
	assert_true(end == frame + len || (len == 60 && end < frame + len));
	p->bth = l3 + (type == ETHERTYPE_IPV4	       ? IP4_HLEN + UDP_HLEN
			      : type == ETHERTYPE_IPV6 ? IP6_HLEN + UDP_HLEN
						       : GRH_HLEN);
	if (p->bth[BTH_OPCODE] == OPCODE_CNP) {
		check_cnp(p->bth, end);
		return false;
	}
	p->code = p->bth[BTH_OPCODE] & 0x1F;
	p->service = (enum wire_service)(p->bth[BTH_OPCODE] & 0xE0);
	p->group = frame[ETH_DST] & 1;
	if (p->code >= ARRAY_SIZE(name) || !name[p->code])
		return false;
	p->flags = p->bth[BTH_FLAGS];
	p->pad = p->flags >> BTH_PAD_SHIFT & 3;
	p->dest_qp = get_be32(p->bth + BTH_RESV8A);
	p->ackreq = p->bth[BTH_ACKREQ] & BTH_A;
	p->psn = get_be32(p->bth + BTH_ACKREQ) & SEQ24_MASK;
	eth = parse_service(p, p->bth + BTH_HLEN);
	eth += p->code == OP_FLUSH ? FETH_LEN : 0;
	if (has_reth(p->code)) {
		p->va = get_be64(eth);
		p->rkey = get_be32(eth + 8);
		p->dma_len = get_be32(eth + 12);
		eth += RETH_LEN;
	}
	if (is_atomic(p->code)) {
		p->va = get_be64(eth);
		p->rkey = get_be32(eth + 8);
		eth += ATOMICETH_LEN;
	}
	if (has_aeth(p->code)) {
		p->syndrome = eth[0];
		p->msn = get_be32(eth) & SEQ24_MASK;
		eth += AETH_LEN;
	}
	if (p->code == OP_ATOMIC_ACK) {
		p->orig = get_be64(eth);
		eth += ATOMICACK_LEN;
	}
	eth += has_imm(p->code) ? IMMDT_LEN : has_ieth(p->code) ? IETH_LEN : 0;
	p->payload = eth;
	assert_true(eth + p->pad + ICRC_LEN <= end);
	p->len = (uint32_t)(end - eth) - p->pad - ICRC_LEN;
	return true;
}

#define PKEY_BITS                                                                       \
	0xFFFF0000ull /* of the first word, as the little-endian hosts of tests load it \
		       */

/* Headers and payload but for AckReq, which may differ when it is sent again (REQ-48), and the
 * P_Key, which administrators change (BTH-11). */
static uint64_t packet_hash(const struct packet *p)
{
	size_t n = (size_t)(p->payload - p->bth) + p->len;
	uint64_t h = n, word = 0;

	for (size_t i = 0; i < n; i += sizeof(word)) {
		size_t part = n - i < sizeof(word) ? n - i : sizeof(word);

		word = 0;
		memcpy(&word, p->bth + i, part);
		if (i == 0)
			word &= ~PKEY_BITS;
		if (i == BTH_ACKREQ)
			word &= ~(uint64_t)BTH_A;
		h = (h ^ word) * 0x9E3779B97F4A7C15ull;
		h ^= h >> 29;
	}
	return h;
}

/* --- any packet ----------------------------------------------------------------------- */

static void check_bth(const struct packet *p)
{
	must((p->flags & 0x0F) == 0, p, "BTH-02", "TVer is not 0");
	must(p->dest_qp >> 24 == 0, p, "BTH-03", "reserved bits before DestQP are not 0");
	must((p->bth[BTH_ACKREQ] & 0x7F) == 0, p, "BTH-03",
		"reserved bits before the PSN are not 0");
	must(p->pad == (-p->len & 3), p, "BTH-05", "wrong pad count");
	for (uint32_t i = 0; i < p->pad; i++)
		must(p->payload[p->len + i] == 0, p, "BTH-05", "padding is not 0");
	if (p->code == OP_ATOMIC_WRITE)
		must(p->len == ATOMIC_LEN, p, "FLU-08", "not of eight bytes");
	else if (is_read_atomic(p->code) || p->code == OP_ACKNOWLEDGE || p->code == OP_ATOMIC_ACK)
		must(p->len == 0, p, "BTH-07", "payload in a packet that has none");
}

/* --- requests ------------------------------------------------------------------------- */

static struct wire_message *newest(struct wire_stream *s)
{
	return &s->msg[(s->messages - 1) % WIRECHECK_MESSAGES];
}

/* The message that @p psn belongs to; NULL when it is too old to be remembered. */
static struct wire_message *message_of(struct wire_stream *s, uint32_t psn)
{
	uint32_t kept = s->messages < WIRECHECK_MESSAGES ? s->messages : WIRECHECK_MESSAGES;

	for (uint32_t back = 1; back <= kept; back++) {
		struct wire_message *m = &s->msg[(s->messages - back) % WIRECHECK_MESSAGES];

		if (seq24_le(m->first_psn, psn))
			return m;
	}
	return NULL;
}

static uint32_t psns(const struct wire_stream *s, uint32_t len)
{
	return len ? (uint32_t)(((uint64_t)len + s->mtu - 1) / s->mtu) : 1;
}

static void begin_message(struct wire_stream *s, const struct packet *p)
{
	struct wire_message *m = &s->msg[s->messages++ % WIRECHECK_MESSAGES];

	*m = (struct wire_message){.first_psn = p->psn,
		.last_psn = p->psn,
		.number = s->messages & SEQ24_MASK,
		.read = is_read_atomic(p->code),
		.atomic = is_atomic(p->code),
		.once = is_flush_or_word(p->code),
		.va = p->va,
		.rkey = p->rkey,
		.srqn = p->srqn,
		.length = is_flush_or_word(p->code) ? 0 : p->dma_len};
	s->written = 0;
}

static void check_order(const struct wire_stream *s, const struct packet *p)
{
	bool open = s->open != NOTHING_OPEN && !is_last(s->open);

	if (is_first(p->code) || is_only(p->code) || is_read_atomic(p->code))
		/* UC-07: a sender that failed in the middle of one continues with the next. */
		must(!open || s->service == WIRE_UC, p, "RSP-05",
			"a message begins inside another");
	else
		must(open && is_write(s->open) == is_write(p->code), p, "RSP-06",
			"continues a message that is not open");
}

static void check_payload(struct wire_stream *s, const struct packet *p)
{
	if (is_first(p->code) || is_middle(p->code))
		must(p->len == s->mtu, p, "REQ-01", "not a whole MTU");
	else
		must(p->len <= s->mtu, p, "REQ-01", "more than the MTU");
	if (is_last(p->code) && !is_only(p->code) && !is_read_atomic(p->code))
		must(p->len > 0, p, "REQ-01", "an empty LAST");
	s->written += p->len;
	if (is_write(p->code) && is_last(p->code))
		must(s->written == newest(s)->length, p, "REQ-06",
			"DMALen is not what was written");
}

static void check_flags(const struct packet *p)
{
	bool receives = (!is_write(p->code) || has_imm(p->code)) && !is_read_atomic(p->code);

	if (is_last(p->code) && p->service != WIRE_UC)
		must(p->ackreq, p, "BTH-13", "the last packet asks for no ACK");
	if (!is_last(p->code) || !receives)
		must(!(p->flags & BTH_SE), p, "BTH-09", "SE where no receive completes");
}

static void new_request(struct wire_stream *s, const struct packet *p)
{
	struct wire_message *m;

	check_order(s, p);
	if (is_first(p->code) || is_only(p->code) || is_read_atomic(p->code))
		begin_message(s, p);
	m = newest(s);
	must(m->srqn == p->srqn, p, "XRC-03", "another SRQ than the packet before");
	check_payload(s, p);
	m->last_psn =
		p->code == OP_READ_REQUEST ? seq24_add(p->psn, psns(s, p->dma_len) - 1) : p->psn;
	m->complete = is_last(p->code);
	s->next_psn = seq24_add(m->last_psn, 1);
	s->open = p->code;
}

/* REQ-39: the rest of a READ, and nothing else. */
static void read_again(
	const struct wire_stream *s, const struct wire_message *m, const struct packet *p)
{
	uint64_t off = (uint64_t)seq24_diff(p->psn, m->first_psn) * s->mtu;

	must(m->read && !m->atomic && !m->once, p, "REQ-48", "was another opcode the first time");
	must(p->va == m->va + off && p->rkey == m->rkey, p, "REQ-39",
		"asks for other bytes than at first");
	must(off + p->dma_len == m->length, p, "REQ-39", "does not ask for the rest");
}

static void request_again(struct wire_stream *s, const struct packet *p)
{
	const struct wire_message *m = message_of(s, p->psn);

	must(seq24_le(s->first_psn, p->psn), p, "REQ-03", "before the first PSN");
	if (m && p->code == OP_READ_REQUEST)
		read_again(s, m, p);
}

/* UC-01: nothing is sent again. */
static void unreliable_request(struct wire_stream *s, const struct packet *p)
{
	must(!is_read_atomic(p->code) && !has_ieth(p->code), p, "UC-01", "no operation of UC");
	must(p->psn == s->next_psn, p, "REQ-03", "not the next PSN");
	check_flags(p);
	new_request(s, p);
}

static void request(struct wire_stream *s, const struct packet *p)
{
	uint32_t place = p->psn % WIRECHECK_PACKETS;
	bool again = seq24_lt(p->psn, s->next_psn);

	must(seq24_le(p->psn, s->next_psn), p, "REQ-03", "skips PSNs");
	check_flags(p);
	if (again)
		request_again(s, p);
	else
		new_request(s, p);
	if (p->code == OP_READ_REQUEST)
		return;
	if (again && s->sent[place].psn == p->psn)
		must(s->sent[place].hash == packet_hash(p), p, "REQ-48",
			"differs from the first attempt");
	s->sent[place].psn = p->psn;
	s->sent[place].hash = packet_hash(p);
}

/* --- datagrams ------------------------------------------------------------------------ */

static void datagram(struct wire_stream *s, const struct packet *p)
{
	must(p->code == OP_SEND_ONLY || p->code == OP_SEND_ONLY_WITH_IMM, p, "UD-01",
		"no operation of UD");
	must(p->len <= s->mtu, p, "UD-01", "more than a packet");
	must(p->src_qp >> 24 == 0, p, "BTH-24", "reserved bits before SrcQP are not 0");
	must(p->group == (p->dest_qp == QPN_MULTICAST), p, "MC-07", "QPN and MAC disagree");
	/* UD-04; of what goes to a group the sender's host gets a copy (MC-08). */
	must(p->psn == s->next_psn || (p->group && seq24_add(p->psn, 1) == s->next_psn) ||
			(s->gaps && seq24_lt(s->next_psn, p->psn)),
		p, "UD-04", "not the next PSN");
	s->next_psn = seq24_add(p->psn, 1);
}

/* --- responses ------------------------------------------------------------------------ */

/* RSP-25: of a coalesced ACK the MSN may be ahead of its PSN by READs alone. */
static void check_msn(struct wire_stream *s, const struct packet *p)
{
	bool before = p->code == OP_ACKNOWLEDGE && (p->syndrome & AETH_TYPE_MASK) != AETH_ACK;
	/* A NAK's PSN is the expected one: what is complete lies before it. */
	uint32_t psn = before ? seq24_add(p->psn, SEQ24_MASK) : p->psn;
	const struct wire_message *m = message_of(s, psn);
	uint32_t done;

	if (!m && seq24_lt(psn, s->first_psn))
		must(p->msn == 0 || !before || p->syndrome > NAK_PSN_SEQUENCE, p, "RSP-25",
			"MSN before the first message");
	if (!m)
		return;
	done = m->complete && seq24_le(m->last_psn, psn) ? m->number
							 : seq24_add(m->number, SEQ24_MASK);
	if (m->read && m->first_psn != psn && seq24_le(psn, m->last_psn))
		done = m->number; /* counted when it was accepted */
	while (done != p->msn && done < s->messages) {
		const struct wire_message *next = &s->msg[done % WIRECHECK_MESSAGES];

		if (!next->read)
			break;
		done = next->number;
	}
	/* A READ that fails while its responses are sent may be followed by later messages
	 * (RSP-31). */
	if (before && p->syndrome > NAK_PSN_SEQUENCE && seq24_lt(done, p->msn))
		must(seq24_le(p->msn, s->messages), p, "RSP-25", "MSN of what was not sent");
	else
		must(done == p->msn, p, "RSP-25", "wrong MSN");
}

static void check_nak(struct wire_stream *s, const struct packet *p)
{
	uint8_t type = p->syndrome & AETH_TYPE_MASK;

	must(type == AETH_ACK || type == AETH_RNR_NAK ||
			(type == AETH_NAK && (p->syndrome & AETH_CODE_MASK) <= 4),
		p, "RSP-02", "reserved syndrome");
	if (p->syndrome != NAK_PSN_SEQUENCE)
		return;
	must(!s->any_nak || seq24_lt(s->naked, p->psn), p, "RSP-03", "NAKed before");
	s->any_nak = true;
	s->naked = p->psn;
}

/* A READ or ATOMIC is acknowledged by its responses: an ACK in their place makes the requester
 * think that they were lost, or stands for some that were (REQ-38, RSP-39). */
static void check_ack(struct wire_stream *s, const struct packet *p)
{
	const struct wire_message *m = message_of(s, p->psn);

	if ((p->syndrome & AETH_TYPE_MASK) == AETH_ACK && m && seq24_le(p->psn, m->last_psn))
		must(!m->read, p, "RSP-39", "acknowledges a READ or an ATOMIC");
}

/* RSP-27: acknowledgements of later requests follow the responses of READs. */
static void check_overtaking(struct wire_stream *s, const struct packet *p)
{
	uint32_t kept = s->messages < WIRECHECK_MESSAGES ? s->messages : WIRECHECK_MESSAGES;

	for (uint32_t back = 1; back <= kept && back <= 64; back++) {
		const struct wire_message *m = &s->msg[(s->messages - back) % WIRECHECK_MESSAGES];

		if (m->read && seq24_lt(m->last_psn, p->psn))
			must(m->answered, p, "RSP-27", "overtakes READ responses");
	}
}

/* RSP-36: the same result each time. */
static void atomic_response(struct wire_stream *s, const struct packet *p)
{
	struct wire_message *m = message_of(s, p->psn);

	if (!m)
		return;
	must(m->atomic && m->first_psn == p->psn, p, "RSP-36", "answers no ATOMIC");
	must((p->syndrome & AETH_TYPE_MASK) == AETH_ACK, p, "REQ-43", "AETH is no ACK");
	must(p->msn == m->number, p, "RSP-25", "wrong MSN");
	must(!m->answered || m->orig == p->orig, p, "RSP-36", "another result than at first");
	m->orig = p->orig;
	m->answered = true;
}

static void read_response(struct wire_stream *s, const struct packet *p)
{
	struct wire_message *m = message_of(s, p->psn);
	uint64_t off;
	uint32_t left;

	if (!m)
		return;
	must(m->read && !m->atomic, p, "RSP-28", "answers no READ");
	off = (uint64_t)seq24_diff(p->psn, m->first_psn) * s->mtu;
	left = m->length - (uint32_t)off;
	must(p->len == (left < s->mtu ? left : s->mtu), p, "RSP-28", "wrong length");
	must((p->psn == m->last_psn) ==
			(p->code == OP_READ_RESP_LAST || p->code == OP_READ_RESP_ONLY),
		p, "RSP-28", "LAST in a wrong place");
	if (off == 0)
		must(p->code == OP_READ_RESP_FIRST || p->code == OP_READ_RESP_ONLY, p, "RSP-28",
			"does not begin with FIRST");
	if (has_aeth(p->code)) {
		must((p->syndrome & AETH_TYPE_MASK) == AETH_ACK, p, "REQ-43", "AETH is no ACK");
		must(p->msn == m->number, p, "RSP-25", "wrong MSN");
	}
	m->answered |= p->psn == m->last_psn;
}

static void response(struct wire_stream *s, const struct packet *p, bool stale)
{
	bool nak = p->code == OP_ACKNOWLEDGE && p->syndrome == NAK_PSN_SEQUENCE;

	must(seq24_lt(p->psn, s->next_psn) || (stale && nak && p->psn == s->next_psn), p, "RSP-23",
		"answers what was not asked");
	must(!p->ackreq && !(p->flags & BTH_SE), p, "RSP-50", "SE or AckReq in a response");
	if (p->code == OP_ATOMIC_ACK) {
		atomic_response(s, p);
		return;
	}
	if (p->code != OP_ACKNOWLEDGE) {
		read_response(s, p);
		return;
	}
	check_nak(s, p);
	check_ack(s, p);
	check_msn(s, p);
	check_overtaking(s, p);
}

/* --- connections ---------------------------------------------------------------------- */

void wirecheck_init(struct wirecheck *w)
{
	memset(w, 0, sizeof(*w));
}

void wirecheck_fini(struct wirecheck *w)
{
	for (unsigned i = 0; i < w->streams; i++)
		free(w->stream[i]);
}

static struct wire_stream *find(struct wirecheck *w, uint8_t host, uint32_t qpn, bool requests)
{
	for (unsigned i = 0; i < w->streams; i++) {
		struct wire_stream *s = w->stream[i];

		if (requests ? s->to_host == host && s->to_qpn == qpn
			     : s->from_host == host && s->from_qpn == qpn)
			return s;
	}
	return NULL;
}

void wirecheck_forget(struct wirecheck *w, uint8_t host, uint32_t qpn)
{
	for (unsigned i = w->streams; i-- > 0;) {
		struct wire_stream *s = w->stream[i];

		if ((s->to_host == host && s->to_qpn == qpn) ||
			(s->from_host == host && s->from_qpn == qpn)) {
			free(s);
			w->stream[i] = w->stream[--w->streams];
		}
	}
}

static void stream_begin(struct wirecheck *w, const struct wire_end *from,
	const struct wire_end *to, uint32_t mtu, enum wire_service service)
{
	struct wire_stream *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_true(w->streams < WIRECHECK_STREAMS);
	w->stream[w->streams++] = s;
	memset(s->sent, 0xFF, sizeof(s->sent));
	s->service = service;
	s->to_host = to->host;
	s->to_qpn = to->qpn;
	s->from_host = from->host;
	s->from_qpn = from->qpn;
	s->mtu = mtu;
	s->first_psn = from->sq_psn;
	s->next_psn = from->sq_psn;
	s->gaps = service == WIRE_UD && (w->direct >> from->host & 1);
	s->open = NOTHING_OPEN;
}

void wirecheck_connect_by(struct wirecheck *w, const struct wire_end *a, const struct wire_end *b,
	uint32_t mtu, enum wire_service service)
{
	wirecheck_forget(w, a->host, a->qpn);
	wirecheck_forget(w, b->host, b->qpn);
	if (a->host == b->host && (w->direct >> a->host & 1))
		return; /* packets are missing: nothing follows from those that are there */
	stream_begin(w, a, b, mtu, service);
	if (a->host != b->host || a->qpn != b->qpn) /* a QP that is connected to itself has one */
		stream_begin(w, b, a, mtu, service);
}

void wirecheck_connect(
	struct wirecheck *w, const struct wire_end *a, const struct wire_end *b, uint32_t mtu)
{
	wirecheck_connect_by(w, a, b, mtu, WIRE_RC);
}

void wirecheck_datagrams(struct wirecheck *w, const struct wire_end *from)
{
	const struct wire_end nobody = {0};

	wirecheck_forget(w, from->host, from->qpn);
	stream_begin(w, from, &nobody, PATH_MTU_MAX, WIRE_UD);
}

static void see(void *arg, const uint8_t *frame, size_t len, uint64_t now)
{
	struct wirecheck *w = arg;
	struct wire_stream *s;
	struct packet p;

	(void)now;
	if (!parse(frame, len, &p))
		return;
	w->frames++;
	s = p.service == WIRE_UD ? find(w, frame[ETH_SRC + 5], p.src_qp, false)
				 : find(w, frame[ETH_DST + 5], p.dest_qp, !is_response(p.code));
	if (!s) {
		w->strange++;
		return;
	}
	must(p.service == s->service, &p, "VAL-04", "of another service");
	check_bth(&p);
	if (p.service == WIRE_UD)
		datagram(s, &p);
	else if (p.service == WIRE_UC)
		unreliable_request(s, &p);
	else if (is_response(p.code))
		response(s, &p, w->stale);
	else
		request(s, &p);
}

void wirecheck_tap(struct wirecheck *w, struct sim_link *l)
{
	l->tap = (struct link_tap){.see = see, .arg = w};
}
