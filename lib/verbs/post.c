/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of work requests. libroci takes them unchanged, except where they refer to objects. */
#include <string.h>
#include "build.h"
#include "verbs.h"

#define SAME(member) (offsetof(struct ibv_send_wr, member) == offsetof(struct roci_send_wr, member))
_Static_assert(SAME(wr_id) && SAME(next) && SAME(sg_list) && SAME(num_sge) && SAME(opcode) &&
		       SAME(send_flags) && SAME(imm_data) && SAME(wr.rdma.remote_addr) &&
		       SAME(wr.rdma.rkey) && SAME(wr.atomic.compare_add) && SAME(wr.atomic.swap) &&
		       SAME(wr.atomic.rkey) && SAME(qp_type.xrc.remote_srqn) && SAME(bind_mw),
	"struct ibv_send_wr");
_Static_assert(sizeof(struct ibv_sge) == sizeof(struct roci_sge) &&
		       sizeof(struct ibv_sge) == sizeof(struct abi_sge) &&
		       offsetof(struct ibv_sge, lkey) == offsetof(struct abi_sge, lkey),
	"struct ibv_sge");
_Static_assert(
	offsetof(struct ibv_recv_wr, num_sge) == offsetof(struct roci_recv_wr, num_sge) &&
		offsetof(struct ibv_recv_wr, sg_list) == offsetof(struct roci_recv_wr, sg_list),
	"struct ibv_recv_wr");
_Static_assert((int)IBV_WR_SEND_WITH_INV == ROCI_WR_SEND_WITH_INV &&
		       (int)IBV_WR_ATOMIC_WRITE == ROCI_WR_ATOMIC_WRITE &&
		       (int)IBV_SEND_INLINE == ROCI_SEND_INLINE,
	"opcodes and flags");

/* --- datagrams -------------------------------------------------------------------------- */

static int refuse(const char *why)
{
	return explain_as("ibv_post_send", EINVAL, "a datagram %s", why);
}

static int check_datagram(const struct qp *qp, const struct ibv_send_wr *wr, uint64_t *length)
{
	const unsigned flags =
		IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

	*length = 0;
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) /* UD-01 */
		return refuse("can carry SENDs only: use IBV_WR_SEND or IBV_WR_SEND_WITH_IMM");
	if (wr->send_flags & ~flags)
		return refuse("has unknown send_flags");
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > qp->builder.max_sge) /* REQ-17 */
		return refuse("has more SGEs than the QP allows: raise max_send_sge");
	if (!wr->wr.ud.ah || pd_of(wr->wr.ud.ah->pd)->roci != pd_of(qp->pub.pd)->roci)
		return refuse("needs an address handle of its QP's PD");
	for (int i = 0; i < wr->num_sge; i++)
		*length += wr->sg_list[i].length;
	if (wr->send_flags & IBV_SEND_INLINE && *length > qp->builder.max_inline) /* REQ-16 */
		return refuse("has more inline bytes than the QP allows: raise max_inline_data");
	return 0;
}

static void put_payload(struct abi_wqe *w, const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)w + ABI_WQE_HDR;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (!(wr->send_flags & IBV_SEND_INLINE)) {
			memcpy(to, s, sizeof(*s));
			to += sizeof(*s);
			continue;
		}
		if (s->length)
			memcpy(to, (const void *)(uintptr_t)s->addr, s->length);
		to += s->length;
	}
}

static int put_datagram(struct qp *qp, const struct ibv_send_wr *wr)
{
	struct roci_builder *b = &qp->builder;
	bool inl = wr->send_flags & IBV_SEND_INLINE;
	struct abi_wqe *w;
	uint64_t length;
	int err = check_datagram(qp, wr, &length);

	if (!err && unlikely(b->next == b->limit))
		err = roci_build_room(qp->roci, b);
	if (err)
		return err;
	w = build_entry(b, b->next);
	w->wr_id = wr->wr_id;
	w->imm = wr->imm_data;
	w->ud.ah = wr->wr.ud.ah->handle;
	w->ud.remote_qpn = wr->wr.ud.remote_qpn;
	w->ud.remote_qkey = wr->wr.ud.remote_qkey;
	w->ud.pkey_index = 0;
	put_payload(w, wr);
	w->ctl = build_ctl(qp, b->next, wr->opcode, inl ? (uint32_t)length : (uint32_t)wr->num_sge,
			 wr->send_flags) |
		 (inl ? ABI_WQE_INLINE : 0);
	b->next++;
	return 0;
}

static __attribute__((noinline)) int post_datagrams(
	struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int err = roci_build_begin(qp->roci, &qp->builder);

	for (; !err && wr; wr = wr->next) {
		err = put_datagram(qp, wr);
		if (err)
			break;
	}
	roci_build_commit(qp->roci, &qp->builder);
	if (err)
		*bad_wr = wr;
	return err;
}

/* A full queue is normal for many programs: no sentence. */
static __attribute__((noinline)) int failed(int err)
{
	return err == ENOMEM ? err : explain("ibv_post_send", err);
}

/* --- binds ------------------------------------------------------------------------------ */

/* Posts one request, translating its objects. */
static int post_bind(struct qp *qp, const struct ibv_send_wr *wr)
{
	struct roci_send_wr r = {
		.wr_id = wr->wr_id,
		.num_sge = wr->num_sge,
		.opcode = ROCI_WR_BIND_MW,
		.send_flags = wr->send_flags,
		.bind_mw =
			{
				.mw = wr->bind_mw.mw ? ((struct mw *)wr->bind_mw.mw)->roci : NULL,
				.rkey = wr->bind_mw.rkey,
				.bind_info = bind_info_to_roci(&wr->bind_mw.bind_info),
			},
	};

	return roci_post_send(qp->roci, &r, NULL);
}

/* Posts a list with binds, one request at a time. */
static __attribute__((noinline)) int post_each(
	struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		struct roci_send_wr one;

		if (wr->opcode == IBV_WR_BIND_MW) {
			err = post_bind(qp, wr);
		} else {
			memcpy(&one, wr, sizeof(*wr));
			one.next = NULL;
			err = roci_post_send(qp->roci, &one, NULL);
		}
		if (err)
			break;
	}
	if (!err)
		return 0;
	*bad_wr = wr;
	return failed(err);
}

static bool has_bind(const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (unlikely(wr->opcode == IBV_WR_BIND_MW))
			return true;
	return false;
}

int verbs_post_send(struct ibv_qp *p, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct qp *qp = qp_of(p);
	int err;

	if (unlikely(p->qp_type == IBV_QPT_UD))
		return post_datagrams(qp, wr, bad_wr);
	if (unlikely(has_bind(wr)))
		return post_each(qp, wr, bad_wr);
	err = roci_post_send(
		qp->roci, (const struct roci_send_wr *)wr, (const struct roci_send_wr **)bad_wr);
	return likely(!err) ? 0 : failed(err);
}

int verbs_post_recv(struct ibv_qp *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return roci_post_recv(qp_of(p)->roci, (const struct roci_recv_wr *)wr,
		(const struct roci_recv_wr **)bad_wr);
}

int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return roci_post_srq_recv(srq_of(srq)->roci, (const struct roci_recv_wr *)wr,
		(const struct roci_recv_wr **)bad_wr);
}
