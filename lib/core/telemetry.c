/* SPDX-License-Identifier: BSD-3-Clause */
#include "classify.h"
#include "opcode.h"
#include "pacing.h"
#include "telemetry.h"
#include "txd.h"
#include "txd_bth.h"

/* The algorithm of requests, which ACKs answer. */
static const struct cc_ops *ops_of_requests(const struct limiter *l)
{
	return l->turns && l->unacked ? l->aside.ops : l->ops;
}

uint32_t telemetry_bytes(const struct core *c, const struct qp *qp)
{
	const struct cc_ops *ops = ops_of_requests(qp->limiter);

	if (!ops || !ops->wants_hops || qp->path.net != NET_IPV6)
		return 0;
	return 1u << qp->mtu_shift <=
			       atomic_load_explicit(&c->cfg.ports->port[qp->path.port].active_mtu,
				       memory_order_relaxed)
		       ? IOAM_LEN
		       : 0;
}

/* Telemetry of @p qp, or NULL if it has none. */
static struct ioam *echo_of(const struct core *c, const struct qp *qp)
{
	return qp->limited && telemetry_bytes(c, qp) ? &qp->limiter->echo : NULL;
}

/* Returns the newest trace, and carries none itself. */
static bool is_ack(const struct txd *t)
{
	return opcode_row(txd_bth(t)[BTH_OPCODE])->kind == KIND_ACK;
}

/* No ACK would bring its trace back. */
static bool is_read_response(const struct txd *t)
{
	return opcode_row(txd_bth(t)[BTH_OPCODE])->kind == KIND_READ_RESP;
}

unsigned core_telemetry_room(const struct core *c, const struct txd *t)
{
	const struct ioam *echo = NULL;

	/* A packet with an injected fault leaves with it. */
	if (t->net == NET_IPV6 && !t->local && t->sealed == TXD_OPEN && !is_read_response(t))
		echo = echo_of(c, t->qp);
	return !echo || (is_ack(t) && !echo->nodes) ? 0 : IOAM_LEN;
}

uint16_t core_telemetry_tx(struct core *c, struct txd *t, uint16_t len)
{
	uint8_t *at = ioam_push(c->cfg.icrc, t->frame, len, is_ack(t) ? echo_of(c, t->qp) : NULL);

	if (!at)
		return len;
	t->frame = at;
	return (uint16_t)(len + IOAM_LEN);
}

/* @return how many of the records of @p t, from the first, are in @p hop. */
static unsigned hops_of(const struct ioam *t, struct cc_hop hop[CC_HOPS_MAX])
{
	_Static_assert(CC_HOPS_MAX == IOAM_NODES, "");
	for (unsigned i = 0; i < t->nodes; i++) {
		struct ioam_node n = ioam_node(t, i);

		hop[i] = (struct cc_hop){
			.rate = (double)n.rate,
			.time = n.time << 8,  /* 24 bits */
			.sent = n.sent << 12, /* 20 bits of 128 bytes */
			.queue = n.queue,
		};
	}
	return t->nodes;
}

void core_telemetry_rx(struct core *c, const struct pkt *pkt, const struct ioam *t, uint64_t now,
	uint16_t *verdict)
{
	struct cc_hop hop[CC_HOPS_MAX];
	struct cc_hops hops = {.hop = hop};
	struct ioam *echo;
	struct qp *qp;

	if (pkt->dest_qp == QPN_MULTICAST) { /* the shell would have to keep its frame */
		core_count_drop(c, DROP_IP_NEXT_HEADER);
		*verdict = DROP_IP_NEXT_HEADER;
		return;
	}
	if (t->kind == IOAM_ECHO) {
		hops.n = hops_of(t, hop);
		c->hops = &hops; /* for pacing_ack(), if the ACK is valid */
	}
	core_rx(c, pkt, 1, now, verdict);
	c->hops = NULL;
	if (t->kind != IOAM_TRACE || *verdict)
		return;
	qp = qp_lookup(c, pkt->dest_qp);
	echo = qp ? echo_of(c, qp) : NULL;
	if (echo)
		*echo = *t;
}
