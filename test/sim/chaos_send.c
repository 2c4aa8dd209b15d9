/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages that flows send, and the completions of their senders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"
#include "chaos_flow.h"
#include "qp.h"

#define LEN_MIN	 4u /* of a message: its number */
#define WORD	 8u
#define MISTAKES 80u /* one message in so many, about */
#define POSTS	 4u  /* a turn */
#define UD_MTU	 4096u
#define AREA_MIN 8192u

/* --- memory ----------------------------------------------------------------------------- */

/* Of a message: where it is sent from, or fetched to, and where it is written to. */
static uint32_t slot_off(const struct flow *fl, uint32_t n)
{
	return WORD + n % FLOW_SLOTS * fl->max_len;
}

void flow_memory(struct flows *f, struct flow *fl)
{
	uint32_t len = slot_off(fl, FLOW_SLOTS - 1) + fl->max_len;

	/* Beyond them: what READs fetch; what is too long for a datagram lies in all of it. */
	len += len + fl->max_len < AREA_MIN ? AREA_MIN : fl->max_len;
	fl->mr[A] = app_mr(fl->app[A], len, ABI_ACCESS_LOCAL_WRITE);
	fl->mr[B] = app_mr(fl->app[B], len,
		ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ |
			ABI_ACCESS_REMOTE_ATOMIC);
	memset(fl->mr[B]->mem, 0, WORD);
	random_fill(&f->random, fl->mr[B]->mem + len - fl->max_len, fl->max_len);
}

static uint32_t fetch_off(const struct flow *fl)
{
	return (uint32_t)fl->mr[B]->len - fl->max_len;
}

void flow_fill(const struct flow *fl, uint32_t n, uint8_t *to)
{
	struct random r = {.state = (fl->key ^ (uint64_t)n << 20) | 1};
	uint32_t len = fl->msg[n].len;

	random_next(&r);
	for (uint32_t i = 0; i < len; i += 8) {
		uint64_t word = random_next(&r);

		memcpy(to + i, &word, len - i < 8 ? len - i : 8);
	}
	memcpy(to, &n, sizeof(n));
}

const uint8_t *flow_target(const struct flow *fl, uint32_t n)
{
	return fl->mr[B]->mem + slot_off(fl, n);
}

bool flow_takes_recv(const struct flow_message *m)
{
	return m->op == ABI_WR_SEND || m->op == ABI_WR_SEND_WITH_IMM ||
	       m->op == ABI_WR_RDMA_WRITE_WITH_IMM;
}

/* --- chosen ----------------------------------------------------------------------------- */

static uint8_t any_op(struct flows *f, const struct flow *fl)
{
	static const uint8_t ops[] = {ABI_WR_SEND, ABI_WR_SEND_WITH_IMM, ABI_WR_SEND,
		ABI_WR_RDMA_WRITE, ABI_WR_RDMA_WRITE_WITH_IMM, ABI_WR_RDMA_READ,
		ABI_WR_ATOMIC_FETCH_AND_ADD};
	static const unsigned kinds[FLOW_SERVICES] = {7, 5, 2, 7};

	return ops[flows_below(f, kinds[fl->service])];
}

static uint32_t any_len(struct flows *f, const struct flow *fl)
{
	uint32_t max = fl->max_len;

	if (fl->service == FLOW_UD && max > UD_MTU)
		max = UD_MTU;
	if (!flows_below(f, 4)) /* each order of magnitude */
		max = LEN_MIN + flows_below(f, max - LEN_MIN + 1);
	return LEN_MIN + flows_below(f, max - LEN_MIN + 1);
}

static enum flow_mistake any_mistake(struct flows *f, const struct flow *fl, uint8_t op)
{
	static const enum flow_mistake datagram[] = {
		FLOW_LKEY, FLOW_QKEY, FLOW_QKEY, FLOW_QPN, FLOW_AH, FLOW_LONG};
	bool remote = op == ABI_WR_RDMA_WRITE || op == ABI_WR_RDMA_WRITE_WITH_IMM;

	if (!f->mistakes || flows_below(f, MISTAKES))
		return FLOW_GOOD;
	if (fl->service == FLOW_UD)
		return datagram[flows_below(f, ARRAY_SIZE(datagram))];
	if (fl->service == FLOW_XRC && op != ABI_WR_RDMA_READ && flows_below(f, 2) &&
		op != ABI_WR_ATOMIC_FETCH_AND_ADD && op != ABI_WR_RDMA_WRITE)
		return FLOW_SRQN;
	return remote && flows_below(f, 2) ? FLOW_RKEY : FLOW_LKEY;
}

static struct pool *any_pool(struct flows *f, const struct flow *fl)
{
	struct pool *p = fl->pool;

	while (!p || (fl->service == FLOW_XRC && p->xrcd != fl->spec[B].xrcd))
		p = &f->pool[flows_below(f, f->pools)];
	return p;
}

static void choose(struct flows *f, const struct flow *fl, struct flow_message *m)
{
	const struct pool *p = any_pool(f, fl);
	bool quiet = fl->posted != fl->base && fl->msg[fl->posted - 1].unsignaled;

	*m = (struct flow_message){
		.op = any_op(f, fl),
		.pool = (uint8_t)(p - f->pool),
		.epoch = p->epoch,
		.len = any_len(f, fl),
		.add = random_next(&f->random),
		.solicited = !flows_below(f, 4),
		.group = fl->service == FLOW_UD && !flows_below(f, 3),
		.ah = (uint8_t)(fl->ahs - 1),
	};
	m->mistake = any_mistake(f, fl, m->op);
	m->unsignaled = !quiet && fl->spec[A].sq_depth > 1 && !flows_below(f, 4);
	m->group &= m->mistake != FLOW_QPN; /* a group has none */
	if (m->op == ABI_WR_ATOMIC_FETCH_AND_ADD)
		m->len = WORD;
	if (m->mistake == FLOW_LONG)
		m->len = UD_MTU + 1 + flows_below(f, AREA_MIN - UD_MTU - WORD);
}

/* --- posted ----------------------------------------------------------------------------- */

/* XRC-04: of another domain, of none, and unknown. */
static uint32_t wrong_srqn(struct flows *f, const struct flow *fl)
{
	for (unsigned i = 0; i < f->pools; i++) {
		const struct pool *p = &f->pool[flows_below(f, f->pools)];

		if (p->srq && p->app == fl->app[B] && p->xrcd != fl->spec[B].xrcd)
			return p->srq->srq.srqn;
	}
	return f->pool[0].srq->srq.srqn + SRQ_MAX;
}

static void describe(struct flows *f, const struct flow *fl, uint32_t n, struct app_send *s)
{
	const struct flow_message *m = &fl->msg[n];
	bool fetches = m->op == ABI_WR_RDMA_READ, atomic = m->op == ABI_WR_ATOMIC_FETCH_AND_ADD;
	uint32_t off = slot_off(fl, n);
	uint8_t *mem = fl->mr[A]->mem + off;

	*s = (struct app_send){
		.opcode = m->op,
		.flags = (m->unsignaled ? 0 : ABI_WQE_SIGNALED) |
			 (m->solicited ? ABI_WQE_SOLICITED : 0),
		.imm = n,
		.wr_id = n,
		.remote_addr = app_va(fl->mr[B], atomic	   ? 0
						 : fetches ? fetch_off(fl)
							   : off),
		.rkey = fl->mr[B]->mr.key ^ (m->mistake == FLOW_RKEY ? 0xFF : 0),
		.srqn = f->pool[m->pool].srq ? f->pool[m->pool].srq->srq.srqn : 0,
		.compare_add = m->add,
		.num_sge = 1,
		.sge = {app_sge(fl->mr[A], m->mistake == FLOW_LONG ? 0 : off, m->len)},
	};
	if (m->mistake == FLOW_SRQN)
		s->srqn = wrong_srqn(f, fl);
	if (m->mistake == FLOW_LKEY)
		s->sge[0].lkey ^= 0xFF;
	if (m->mistake != FLOW_LONG && !fetches && !atomic)
		flow_fill(fl, n, mem);
	if (m->mistake != FLOW_GOOD || fetches || atomic || m->len > fl->spec[A].max_inline ||
		m->add % 2)
		return;
	s->flags |= ABI_WQE_INLINE;
	s->inline_data = mem;
	s->inline_len = m->len;
}

static void post_one(struct flows *f, struct flow *fl)
{
	uint32_t n = fl->posted;
	struct flow_message *m = &fl->msg[n];
	struct app_send s;

	choose(f, fl, m);
	flow_totals.mistake[m->mistake]++;
	describe(f, fl, n, &s);
	if (fl->service == FLOW_UD)
		ud_describe(fl, m, &s);
	app_post_send(fl->qp[A], &s);
	if (s.flags & ABI_WQE_INLINE) /* REQ-15 */
		memset(fl->mr[A]->mem + slot_off(fl, n), 0xA5, m->len);
	fl->posted++;
}

void flow_post(struct flows *f, struct flow *fl)
{
	uint32_t room = fl->spec[A].sq_depth;

	if (room > FLOW_SLOTS)
		room = FLOW_SLOTS;
	if (fl->qp[A]->qp->state != ABI_QPS_RTS)
		return;
	for (unsigned i = 0; i < POSTS; i++)
		if (fl->posted < FLOW_MESSAGES && fl->posted - fl->done < room &&
			app_sq_room(fl->qp[A]) && flows_below(f, 100) < fl->share)
			post_one(f, fl);
}

/* --- judged ----------------------------------------------------------------------------- */

/* A success says this of the peer's memory (RSP-24, REQ-44, RSP-36). */
static void check_reliable(struct flow *fl, uint32_t n, const uint8_t *mem)
{
	const struct flow_message *m = &fl->msg[n];
	uint8_t want[FLOW_LEN_MAX];

	if (flow_takes_recv(m) && fl->expect[m->pool] <= n)
		fail_msg("%s: message %u of flow %u was acknowledged before it arrived",
			flow_service_name[fl->service], n, fl->index);
	switch (m->op) {
	case ABI_WR_RDMA_WRITE:
		flow_fill(fl, n, want);
		assert_memory_equal(flow_target(fl, n), want, m->len);
		break;
	case ABI_WR_RDMA_READ:
		assert_memory_equal(mem, fl->mr[B]->mem + fetch_off(fl), m->len);
		break;
	case ABI_WR_ATOMIC_FETCH_AND_ADD:
		assert_memory_equal(mem, &fl->word, WORD);
		fl->word += m->add;
		break;
	default:
		break;
	}
}

/* UC-10, VAL-16: nobody tells. */
static bool may_succeed(const struct flow *fl, const struct flow_message *m)
{
	return m->mistake == FLOW_GOOD || m->mistake == FLOW_QKEY || m->mistake == FLOW_QPN ||
	       (m->mistake == FLOW_RKEY && fl->service == FLOW_UC);
}

static void went_well(struct flow *fl, uint32_t n)
{
	const struct flow_message *m = &fl->msg[n];
	uint8_t *mem = fl->mr[A]->mem + slot_off(fl, n);

	assert_false(fl->failed);
	if (!may_succeed(fl, m))
		fail_msg("%s: message %u of flow %u, of operation %u, went well in spite of its %s",
			flow_service_name[fl->service], n, fl->index, m->op,
			flow_mistake_name[m->mistake]);
	if (flow_reliable(fl))
		check_reliable(fl, n, mem);
	/* The application has its memory back: what is sent of it later is torn (UC-03). */
	memset(mem, 0x5A, m->len);
	flow_totals.sent[fl->service]++;
}

static bool receiver_refused(const struct flow *fl, const struct flow_message *m, uint8_t status)
{
	bool asks = flow_takes_recv(m);

	if (status == ABI_WC_REM_OP_ERR)
		return asks && (fl->recv_failed == ABI_WC_LOC_PROT_ERR ||
				       fl->recv_failed == ABI_WC_LOC_QP_OP_ERR ||
				       fl->events[B][ABI_EVENT_QP_FATAL]);
	return asks && (fl->recv_failed == ABI_WC_LOC_LEN_ERR || m->mistake == FLOW_SRQN ||
			       fl->events[B][ABI_EVENT_QP_REQ_ERR]);
}

/* The first that fails: why may it? */
static bool may_fail(const struct flow *fl, const struct flow_message *m, uint8_t status)
{
	bool deaf = fl->gone[B] || !fl->qp[B] || fl->qp[B]->qp->state != ABI_QPS_RTS;

	switch (status) {
	case ABI_WC_WR_FLUSH_ERR:
		return fl->gone[A];
	case ABI_WC_LOC_PROT_ERR:
		return m->mistake == FLOW_LKEY;
	case ABI_WC_LOC_LEN_ERR:
		return m->mistake == FLOW_LONG;
	case ABI_WC_LOC_QP_OP_ERR:
		return m->mistake == FLOW_AH;
	default:
		break;
	}
	if (!flow_reliable(fl))
		return false;
	switch (status) {
	case ABI_WC_REM_ACCESS_ERR:
		return m->mistake == FLOW_RKEY;
	case ABI_WC_REM_INV_REQ_ERR:
	case ABI_WC_REM_OP_ERR:
		return receiver_refused(fl, m, status);
	case ABI_WC_RETRY_EXC_ERR:
		return fl->lossy || deaf;
	case ABI_WC_RNR_RETRY_EXC_ERR:
		return fl->attr[A].rnr_retry != 7 && flow_takes_recv(m);
	default:
		return false;
	}
}

static void failed(struct flow *fl, uint32_t n, uint8_t status)
{
	struct flow_message *m = &fl->msg[n];

	flow_totals.failed[fl->service]++;
	flow_totals.status[status]++;
	m->failed = true;
	m->unsent = !flow_reliable(fl) && !fl->gone[A]; /* in SQE, by its own fault (UC-11) */
	if (fl->failed) {
		assert_int_equal(status, ABI_WC_WR_FLUSH_ERR);
		return;
	}
	if (!may_fail(fl, m, status))
		fail_msg("%s: message %u of flow %u failed with status %u",
			flow_service_name[fl->service], n, fl->index, status);
	fl->failed = status;
}

void flow_sent(struct flow *fl, const struct abi_cqe *cqe)
{
	uint32_t n = (uint32_t)cqe->wr_id;

	assert_true(n >= fl->done && n < fl->posted);
	for (; fl->done < n; fl->done++) {
		assert_true(fl->msg[fl->done].unsignaled); /* REQ-13 */
		went_well(fl, fl->done);
	}
	fl->done++;
	if (cqe->status) {
		failed(fl, n, cqe->status);
		return;
	}
	assert_false(fl->msg[n].unsignaled);
	flow_totals.status[ABI_WC_SUCCESS]++;
	went_well(fl, n);
}

void flow_settle(struct flow *fl)
{
	for (; fl->done < fl->posted; fl->done++) {
		assert_true(fl->msg[fl->done].unsignaled);
		went_well(fl, fl->done);
	}
}

/* RSP-36: each of them once, the first of those that failed perhaps. */
void flow_recall_word(struct flow *fl)
{
	uint64_t is;
	bool ok;

	memcpy(&is, fl->mr[B]->mem, WORD);
	ok = is == fl->word;
	for (uint32_t n = fl->base; n < fl->posted && !ok; n++) {
		if (!fl->msg[n].failed || fl->msg[n].op != ABI_WR_ATOMIC_FETCH_AND_ADD)
			continue;
		fl->word += fl->msg[n].add;
		ok = is == fl->word;
	}
	assert_true(ok);
}
