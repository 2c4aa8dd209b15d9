/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD responder (IBA 9.8.3): a datagram is a message, from any sender that knows the Q_Key (UD-14).
 * There are no responses, and PSNs have no meaning (UD-04). The first 40 bytes of the receive
 * buffer hold the network header (CA17 17.4.5.1).
 */
#include "ud_impl.h"
#include "classify.h"
#include "complete.h"
#include "core_memory.h"
#include "headers.h"
#include "opcode.h"
#include "pieces.h"
#include "qp_impl.h"
#include "recv.h"
#include "responder.h"
#include "txd.h"

#define AREA_LEN 40u
#define IP4_AT	 (AREA_LEN - IP4_HLEN) /* offset of an IPv4 header in it (UD-07) */

/* UD-06, UD-07, UD-08, V1-06: as received; zeroes before an IPv4 header. */
static void write_area(uint8_t area[AREA_LEN], const struct pkt *pkt)
{
	if (pkt->net == NET_IPV4) {
		memset(area, 0, IP4_AT);
		memcpy(area + IP4_AT, pkt->l3, IP4_HLEN);
		return;
	}
	memcpy(area, pkt->l3, AREA_LEN);
}

/* @return the index of a P_Key of @p port that @p pkey matches, or -1 (VAL-09: QP1). */
static int pkey_index(const struct port *port, uint16_t pkey)
{
	for (uint32_t i = 0; i < port->pkeys; i++)
		if (pkey_match(pkey, port->pkey[i]))
			return (int)i;
	return -1;
}

/* Architected, saturates; drop[DROP_QKEY] keeps counting. */
static void count_bad_qkey(struct core *c, unsigned port)
{
	if (c->count.bad_qkey[port] < BAD_PKEY_MAX)
		c->count.bad_qkey[port]++;
}

/* CQ-09, UD-09, UD-10. */
static void complete(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint16_t index, uint64_t now)
{
	struct abi_cqe cqe = {
		.wr_id = qp->resp.wqe.wr_id,
		.byte_len = AREA_LEN + pkt->payload_len,
		.qpn = qp->qpn,
		.src_qp = pkt->src_qp,
		.status = ABI_WC_SUCCESS,
		.opcode = ABI_WC_RECV,
		.flags = ABI_WC_GRH,
		.sl = pkt->pcp,
		.pkey_index = index,
		.vid = pkt->vid,
		.net = pkt->net,
	};

	_Static_assert((int)NET_IPV4 == ABI_NET_IPV4 && (int)NET_IPV6 == ABI_NET_IPV6 &&
			       (int)NET_ROCEV1 == ABI_NET_ROCEV1,
		"abi_cqe.net");
	memcpy(cqe.smac, pkt->dmac + ETH_SRC, sizeof(cqe.smac));
	if (pkt->op->immdt) {
		cqe.flags |= ABI_WC_WITH_IMM;
		cqe.imm = pkt->imm;
	}
	if (pkt->se)
		cqe.flags |= ABI_WC_SOLICITED; /* RSP-51 */
	qp->resp.have_wqe = false;
	qp_complete(c, qp, &cqe, now);
}

/* A receive WQE that the program built incorrectly: it fails, and so does the QP. */
static void recv_failed(struct core *c, struct qp *qp, uint8_t status, uint64_t now)
{
	cause_publish(qp, now);
	recv_complete(c, qp, status, NULL, now);
	qp_error(c, qp, now);
}

/* Places the 40 bytes and the payload in the receive buffer.  @return a completion status. */
static uint8_t place(
	struct core *c, struct qp *qp, const struct pkt *pkt, const struct txseg *payload)
{
	uint8_t area[AREA_LEN];
	uint8_t status;

	write_area(area, pkt);
	status = recv_place_at(c, qp, 0, area, AREA_LEN); /* UD-05 */
	return status ? status : recv_place_at(c, qp, AREA_LEN, payload->addr, payload->len);
}

/* The same without a frame: one packet, however many segments it has. */
static NOINLINE uint8_t place_segments(
	struct core *c, struct qp *qp, const struct pkt *pkt, const struct txd *t)
{
	struct pieces pieces;
	struct txseg payload = {.len = 0};

	pieces_begin(&pieces, t, PATH_MTU_MAX);
	pieces_next(core_memory(c), &pieces, &payload);
	return pieces.faulted ? ABI_WC_LOC_PROT_ERR : place(c, qp, pkt, &payload);
}

static bool fits(const struct qp *qp, const struct pkt *pkt)
{
	return AREA_LEN + (uint64_t)pkt->payload_len <= qp->resp.wqe.length;
}

bool ud_deliver(
	struct core *c, struct qp *qp, const struct pkt *pkt, const struct txd *t, uint64_t now)
{
	struct qp_resp *r = &qp->resp;

	if (pkt->qkey != ud_qkey(qp) || (!r->have_wqe && !recv_wqe_take(c, qp)) || r->wqe.invalid ||
		!fits(qp, pkt) || place_segments(c, qp, pkt, t))
		return false;
	c->count.rx_send_requests++;
	complete(c, qp, pkt, (uint16_t)qp->attr.pkey_index, now);
	return true;
}

/* A datagram of a QP of this core: those that it sent before have arrived, too. Those to a group
 * may still be on their way to some of its members. */
static NOINLINE void note_arrival(const struct core *c, const struct pkt *pkt)
{
	struct qp *from = qp_lookup(c, pkt->source_qp);

	if (from && qp_owner(from) == c->cfg.worker && pkt->dest_qp != QPN_MULTICAST)
		from->local_arrived = ud_mark(pkt->psn);
}

enum drop ud_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct qp_resp *r = &qp->resp;
	const struct txseg payload = {.addr = pkt->payload, .len = pkt->payload_len};
	int index = qp->attr.pkey_index;
	uint8_t status;

	if (unlikely(pkt->queue == PKT_LOCAL))
		note_arrival(c, pkt);
	/* Looked up once: the table may change meanwhile, and the index that matched is
	 * reported. */
	if (qp->type == ABI_QPT_GSI)
		index = pkey_index(&c->cfg.ports->port[pkt->port], pkt->pkey);
	if (index < 0)
		return DROP_PKEY; /* VAL-09 */
	if (!pkt->op->name)
		return DROP_OPCODE_UNSUPPORTED; /* VAL-05, UD-01 */
	if (pkt->qkey != ud_qkey(qp)) {
		count_bad_qkey(c, pkt->port);
		return DROP_QKEY; /* VAL-16 */
	}
	if (!r->have_wqe && !recv_wqe_take(c, qp))
		return recv_wqe_missed(c, qp, pkt, now); /* UD-13 */
	if (r->wqe.invalid) {
		cause_request(c, qp, pkt, CAUSE_RECV_SGES);
		recv_failed(c, qp, ABI_WC_LOC_QP_OP_ERR, now);
		return DROP_NONE;
	}
	if (!fits(qp, pkt)) {
		/* UD-12, doc/decisions/0090-datagrams.md: the owner gets an error, and the QP
		 * continues. */
		c->count.resp_local_length_error++;
		recv_complete(c, qp, ABI_WC_LOC_LEN_ERR, NULL, now);
		return DROP_NONE;
	}
	status = place(c, qp, pkt, &payload);
	if (status) {
		recv_failed(c, qp, status, now);
		return DROP_NONE;
	}
	c->count.rx_send_requests++;
	complete(c, qp, pkt, (uint16_t)index, now);
	return DROP_NONE;
}
