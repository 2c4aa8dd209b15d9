/* SPDX-License-Identifier: BSD-3-Clause */
#include "headers.h"
#include "opcode.h"
#include "oracle.h"
#include "peer.h"
#include "qp_impl.h"
#include "requester.h"
#include "seq24.h"
#include "wqe.h"
#include "write.h"

/* Packets on their way to the QP. */
struct volley {
	struct stage *s;
	const struct record *rec;
	unsigned n;
	uint8_t *frame[BURST];
	size_t len[BURST];
};

static int8_t added(const struct record *rec, unsigned at)
{
	return (int8_t)rec->b[at];
}

/* --- damage --------------------------------------------------------------------------- */

enum damage {
	DAMAGE_NONE,
	DAMAGE_ICRC,
	DAMAGE_LIMITED_PKEY, /* still ours */
	DAMAGE_PKEY,
	DAMAGE_GENERATION,
	DAMAGE_WORKER,
	DAMAGE_MULTICAST,
	DAMAGE_DMAC,
	DAMAGE_HEADER, /* a byte of the BTH or after it is another one */
	DAMAGE_CUT,
	DAMAGE_OPCODE,
	DAMAGE_TRAILER, /* none: Ethernet padding */
	DAMAGE_FROM,	/* somebody else */
	DAMAGE_NAME,	/* another Q_Key, or another SRQ */
	DAMAGES
};

static enum damage damage_of(const struct volley *v)
{
	unsigned victim = v->rec->b[13] % 8;

	return victim == v->n % 8 ? (enum damage)(v->rec->b[12] % DAMAGES) : DAMAGE_NONE;
}

static void damage_fields(struct pkt *p, enum damage d, uint8_t how)
{
	switch (d) {
	case DAMAGE_LIMITED_PKEY:
		p->pkey = 0x7FFF;
		break;
	case DAMAGE_PKEY:
		p->pkey = how;
		break;
	case DAMAGE_GENERATION:
		p->dest_qp ^= 1u << (QPN_SLOT_BITS + QPN_WORKER_BITS);
		break;
	case DAMAGE_WORKER:
		p->dest_qp ^= 1u << QPN_SLOT_BITS;
		break;
	case DAMAGE_MULTICAST:
		p->dest_qp = how & 1 ? 0 : QPN_MULTICAST;
		break;
	case DAMAGE_NAME:
		p->qkey ^= how | 1u;
		p->srqn ^= how | 1u;
		break;
	case DAMAGE_OPCODE:
		p->op = opcode_row(how)->hdr_len ? opcode_row(how) : p->op;
		break;
	default:
		break;
	}
}

static size_t damage_bytes(
	uint8_t *f, size_t len, const struct path *path, enum damage d, uint8_t how)
{
	size_t bth = path->hdr_len;

	switch (d) {
	case DAMAGE_ICRC:
		f[len - 1] ^= (uint8_t)(how | 1);
		break;
	case DAMAGE_DMAC:
		f[how % 6] ^= (uint8_t)(how | 1);
		break;
	case DAMAGE_HEADER:
		f[bth + how % 32 % (len - bth - ICRC_LEN)] ^= (uint8_t)(1u << (how >> 5));
		packet_seal(f + path->l3_off, path->net, len - path->l3_off);
		break;
	case DAMAGE_CUT:
		len -= 1 + how % (len - 1);
		break;
	case DAMAGE_TRAILER:
		memset(f + len, how, how % 32);
		len += how % 32;
		break;
	default:
		break;
	}
	return len;
}

/* --- delivery ------------------------------------------------------------------------- */

/* The same of another service; what that does not have becomes a reserved opcode. A datagram is a
 * message. */
static const struct opcode *of_service(uint8_t opc, const struct opcode *op)
{
	if (opc == OPC_UD && op->kind == KIND_SEND)
		return opcode_row(opc | (op->immdt ? OP_SEND_ONLY_WITH_IMM : OP_SEND_ONLY));
	return opcode_row(opc | op->code);
}

/* @p p says what the packet would be; op and payload_len count, payload is made here. */
static void add(struct volley *v, const struct pkt *fields)
{
	static uint8_t frame[FRAME_MAX + REGION_LEN], payload[FRAME_MAX + REGION_LEN];
	enum damage d = damage_of(v);
	uint8_t how = v->rec->b[14];
	struct stage *s = v->s;
	const struct path *path = &s->from[d == DAMAGE_FROM ? how % FROMS : FROM_PEER];
	struct pkt p = *fields;
	size_t len;

	p.dest_qp = s->qp->qp->qpn;
	p.pkey = 0xFFFF;
	p.migreq = 1;
	p.psn &= SEQ24_MASK;
	p.msn &= SEQ24_MASK;
	p.payload_len %= PATH_MTU_MAX + 64;
	p.qkey = s->attr.qkey;
	p.src_qp = STAGE_PEER_QPN;
	p.srqn = s->srq ? s->srq->srq.srqn : 0;
	if ((p.op->code & OPC_CLASS_MASK) == OPC_RC)
		p.op = of_service(s->qp->qp->opc, p.op);
	damage_fields(&p, d, how);
	memset(payload, (int)(p.psn + 1), p.payload_len);
	len = packet_write(frame, path, &p, payload);
	len = damage_bytes(frame, len, path, d, how);
	/* A block of its own: nobody may read beyond it. */
	v->frame[v->n] = malloc(len);
	MUST(v->frame[v->n]);
	memcpy(v->frame[v->n], frame, len);
	v->len[v->n++] = len;
	trace("  peer %s @%x +%u%s", p.op->name ? p.op->name : "?", p.psn, p.payload_len,
		p.ackreq ? "!" : "");
	if (p.op->reth)
		trace(" (%llx,%x,%u)", (unsigned long long)p.va, p.rkey, p.dma_len);
	if (p.op->aeth)
		trace(" %02x/%u", p.syndrome, p.msn);
	trace("%s\n", d ? " damaged" : "");
}

/* The word that an ATOMIC is for, as it was before. */
struct word {
	uint8_t *at; /* NULL: there is none */
	uint64_t before;
	uint32_t epsn;
};

static uint64_t operated(const struct pkt *p, uint64_t v)
{
	if ((p->op->code & OPC_OP_MASK) == OP_FETCH_ADD)
		return v + p->swap_add;
	return v == p->compare ? p->swap_add : v;
}

static struct word look(const struct stage *s, const struct pkt *p)
{
	struct word w = {.epsn = s->qp->qp->resp.epsn};

	if (p->op->kind == KIND_ATOMIC &&
		mr_resolve(&s->host->mrs, p->rkey, s->qp->qp->pd, ABI_ACCESS_REMOTE_ATOMIC, p->va,
			sizeof(w.before), &w.at) == MR_OK)
		memcpy(&w.before, w.at, sizeof(w.before));
	return w;
}

/* RSP-34, RSP-36: an ATOMIC is executed when it moves the expected PSN, once; otherwise the word
 * stays. */
static void check_word(struct stage *s, const struct pkt *p, const struct word *w)
{
	bool executed = s->qp->qp->resp.epsn != w->epsn;
	uint64_t want = executed ? operated(p, w->before) : w->before, now;

	if (!w->at)
		return;
	memcpy(&now, w->at, sizeof(now));
	MUST(now == want);
	if (executed)
		rules_executed(&s->rules, p->psn, w->before);
}

/* FLU-02, FLU-09: two others have a READ response of no bytes. */
static bool answered_as_read(const struct opcode *op)
{
	return op->kind == KIND_READ || op->kind == KIND_FLUSH || op->kind == KIND_ATOMIC_WRITE;
}

/* Some of a volley, in one burst. */
static void receive(struct volley *v, const struct pkt *pkts, unsigned n)
{
	struct stage *s = v->s;
	struct word word = look(s, pkts);
	uint16_t verdict[BURST];

	/* Sometimes the QP is another worker's. */
	s->host->core.cfg.worker = v->rec->b[12] == 0xFF;
	core_rx(&s->host->core, pkts, n, s->now, verdict);
	s->host->core.cfg.worker = 0;
	check_word(s, pkts, &word);
	for (unsigned i = 0; i < n; i++) {
		MUST(verdict[i] < DROP_MAX ||
			(verdict[i] == VERDICT_HANDOFF && v->rec->b[12] == 0xFF));
		s->received += verdict[i] == 0;
		if (answered_as_read(pkts[i].op) && verdict[i] == 0) {
			rules_asked(&s->rules, &pkts[i]);
			s->huge |=
				pkts[i].op->kind == KIND_READ && pkts[i].dma_len > 2 * REGION_LEN;
		}
		trace("  verdict %s\n", verdict[i] < DROP_MAX ? drop_name(verdict[i]) : "handoff");
	}
}

/* An ATOMIC is a burst of its own, so that its word can be looked at before and after. */
static unsigned burst_of(const struct pkt *pkts, unsigned n)
{
	unsigned i = 0;

	if (pkts[0].op->kind == KIND_ATOMIC)
		return 1;
	while (i < n && pkts[i].op->kind != KIND_ATOMIC)
		i++;
	return i;
}

static void deliver(struct volley *v)
{
	struct pkt pkts[BURST];
	struct stage *s = v->s;
	unsigned n = 0;

	for (unsigned i = 0; i < v->n; i++) {
		enum drop why;

		memset(&pkts[n], 0xEE, sizeof(pkts[n])); /* what is not filled in is garbage */
		pkts[n].port = 0;
		pkts[n].queue = PKT_NO_QUEUE;
		why = host_parse(&s->host->core, &pkts[n], v->frame[i], v->len[i]);
		if (why) {
			core_count_drop(&s->host->core, why);
			continue;
		}
		n++;
	}
	for (unsigned at = 0, some; at < n; at += some) {
		some = burst_of(pkts + at, n - at);
		receive(v, pkts + at, some);
	}
	for (unsigned i = 0; i < v->n; i++)
		free(v->frame[i]);
	v->n = 0;
}

/* --- requests ------------------------------------------------------------------------- */

/* Where the peer is in its stream of requests; it begins where the QP expects it. */
struct stream {
	uint32_t psn;
	uint8_t open; /* enum opcode_kind */
	uint32_t left;
};

enum kind {
	ASK_SEND,
	ASK_WRITE,
	ASK_READ,
	ASK_READ_AGAIN,
	ASK_ANYTHING,
	ASK_ATOMIC,
	ASKS
};

static uint32_t key_of(const struct stage *s, const struct record *rec)
{
	unsigned which = rec->b[5] % 8;

	if (which < REGIONS_ALL)
		return s->region[which].mr->key;
	return s->region[REGION_ALL].mr->key ^ (which == REGIONS_ALL ? 1 : 0x100u << which);
}

static uint64_t va_of(const struct stage *s, const struct record *rec, uint32_t len)
{
	unsigned which = rec->b[5] % 8 < REGIONS_ALL ? rec->b[5] % 8 : REGION_ALL;
	uint64_t at = s->region[which].mr->iova;

	switch (rec->b[7] % 4) {
	case 1: /* the last byte that there is, or a little further */
		return at + s->region[which].mr->length - len + (uint64_t)added(rec, 6);
	case 2:
		return at - rec->b[6];
	case 3:
		return UINT64_MAX - rec->b[6];
	default:
		return at + rec->b[6];
	}
}

static void set_reth(const struct stage *s, const struct record *rec, struct pkt *p, uint32_t len)
{
	p->rkey = key_of(s, rec);
	p->dma_len = len + (uint32_t)added(rec, 8);
	if (rec->b[5] % 8 == REGION_HUGE && rec->b[5] & 0x80)
		p->dma_len <<= 16;
	p->va = va_of(s, rec, p->dma_len);
}

static uint8_t send_write_opcode(const struct record *rec, unsigned kind, bool first, bool last)
{
	static const uint8_t part[2][2] = {
		{OP_SEND_MIDDLE, OP_SEND_LAST}, {OP_SEND_FIRST, OP_SEND_ONLY}};
	uint8_t op = part[first][last];

	if (kind == KIND_SEND && last && (rec->b[1] & PEER_INVALIDATE))
		return first ? OP_SEND_ONLY_WITH_INV : OP_SEND_LAST_WITH_INV;
	if (kind == KIND_WRITE)
		op += OP_WRITE_FIRST - OP_SEND_FIRST;
	return last && (rec->b[1] & PEER_IMM) ? op + 1 : op;
}

static void ask_send_write(struct volley *v, struct stream *st, unsigned kind, uint32_t len)
{
	const struct record *rec = v->rec;
	uint32_t mtu = 1u << v->s->qp->qp->mtu_shift;
	unsigned most = rec->b[9] ? rec->b[9] % 16 : 16;
	bool first = !st->open;

	if (first)
		st->left = len;
	while (most-- && v->n < BURST) {
		bool last = st->left <= mtu;
		struct pkt p = {
			.op = opcode_row(send_write_opcode(rec, kind, first, last)),
			.psn = st->psn + (uint32_t)added(rec, 2),
			.ackreq = !(rec->b[1] & PEER_NO_ACKREQ) && last,
			.se = !!(rec->b[1] & PEER_SOLICITED),
			.imm = 0xCAFE,
			.payload_len = (uint16_t)(last ? st->left : mtu),
		};

		set_reth(v->s, rec, &p, len);
		if (v->n == rec->b[13] % 8)
			p.payload_len = (uint16_t)(p.payload_len + (uint32_t)added(rec, 10));
		add(v, &p);
		st->psn = seq24_add(st->psn, 1);
		st->left -= last ? st->left : mtu;
		st->open = last ? KIND_NONE : (uint8_t)kind;
		first = false;
		if (last)
			return;
	}
}

static void ask_read(struct volley *v, struct stream *st, uint32_t len)
{
	struct pkt p = {.op = opcode_row(OPC_RC | OP_READ_REQUEST),
		.psn = st->psn + (uint32_t)added(v->rec, 2),
		.ackreq = !(v->rec->b[1] & PEER_NO_ACKREQ)};

	set_reth(v->s, v->rec, &p, len);
	add(v, &p);
	st->psn = seq24_add(st->psn, qp_packets(v->s->qp->qp, p.dma_len));
}

/* A part of a READ that was asked for before (RSP-40). */
static void ask_read_again(struct volley *v)
{
	const struct record *rec = v->rec;
	const struct rules *r = &v->s->rules;
	unsigned known = r->reads < RULES_READS ? r->reads : RULES_READS;
	const struct rules_read *old;
	struct pkt p = {.op = opcode_row(OPC_RC | OP_READ_REQUEST)};
	uint32_t skip;

	if (!known)
		return;
	old = &r->read[(r->reads - 1 - rec->b[3] % known) % RULES_READS];
	skip = rec->b[4] % qp_packets(v->s->qp->qp, old->dma_len);
	p.psn = old->psn + skip + (uint32_t)added(rec, 2);
	skip <<= v->s->qp->qp->mtu_shift;
	p.va = old->va + skip + rec->b[6];
	p.rkey = old->rkey ^ rec->b[5];
	p.dma_len = old->dma_len - skip + (uint32_t)added(rec, 8);
	add(v, &p);
}

/* Mostly of a word; operands from what the record has. */
static void ask_atomic(struct volley *v, struct stream *st)
{
	const struct record *rec = v->rec;
	struct pkt p = {.op = opcode_row(rec->b[1] & 1 ? OP_CMP_SWAP : OP_FETCH_ADD),
		.psn = st->psn + (uint32_t)added(rec, 2),
		.ackreq = !(rec->b[1] & PEER_NO_ACKREQ << 1),
		.swap_add = record_u16(rec, 3) + 1,
		.compare = rec->b[8] * 0x0101010101010101ull,
		.rkey = key_of(v->s, rec),
		.va = va_of(v->s, rec, sizeof(uint64_t))};

	add(v, &p);
	st->psn = seq24_add(st->psn, 1);
}

static void ask_anything(struct volley *v, struct stream *st, uint32_t len)
{
	const struct opcode *op = opcode_row(v->rec->b[1]);
	struct pkt p = {.psn = st->psn + (uint32_t)added(v->rec, 2), .ackreq = 1};

	p.op = op->hdr_len ? op : opcode_row(v->rec->b[1] & OPC_OP_MASK);
	p.payload_len = p.op->payload ? (uint16_t)len : 0;
	set_reth(v->s, v->rec, &p, len);
	p.syndrome = v->rec->b[9];
	p.swap_add = p.compare = len;
	add(v, &p);
}

void peer_request(struct stage *s, const struct record *rec)
{
	const struct qp_resp *r = &s->qp->qp->resp;
	uint32_t mtu = 1u << s->qp->qp->mtu_shift;
	struct volley v = {.s = s, .rec = rec};
	struct stream st = {.psn = r->epsn, .open = r->open, .left = r->write_left};
	uint32_t len = record_u16(rec, 3) % (4 * mtu) % (REGION_LEN + 8);

	if (r->open == KIND_SEND)
		st.left = len;
	for (unsigned i = 0; i <= rec->b[11] % 4u && v.n < BURST - 1; i++) {
		unsigned kind = (rec->b[0] & 0x7F) % ASKS;

		if (st.open && !(rec->b[0] & 0x80) && kind != ASK_READ_AGAIN &&
			kind != ASK_ANYTHING) {
			ask_send_write(&v, &st, st.open, st.left);
			continue;
		}
		if (kind < ASK_READ_AGAIN || kind == ASK_ATOMIC)
			st.open = KIND_NONE;
		if (kind == ASK_READ)
			ask_read(&v, &st, len);
		else if (kind == ASK_READ_AGAIN)
			ask_read_again(&v);
		else if (kind == ASK_ANYTHING)
			ask_anything(&v, &st, len);
		else if (kind == ASK_ATOMIC)
			ask_atomic(&v, &st);
		else
			ask_send_write(&v, &st, kind == ASK_SEND ? KIND_SEND : KIND_WRITE, len);
	}
	deliver(&v);
}

/* --- responses ------------------------------------------------------------------------ */

enum answer {
	ANSWER_NEXT,
	ANSWER_ACK,
	ANSWER_NAK,
	ANSWER_RNR,
	ANSWER_READ,
	ANSWER_ANYTHING,
	ANSWERS
};

static uint32_t outstanding(const struct qp *qp)
{
	return (qp->req.psn_new - qp->comp.una) & SEQ24_MASK;
}

/* The READ or ATOMIC whose responses are due, or NULL. */
static const struct send_wqe *head_read(const struct qp *qp)
{
	const struct send_wqe *w = qp_wqe(qp, qp->comp.head);

	if (!outstanding(qp) || qp->comp.head == qp->req.fetched || !wqe_has_response(w))
		return NULL;
	return w;
}

static void answer_aeth(struct volley *v, uint8_t syndrome, uint32_t psn)
{
	const struct qp *qp = v->s->qp->qp;
	struct pkt p = {.op = opcode_row(OPC_RC | OP_ACKNOWLEDGE),
		.psn = psn + (uint32_t)added(v->rec, 2),
		.syndrome = syndrome,
		.msn = qp->req.ssn + (uint32_t)added(v->rec, 4)};

	add(v, &p);
}

/* All that was sent, or less. */
static uint32_t acked_psn(const struct volley *v)
{
	const struct qp *qp = v->s->qp->qp;
	uint32_t out = outstanding(qp);

	return seq24_add(qp->req.psn_new, SEQ24_MASK - (out ? v->rec->b[3] % out : 0));
}

static void answer_read(struct volley *v, const struct send_wqe *w)
{
	const struct qp *qp = v->s->qp->qp;
	uint32_t mtu = 1u << qp->mtu_shift;
	unsigned most = v->rec->b[5] ? v->rec->b[5] % BURST : BURST;
	static const uint8_t part[2][2] = {
		{OP_READ_RESP_MIDDLE, OP_READ_RESP_LAST}, {OP_READ_RESP_FIRST, OP_READ_RESP_ONLY}};

	for (uint32_t psn = qp->comp.una; most-- && v->n < BURST; psn = seq24_add(psn, 1)) {
		uint32_t off = (uint32_t)seq24_diff(psn, w->first_psn) << qp->mtu_shift;
		bool last = psn == w->last_psn;
		bool first = psn == w->first_psn || psn == w->read_psn[0];
		struct pkt p = {.op = opcode_row(OPC_RC | part[first][last]),
			.psn = psn + (uint32_t)added(v->rec, 2),
			.syndrome = v->rec->b[1] ? v->rec->b[1] : AETH_CREDIT_NONE,
			.payload_len = (uint16_t)(last ? w->length - off : mtu)};

		if (v->n == v->rec->b[13] % 8) {
			p.payload_len = (uint16_t)(p.payload_len + (uint32_t)added(v->rec, 6));
			if (v->rec->b[7])
				p.op = opcode_row(OP_READ_RESP_FIRST + v->rec->b[7] % 4u);
		}
		add(v, &p);
		if (last)
			return;
	}
}

static void answer_atomic(struct volley *v, const struct send_wqe *w)
{
	struct pkt p = {.op = opcode_row(OPC_RC | OP_ATOMIC_ACK),
		.psn = w->first_psn + (uint32_t)added(v->rec, 2),
		.syndrome = v->rec->b[1] ? v->rec->b[1] : AETH_CREDIT_NONE,
		.msn = v->s->qp->qp->req.ssn,
		.atomic_orig = v->rec->b[6]};

	add(v, &p);
}

static void answer_head(struct volley *v, const struct send_wqe *w)
{
	if (wqe_is_atomic(w))
		answer_atomic(v, w);
	else
		answer_read(v, w);
}

static void answer_anything(struct volley *v)
{
	struct pkt p = {.op = opcode_row(OP_READ_RESP_FIRST + v->rec->b[1] % 6),
		.psn = v->s->qp->qp->comp.una + (uint32_t)added(v->rec, 2),
		.syndrome = v->rec->b[4]};

	p.payload_len = p.op->payload ? (uint16_t)(v->rec->b[6] << 4) : 0;
	add(v, &p);
}

void peer_response(struct stage *s, const struct record *rec)
{
	const struct qp *qp = s->qp->qp;
	const struct send_wqe *read = head_read(qp);
	struct volley v = {.s = s, .rec = rec};
	uint8_t code = rec->b[1] & AETH_CODE_MASK;

	switch (rec->b[0] % ANSWERS) {
	case ANSWER_NEXT:
		if (read)
			answer_head(&v, read);
		else if (outstanding(qp))
			answer_aeth(&v, AETH_CREDIT_NONE, acked_psn(&v));
		break;
	case ANSWER_ACK:
		answer_aeth(&v, rec->b[1] ? rec->b[1] : AETH_CREDIT_NONE, acked_psn(&v));
		break;
	case ANSWER_NAK:
		answer_aeth(&v, AETH_NAK | code, acked_psn(&v));
		break;
	case ANSWER_RNR:
		answer_aeth(&v, AETH_RNR_NAK | code, acked_psn(&v));
		break;
	case ANSWER_READ:
		if (read)
			answer_head(&v, read);
		break;
	default:
		answer_anything(&v);
		break;
	}
	if (v.n)
		deliver(&v);
}
