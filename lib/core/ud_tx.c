/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD requester: the datagram parts of requester.c. Each datagram is one packet and is sent where
 * its address handle says; queue, order, completion and errors are as for UC.
 */
#include "ah.h"
#include "core_command.h"
#include "qp_impl.h"
#include "txd.h"
#include "ud_impl.h"
#include <errno.h>
#include "mcast.h"
#include "packet.h"
#include "requester.h"
#include "rp.h"
#include "seq24.h"
#include "wqe.h"

/* WQEs fetched in one step of a snapshot. */
#define SNAPSHOT_PART 256u

static struct path *path_of(const struct qp *qp, struct send_wqe *w)
{
	return (struct path *)((uint8_t *)w + qp->sq_slot_size - UD_WQE_PATH);
}

static const struct port *port_of(const struct core *c, const struct qp *qp)
{
	return &c->cfg.ports->port[qp->attr.port ? qp->attr.port - 1 : 0];
}

/* @return 0 where the table has no entry. */
static uint16_t pkey_at(const struct port *port, uint32_t index)
{
	return index < port->pkeys ? port->pkey[index] : 0;
}

/* The source QPN that the packet carries. */
static uint32_t source_qpn(const struct qp *qp)
{
	return qp->type == ABI_QPT_GSI ? QPN_GSI : qp->qpn; /* UD-03 */
}

/* @return a status, 0 when @p w may be sent along @p ah. */
static uint8_t check(const struct core *c, const struct qp *qp, struct send_wqe *w,
	const struct ah *ah, const struct abi_wqe *e)
{
	const struct port *port = port_of(c, qp);

	if (!ah)
		return wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_AH, 0);
	if (ah->path.port + 1 != qp->attr.port)
		return wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_AH_PORT, ah->path.port + 1u);
	if (w->length > port->active_mtu) /* UD-02 */
		return wqe_refuse(w, ABI_WC_LOC_LEN_ERR, CAUSE_POST_DATAGRAM, port->active_mtu);
	if (qp->type != ABI_QPT_GSI)
		return 0;
	w->ud.pkey = pkey_at(port, e->ud.pkey_index); /* BTH-11 */
	if (!pkey_valid(w->ud.pkey))
		return wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_PKEY, e->ud.pkey_index);
	return 0;
}

static bool leads_to_group(const struct path *p)
{
	return p->hdr[ETH_DST] & 1;
}

/* As the port has it now: it may have been set since the handle was made. QP1 is exempt. */
static void mark_ecn(const struct core *c, const struct qp *qp, struct path *path)
{
	bool ect = atomic_load_explicit(&c->cfg.ports->port[path->port].rcm, memory_order_relaxed);

	ect &= qp->type != ABI_QPT_GSI;
	if (unlikely(path->ect != ect))
		path_set_ect(path, ect);
}

void ud_address(struct core *c, const struct qp *qp, struct send_wqe *w, const struct abi_wqe *e)
{
	const struct ah *ah = ah_find(c->cfg.ahs, e->ud.ah, qp->pd);
	struct path *path = path_of(qp, w);

	w->ud.pkey = qp->pkey;
	w->status = check(c, qp, w, ah, e);
	if (w->status)
		return;
	*path = ah->path;
	mark_ecn(c, qp, path);
	w->ud.qkey = e->ud.remote_qkey & QKEY_OWN ? ud_qkey(qp) : e->ud.remote_qkey; /* UD-03 */
	w->ud.dest_qpn = leads_to_group(path) ? QPN_MULTICAST			     /* MC-07 */
					      : e->ud.remote_qpn & SEQ24_MASK;
	if (unlikely(qp->type == ABI_QPT_GSI) && e->ctl & ABI_WQE_LABEL) /* ENT-07 */
		path_set_label(path, e->flow_label, false);
	else if (ah->hashed)
		path_set_label(path, flow_label_of_qpns(source_qpn(qp), w->ud.dest_qpn), ah->plain);
}

unsigned ud_egress(const struct core *c, const struct qp *qp)
{
	struct send_wqe *w;

	if (qp->req.cur == qp->req.fetched)
		return EGRESS_NONE;
	w = qp_wqe(qp, qp->req.cur);
	return w->status ? EGRESS_NONE : path_egress(c, path_of(qp, w), w->ud.dest_qpn);
}

bool ud_build(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	unsigned way = path_egress(c, path_of(qp, w), w->ud.dest_qpn);

	if (unlikely(!egress_is_open(c, way)) || !ud_draft(c, qp, w, t))
		return false;
	if (t->group || way == EGRESS_LOCAL(c->cfg.worker))
		qp->local_sent = ud_mark(w->first_psn);
	return true;
}

bool ud_draft(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	bool imm = w->opcode == ABI_WR_SEND_WITH_IMM;
	const struct path *path = path_of(qp, w);
	const struct bth b = {
		.code = OPC_UD | (imm ? OP_SEND_ONLY_WITH_IMM : OP_SEND_ONLY), /* UD-01 */
		.flags = w->flags & ABI_WQE_SOLICITED ? BTH_SE : 0,
		.pkey = w->ud.pkey,
		.dest_qpn = w->ud.dest_qpn, /* BTH-12 */
		.psn = w->first_psn,	    /* UD-04 */
	};
	uint8_t *eth = packet_begin_to(&c->ip_id, qp, path, t, &b, w->length);

	put_be32(eth, w->ud.qkey); /* BTH-24 */
	put_be32(eth + 4, source_qpn(qp));
	if (imm)
		memcpy(eth + DETH_LEN, &w->imm, IMMDT_LEN); /* BTH-20, BTH-26 */
	t->group = leads_to_group(path);
	if (unlikely(path->ect && !path->local))
		rp_sent_to(c, qp, path);
	qp->req.since_ackreq++; /* none asks for an ACK: all may follow (BTH-14) */
	return requester_payload(c, qp, w, t, 0, w->length);
}

/* The command's progress: the current QP, and how many of its WQEs were taken. */
#define PROGRESS_SHIFT 16
_Static_assert(WR_MAX <= 1u << (PROGRESS_SHIFT - 1), "a queue's length fits the progress");

int ud_snapshot(struct core *c, struct core_cmd *cmd)
{
	uint32_t i = cmd->progress >> PROGRESS_SHIFT;
	uint32_t taken = cmd->progress & ((1u << PROGRESS_SHIFT) - 1);

	for (uint32_t steps = 0; steps < SNAPSHOT_PART && i < cmd->n; steps++) {
		struct qp *qp = cmd->qps[i];
		/* The application may keep posting, so take at most as many as the queue holds. */
		bool more = qp->state >= ABI_QPS_RTS && taken < qp->sq.depth &&
			    !requester_full(qp) && requester_fetch(c, qp);

		taken = more ? taken + 1 : 0;
		i += !more;
	}
	cmd->progress = i << PROGRESS_SHIFT | taken;
	return i < cmd->n ? -EAGAIN : 0;
}
