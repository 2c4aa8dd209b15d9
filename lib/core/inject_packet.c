/* SPDX-License-Identifier: BSD-3-Clause */
/* Effect of a fault on one packet: does it match, is it its turn, and which bytes change. */
#include "from_peer.h"
#include "headers.h"
#include "icrc.h"
#include "inject.h"
#include "qp_impl.h"
#include "seq24.h"
#include "trace.h"

const char *const inject_names[ABI_FAULT_KINDS + 1] = {
	[ABI_FAULT_NONE] = "none",
	[ABI_FAULT_DROP] = "drop",
	[ABI_FAULT_DUPLICATE] = "duplicate",
	[ABI_FAULT_DELAY] = "delay",
	[ABI_FAULT_REORDER] = "reorder",
	[ABI_FAULT_RNR] = "rnr",
	[ABI_FAULT_ICRC] = "icrc",
	[ABI_FAULT_CORRUPT] = "corrupt",
	[ABI_FAULT_ECN] = "ecn",
	[ABI_FAULT_SYNDROME] = "syndrome",
	[ABI_FAULT_MSN] = "msn",
	[ABI_FAULT_PSN] = "psn",
	[ABI_FAULT_OPCODE] = "opcode",
	[ABI_FAULT_PKEY] = "pkey",
	[ABI_FAULT_QPN] = "qpn",
};

/* --- which packets ------------------------------------------------------------------------ */

static uint32_t answer_bit(const struct pkt *pkt)
{
	switch (pkt->syndrome & AETH_TYPE_MASK) {
	case AETH_RNR_NAK:
		return ABI_FAULT_RNR_NAK;
	case AETH_NAK:
		return ABI_FAULT_NAK;
	default:
		return ABI_FAULT_ACK;
	}
}

static uint32_t what_bit(const struct pkt *pkt)
{
	static const uint32_t bits[] = {
		[KIND_SEND] = ABI_FAULT_SEND,
		[KIND_WRITE] = ABI_FAULT_WRITE,
		[KIND_READ] = ABI_FAULT_READ,
		[KIND_READ_RESP] = ABI_FAULT_READ_RESPONSE,
		[KIND_ATOMIC_ACK] = ABI_FAULT_ATOMIC_RESPONSE,
		[KIND_ATOMIC] = ABI_FAULT_ATOMIC,
		[KIND_FLUSH] = ABI_FAULT_FLUSH,
		[KIND_ATOMIC_WRITE] = ABI_FAULT_ATOMIC_WRITE,
	};

	if (pkt->op->kind == KIND_ACK)
		return answer_bit(pkt);
	return pkt->op->kind < ARRAY_SIZE(bits) ? bits[pkt->op->kind] : 0;
}

static uint32_t place_bit(const struct opcode *op)
{
	static const uint32_t bits[2][2] = {/* [first][last] */
		{ABI_FAULT_MIDDLE, ABI_FAULT_LAST}, {ABI_FAULT_FIRST, ABI_FAULT_ONLY}};

	return bits[op->first][op->last];
}

static bool in_group(uint32_t wanted, uint32_t group, uint32_t bit)
{
	return !(wanted & group) || (wanted & bit);
}

static bool fits(const struct abi_fault *f, const struct pkt *pkt)
{
	if ((f->flags & ABI_FAULT_PSNS) && !seq24_between(pkt->psn, f->psn_first, f->psn_last))
		return false;
	return in_group(f->packets, ABI_FAULT_WHAT, what_bit(pkt)) &&
	       in_group(f->packets, ABI_FAULT_PLACE, place_bit(pkt->op));
}

/* Whether the responder would execute @p pkt now: only then is an RNR NAK truthful. */
static bool can_be_refused(const struct core *c, const struct qp *qp, const struct pkt *pkt)
{
	const unsigned receiving = 1u << ABI_QPS_RTR | 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD;

	return pkt->op->request && qp->reliable && qp->type != ABI_QPT_XRC_SEND &&
	       (pkt->op->code & OPC_CLASS_MASK) == qp->opc && (receiving >> qp->state & 1) &&
	       pkt->psn == qp->resp.epsn && qp_is_from_peer(qp, pkt) &&
	       pkey_match(pkt->pkey, qp->pkey) && icrc_check(c->cfg.icrc, pkt);
}

/* Offset from the BTH of the byte to change. */
static uint32_t corrupt_at(const struct abi_fault *f, const struct pkt *pkt)
{
	uint32_t payload = (uint32_t)(pkt->payload - pkt->bth);

	return f->flags & ABI_FAULT_IN_PAYLOAD ? payload + f->offset : f->offset;
}

/* Whether the packet has the field that the fault changes. */
static bool has_target(
	const struct core *c, const struct qp *qp, const struct abi_fault *f, const struct pkt *pkt)
{
	switch (f->kind) {
	case ABI_FAULT_RNR:
		return can_be_refused(c, qp, pkt);
	case ABI_FAULT_SYNDROME:
	case ABI_FAULT_MSN:
		return pkt->op->aeth;
	case ABI_FAULT_CORRUPT:
		return (f->flags & ABI_FAULT_IN_PAYLOAD)
			       ? f->offset < pkt->payload_len
			       : f->offset < pkt->icrc_off - (uint32_t)(pkt->bth - pkt->l3);
	default:
		return true;
	}
}

/* Whether it is the turn of matching packet @p n, counted from 1. */
static bool is_turn(const struct abi_fault *f, uint64_t n)
{
	return n >= f->nth && (f->every <= 1 || (n - f->nth) % f->every == 0);
}

static bool happens(struct inject_rule *r)
{
	if (!is_turn(&r->fault, r->matched) || inject_is_spent(r))
		return false;
	return r->fault.chance >= ABI_FAULT_ALWAYS ||
	       random_below(&r->random, ABI_FAULT_ALWAYS) < r->fault.chance;
}

/* --- changes to the packet ------------------------------------------------------------------- */

/* @return the byte that @p at points to, in the frame to be changed. */
static uint8_t *byte_of(const struct inject_victim *v, const uint8_t *at)
{
	return v->frame + (at - v->pkt->dmac);
}

static uint32_t changed_psn(const struct abi_fault *f, uint32_t was)
{
	return f->flags & ABI_FAULT_ADD ? seq24_add(was, f->value & SEQ24_MASK)
					: f->value & SEQ24_MASK;
}

static void put_low24(uint8_t *word, uint32_t v)
{
	put_be32(word, (uint32_t)word[0] << 24 | v);
}

static void set_ip4_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	put_be16(ip + IP4_CSUM, 0);
	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(ip + i);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum += sum >> 16;
	put_be16(ip + IP4_CSUM, (uint16_t)~sum);
}

/* The ICRC does not cover the codepoint, but the IPv4 checksum does. */
static void set_ecn(const struct inject_victim *v, uint32_t codepoint)
{
	uint8_t *l3 = byte_of(v, v->pkt->l3);

	if (v->pkt->net == NET_IPV4) {
		l3[IP4_TOS] = (uint8_t)((l3[IP4_TOS] & ~3u) | codepoint);
		set_ip4_checksum(l3);
	} else { /* low end of the traffic class */
		l3[1] = (uint8_t)((l3[1] & ~0x30u) | codepoint << 4);
	}
}

static void change_bytes(const struct inject_victim *v, const struct abi_fault *f)
{
	const struct pkt *pkt = v->pkt;
	uint8_t *bth = byte_of(v, pkt->bth);
	uint8_t *aeth = bth + BTH_HLEN;

	switch (f->kind) {
	case ABI_FAULT_CORRUPT:
		bth[corrupt_at(f, pkt)] ^= (uint8_t)f->mask;
		break;
	case ABI_FAULT_ECN:
		set_ecn(v, f->value & 3);
		break;
	case ABI_FAULT_SYNDROME:
		aeth[0] = (uint8_t)f->value;
		break;
	case ABI_FAULT_MSN:
		put_low24(aeth, changed_psn(f, pkt->msn));
		break;
	case ABI_FAULT_PSN:
		put_low24(bth + BTH_ACKREQ, changed_psn(f, pkt->psn));
		break;
	case ABI_FAULT_OPCODE:
		bth[BTH_OPCODE] = (uint8_t)f->value;
		break;
	case ABI_FAULT_PKEY:
		put_be16(bth + BTH_PKEY, (uint16_t)f->value);
		break;
	case ABI_FAULT_QPN:
		put_low24(bth + BTH_RESV8A, f->value & SEQ24_MASK);
		break;
	default: /* the ICRC only */
		break;
	}
}

/* A received frame is not ours to change: a copy is changed. */
static bool make_changeable(struct qp *qp, struct inject_victim *v)
{
	if (v->frame)
		return true;
	if (v->len > FRAME_MAX)
		return false;
	v->frame = qp->inject->scratch;
	memcpy(v->frame, v->pkt->dmac, v->len);
	return true;
}

static void change(struct qp *qp, struct inject_victim *v, const struct abi_fault *f)
{
	if (!make_changeable(qp, v))
		return;
	v->changed = true;
	if (f->kind == ABI_FAULT_ICRC)
		v->icrc_mask ^= f->mask;
	change_bytes(v, f);
}

static void apply(struct qp *qp, struct inject_victim *v, struct inject_rule *r)
{
	const struct abi_fault *f = &r->fault;

	switch (f->kind) {
	case ABI_FAULT_DROP:
		v->lost = true;
		break;
	case ABI_FAULT_DUPLICATE:
		v->twice = true;
		v->holder = r;
		break;
	case ABI_FAULT_DELAY:
	case ABI_FAULT_REORDER:
		v->time = f->time;
		v->waits = f->kind == ABI_FAULT_REORDER ? f->value : 0;
		v->holder = r;
		break;
	case ABI_FAULT_RNR:
		v->refused = true;
		v->timer = f->flags & ABI_FAULT_QP_TIMER ? qp->attr.min_rnr_timer
							 : f->value & AETH_CODE_MASK;
		break;
	default:
		change(qp, v, f);
		break;
	}
}

/* Only the ICRC's own faults leave it wrong. */
static void set_icrc(const struct core *c, const struct inject_victim *v)
{
	const struct pkt *pkt = v->pkt;
	uint8_t *l3 = byte_of(v, pkt->l3);
	uint8_t *icrc = l3 + pkt->icrc_off;

	icrc_store(icrc, icrc_header(c->cfg.icrc, l3, pkt->net, pkt->icrc_off));
	put_be32(icrc, get_be32(icrc) ^ v->icrc_mask);
}

void inject_spoil(struct core *c, struct qp *qp, struct inject_victim *v, uint64_t now)
{
	const struct pkt *pkt = v->pkt;

	for (unsigned i = 0; i < INJECT_RULES && !v->lost && !v->refused; i++) {
		struct inject_rule *r = &qp->inject->rule[i];
		const struct abi_fault *f = &r->fault;

		if (!r->id || f->direction != v->direction || !fits(f, pkt) ||
			!has_target(c, qp, f, pkt))
			continue;
		r->matched++;
		if (!happens(r))
			continue;
		r->hits++;
		c->count.injected_faults++;
		v->fault = f->kind;
		apply(qp, v, r);
		if (unlikely(qp->traced))
			trace_inject(c, qp, pkt, r, now);
	}
	if (v->changed)
		set_icrc(c, v);
}
