/* SPDX-License-Identifier: BSD-3-Clause */
/* The n-th frame of a plan. */
#include <errno.h>
#include <stdio.h>
#include "bits.h"
#include "frame.h"
#include "icrc.h"
#include "opcode.h"
#include "plan.h"
#include "seq24.h"
#include "write.h"

/* --- which ------------------------------------------------------------------------------- */

/* Messages rotate through the QPs and the opcodes; all packets of one message go to the same QP. */
static uint64_t message_of(const struct plan *p, uint64_t i)
{
	return i / p->message;
}

static enum plan_place place_of(const struct plan *p, uint64_t i)
{
	uint64_t at = i % p->message;

	if (p->message == 1)
		return PLACE_ONLY;
	return at == 0 ? PLACE_FIRST : at + 1 == p->message ? PLACE_LAST : PLACE_MIDDLE;
}

static const struct plan_template *template_of(const struct plan *p, uint64_t i)
{
	return &p->template[message_of(p, i) % p->nops][place_of(p, i)];
}

/* Each QP has its own sequence of PSNs. */
static uint32_t psn_of(const struct plan *p, uint64_t i)
{
	uint64_t before = message_of(p, i) / p->nqps * p->message + i % p->message;

	return (uint32_t)(p->psn + before * p->psn_step) & SEQ24_MASK;
}

static bool each(uint32_t n, uint64_t i)
{
	return n && (i + 1) % n == 0;
}

/* --- templates --------------------------------------------------------------------------- */

static uint8_t opcode_at(const struct opcode *op, enum plan_place place)
{
	static const uint8_t send[] = {OP_SEND_ONLY, OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST};
	static const uint8_t write[] = {
		OP_WRITE_ONLY, OP_WRITE_FIRST, OP_WRITE_MIDDLE, OP_WRITE_LAST};

	if (place == PLACE_ONLY)
		return op->code;
	return (op->code & OPC_CLASS_MASK) | (op->kind == KIND_SEND ? send[place] : write[place]);
}

static int make_template(
	struct plan *p, struct plan_template *t, const struct opcode *op, char why[PLAN_WHY])
{
	static uint8_t frame[WRITE_MAX];
	static uint8_t payload[PLAN_FRAME];
	struct pkt pkt = {
		.op = op,
		.migreq = 1,
		.pkey = (uint16_t)p->pkey,
		.payload_len = (uint16_t)(op->payload ? p->size : 0),
		.va = p->va,
		.rkey = p->rkey,
		.dma_len = op->kind == KIND_READ ? p->size : p->size * p->message,
		.qkey = p->qkey,
		.src_qp = 2,
		.syndrome = (uint8_t)p->syndrome,
		.pad = -p->size & 3,
	};

	if (op->code == OPCODE_CNP) /* 16 reserved bytes, zero */
		pkt.payload_len = 16;
	for (unsigned i = 0; op->payload && i < p->size; i++)
		payload[i] = (uint8_t)i;
	t->len = packet_write(frame, &p->path, &pkt, payload);
	if (t->len > sizeof(t->frame)) {
		snprintf(why, PLAN_WHY, "--size %u makes frames of %zu bytes: at most %u", p->size,
			t->len, PLAN_FRAME);
		return -EINVAL;
	}
	memcpy(t->frame, frame, t->len);
	return 0;
}

/* A Fast CNP for each QPN: its BTH is not where those of other packets are. */
static int make_fast(const struct plan *p, struct plan_template *t, char why[PLAN_WHY])
{
	static const uint8_t trace[FAST_CNP_TRACE_MAX] = {0, 1};
	uint8_t type = p->trace ? FAST_CNP_TYPE_TRACE : FAST_CNP_TYPE_PLAIN;
	struct fast_cnp_spec s = {.vid = p->source.vid,
		.pcp = p->way.pcp,
		.dest_qpn = p->qpn[0],
		.pkey = (uint16_t)p->pkey,
		.tclass = p->way.traffic_class,
		.hop_limit = p->way.hop_limit,
		.sport = path_sport(&p->path),
		.flow_label = path_flow_label(&p->path),
		.becn = true,
		.type = p->option ? (uint8_t)p->option : type,
		.trace = p->trace ? trace : NULL,
		.trace_len = (uint8_t)p->trace};

	if (p->source.net != NET_IPV6 || p->nqps > 1) {
		snprintf(why, PLAN_WHY,
			"--fast-cnp uses IPv6 and names one QP: give --src and --dst as IPv6 "
			"addresses, and one --qpn");
		return -EINVAL;
	}
	memcpy(s.dmac, p->way.dmac, sizeof(s.dmac));
	memcpy(s.smac, p->source.mac, sizeof(s.smac));
	memcpy(s.source, p->source.gid, sizeof(s.source));
	memcpy(s.dest, p->way.dgid, sizeof(s.dest));
	memcpy(s.dip, p->dip, sizeof(s.dip));
	t->len = fast_write(t->frame, &s, p->fault);
	return 0;
}

static bool splits(const struct opcode *op)
{
	return op->first && op->last && !op->immdt && !op->ieth &&
	       (op->kind == KIND_SEND || op->kind == KIND_WRITE);
}

int plan_ready(struct plan *p, char why[PLAN_WHY])
{
	if (!p->nops)
		p->op[p->nops++] = opcode_row(OPC_RC | OP_WRITE_ONLY);
	if (!p->nqps)
		p->qpn[p->nqps++] = 0x11;
	p->way.sgid = &p->source;
	p->way.hop_limit = 64;
	p->way.dst_qpn = p->qpn[0];
	p->icrc = icrc_best();
	path_init(&p->path, &p->way);
	if (p->fast) {
		p->message = 1;
		p->nops = 1;
		return make_fast(p, &p->template[0][PLACE_ONLY], why);
	}
	for (unsigned i = 0; i < p->nops; i++) {
		if (p->message > 1 && !splits(p->op[i])) {
			snprintf(why, PLAN_WHY,
				"--message %u: %s has no FIRST, MIDDLE and LAST: use SEND_ONLY or "
				"WRITE_ONLY",
				p->message, p->op[i]->name);
			return -EINVAL;
		}
		for (unsigned place = 0; place < (p->message > 1 ? PLACES : 1u); place++) {
			uint8_t code = opcode_at(p->op[i], place);

			if (make_template(p, &p->template[i][place], opcode_row(code), why))
				return -EINVAL;
		}
	}
	return 0;
}

/* --- frames ------------------------------------------------------------------------------ */

/* Congestion experienced: a variant field, so the ICRC does not change; the IPv4 checksum does. */
static void mark_ce(const struct plan *p, uint8_t *l3)
{
	uint32_t sum;

	if (p->path.net != NET_IPV4) {
		l3[1] |= ECN_CE << 4;
		return;
	}
	l3[IP4_TOS] |= ECN_CE;
	sum = (uint16_t)~get_be16(l3 + IP4_CSUM) + ECN_CE;
	put_be16(l3 + IP4_CSUM, (uint16_t) ~((sum & 0xFFFF) + (sum >> 16)));
}

size_t plan_length(const struct plan *p, uint64_t i)
{
	return template_of(p, i)->len;
}

void plan_frame(const struct plan *p, uint64_t i, uint8_t *frame)
{
	const struct plan_template *t = template_of(p, i);
	uint8_t *l3 = frame + p->path.l3_off;
	uint8_t *bth = frame + p->path.hdr_len;
	size_t covered = t->len - p->path.l3_off - ICRC_LEN;
	uint32_t crc;

	memcpy(frame, t->frame, t->len);
	if (p->fast)
		return;
	put_be32(bth + BTH_RESV8A, p->qpn[message_of(p, i) % p->nqps]);
	put_be32(bth + BTH_ACKREQ, (each(p->ackreq, i) ? (uint32_t)BTH_A << 24 : 0) | psn_of(p, i));
	if (each(p->ce, i))
		mark_ce(p, l3);
	crc = icrc_header(p->icrc, l3, p->path.net, covered);
	icrc_store(l3 + covered, each(p->bad_icrc, i) ? crc ^ 1 : crc);
}
