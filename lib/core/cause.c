/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes of what went wrong; none of this runs while all is well. */
#include <string.h>
#include "bits.h"
#include "cause.h"
#include "completer.h"
#include "drop_log.h"
#include "frame.h"
#include "headers.h"
#include "mw.h"
#include "qp_impl.h"
#include "recv.h"
#include "requester.h"
#include "seq24.h"
#include "wqe.h"

/* Completed work requests that cause_retries() looks back at; bounded, because thousands of QPs may
 * fail at once. */
#define LOOK_BACK 64u

#define READ_TRIES 1000u

static const struct {
	const char *name;
	const char *rule;
} causes[CAUSE_MAX] = {[CAUSE_NONE] = {"none", "-"},
#define X(id, called, item) [CAUSE_##id] = {called, item},
	CAUSES(X)
#undef X
};

const char *cause_name(enum cause why)
{
	return (unsigned)why < CAUSE_MAX ? causes[why].name : NULL;
}

const char *cause_rule(enum cause why)
{
	return (unsigned)why < CAUSE_MAX ? causes[why].rule : NULL;
}

/* --- why a QP failed ---------------------------------------------------------------------- */

/* Only the first failure counts: later ones are its consequences. */
static struct cause_note *note_begin(struct qp *qp, enum cause why)
{
	struct cause_note *n = &qp->why.error;

	if (n->cause != CAUSE_NONE)
		return NULL;
	n->cause = (uint8_t)why;
	return n;
}

void cause_plain(struct qp *qp, enum cause why, uint32_t value)
{
	struct cause_note *n = note_begin(qp, why);

	if (n)
		n->value = value;
}

static void found_region(struct cause_found *f, enum cause_named named, const struct mr *mr)
{
	f->named = (uint8_t)named;
	f->key = mr->key;
	f->pd = mr->pd;
	f->iova = mr->iova;
	f->length = mr->length;
}

static void found_window(struct cause_found *f, const struct mw *w, uint32_t key)
{
	struct mw_view v;
	bool bound = mw_view(w, &v) && v.key == key;

	f->named = bound ? NAMED_WINDOW : NAMED_UNBOUND;
	f->key = v.key;
	f->pd = w->pd;
	f->owned = bound && w->type == MW_TYPE_2;
	f->qpn = v.qpn;
	f->iova = v.iova;
	f->length = v.length;
}

/* The key part differs: an outdated key, or a wrong one. */
static void find_other(
	const struct mr_table *mrs, uint32_t session, struct cause_note *n, const struct mr *there)
{
	const struct mr *mr = mr_find(mrs, __builtin_bswap32(n->key));

	if (mr && mr->session == session && mr->pd == n->pd)
		found_region(&n->found, NAMED_BY_SWAP, mr);
	else if (there && there->pd == n->pd)
		found_region(&n->found, NAMED_BY_FORMER, there);
}

void cause_find(const struct mr_table *mrs, uint32_t session, uint32_t qpn, struct cause_note *n)
{
	uint32_t slot = n->key >> 8;
	const struct mr *mr =
		slot < MR_MAX ? atomic_load_explicit(&mrs->slot[slot], memory_order_acquire) : NULL;

	n->found = (struct cause_found){.status = (uint8_t)rkey_resolve(mrs, n->key, n->pd, qpn,
						n->access, n->va, n->len, NULL)};
	if (mr && mr->session != session)
		mr = NULL;
	if (mr && mr->pd == MW_PD)
		found_window(&n->found, container_of(mr, struct mw, entry), n->key);
	else if (mr && mr->key == n->key)
		found_region(&n->found, NAMED_REGION, mr);
	else
		find_other(mrs, session, n, mr);
}

static void set_key_of(const struct core *c, const struct qp *qp, struct cause_note *n, uint32_t pd,
	uint32_t key, uint64_t va, uint32_t len, uint32_t access)
{
	n->key = key;
	n->va = va;
	n->len = len;
	n->access = access;
	n->pd = pd;
	cause_find(c->cfg.mrs, qp->session, qp->qpn, n);
}

static void set_key(const struct core *c, const struct qp *qp, struct cause_note *n, uint32_t key,
	uint64_t va, uint32_t len, uint32_t access)
{
	set_key_of(c, qp, n, qp->pd, key, va, len, access);
}

void cause_key(const struct core *c, struct qp *qp, enum cause why, uint32_t key, uint64_t va,
	uint32_t len, uint32_t access)
{
	struct cause_note *n = note_begin(qp, why);

	if (n)
		set_key(c, qp, n, key, va, len, access);
}

void cause_recv_key(const struct core *c, struct qp *qp, uint32_t lkey, uint64_t addr, uint32_t len)
{
	struct cause_note *n = note_begin(qp, CAUSE_RECV_KEY);

	if (n)
		set_key_of(c, qp, n, qp->resp.wqe.pd, lkey, addr, len, ABI_ACCESS_LOCAL_WRITE);
}

static struct cause_note *note_wqe(struct qp *qp, enum cause why)
{
	struct cause_note *n = note_begin(qp, why);
	const struct send_wqe *w = qp_wqe(qp, qp->comp.head);

	if (!n)
		return NULL;
	n->opcode = w->opcode;
	n->wr_id = w->wr_id;
	n->psn = qp->comp.una;
	n->len = w->length;
	n->key = w->rkey;
	n->va = w->remote_addr;
	n->heard = qp_heard(qp);
	return n;
}

static void set_sge(const struct core *c, const struct qp *qp, struct cause_note *n,
	struct send_wqe *w, uint32_t culprit)
{
	const struct abi_sge *sge = &wqe_sge(w)[culprit % SGE_MAX];

	set_key(c, qp, n, sge->lkey, sge->addr, sge->length, wqe_local_access(w));
}

void cause_wqe(const struct core *c, struct qp *qp, enum cause why, uint8_t syndrome)
{
	struct send_wqe *w = qp_wqe(qp, qp->comp.head);
	struct cause_note *n = note_wqe(qp, why);

	if (!n)
		return;
	n->syndrome = syndrome;
	n->value = w->status ? w->culprit : 0; /* else that of an earlier WQE in the slot */
	if (w->opcode == ABI_WR_LOCAL_INV)
		n->key = w->imm;
	if (why != CAUSE_POST_KEY && why != CAUSE_KEY_GONE)
		return;
	set_sge(c, qp, n, w, w->culprit);
	if (qp->why.refused && qp->why.refused_wqe == qp->comp.head)
		n->found = qp->why.refused_found;
}

void cause_refuse_sge(const struct core *c, struct qp *qp, uint32_t idx, uint32_t culprit)
{
	struct qp_why *y = &qp->why;
	struct cause_note n = {.cause = CAUSE_NONE};

	/* Only the first that fails is reported. */
	if (y->refused && (int32_t)(idx - y->refused_wqe) >= 0)
		return;
	set_sge(c, qp, &n, qp_wqe(qp, idx), culprit);
	y->refused = true;
	y->refused_wqe = idx;
	y->refused_found = n.found;
}

/* Payload of the largest packet of @p w; for a READ, of its responses. */
static uint32_t largest_packet(const struct qp *qp, const struct send_wqe *w)
{
	uint32_t mtu = 1u << qp->mtu_shift;

	return w->length < mtu ? w->length : mtu;
}

/* The largest packet that got through before, in the direction of @p w's data. Completed WQEs stay
 * in the private ring until their slots are reused. WQEs that direct_run.c executed were never
 * there: a gap in the PSNs shows where they are missing. */
static uint32_t largest_before(const struct qp *qp, const struct send_wqe *w)
{
	uint32_t max = qp->comp.una != w->first_psn ? largest_packet(qp, w) : 0;
	uint32_t next_psn = w->first_psn;

	for (uint32_t i = qp->comp.head - 1, n = 0; n < LOOK_BACK; i--, n++) {
		const struct send_wqe *old = qp_wqe(qp, i);

		if ((int32_t)(i - qp->why.first_wqe) < 0 || qp->req.fetched - i > qp->sq.depth ||
			seq24_add(old->last_psn, 1) != next_psn)
			break;
		next_psn = old->first_psn;
		if (wqe_has_response(old) == wqe_has_response(w) && largest_packet(qp, old) > max)
			max = largest_packet(qp, old);
	}
	return max;
}

void cause_retries(struct qp *qp)
{
	const struct send_wqe *w = qp_wqe(qp, qp->comp.head);
	struct cause_note *n = note_wqe(qp, CAUSE_RETRIES);

	if (!n)
		return;
	n->value = largest_packet(qp, w);
	n->limit = largest_before(qp, w);
	n->syndrome = qp->comp.refused;
}

void cause_response(struct qp *qp, const struct pkt *pkt, enum cause why, uint32_t left)
{
	struct cause_note *n = note_wqe(qp, why);

	if (!n)
		return;
	n->psn = pkt->psn;
	n->syndrome = pkt->op->aeth ? pkt->syndrome : 0;
	n->value = pkt->payload_len;
	n->limit = left < 1u << qp->mtu_shift ? left : 1u << qp->mtu_shift;
}

/* The limit that @p pkt was checked against. */
static void set_limit(
	const struct core *c, struct cause_note *n, const struct qp *qp, const struct pkt *pkt)
{
	const struct qp_resp *r = &qp->resp;

	switch (n->cause) {
	case CAUSE_PACKET_LENGTH:
		n->limit = 1u << qp->mtu_shift;
		break;
	case CAUSE_READS_EXCEEDED:
		n->value = r->res_head - r->res_done + 1;
		n->limit = qp->attr.max_dest_rd_atomic;
		break;
	case CAUSE_WRITE_LENGTH:
		n->limit = pkt->op->first ? pkt->dma_len : r->write_left;
		break;
	case CAUSE_RECV_LENGTH:
		n->value = r->recv_off + pkt->payload_len;
		n->limit = (uint32_t)r->wqe.length;
		break;
	case CAUSE_RECV_SGES:
		n->limit = recv_max_sge(c, qp);
		break;
	default:
		break;
	}
}

/* The access that a request with a RETH needs. */
static uint32_t reth_access(const struct pkt *pkt)
{
	switch (pkt->op->kind) {
	case KIND_READ:
		return ABI_ACCESS_REMOTE_READ;
	case KIND_FLUSH:
		return (pkt->feth & FETH_PLT_GLOBAL ? ABI_ACCESS_FLUSH_GLOBAL : 0) |
		       (pkt->feth & FETH_PLT_PERSIST ? ABI_ACCESS_FLUSH_PERSIST : 0);
	default:
		return ABI_ACCESS_REMOTE_WRITE;
	}
}

void cause_refused_key(const struct core *c, struct qp *qp, const struct pkt *pkt, uint32_t why)
{
	if (qp->why.error.cause != CAUSE_NONE)
		return;
	cause_request(c, qp, pkt, CAUSE_INVALIDATE);
	qp->why.error.key = pkt->rkey;
	qp->why.error.value = why;
}

void cause_request(const struct core *c, struct qp *qp, const struct pkt *pkt, enum cause why)
{
	struct cause_note *n = note_begin(qp, why);

	if (!n)
		return;
	n->opcode = pkt->op->code;
	n->psn = pkt->psn;
	n->value = pkt->payload_len;
	if (qp->resp.have_wqe)
		n->wr_id = qp->resp.wqe.wr_id;
	set_limit(c, n, qp, pkt);
	if (pkt->op->atomiceth)
		set_key(c, qp, n, pkt->rkey, pkt->va, ATOMIC_LEN, ABI_ACCESS_REMOTE_ATOMIC);
	else if (pkt->op->reth)
		set_key(c, qp, n, pkt->rkey, pkt->va, pkt->dma_len, reth_access(pkt));
	else if (why == CAUSE_RKEY_GONE)
		set_key(c, qp, n, qp->resp.rkey, qp->resp.va, pkt->payload_len,
			ABI_ACCESS_REMOTE_WRITE);
}

void cause_ahead(struct qp *qp, uint32_t psn)
{
	struct qp_why *y = &qp->why;

	if (qp->comm_est)
		return;
	if (!y->ahead_times || seq24_lt(psn, y->ahead_psn)) {
		y->ahead_psn = psn;
		y->ahead_times = 1;
	} else if (psn == y->ahead_psn) {
		y->ahead_times++;
	}
}

void cause_not_ready(struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct qp_why *y = &qp->why;

	if (!qp->resp.rnr_sent)
		y->rnr_times = 0;
	y->rnr_times++;
	y->rnr_psn = pkt->psn;
	y->rnr_opcode = pkt->op->code;
	__atomic_store_n(&y->rnr_time, now, __ATOMIC_RELAXED);
}

void cause_old_ack(struct qp *qp, const struct pkt *pkt)
{
	if (qp_heard(qp) || !seq24_lt(pkt->psn, qp->comp.una))
		return;
	qp->why.old_ack_psn = pkt->psn;
	qp->why.old_acks++;
}

void cause_forget(struct qp *qp)
{
	memset(&qp->why.error, 0, sizeof(qp->why.error));
	qp->why.refused = false;
}

void cause_publish(struct qp *qp, uint64_t now)
{
	struct cause_note *n = &qp->why.error;

	if (atomic_load_explicit(&n->known, memory_order_relaxed))
		return;
	n->time = now;
	atomic_store_explicit(&n->known, true, memory_order_release);
}

/* --- why a packet was dropped -------------------------------------------------------------- */

static void note_qp(struct drop_note *n, const struct qp *qp)
{
	n->has_qp = qp != NULL;
	if (!qp)
		return;
	n->state = qp->state;
	n->qp_pkey = qp->pkey;
	n->epsn = qp->resp.epsn;
	n->una = qp->comp.una;
	n->begun = qp->comm_est;
	n->heard = qp_heard(qp);
}

static void note_packet(struct drop_note *n, const struct pkt *pkt)
{
	n->source_qp = pkt->queue == PKT_LOCAL ? pkt->source_qp : 0;
	n->psn = pkt->psn;
	n->pkey = pkt->pkey;
	n->vid = pkt->vid;
	n->opcode = pkt->op->code;
	n->syndrome = pkt->op->aeth ? pkt->syndrome : 0;
	n->net = pkt->net;
	n->port = pkt->port;
	memcpy(n->dmac, pkt->dmac + ETH_DST, 6);
	memcpy(n->smac, pkt->dmac + ETH_SRC, 6);
	frame_gids(pkt, n->sgid, n->dgid);
}

/* The version is odd meanwhile; a reader that sees this reads again. */
static void note_write(
	struct drop_note *n, const struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t version = atomic_load_explicit(&n->version, memory_order_relaxed);

	atomic_store_explicit(&n->version, version + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	if (n->dest_qp != pkt->dest_qp) {
		n->dest_qp = pkt->dest_qp;
		n->count = 0;
	}
	n->time = now;
	n->due = now + DROP_NOTE_NS;
	note_packet(n, pkt);
	note_qp(n, qp);
	atomic_store_explicit(&n->version, version + 2, memory_order_release);
}

void drop_count(
	struct core *c, const struct qp *qp, const struct pkt *pkt, enum drop why, uint64_t now)
{
	struct drop_note *n;

	c->count.drop[why]++;
	if (!c->cfg.drops)
		return;
	n = &c->cfg.drops->note[why][pkt->dest_qp % DROP_NOTES];
	if (now >= n->due)
		note_write(n, qp, pkt, now);
	if (n->dest_qp == pkt->dest_qp)
		__atomic_store_n(&n->count, n->count + 1, __ATOMIC_RELAXED);
}

bool drop_note_read(struct drop_note *to, const struct drop_note *from)
{
	/* Gives up on a worker that was paused while it wrote. */
	for (unsigned tries = 0; tries < READ_TRIES; tries++) {
		uint32_t version = atomic_load_explicit(&from->version, memory_order_acquire);

		memcpy(to, from, sizeof(*to));
		atomic_thread_fence(memory_order_acquire);
		if (!(version & 1) &&
			version == atomic_load_explicit(&from->version, memory_order_relaxed))
			return version != 0;
	}
	return false;
}
