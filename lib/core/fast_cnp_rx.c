/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fast CNPs: from a switch, which is not a peer, about a QP whose number they do not name.
 * They are found by the address in their option and the peer's QPN (FCN-08), on all workers. Only
 * the rate of these QPs may change (FCN-16).
 */
#include "classify.h"
#include "drop_log.h"
#include "flow.h"
#include "opcode.h"
#include "rp.h"
#include "switch_list.h"
#include "trace.h"

static struct switch_list *switches_of(const struct core *c, const struct pkt *pkt)
{
	return atomic_load_explicit(&c->cfg.ports->port[pkt->port].switches, memory_order_acquire);
}

/* Checks addresses, source, ICRC and rate, in this order: frames of strangers must not use up the
 * token buckets, the switch's and that of all switches. */
static enum drop check(
	const struct core *c, struct switch_list *l, const struct pkt *pkt, uint64_t now)
{
	struct switch_entry *from = switch_find(l, pkt->l3 + IP6_SRC);
	enum drop why = classify_addresses(c, pkt);

	if (why)
		return why;
	if (!from)
		return DROP_FAST_CNP_SOURCE; /* FCN-10 */
	if (!fast_cnp_icrc_check(c->cfg.icrc, pkt))
		return DROP_ICRC;
	/* FCN-11 */
	return bucket_take(&from->bucket, now) && bucket_take(&l->all, now) ? DROP_NONE
									    : DROP_FAST_CNP_RATE;
}

/* The Fast CNP's destination is the source of the flow's packets. */
static struct flow_key key_of(const struct fast_cnp *f, const struct pkt *pkt)
{
	struct flow_key k = {.dest_qpn = pkt->dest_qp, .port = pkt->port};

	memcpy(k.dgid, f->dip, sizeof(k.dgid));
	memcpy(k.sgid, pkt->l3 + IP6_DST, sizeof(k.sgid));
	return k;
}

static void tell(struct core *c, struct qp *qp, const struct pkt *pkt, bool detour, uint64_t now)
{
	bool traced = qp->traced;
	struct trace_step s;
	enum drop why;

	if (traced)
		trace_rx_begin(&s, c, qp, pkt, now);
	why = rp_fast_cnp(c, qp, pkt, detour, now);
	if (why == DROP_PKEY)
		count_bad_pkey(c, pkt->port);
	if (why)
		drop_count(c, qp, pkt, why, now);
	if (traced)
		trace_rx_end(&s, c, qp, why, now);
}

/* FCN-09. Notifies our own QPs. @return a bit for each worker that has QPs of the flow. */
static uint32_t tell_all(
	struct core *c, const struct fast_cnp *f, const struct pkt *pkt, bool detour, uint64_t now)
{
	const struct flow_key key = key_of(f, pkt);
	const struct qp_flow *at = flow_find(c->cfg.flows, &key);
	uint32_t workers = 0;

	for (unsigned n = 0; at && n < FAST_CNP_QPS; at = flow_more(at), n++) {
		uint32_t owner = qp_owner(at->qp);

		workers |= 1u << owner;
		if (owner == c->cfg.worker)
			tell(c, at->qp, pkt, detour, now);
	}
	return workers;
}

enum drop core_fast_cnp(struct core *c, struct pkt *pkt, const uint8_t *frame, size_t len,
	uint64_t now, uint32_t *others)
{
	struct switch_list *l = switches_of(c, pkt);
	bool copy = pkt->queue == PKT_COPY;
	struct fast_cnp f;
	uint32_t workers;
	enum drop why;

	*others = 0;
	if (!l || !frame_is_fast_cnp(frame, len))
		return DROP_IP_NEXT_HEADER; /* FCN-01 */
	why = fast_cnp_parse(pkt, &f, frame, len, l->type);
	if (why) {
		core_count_drop(c, why);
		return why;
	}
	if (!copy) { /* the receiver has counted and checked it */
		count_received(c, pkt);
		why = check(c, l, pkt, now);
	}
	workers = why ? 0 : tell_all(c, &f, pkt, l->detour, now);
	if (!why && !copy && !workers)
		why = DROP_FAST_CNP_NO_QP;
	if (why)
		drop_count(c, NULL, pkt, why, now);
	else if (!copy)
		*others = workers & ~(1u << c->cfg.worker);
	return why;
}

bool core_flow(struct qp_flow *f, struct qp *qp)
{
	const uint8_t *ip = qp->path.hdr + qp->path.l3_off;

	if (qp->path.net != NET_IPV6 || !qp->path.hdr_len || qp->opc == OPC_UD)
		return false;
	memcpy(f->key.sgid, ip + IP6_SRC, sizeof(f->key.sgid));
	memcpy(f->key.dgid, ip + IP6_DST, sizeof(f->key.dgid));
	f->key.dest_qpn = qp->attr.dest_qpn;
	f->key.port = qp->path.port;
	f->qp = qp;
	return true;
}
