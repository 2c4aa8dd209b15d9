/* SPDX-License-Identifier: BSD-3-Clause */
/* RC responder, send side: READ and ATOMIC responses, ACKs and NAKs. FLUSH and ATOMIC WRITE are
 * answered like a READ of zero bytes (FLU-02, FLU-09). */
#include "core.h"
#include "mr.h"
#include "mw.h"
#include "packet.h"
#include "responder.h"
#include "seq24.h"
#include "txd.h"

static void write_aeth(uint8_t *aeth, uint8_t syndrome, uint32_t msn)
{
	put_be32(aeth, (uint32_t)syndrome << 24 | msn);
}

/* No end-to-end credits are generated: code 31 (CRD-02, SRQ-06). */
#define SYNDROME_ACK (AETH_ACK | AETH_CREDIT_NONE)

/* RSP-50: no flags, no AckReq, no payload that would need a pad. */
static void build_ack(
	struct core *c, struct qp *qp, struct txd *t, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	write_aeth(packet_begin(&c->ip_id, qp, t, qp->opc | OP_ACKNOWLEDGE, 0, false, psn, 0),
		syndrome, msn);
	c->count.tx_acks++;
}

/* --- READ responses ------------------------------------------------------------------- */

static uint8_t read_resp_opcode(bool first, bool last)
{
	static const uint8_t part[2][2] = {/* [first][last]: RSP-28 */
		{OP_READ_RESP_MIDDLE, OP_READ_RESP_LAST}, {OP_READ_RESP_FIRST, OP_READ_RESP_ONLY}};

	return part[first][last];
}

struct resp_res *responder_pending(struct qp_resp *r)
{
	for (; r->res_next != r->res_head; r->res_next++) {
		struct resp_res *res = &r->res[r->res_next % RD_ATOMIC_MAX];

		if (res->next_psn != res->end_psn)
			return res;
		if (r->res_done == r->res_next)
			r->res_done++;
	}
	return NULL;
}

/* Builds one response of @p res. The key is looked up for each: the region may be deregistered
 * meanwhile, and a NAK in place of the response tells the requester (RSP-31). */
static bool build_read_resp(
	struct core *c, struct qp *qp, struct resp_res *res, struct txd *t, uint64_t now)
{
	uint32_t psn = res->next_psn; /* RSP-28 */
	uint32_t off = ((psn - res->exec_psn) & SEQ24_MASK) << qp->mtu_shift;
	uint32_t left = res->exec_len - off;
	uint32_t mtu = 1u << qp->mtu_shift;
	uint32_t len = left < mtu ? left : mtu;
	uint8_t code =
		qp->opc | read_resp_opcode(psn == res->exec_psn, seq24_add(psn, 1) == res->end_psn);
	uint8_t *ptr = NULL;
	uint8_t *eth;

	/* RSP-31, EVT-03, and RSP-41 for duplicates. */
	if (len && rkey_resolve(c->cfg.mrs, res->rkey, res->pd, qp->qpn, ABI_ACCESS_REMOTE_READ,
			   res->exec_va + off, len, &ptr) != MR_OK) {
		cause_key(c, qp, CAUSE_READ_RKEY_GONE, res->rkey, res->exec_va + off, len,
			ABI_ACCESS_REMOTE_READ);
		responder_read_failed(c, qp, NAK_REMOTE_ACCESS, psn, ABI_EVENT_QP_ACCESS_ERR, now);
		return false;
	}
	eth = packet_begin(&c->ip_id, qp, t, code, 0, false, psn, len);
	if (opcode_row(code)->aeth)
		write_aeth(eth, SYNDROME_ACK, res->msn);
	if (len) /* RSP-53, RSP-42: memory is read now, after earlier requests wrote theirs */
		packet_payload(t, ptr, len, res->rkey);
	res->next_psn = seq24_add(psn, 1);
	qp->tx_call = c->tx_call; /* no window of it is retired before this is sealed */
	return true;
}

/* RSP-47; RSP-22: also the NAK of an ERR QP, and what precedes it. */
static bool may_respond(const struct qp *qp)
{
	return qp->state >= ABI_QPS_RTR && (qp->state != ABI_QPS_ERR || qp->resp.drain);
}

/* Whether @p res waits with one response for all of its bytes. */
static bool is_whole(const struct resp_res *res)
{
	return res->kind == KIND_READ && !res->ack_first && res->exec_len &&
	       res->end_psn == seq24_add(res->exec_psn, 1);
}

/* As build_read_resp(), for a slot that is_whole(), of RC. @return false when its key is a window's
 * or does not allow it: build_read_resp() decides. */
static ALWAYS_INLINE bool build_whole_resp(
	struct core *c, struct qp *qp, struct resp_res *res, struct txd *t)
{
	uint8_t *ptr;

	if (mr_resolve(c->cfg.mrs, res->rkey, res->pd, ABI_ACCESS_REMOTE_READ, res->exec_va,
		    res->exec_len, &ptr) != MR_OK)
		return false;
	write_aeth(packet_begin(&c->ip_id, qp, t, OP_READ_RESP_ONLY, 0, false, res->next_psn,
			   res->exec_len),
		SYNDROME_ACK, res->msn);
	packet_payload(t, ptr, res->exec_len, res->rkey);
	res->next_psn = res->end_psn;
	return true;
}

unsigned responder_read_responses(struct core *c, struct qp *qp, struct txd out[], unsigned n)
{
	struct resp_res *res;
	unsigned got = 0;

	if (!c->fast_paths || c->careful || qp->opc != OPC_RC || !may_respond(qp))
		return 0;
	while (got < n && (res = responder_pending(&qp->resp)) && is_whole(res) &&
		build_whole_resp(c, qp, res, &out[got]))
		got++;
	return got;
}

/* RSP-36: the saved result. */
static void build_atomic_ack(struct core *c, struct qp *qp, struct resp_res *res, struct txd *t)
{
	uint8_t *eth = packet_begin(
		&c->ip_id, qp, t, qp->opc | OP_ATOMIC_ACK, 0, false, res->first_psn, 0);

	write_aeth(eth, SYNDROME_ACK, res->msn);
	put_be64(eth + AETH_LEN, res->orig); /* RSP-33 */
	res->next_psn = res->end_psn;
}

/* Builds the next response of @p res, the oldest slot with any left. */
static bool next_response(
	struct core *c, struct qp *qp, struct resp_res *res, struct txd *t, uint64_t now)
{
	if (res->ack_first) {
		res->ack_first = false;
		build_ack(c, qp, t, SYNDROME_ACK, seq24_add(res->first_psn, SEQ24_MASK),
			seq24_add(res->msn, SEQ24_MASK));
		return true;
	}
	if (res->kind == KIND_ATOMIC) {
		build_atomic_ack(c, qp, res, t);
		return true;
	}
	return build_read_resp(c, qp, res, t, now);
}

/* --- ACKs and NAKs after them -------------------------------------------------------- */

static void next_owed(struct core *c, struct qp *qp, struct txd *t)
{
	struct qp_resp *r = &qp->resp;

	if (r->owed == OWE_ACK)
		build_ack(c, qp, t, SYNDROME_ACK, r->ack_psn, r->msn); /* RSP-23, RSP-39 */
	else
		build_ack(c, qp, t, r->syndrome, r->nak_psn, r->msn); /* RSP-26 */
	r->owed = OWE_NOTHING;
	r->drain = false;
}

bool responder_next_is_free(const struct qp *qp)
{
	const struct qp_resp *r = &qp->resp;
	const struct resp_res *res;

	for (uint32_t i = r->res_next; i != r->res_head; i++) {
		res = &r->res[i % RD_ATOMIC_MAX];
		if (res->next_psn != res->end_psn)
			return res->ack_first || res->kind == KIND_ATOMIC || !res->exec_len;
	}
	return r->owed != OWE_NOTHING;
}

bool responder_next(struct core *c, struct qp *qp, struct txd *t, uint64_t now)
{
	struct resp_res *res;

	if (!may_respond(qp))
		return false;
	res = responder_pending(&qp->resp); /* RSP-27 */
	if (res && next_response(c, qp, res, t, now))
		return true;
	if (qp->resp.owed == OWE_NOTHING)
		return false;
	next_owed(c, qp, t);
	return true;
}
