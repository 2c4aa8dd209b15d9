/* SPDX-License-Identifier: BSD-3-Clause */
/* Completes a packet: payload, pad and ICRC. packet.h writes its headers. */
#include "completer.h"
#include "core_memory.h"
#include "headers.h"
#include "icrc.h"
#include "named.h"
#include "opcode.h"
#include "qp_impl.h"
#include "responder.h"
#include "seal.h"
#include "seq24.h"
#include "trace.h"
#include "txd.h"
#include "txd_bth.h"
#include "uaccess.h"

/* Whether a NAK can still replace the READ response with PSN @p psn: in ERR only if one is owed for
 * a later PSN. */
static bool may_nak(const struct qp *qp, uint32_t psn)
{
	const struct qp_resp *r = &qp->resp;

	return qp->state != ABI_QPS_ERR || (r->drain && seq24_lt(psn, r->nak_psn));
}

/* Application memory faulted while @p t was sealed. A NAK replaces a READ response, because the
 * peer waits for it (RSP-31). A fault of a reliable requester stays local. On an unreliable QP the
 * request fails like any that cannot be sent (REQ-18, UC-11). */
static void stop(struct core *c, struct qp *qp, const struct txd *t)
{
	const uint8_t *bth = txd_bth(t);
	uint32_t psn = get_be32(bth + BTH_ACKREQ) & SEQ24_MASK;

	c->count.access_faults++;
	if (opcode_row(bth[BTH_OPCODE])->response) {
		cause_plain(qp, CAUSE_SOURCE_FAULT, 0);
		/* EVT-03 */
		if (may_nak(qp, psn))
			responder_read_failed(
				c, qp, NAK_REMOTE_OP, psn, ABI_EVENT_QP_FATAL, c->tx_now);
		return;
	}
	if (qp->state >= ABI_QPS_SQE)
		return;
	cause_plain(qp, CAUSE_SOURCE_FAULT, 1);
	if (!qp->reliable) {
		completer_source_fault(c, qp, psn, c->tx_now);
		return;
	}
	qp_event(c, qp, ABI_EVENT_QP_FATAL); /* EVT-03 */
	qp_error(c, qp, c->tx_now);
}

static void seal_failed(struct core *c, struct qp *qp, const struct txd *t)
{
	struct trace_step s;

	if (!qp->traced) {
		stop(c, qp, t);
		return;
	}
	trace_begin(&s, qp, c->tx_now);
	stop(c, qp, t);
	trace_end(&s, c, qp, c->tx_now);
}

/* Copies the payload to @p dst, from as many pieces as there are (ICRC-13); @p crc then covers
 * headers and payload.
 * @return false when memory faulted, or the packet was sealed before. */
static ALWAYS_INLINE bool gather(
	const struct core *c, const struct txd *t, uint8_t *dst, uint32_t *crc)
{
	const uint8_t *l3 = t->frame + t->l3_off;
	size_t hdr_len = (size_t)t->hdr_len - t->l3_off;

	if (!t->nsegs) {
		if (unlikely(t->sealed != TXD_OPEN))
			return false;
		*crc = icrc_header(c->cfg.icrc, l3, t->net, hdr_len);
		return true;
	}
	if (!uaccess_gather_first(
		    core_memory(c), crc, l3, t->net, hdr_len, dst, t->seg[0].addr, t->seg[0].len))
		return false;
	for (unsigned i = 1; i < t->nsegs; i++) {
		dst += t->seg[i - 1].len;
		if (!uaccess_gather(core_memory(c), crc, dst, t->seg[i].addr, t->seg[i].len))
			return false;
	}
	return true;
}

/* After gather() failed: memory faulted, or the packet was sealed before.
 * @return the length of a packet that is sealed and to be sent. */
static NOINLINE uint16_t sealed_before(struct core *c, const struct txd *t)
{
	struct core_port_counters *count = &c->count.port[t->port];

	if (t->sealed == TXD_OPEN)
		seal_failed(c, t->qp, t);
	if (t->sealed != TXD_SEALED)
		return 0;
	count->tx_packets++;
	count->tx_bytes += (uint64_t)(t->frame_len - t->l3_off);
	return t->frame_len;
}

/* ICRC-15: for every transmission of a packet. */
static ALWAYS_INLINE uint16_t seal(struct core *c, struct txd *t)
{
	struct core_port_counters *count = &c->count.port[t->port];
	uint8_t *dst = t->frame + t->hdr_len;
	uint32_t pad = -(uint32_t)t->payload_len & 3;
	uint16_t len = unlikely(t->local) ? named_seal(c, t) : 0;
	uint32_t crc;

	if (unlikely(len))
		return len;
	if (!gather(c, t, dst, &crc))
		return sealed_before(c, t);
	dst += t->payload_len;
	if (pad) {
		memset(dst, 0, pad);
		crc = c->cfg.icrc->crc(crc, dst, pad);
		dst += pad;
	}
	icrc_store(dst, crc);
	dst += ICRC_LEN;
	count->tx_packets++;
	count->tx_bytes += (uint64_t)(dst - t->frame - t->l3_off);
	return (uint16_t)(dst - t->frame);
}

void core_seal_burst(struct core *c, struct txd *t, unsigned n, uint16_t len[])
{
	for (unsigned i = 0; i < n; i++)
		len[i] = seal(c, &t[i]);
}

uint16_t core_seal(struct core *c, struct txd *t)
{
	uint16_t len;

	core_seal_burst(c, t, 1, &len);
	return len;
}

uint16_t seal_frame(struct core *c, struct txd *t)
{
	struct core_port_counters *count = &c->count.port[t->port];
	uint16_t len = core_seal(c, t);

	if (len) { /* not counted yet */
		count->tx_packets--;
		count->tx_bytes -= (uint64_t)(len - t->l3_off);
	}
	return len;
}
