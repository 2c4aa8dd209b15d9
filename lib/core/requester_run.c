/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of the requester. Most requests that are posted to a QP in RTS without
 * retransmissions are SENDs and WRITEs of one SGE that fit into a packet. A run of them is taken
 * and built in one loop: what is the same for all of them is checked once, each key is looked up
 * once, and the cursor, the window and the timer move once. READs whose responses are one packet
 * each go in runs, too. Any other WQE ends the run and is left in the queue: requester.c decides
 * about it, as if there were no runs.
 */
#include "core.h"
#include "mr.h"
#include "packet.h"
#include "requester.h"
#include "seq24.h"
#include "timers.h"
#include "txd.h"
#include "wqe.h"

/* The bits that may differ between the first words of plain entries: one SGE, SEND or WRITE. */
#define PLAIN_FREE                                              \
	(ABI_WQE_PHASE | ABI_WQE_SIGNALED | ABI_WQE_SOLICITED | \
		ABI_WQE_CTL(ABI_WR_RDMA_WRITE ^ ABI_WR_SEND, 0, 0))
#define PLAIN ABI_WQE_CTL(ABI_WR_RDMA_WRITE &ABI_WR_SEND, 1, 0)

/* As these, for READs. */
#define READ_FREE (ABI_WQE_PHASE | ABI_WQE_SIGNALED | ABI_WQE_SOLICITED)
#define READ	  ABI_WQE_CTL(ABI_WR_RDMA_READ, 1, 0)

_Static_assert(((ABI_WR_RDMA_WRITE ^ ABI_WR_SEND) & ((ABI_WR_RDMA_WRITE ^ ABI_WR_SEND) - 1)) == 0,
	"one bit tells SEND from WRITE");

typedef uint64_t entry_part __attribute__((vector_size(16), may_alias));

/* The parts of an entry that a plain request uses: header and first SGE. */
union entry {
	entry_part part[4];
	struct abi_wqe wqe;
};

/* How many of @p n requests this QP may send in a run, if the queue has them. None while anything
 * is to be sent again, hence none while an RNR timer runs (REQ-29). */
static unsigned run_room(const struct core *c, const struct qp *qp, unsigned n)
{
	const struct qp_req *r = &qp->req;
	const struct qp_comp *k = &qp->comp;
	uint32_t in_flight = r->sent - k->acked;
	uint32_t slots = qp->sq.depth - (r->fetched - k->head);
	uint32_t room;

	if (!c->fast_paths || c->careful || qp->opc != OPC_RC || qp->state != ABI_QPS_RTS ||
		r->cur != r->fetched)
		return 0;
	if (k->limited || !qp->sq.max_sge || in_flight >= qp->win.size)
		return 0; /* CRD-04, REQ-17 */
	if (((r->psn + n - k->una) & SEQ24_MASK) >= (1u << 23) - 1)
		return 0; /* BTH-16 */
	room = qp->win.size - in_flight;
	room = room < slots ? room : slots;
	return room < n ? room : n;
}

/* The private WQE, as requester.c makes it: it may be sent again. */
static ALWAYS_INLINE void keep(struct send_wqe *w, const struct abi_wqe *e, uint32_t psn,
	uint32_t ssn, enum abi_wr_opcode opcode, uint8_t flags)
{
	w->wr_id = e->wr_id;
	w->remote_addr = e->remote_addr;
	w->rkey = e->rkey;
	w->imm = e->imm;
	w->length = e->sge[0].length;
	w->first_psn = psn;
	w->last_psn = psn;
	w->opcode = (uint8_t)opcode;
	w->flags = (uint8_t)((e->ctl & ABI_WQE_FLAGS) | flags);
	w->status = 0;
	w->num_sge = 1;
	w->ssn = ssn;
	wqe_sge(w)[0] = e->sge[0];
}

/* Every packet is the last of its message, so it asks for an ACK (BTH-13). */
static ALWAYS_INLINE void build(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t,
	const uint8_t *payload, bool send)
{
	bool se = send && (w->flags & ABI_WQE_SOLICITED); /* BTH-09 */
	uint8_t *eth = packet_begin(&c->ip_id, qp, t, send ? OP_SEND_ONLY : OP_WRITE_ONLY,
		se ? BTH_SE : 0, true, w->first_psn, w->length);

	if (!send)
		packet_reth(eth, w->remote_addr, w->rkey, w->length); /* REQ-06 */
	packet_payload(t, payload, w->length, wqe_sge(w)[0].lkey);
}

/* REQ-06. Without read_psn, which a READ of one packet has no use for (REQ-41). */
static ALWAYS_INLINE void build_read(
	struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	uint8_t *eth = packet_begin(&c->ip_id, qp, t, OP_READ_REQUEST, 0, true, w->first_psn, 0);

	packet_reth(eth, w->remote_addr, w->rkey, w->length);
}

/* Copies the next entry.  @return false when there is none, or it is not one of @p plain whose
 * payload fits into a packet. */
static ALWAYS_INLINE bool copy(
	const struct qp *qp, union entry *e, uint32_t plain, uint32_t free, uint32_t mtu)
{
	const volatile entry_part *shared = (const volatile entry_part *)ring_slot(&qp->sq);

	if (!ring_ready(&qp->sq))
		return false;
	e->part[0] = shared[0];
	e->part[1] = shared[1];
	e->part[2] = shared[2];
	return (e->wqe.ctl & ~free) == plain && e->wqe.sge[0].length && e->wqe.sge[0].length <= mtu;
}

/* The memory of its SGE.  @return false when the key does not allow it (REQ-18). */
static ALWAYS_INLINE bool resolve(
	struct core *c, const struct qp *qp, const union entry *e, uint32_t access, uint8_t **ptr)
{
	const struct abi_sge *sge = &e->wqe.sge[0];

	return mr_resolve(c->cfg.mrs, sge->lkey, qp->pd, access, sge->addr, sge->length, ptr) ==
	       MR_OK;
}

/* Takes the next entry if it is plain and fits into a packet: a READ if @p read, else a SEND or a
 * WRITE.  @return false when it is not, or there is none. */
static ALWAYS_INLINE bool take(struct core *c, struct qp *qp, struct txd *t, uint32_t index,
	uint32_t psn, uint32_t ssn, uint32_t mtu, bool read)
{
	struct send_wqe *w = qp_wqe(qp, index);
	union entry e __attribute__((aligned(16)));
	uint8_t *ptr;

	if (!copy(qp, &e, read ? READ : PLAIN, read ? READ_FREE : PLAIN_FREE, mtu) ||
		!resolve(c, qp, &e, read ? ABI_ACCESS_LOCAL_WRITE : 0, &ptr))
		return false;
	if (read) {
		keep(w, &e.wqe, psn, ssn, ABI_WR_RDMA_READ, WQE_RESPONSE | WQE_FETCHES);
		build_read(c, qp, w, t);
	} else if (ABI_WQE_OPCODE(e.wqe.ctl) == ABI_WR_SEND) {
		keep(w, &e.wqe, psn, ssn, ABI_WR_SEND, WQE_TAKES_RECV);
		build(c, qp, w, t, ptr, true);
	} else {
		keep(w, &e.wqe, psn, ssn, ABI_WR_RDMA_WRITE, 0);
		build(c, qp, w, t, ptr, false);
	}
	qp->sq.next++;
	return true;
}

/* A run of READs, or of SENDs and WRITEs, @p room at most. */
static ALWAYS_INLINE unsigned run(
	struct core *c, struct qp *qp, struct txd out[], unsigned room, uint64_t now, bool read)
{
	struct qp_req *r = &qp->req;
	uint32_t index = r->fetched, psn = r->psn, ssn = seq24_add(r->ssn, 1);
	uint32_t mtu = 1u << qp->mtu_shift;
	unsigned got;

	/* REQ-01, REQ-03, CRD-04: one PSN and one SSN for each. */
	for (got = 0; got < room && take(c, qp, &out[got], index + got, psn, ssn, mtu, read);
		got++) {
		psn = seq24_add(psn, 1);
		ssn = seq24_add(ssn, 1);
	}
	if (!got)
		return 0;
	r->fetched += got;
	r->cur += got;
	r->sent += got;
	r->rd_started += read ? got : 0;
	r->psn = psn;
	r->psn_new = psn;
	r->psn_assign = psn;
	r->ssn = seq24_add(r->ssn, got);
	r->since_ackreq = 0;
	timers_request_sent(c, qp, now);
	return got;
}

/* Whether the entry that ended a run is a READ. */
static bool next_is_read(const struct qp *qp)
{
	uint32_t ctl =
		atomic_load_explicit((_Atomic uint32_t *)ring_slot(&qp->sq), memory_order_relaxed);

	return (ctl & ~READ_FREE) == READ;
}

/* No more READs are outstanding than the peer keeps (REQ-08). */
static NOINLINE unsigned read_run(
	struct core *c, struct qp *qp, struct txd out[], unsigned room, uint64_t now)
{
	uint32_t started = qp->req.rd_started - qp->comp.rd_done;
	uint32_t most = qp->attr.max_rd_atomic;
	uint32_t left = started < most ? most - started : 0;

	return run(c, qp, out, room < left ? room : left, now, true);
}

unsigned requester_run(struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now)
{
	unsigned room = run_room(c, qp, n);
	unsigned got = run(c, qp, out, room, now, false);

	if (!got && room && next_is_read(qp))
		got = read_run(c, qp, out, room, now);
	return got;
}
