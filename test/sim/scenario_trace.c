/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "frame.h"
#include "headers.h"
#include "opcode.h"
#include "packet.h"
#include "scenario_trace.h"
#include "seq24.h"
#include "txd.h"

/* --- fate ----------------------------------------------------------------------------- */

static bool is_meant(const struct scenario_pick *pick, const struct pkt *pkt)
{
	uint8_t op = pkt->op->code & OPC_OP_MASK;

	if (pick->opcode == OPCODE_CNP || pkt->op->kind == KIND_CNP)
		return pick->opcode == pkt->op->code;
	if (pick->opcode != ANY_OPCODE && pick->opcode != op)
		return false;
	return !pick->syndrome || (op == OP_ACKNOWLEDGE && pkt->syndrome == pick->syndrome);
}

static unsigned fate_of(struct trace_end *e, const struct pkt *pkt)
{
	unsigned fate = LINK_PASS;

	for (unsigned i = 0; i < SCENARIO_PICKS && e->trace->row->pick[i].fate; i++) {
		const struct scenario_pick *pick = &e->trace->row->pick[i];
		uint32_t n;

		if (pick->from != e->side || !is_meant(pick, pkt))
			continue;
		n = e->seen[i]++;
		if (n >= pick->nth && n - pick->nth < (pick->times ? pick->times : 1))
			fate |= pick->fate;
	}
	return fate;
}

/* --- text ----------------------------------------------------------------------------- */

static const char *kind(const struct pkt *pkt)
{
	if (pkt->op->kind == KIND_CNP)
		return "CNP";
	if (pkt->op->kind != KIND_ACK)
		return pkt->op->name + strlen("RC_");
	switch (pkt->syndrome & AETH_TYPE_MASK) {
	case AETH_ACK:
		return "ACK";
	case AETH_RNR_NAK:
		return "RNR";
	default:
		return "NAK";
	}
}

static const char *fate_name(unsigned fate)
{
	return fate & LINK_LOSE		  ? " lost"
	       : fate & LINK_CORRUPT	  ? " corrupted"
	       : fate & LINK_TRUNCATE	  ? " truncated"
	       : !(fate & LINK_DUPLICATE) ? fate & LINK_REORDER ? " late" : ""
	       : fate & LINK_REORDER	  ? " twice late" /* the second one */
					  : " twice";
}

static void say(struct trace *t, int side, const struct pkt *pkt, unsigned fate)
{
	int stream = pkt->op->response ? !side : side;
	uint32_t first = t->pair->spec.attr[stream].sq_psn;
	char aeth[32] = "";

	if (pkt->op->kind == KIND_ACK && (pkt->syndrome & AETH_TYPE_MASK) != AETH_ACK)
		snprintf(aeth, sizeof(aeth), " %02X msn %u", pkt->syndrome, pkt->msn);
	else if (pkt->op->kind == KIND_ACK)
		snprintf(aeth, sizeof(aeth), " msn %u", pkt->msn);
	else if (pkt->op->kind == KIND_READ)
		snprintf(aeth, sizeof(aeth), " len %u", pkt->dma_len);
	if (t->used + 128 > TRACE_ROOM)
		return;
	t->used += (size_t)snprintf(t->text + t->used, TRACE_ROOM - t->used, "%c> %s %u%s%s\n",
		"AB"[side], kind(pkt), (pkt->psn - first) & SEQ24_MASK, aeth, fate_name(fate));
}

static unsigned fate(void *arg, const uint8_t *frame, size_t len)
{
	struct trace_end *e = arg;
	struct pkt pkt;
	unsigned what;

	assert_int_equal(frame_parse(&pkt, frame, len), DROP_NONE);
	what = fate_of(e, &pkt);
	say(e->trace, e->side, &pkt, what);
	return what;
}

void trace_init(struct trace *t, const struct scenario *row, struct pair *p)
{
	t->row = row;
	t->pair = p;
	for (int e = A; e < ENDS; e++) {
		t->end[e] = (struct trace_end){.trace = t, .side = e};
		p->end[e].link.pick = (struct link_pick){.fate = fate, .arg = &t->end[e]};
	}
}

void trace_ghost_ack(struct pair *p, int side, uint32_t ahead)
{
	struct pair_end *peer = &p->end[!side];
	struct link_tap tap = peer->link.tap;
	uint8_t frame[FRAME_MAX];
	struct txd t = {.frame = frame};
	uint32_t psn = seq24_add(p->end[side].qp->qp->req.psn_new, ahead);
	uint8_t *aeth = packet_begin(&peer->host->core.ip_id, peer->qp->qp, &t,
		OPC_RC | OP_ACKNOWLEDGE, 0, false, psn, 0);

	put_be32(aeth, (uint32_t)AETH_CREDIT_NONE << 24);
	peer->link.tap.see = NULL; /* nobody answers for it */
	link_send(&peer->link, frame, core_seal(&peer->host->core, &t), p->fabric.now);
	peer->link.tap = tap;
}
