/* SPDX-License-Identifier: BSD-3-Clause */
/* The wr_* calls: they write entries directly into the send ring (roci_private.h). */
#include <string.h>
#include "build.h"
#include "verbs.h"

#define MESSAGE_MAX (1ull << 31) /* REQ-07 */

static struct qp *of(struct ibv_qp_ex *ex)
{
	return (struct qp *)ex;
}

/* The entry that the setters fill in. */
static struct abi_wqe *current(const struct qp *qp)
{
	return build_entry(&qp->builder, qp->builder.next - 1);
}

/* Opcodes whose operands have their own fields, and opcodes without operands. */
#define ATOMIC	(1u << ABI_WR_ATOMIC_CMP_AND_SWP | 1u << ABI_WR_ATOMIC_FETCH_AND_ADD)
#define BARE	(1u << ABI_WR_LOCAL_INV | 1u << ABI_WR_BIND_MW)
#define SPECIAL (ATOMIC | BARE)

/* @return whether the entry's opcode is in the set @p ops. */
static bool is_of(const struct abi_wqe *w, unsigned ops)
{
	return ops >> (ABI_WQE_OPCODE(w->ctl) & 31) & 1;
}

/* --- requests --------------------------------------------------------------------------- */

/* The rest of the list is ignored. */
static void fail(struct qp *qp, int err)
{
	struct roci_builder *b = &qp->builder;

	if (!b->err)
		b->err = err;
	b->limit = b->next;
	qp->plain = NULL;
}

/* @return false: an earlier call failed, or the queue is full. */
static __attribute__((noinline)) bool find_room(struct qp *qp)
{
	int err = qp->builder.err ? qp->builder.err : roci_build_room(qp->roci, &qp->builder);

	if (err)
		fail(qp, err);
	return !err;
}

static bool has_room(const struct qp *qp)
{
	return likely(qp->builder.next != qp->builder.limit);
}

/* Begins the next entry, without payload yet; there must be room. */
static struct abi_wqe *put(struct ibv_qp_ex *ex, unsigned opcode)
{
	struct qp *qp = of(ex);
	struct abi_wqe *w = build_entry(&qp->builder, qp->builder.next);

	w->ctl = build_ctl(qp, qp->builder.next, opcode, 0, ex->wr_flags);
	w->wr_id = ex->wr_id;
	qp->builder.next++;
	qp->plain = (SPECIAL >> opcode) & 1 ? NULL : w;
	return w;
}

/* @return NULL: no room, or an earlier call failed. */
static struct abi_wqe *begin(struct ibv_qp_ex *ex, unsigned opcode)
{
	return has_room(of(ex)) || find_room(of(ex)) ? put(ex, opcode) : NULL;
}

static void wr_rdma(struct ibv_qp_ex *ex, unsigned op, uint32_t rkey, uint64_t remote_addr);

/* Out of line, so that the arguments stay in registers in the common case. */
static __attribute__((noinline)) void wr_rdma_if_room(
	struct ibv_qp_ex *ex, unsigned op, uint32_t rkey, uint64_t remote_addr)
{
	if (find_room(of(ex)))
		wr_rdma(ex, op, rkey, remote_addr);
}

static void wr_rdma(struct ibv_qp_ex *ex, unsigned op, uint32_t rkey, uint64_t remote_addr)
{
	struct abi_wqe *w;

	if (!has_room(of(ex))) {
		wr_rdma_if_room(ex, op, rkey, remote_addr);
		return;
	}
	w = put(ex, op);
	w->remote_addr = remote_addr;
	w->rkey = rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	wr_rdma(ex, ABI_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	wr_rdma(ex, ABI_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	struct abi_wqe *w = begin(ex, ABI_WR_RDMA_WRITE_WITH_IMM);

	if (!w)
		return;
	w->remote_addr = remote_addr;
	w->rkey = rkey;
	w->imm = imm;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, ABI_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct abi_wqe *w = begin(ex, ABI_WR_SEND_WITH_IMM);

	if (w)
		w->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct abi_wqe *w = begin(ex, ABI_WR_SEND_WITH_INV);

	if (w)
		w->inv_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct abi_wqe *w = begin(ex, ABI_WR_LOCAL_INV);

	if (w)
		w->inv_rkey = rkey;
}

static void wr_atomic(struct ibv_qp_ex *ex, unsigned op, uint32_t rkey, uint64_t remote_addr,
	uint64_t compare_add, uint64_t swap)
{
	struct abi_wqe *w = begin(ex, op);

	if (!w)
		return;
	w->remote_addr = remote_addr;
	w->rkey = rkey;
	w->atomic.compare_add = compare_add;
	w->atomic.swap = swap;
}

static void wr_atomic_cmp_swp(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	wr_atomic(ex, ABI_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	wr_atomic(ex, ABI_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_bind_mw(
	struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct roci_mw_bind_info r = bind_info_to_roci(info);
	struct qp *qp = of(ex);
	struct abi_wqe *w;

	if ((rkey ^ mw->rkey) & ~0xFFu || (info->length && !info->mr)) {
		fail(qp, EINVAL);
		return;
	}
	w = begin(ex, ABI_WR_BIND_MW);
	if (!w)
		return;
	w->bind.mw = mw->rkey;
	w->bind.new_rkey = rkey;
	w->bind.mr_lkey = r.mr ? r.mr->lkey : 0;
	w->bind.access = r.mw_access_flags;
	w->bind.addr = r.addr;
	w->bind.length = r.length;
}

/* FLU-08: the payload is inline. */
static void wr_atomic_write(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *value)
{
	struct qp *qp = of(ex);
	struct abi_wqe *w = begin(ex, ABI_WR_ATOMIC_WRITE);

	if (!w)
		return;
	w->remote_addr = remote_addr;
	w->rkey = rkey;
	memcpy((uint8_t *)w + ABI_WQE_HDR, value, sizeof(uint64_t));
	w->ctl |= ABI_WQE_CTL(0, sizeof(uint64_t), ABI_WQE_INLINE);
	if (qp->builder.max_inline < sizeof(uint64_t))
		fail(qp, EINVAL);
}

/* --- their data ------------------------------------------------------------------------- */

static void wr_set_ud_addr(
	struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct qp *qp = of(ex);
	struct abi_wqe *w;

	if (qp->builder.err)
		return;
	if (!ah || pd_of(ah->pd)->roci != pd_of(qp->pub.pd)->roci) {
		fail(qp, EINVAL);
		return;
	}
	w = current(qp);
	w->ud.ah = ah->handle;
	w->ud.remote_qpn = remote_qpn;
	w->ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	struct qp *qp = of(ex);

	if (!qp->builder.err)
		current(qp)->srqn = srqn;
}

/* Sets the operand of opcodes that have their own field for it; refuses those without operands. */
static void set_special(struct qp *qp, struct abi_wqe *w, uint32_t lkey, uint64_t addr, uint32_t n)
{
	if (is_of(w, BARE) || n != sizeof(uint64_t)) {
		fail(qp, EINVAL);
		return;
	}
	w->atomic.sge = (struct abi_sge){.addr = addr, .length = n, .lkey = lkey};
	w->ctl |= ABI_WQE_CTL(0, 1, 0);
}

static void put_sge(struct abi_wqe *w, uint32_t lkey, uint64_t addr, uint32_t length)
{
	w->sge[0] = (struct abi_sge){.addr = addr, .length = length, .lkey = lkey};
	w->ctl |= ABI_WQE_CTL(0, 1, 0);
}

static __attribute__((noinline)) void set_sge(
	struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct qp *qp = of(ex);
	struct abi_wqe *w = current(qp);

	if (qp->builder.err)
		return;
	if (length > MESSAGE_MAX || !qp->builder.max_sge) {
		fail(qp, EINVAL);
		return;
	}
	if (is_of(w, SPECIAL)) {
		set_special(qp, w, lkey, addr, length);
		return;
	}
	put_sge(w, lkey, addr, length);
}

/* For QPs with SGEs. */
static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct abi_wqe *w = of(ex)->plain;

	if (unlikely(!w || length > MESSAGE_MAX)) {
		set_sge(ex, lkey, addr, length);
		return;
	}
	put_sge(w, lkey, addr, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct qp *qp = of(ex);
	struct abi_wqe *w;
	uint64_t length = 0;

	if (qp->builder.err)
		return;
	w = current(qp);
	if (is_of(w, SPECIAL)) {
		if (n == 1)
			set_special(qp, w, list->lkey, list->addr, list->length);
		else
			fail(qp, EINVAL);
		return;
	}
	if (n > qp->builder.max_sge) {
		fail(qp, EINVAL);
		return;
	}
	for (size_t i = 0; i < n; i++)
		length += list[i].length;
	if (length > MESSAGE_MAX) {
		fail(qp, EINVAL);
		return;
	}
	memcpy((uint8_t *)w + ABI_WQE_HDR, list, n * sizeof(*list));
	w->ctl |= ABI_WQE_CTL(0, (uint32_t)n, 0);
}

static bool may_inline(const struct abi_wqe *w)
{
	unsigned op = ABI_WQE_OPCODE(w->ctl);

	return op <= ABI_WR_SEND_WITH_IMM || op == ABI_WR_SEND_WITH_INV;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct qp *qp = of(ex);
	struct abi_wqe *w;
	size_t length = 0;
	uint8_t *to;

	if (qp->builder.err)
		return;
	w = current(qp);
	for (size_t i = 0; i < n; i++)
		length += list[i].length;
	if (!may_inline(w) || length > qp->builder.max_inline) {
		fail(qp, EINVAL);
		return;
	}
	to = (uint8_t *)w + ABI_WQE_HDR;
	for (size_t i = 0; i < n; i++) {
		if (list[i].length)
			memcpy(to, list[i].addr, list[i].length);
		to += list[i].length;
	}
	w->ctl |= ABI_WQE_CTL(0, (uint32_t)length, ABI_WQE_INLINE);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* --- the list --------------------------------------------------------------------------- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct qp *qp = of(ex);

	roci_build_begin(qp->roci, &qp->builder);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct qp *qp = of(ex);
	int err = qp->builder.err;

	if (likely(!err))
		return roci_build_commit(qp->roci, &qp->builder);
	roci_build_abort(qp->roci);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	roci_build_abort(of(ex)->roci);
}

static void set_setters(struct ibv_qp_ex *ex)
{
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = of(ex)->builder.max_sge ? wr_set_sge : set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	if (ex->qp_base.qp_type == IBV_QPT_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (ex->qp_base.qp_type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
}

void qp_ex_set_ops(struct ibv_qp_ex *ex, uint64_t ops)
{
	set_setters(ex);
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = wr_rdma_write_imm;
	if (ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = wr_send_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (ops & IBV_QP_EX_WITH_LOCAL_INV)
		ex->wr_local_inv = wr_local_inv;
	if (ops & IBV_QP_EX_WITH_BIND_MW)
		ex->wr_bind_mw = wr_bind_mw;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = wr_send_inv;
	if (ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = wr_atomic_write;
}
