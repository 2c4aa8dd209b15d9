/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of flows that arrive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"
#include "chaos_flow.h"
#include "qp.h"

/* The state of the links so far. */
static uint64_t doubled(const struct chaos_world *w)
{
	uint64_t n = 0;

	for (unsigned f = 0; f < CHAOS_HOSTS; f++)
		for (unsigned t = 0; t < CHAOS_HOSTS; t++)
			n += w->link[f][t].count.duplicated;
	return n;
}

static uint64_t reordered(const struct chaos_world *w)
{
	uint64_t n = 0;

	for (unsigned f = 0; f < CHAOS_HOSTS; f++)
		for (unsigned t = 0; t < CHAOS_HOSTS; t++)
			n += w->link[f][t].count.reordered;
	return n;
}

/* --- which message is it? --------------------------------------------------------------- */

static uint32_t number_of(const struct abi_cqe *cqe, const uint8_t *payload)
{
	uint32_t n = cqe->imm;

	if (!(cqe->flags & ABI_WC_WITH_IMM))
		memcpy(&n, payload, sizeof(n));
	return n;
}

/* The next of those that take a receive there. */
static void check_turn(struct flow *fl, unsigned pool, uint32_t n)
{
	uint32_t i = fl->expect[pool];

	for (; i < fl->posted; i++) {
		const struct flow_message *m = &fl->msg[i];

		assert_int_equal(m->mistake, FLOW_GOOD); /* nor any after it */
		if (flow_takes_recv(m) && m->pool == pool)
			break;
	}
	if (i != n)
		fail_msg("%s: message %u of flow %u arrived instead of %u",
			flow_service_name[fl->service], n, fl->index, i);
	fl->expect[pool] = n + 1;
}

/* Whether what it wrote is still there. */
static bool target_is_its(const struct chaos_world *w, const struct flow *fl, uint32_t n)
{
	if (flow_reliable(fl))
		return true;
	return !doubled(w) && !reordered(w) && fl->posted - n <= FLOW_SLOTS;
}

static void check_count(
	const struct chaos_world *w, struct flow *from, const struct flow *to, uint32_t n)
{
	uint8_t *got = &from->got[to->index][n];

	if (++*got > (doubled(w) ? 2 : 1))
		fail_msg("%s: message %u of flow %u arrived %u times",
			flow_service_name[from->service], n, from->index, *got);
	if (!reordered(w) && !doubled(w))
		for (uint32_t i = n + 1; i < from->posted; i++)
			assert_int_equal(from->got[to->index][i], 0);
}

/* --- good ones -------------------------------------------------------------------------- */

static void check_fields(const struct flow *from, const struct flow_message *m, uint32_t n,
	const struct abi_cqe *cqe)
{
	bool write = m->op == ABI_WR_RDMA_WRITE_WITH_IMM;
	uint8_t flags = (from->service == FLOW_UD ? ABI_WC_GRH : 0) |
			(m->op != ABI_WR_SEND ? ABI_WC_WITH_IMM : 0) |
			(m->solicited ? ABI_WC_SOLICITED : 0);

	assert_int_equal(cqe->opcode, write ? ABI_WC_RECV_RDMA_WITH_IMM : ABI_WC_RECV);
	assert_int_equal(cqe->flags, flags);
	assert_int_equal(cqe->imm, m->op != ABI_WR_SEND ? n : 0);
	assert_int_equal(cqe->src_qp, from->qp[A]->qp->qpn);
	assert_int_equal(cqe->byte_len, m->len + (from->service == FLOW_UD ? UD_AREA : 0));
}

/* The bytes, and FILL after them. */
static void check_bytes(const struct flow *from, uint32_t n, const uint8_t *at, uint32_t room)
{
	uint8_t want[FLOW_LEN_MAX];
	uint32_t len = from->msg[n].len;

	flow_fill(from, n, want);
	if (memcmp(at, want, len) != 0)
		fail_msg("%s: message %u of flow %u, of %u bytes, is torn",
			flow_service_name[from->service], n, from->index, len);
	for (uint32_t i = len; i < room; i++)
		assert_int_equal(at[i], FLOW_FILL);
}

static void untouched(const struct pool *p, const struct pool_buf *buf)
{
	const uint8_t *at = pool_mem(p, buf);

	for (uint32_t i = 0; i < p->buf_len; i++)
		assert_int_equal(at[i], FLOW_FILL);
}

static void arrived_connected(const struct chaos_world *w, struct flows *f, struct flow *fl,
	const struct pool *p, const struct pool_buf *buf, const struct abi_cqe *cqe)
{
	const uint8_t *at = pool_mem(p, buf);
	bool write = cqe->opcode == ABI_WC_RECV_RDMA_WITH_IMM;
	uint32_t n = number_of(cqe, at);
	const struct flow_message *m = &fl->msg[n];

	assert_true(n >= fl->base && n < fl->posted);
	assert_false(m->unsent);
	if (flow_reliable(fl)) {
		check_turn(fl, (unsigned)(p - f->pool), n);
		assert_int_equal(m->epoch, p->epoch);
	} else {
		assert_int_equal(m->mistake, FLOW_GOOD);
		check_count(w, fl, fl, n);
	}
	check_fields(fl, m, n, cqe);
	if (!write) {
		assert_true(m->len <= buf->len && buf->mistake != FLOW_LKEY);
		check_bytes(fl, n, at, p->buf_len);
		return;
	}
	untouched(p, buf);
	if (target_is_its(w, fl, n))
		check_bytes(fl, n, flow_target(fl, n), m->len);
}

static void arrived_datagram(struct chaos_world *w, struct flows *f, struct flow *to,
	const struct pool *p, const struct pool_buf *buf, const struct abi_cqe *cqe)
{
	const uint8_t *area = pool_mem(p, buf);
	struct flow *from = ud_sender(w, f, cqe, area);
	uint32_t n = number_of(cqe, area + UD_AREA);
	const struct flow_message *m = &from->msg[n];

	assert_true(n < from->posted);
	assert_int_equal(m->mistake, FLOW_GOOD);
	assert_false(m->unsent);
	assert_true(m->group || from == to);
	flow_totals.grouped += m->group;
	check_count(w, from, to, n);
	check_fields(from, m, n, cqe);
	assert_true(UD_AREA + m->len <= buf->len && buf->mistake != FLOW_LKEY);
	ud_check(w, from, to, m, cqe, area);
	check_bytes(from, n, area + UD_AREA, p->buf_len - UD_AREA);
}

/* --- those that failed ------------------------------------------------------------------ */

/* The message that it was for, as far as that is known. */
static const struct flow_message *next_of(const struct flow *fl, unsigned pool)
{
	for (uint32_t i = fl->expect[pool]; i < fl->posted; i++)
		if (flow_takes_recv(&fl->msg[i]) && fl->msg[i].pool == pool)
			return &fl->msg[i];
	return NULL;
}

static void recv_failed(struct flows *f, struct flow *fl, const struct pool *p,
	const struct pool_buf *buf, uint8_t status)
{
	const struct flow_message *m =
		flow_reliable(fl) ? next_of(fl, (unsigned)(p - f->pool)) : NULL;
	bool send = !m || m->op != ABI_WR_RDMA_WRITE_WITH_IMM;
	bool ok = false;

	flow_totals.recv_failed[fl->service]++;
	fl->refused++;
	switch (status) {
	case ABI_WC_WR_FLUSH_ERR:
		ok = fl->qp[B]->qp->state == ABI_QPS_ERR;
		break;
	case ABI_WC_LOC_LEN_ERR: /* of UC its own queue's receive is kept for the next message */
		ok = buf->mistake == FLOW_SHORT && (fl->service != FLOW_UC || p->srq) &&
		     (!flow_reliable(fl) || (m && m->len > buf->len && send));
		break;
	case ABI_WC_LOC_PROT_ERR:
		ok = buf->mistake == FLOW_LKEY && (!flow_reliable(fl) || (m && send));
		break;
	case ABI_WC_LOC_QP_OP_ERR:
		ok = buf->mistake == FLOW_SGES && (!flow_reliable(fl) || m);
		break;
	case ABI_WC_REM_INV_REQ_ERR: /* UC-06 */
		ok = fl->service == FLOW_UC && p->srq;
		break;
	default:
		break;
	}
	if (!ok)
		fail_msg("%s: a receive of flow %u failed with status %u",
			flow_service_name[fl->service], fl->index, status);
	if (status != ABI_WC_WR_FLUSH_ERR && !fl->recv_failed)
		fl->recv_failed = status;
	if (fl->service == FLOW_UD || status == ABI_WC_LOC_QP_OP_ERR)
		untouched(p, buf); /* UD-12 */
}

/* SRQ-02: those of one QP in post order. */
static void check_order(struct flow *fl, unsigned pool, const struct pool *p, uint32_t serial)
{
	uint64_t at = (uint64_t)p->epoch << 32 | serial;

	assert_true(at >= fl->next_serial[pool]);
	fl->next_serial[pool] = at + 1;
}

void flow_received(
	struct chaos_world *w, struct flows *f, const struct app *app, const struct abi_cqe *cqe)
{
	struct flow *to = flow_of(f, app, B, cqe->qpn);
	struct pool_buf *buf;
	struct pool *p = pool_of(f, cqe->wr_id, &buf);

	assert_non_null(to);
	assert_ptr_equal(p->app, app);
	if (to->service == FLOW_XRC) { /* XRC-04, XRC-05 */
		assert_int_equal(p->xrcd, to->spec[B].xrcd);
		assert_int_equal(cqe->srqn, p->srq->srq.srqn);
	} else {
		assert_ptr_equal(p, to->pool);
	}
	check_order(to, (unsigned)(p - f->pool), p, buf->serial);
	flow_totals.recv_status[cqe->status % 32]++;
	pool_done(p, buf);
	if (cqe->status) {
		recv_failed(f, to, p, buf, cqe->status);
		return;
	}
	assert_int_not_equal(buf->mistake, FLOW_SGES);
	flow_totals.received[to->service]++;
	if (to->service == FLOW_UD)
		arrived_datagram(w, f, to, p, buf, cqe);
	else
		arrived_connected(w, f, to, p, buf, cqe);
}
