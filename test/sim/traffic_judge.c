/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge: is this what must become of what was posted? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "qp.h"
#include "traffic_impl.h"

/* The effects of a mistake, at both ends. The receive request's own are the peer's. */
static const struct {
	uint8_t status;	     /* of the work request */
	uint8_t recv_status; /* of the receive that it hits, 0: none */
} outcome[TRAFFIC_MISTAKES] = {
	[MISTAKE_LKEY] = {ABI_WC_LOC_PROT_ERR, 0},
	[MISTAKE_LOCAL_RANGE] = {ABI_WC_LOC_PROT_ERR, 0},
	[MISTAKE_LOCAL_ACCESS] = {ABI_WC_LOC_PROT_ERR, 0},
	[MISTAKE_OPCODE] = {ABI_WC_LOC_QP_OP_ERR, 0},
	[MISTAKE_SGES] = {ABI_WC_LOC_QP_OP_ERR, 0},
	[MISTAKE_RKEY] = {ABI_WC_REM_ACCESS_ERR, 0},
	[MISTAKE_REMOTE_RANGE] = {ABI_WC_REM_ACCESS_ERR, 0},
	[MISTAKE_REMOTE_ACCESS] = {ABI_WC_REM_ACCESS_ERR, 0},
	[MISTAKE_REMOTE_PD] = {ABI_WC_REM_ACCESS_ERR, 0},
	[MISTAKE_TOO_LONG] = {ABI_WC_REM_INV_REQ_ERR, ABI_WC_LOC_LEN_ERR},
	[MISTAKE_RECV_LKEY] = {ABI_WC_REM_OP_ERR, ABI_WC_LOC_PROT_ERR},
	[MISTAKE_RECV_SGES] = {ABI_WC_REM_OP_ERR, ABI_WC_LOC_QP_OP_ERR},
};

/* --- judging -------------------------------------------------------------------------- */

/* The source of a message is as it was posted; inline data was overwritten at once. */
static void check_source(const struct traffic_side *me, const struct traffic_message *m)
{
	bool inl = m->wr.flags & ABI_WQE_INLINE;

	if (traffic_is_atomic(m->wr.op)) /* RSP-36: done once, or not at all */
		word_check(&me->target, &m->target, &m->remote, m->result,
			m->done ? m->result : word_of(m->key));
	else if (m->wr.op == TRAFFIC_READ)
		pieces_check(&me->target, &m->target, &m->remote, m->wr.len, m->key);
	else
		pieces_check(&me->local, &m->local, &m->at, inl ? 0 : m->wr.len, m->key);
}

static unsigned size_class(const struct traffic_side *me, uint32_t len)
{
	uint32_t mtu = me->qp->qp->attr.path_mtu;

	if (len < 2 || len == TRAFFIC_MAX)
		return len == TRAFFIC_MAX ? 6 : len;
	if (len <= mtu || len % mtu == 0)
		return len <= mtu ? 2 : 3;
	return len <= 65536 ? 4 : 5;
}

/* Its sender got its completion. */
static void message_done(struct traffic *t, int e, struct traffic_message *m)
{
	struct traffic_side *me = &t->side[e];
	const struct traffic_side *peer = &t->side[!e];

	assert_int_equal(m->wr.mistake, MISTAKE_NONE);
	assert_false(m->doomed);
	m->done = true;
	check_source(me, m);
	if (traffic_fetches(m->wr.op))
		pieces_check(&me->local, &m->local, &m->at, m->wr.len, m->key);
	else if (traffic_has_target(m->wr.op))
		pieces_check(&me->target, &m->target, &m->remote, m->wr.len, m->key);
	target_mw_done(t, e, m);
	area_give(&me->local, &m->local);
	if (traffic_has_target(m->wr.op))
		area_give(&me->target, &m->target);
	if (traffic_takes_recv(m->wr.op) && !peer->cqes_lost) /* RSP-24: it was received first */
		assert_true(m < &me->msg[peer->expect]);
	traffic_totals.completed[m->wr.op]++;
	traffic_totals.bytes += m->wr.len;
	traffic_totals.size[size_class(me, m->wr.len)]++;
}

/* Whether a send may fail because of the receive request that it met. */
static bool recv_explains(const struct traffic_side *peer, uint8_t status)
{
	if (status != ABI_WC_REM_OP_ERR)
		return false;
	return peer->recv_failed == ABI_WC_LOC_PROT_ERR ||
	       peer->recv_failed == ABI_WC_LOC_QP_OP_ERR || peer->cqes_lost;
}

/* The first failure of a side's sends: @p m's own mistake, or something that may happen. */
static void first_failure(
	struct traffic *t, int e, const struct traffic_message *m, const struct abi_cqe *cqe)
{
	struct traffic_side *me = &t->side[e];
	uint8_t status = cqe->status;
	bool ok = me->may >> status & 1;

	if (m->wr.mistake)
		ok |= status == outcome[m->wr.mistake].status;
	if (traffic_takes_recv(m->wr.op))
		ok |= recv_explains(&t->side[!e], status);
	if (!ok)
		fail_msg("side %d: %s of %u bytes (mistake: %s) fails with status %u", e,
			traffic_op_name[m->wr.op], m->wr.len, traffic_mistake_name[m->wr.mistake],
			status);
	if (status == ABI_WC_REM_ACCESS_ERR)
		assert_true(
			m->wr.op == TRAFFIC_FLUSH || (m->wr.len && traffic_has_target(m->wr.op)));
	if (status == ABI_WC_MW_BIND_ERR)
		assert_int_equal(m->wr.op, TRAFFIC_BIND);
	if (status == ABI_WC_LOC_PROT_ERR)
		assert_true(m->wr.len && !(m->wr.flags & ABI_WQE_INLINE));
	me->failed = status;
	me->unexplained = false;
	/* Its QP answers no more. */
	traffic_allow(t, e, 0, TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR));
	traffic_allow(t, !e, TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR), 0);
}

static void send_cqe(struct traffic *t, int e, const struct abi_cqe *cqe)
{
	struct traffic_side *me = &t->side[e];
	static const uint8_t code[TRAFFIC_OPS] = {ABI_WC_SEND, ABI_WC_SEND, ABI_WC_RDMA_WRITE,
		ABI_WC_RDMA_WRITE, ABI_WC_RDMA_READ, ABI_WC_COMP_SWAP, ABI_WC_FETCH_ADD,
		ABI_WC_ATOMIC_WRITE, ABI_WC_FLUSH, ABI_WC_SEND, ABI_WC_BIND_MW, ABI_WC_LOCAL_INV};
	unsigned index = (unsigned)(cqe->wr_id - me->wr_base);
	struct traffic_message *m = &me->msg[index];

	assert_true(cqe->wr_id - me->wr_base < me->posted && index >= me->done);
	traffic_totals.status[cqe->status & 31]++;
	if (me->failed) { /* CQ-10, QPS-20: after one failure each is flushed */
		assert_int_equal(cqe->status, ABI_WC_WR_FLUSH_ERR);
		assert_int_equal(index, me->done);
	}
	/* REQ-34: what was unsignaled before it, went well. */
	while (me->done < index)
		message_done(t, e, &me->msg[me->done++]);
	me->done++;
	if (m->wr.mistake != MISTAKE_OPCODE)
		assert_int_equal(cqe->opcode, code[m->wr.op]);
	if (cqe->status == ABI_WC_SUCCESS) {
		assert_int_equal(cqe->byte_len, m->wr.len);
		message_done(t, e, m);
		return;
	}
	traffic_totals.failed[m->wr.op]++;
	if (!me->failed)
		first_failure(t, e, m, cqe);
}

static void recv_failure(
	struct traffic *t, int e, const struct traffic_message *m, const struct abi_cqe *cqe)
{
	struct traffic_side *me = &t->side[e];
	const struct traffic_recv *r = &me->rq[me->recv_done - 1];
	uint8_t status = cqe->status;
	bool ok = me->recv_may >> status & 1;

	if (me->recv_failed) {
		assert_int_equal(status, ABI_WC_WR_FLUSH_ERR);
		return;
	}
	if (m && m->wr.mistake)
		ok |= status == outcome[m->wr.mistake].recv_status;
	if (r->mistake)
		ok |= status == outcome[r->mistake].recv_status;
	/* The send that failed may lie in the same batch: traffic_settle() asks. */
	me->unexplained = !ok && status == ABI_WC_WR_FLUSH_ERR;
	if (!ok && !me->unexplained)
		fail_msg("side %d: a receive (mistake: %s) fails with status %u", e,
			traffic_mistake_name[r->mistake], status);
	me->recv_failed = status;
	me->may |= TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR);
	t->side[!e].may |= TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR);
}

static void recv_success(
	struct traffic *t, int e, const struct traffic_message *m, const struct abi_cqe *cqe)
{
	struct traffic_side *me = &t->side[e];
	struct traffic_recv *r = &me->rq[me->recv_done - 1];
	bool write = m->wr.op == TRAFFIC_WRITE_IMM;
	bool imm = write || m->wr.op == TRAFFIC_SEND_IMM;
	bool inv = m->wr.op == TRAFFIC_SEND_INV;

	assert_int_equal(me->recv_failed, 0);
	assert_int_equal(m->wr.mistake, MISTAKE_NONE);
	if (r->mistake) /* nothing of it was needed */
		assert_true(r->mistake == MISTAKE_RECV_LKEY && (write || !m->wr.len));
	assert_true(write || !m->wr.len || !me->recv.shadow); /* it was deregistered */
	assert_int_equal(cqe->byte_len, m->wr.len);	      /* CQ-09 */
	assert_int_equal(cqe->opcode, write ? ABI_WC_RECV_RDMA_WITH_IMM : ABI_WC_RECV);
	assert_int_equal(!!(cqe->flags & ABI_WC_WITH_IMM), imm);
	assert_int_equal(!!(cqe->flags & ABI_WC_SOLICITED), !!(m->wr.flags & ABI_WQE_SOLICITED));
	assert_int_equal(cqe->src_qp, t->side[!e].qpn);
	if (imm)
		assert_int_equal(cqe->imm, m->imm);
	assert_int_equal(!!(cqe->flags & ABI_WC_WITH_INV), inv);
	if (inv) {
		assert_int_equal(cqe->imm, m->window);
		target_mw_invalidated(t, e, m);
	}
	pieces_check(&me->recv, &r->place, &r->at, write ? 0 : m->wr.len, m->key);
	area_give(&me->recv, &r->place);
	r->done = true;
}

/* The next message of @p peer, from @p i on, that completes a receive; NULL: none was posted. */
static const struct traffic_message *expected(const struct traffic_side *peer, unsigned *i)
{
	while (*i < peer->posted && !traffic_takes_recv(peer->msg[*i].wr.op))
		++*i;
	return *i < peer->posted ? &peer->msg[*i] : NULL;
}

static void recv_cqe(struct traffic *t, int e, const struct abi_cqe *cqe)
{
	struct traffic_side *me = &t->side[e];
	const struct traffic_side *peer = &t->side[!e];
	const struct traffic_message *m;

	traffic_totals.recv_status[cqe->status & 31]++;
	assert_true(me->recv_done < me->recv_posted);
	assert_int_equal(cqe->wr_id - me->wr_base, me->recv_done);
	me->recv_done++;
	m = expected(peer, &me->expect);
	if (cqe->status != ABI_WC_SUCCESS) {
		recv_failure(t, e, m, cqe);
		return;
	}
	assert_non_null(m);
	me->expect++;
	recv_success(t, e, m, cqe);
}

void traffic_cqe(struct traffic *t, int e, const struct abi_cqe *cqe)
{
	assert_int_equal(cqe->qpn, t->side[e].qpn);
	if (cqe->opcode & ABI_WC_RECV)
		recv_cqe(t, e, cqe);
	else
		send_cqe(t, e, cqe);
}

void traffic_flushed(struct traffic *t, int e)
{
	struct traffic_side *me = &t->side[e];

	while (me->done < me->posted) {
		struct traffic_message *m = &me->msg[me->done++];

		assert_false(me->failed || me->qp->spec.sig_all);
		assert_false(m->wr.flags & ABI_WQE_SIGNALED);
		message_done(t, e, m);
	}
	assert_int_equal(me->recv_done, me->recv_posted);
}

void traffic_settle(const struct traffic *t)
{
	for (int e = A; e < ENDS; e++)
		if (t->side[e].unexplained)
			fail_msg("side %d: its receives were flushed, and nothing says why", e);
}

void traffic_take(struct traffic *t, struct pair *p)
{
	for (int recv = 1; recv >= 0; recv--)
		for (int e = A; e < ENDS; e++) {
			struct pair_end *end = &p->end[e];

			for (unsigned i = t->side[e].taken; i < end->cqes; i++) {
				const struct abi_cqe *cqe = &end->cqe[i % 4096];

				if (!!(cqe->opcode & ABI_WC_RECV) == recv)
					traffic_cqe(t, e, cqe);
			}
			if (!recv)
				t->side[e].taken = end->cqes;
		}
	traffic_settle(t);
}

/* --- what is left --------------------------------------------------------------------- */

static void judge_messages(const struct traffic_side *me)
{
	for (unsigned i = 0; i < me->posted; i++) {
		const struct traffic_message *m = &me->msg[i];

		if (m->done)
			continue;
		check_source(me, m);
		if (traffic_fetches(m->wr.op))
			pieces_check_begun(&me->local, &m->local, &m->at, m->wr.len, m->key);
		else if (traffic_has_target(m->wr.op))
			pieces_check_begun(&me->target, &m->target, &m->remote, m->wr.len, m->key);
		if (i >= me->done)
			traffic_totals.discarded[m->wr.op]++;
	}
}

/* Only the oldest of the receives that broke can have been begun, unless CQEs are missing. */
static void judge_recvs(const struct traffic *t, int e)
{
	const struct traffic_side *me = &t->side[e];
	const struct traffic_side *peer = &t->side[!e];
	unsigned next = me->expect;
	bool begun = true;

	for (unsigned i = 0; i < me->recv_posted; i++) {
		const struct traffic_recv *r = &me->rq[i];
		const struct traffic_message *m;
		uint32_t len = 0;

		if (r->done)
			continue;
		m = expected(peer, &next);
		if (m && begun && !traffic_has_target(m->wr.op))
			len = m->wr.len < t->spec.recv_len ? m->wr.len : t->spec.recv_len;
		pieces_check_begun(&me->recv, &r->place, &r->at, len, m ? m->key : 0);
		begun = me->cqes_lost;
		next++;
	}
}

void judge_rest(struct traffic *t)
{
	for (int e = A; e < ENDS; e++) {
		judge_recvs(t, e);
		judge_messages(&t->side[e]);
	}
}
