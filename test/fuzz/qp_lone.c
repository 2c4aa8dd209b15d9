/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One QP between a hostile application and a hostile peer. The first record sets it up, each other
 * one is an action: a volley of packets, work, time, a command. In any case the QP keeps its
 * own rules (stage.h). FUZZ_PRINT=1 fuzz_qp_lone FILE tells what happens.
 */
#include <string.h>
#include "bits.h"
#include "core_command.h"
#include "oracle.h"
#include "peer.h"
#include "qp_impl.h"
#include "records.h"
#include "stage.h"
#include "target.h"

static struct stage stage;

/* --- work ----------------------------------------------------------------------------- */

/* b[6] region, b[7] where; 0xF0 and up: the last byte that there is, or a little further */
static struct abi_sge piece(struct stage *s, const struct record *r, unsigned i, uint32_t len)
{
	const struct mr *mr = s->region[r->b[6] % REGIONS_ALL].mr;
	uint64_t off = (r->b[7] * 8u + i * 256u) % REGION_LEN;
	struct abi_sge sge = {.length = len, .lkey = mr->key};

	if (r->b[7] >= 0xF0)
		off = mr->length - len + r->b[7] % 16u;
	sge.addr = mr->iova + off;
	if (r->b[8])
		sge.lkey ^= r->b[8] & 1 ? 0x100u : 1u;
	return sge;
}

/* b[0] opcode, b[1] raw opcode, b[2] pieces, b[3..4] length, b[5] flags, b[6..8] memory, b[9] rkey
 */
static struct app_send send_of(struct stage *s, const struct record *r)
{
	static const uint8_t ops[] = {ABI_WR_SEND, ABI_WR_RDMA_WRITE, ABI_WR_RDMA_READ,
		ABI_WR_SEND_WITH_IMM, ABI_WR_RDMA_WRITE_WITH_IMM, ABI_WR_ATOMIC_CMP_AND_SWP,
		ABI_WR_ATOMIC_FETCH_AND_ADD};
	static uint8_t bytes[INLINE_MAX];
	uint32_t mtu = 1u << s->qp->qp->mtu_shift;
	bool huge = r->b[6] % REGIONS_ALL == REGION_HUGE && r->b[6] & 0x80;
	uint32_t len = huge ? record_u16(r, 3) << 16 : record_u16(r, 3) % (6 * mtu);
	struct app_send w = {
		.opcode = r->b[0] % 8 < ARRAY_SIZE(ops) ? ops[r->b[0] % 8] : r->b[1],
		.flags = (r->b[5] ^ ABI_WQE_SIGNALED) & ~ABI_WQE_PHASE & 0x1F,
		.imm = 0xBEEF,
		.srqn = s->wr_id * 0x10001u,
		.wr_id = s->wr_id++,
		.remote_addr = STAGE_PEER_VA,
		.rkey = STAGE_PEER_KEY ^ r->b[9],
		.compare_add = r->b[9] * 0x123456789ull,
		.swap = s->wr_id,
		.num_sge = r->b[2] ? r->b[2] % (SGE_MAX + 1) : 1,
		.inline_data = bytes,
		.inline_len = len % sizeof(bytes),
	};

	if ((w.opcode == ABI_WR_ATOMIC_CMP_AND_SWP || w.opcode == ABI_WR_ATOMIC_FETCH_AND_ADD) &&
		!len)
		len = sizeof(uint64_t);
	if (s->qp->qp->opc == OPC_UD) { /* bit 7 of b[9]: to a group; others: another Q_Key */
		w.remote_addr = (uint64_t)STAGE_PEER_QPN << 32 | (STAGE_AH + (r->b[9] >> 7));
		w.rkey = STAGE_QKEY ^ (r->b[9] & 0x7Fu) << 25;
	}
	memset(bytes, (int)w.wr_id + 1, sizeof(bytes));
	if (s->honest && w.num_sge > s->spec.max_sge)
		w.num_sge = s->spec.max_sge;
	if (s->honest && (w.flags & ABI_WQE_INLINE) && w.inline_len > s->spec.max_inline)
		w.inline_len = s->spec.max_inline;
	w.inline_len %= s->qp->sq_stride - ABI_WQE_HDR + 1;
	if (w.num_sge > (s->qp->sq_stride - ABI_WQE_HDR) / sizeof(struct abi_sge))
		w.num_sge = s->spec.max_sge;
	for (unsigned i = 0; i < w.num_sge; i++)
		w.sge[i] = piece(s, r, i, i == w.num_sge - 1 ? len : len / 4);
	return w;
}

/* b[10] not 0: a word of the entry in the ring is another one (b[11..14]). */
static void spoil(uint8_t *slot, uint32_t stride, const struct record *r)
{
	uint32_t at = r->b[10] * 4u % stride;
	uint32_t word;

	memcpy(&word, slot + at, 4);
	for (unsigned i = 0; i < 4; i++)
		word ^= (uint32_t)r->b[11 + i] << 8 * i;
	if (!at) /* the mark stays */
		word ^= r->b[11] & ABI_WQE_PHASE;
	memcpy(slot + at, &word, 4);
}

static void post_send(struct stage *s, const struct record *r)
{
	struct app_qp *q = s->qp;
	uint32_t place = q->sq_posted & (s->spec.sq_depth - 1);
	struct app_send w;

	if ((s->honest && !app_sq_room(q)) || s->spec.type == ABI_QPT_XRC_RECV)
		return; /* XRC-02: there is nowhere to */
	w = send_of(s, r);
	trace("  post S%llu op %u +%u sges %u flags %x\n", (unsigned long long)w.wr_id, w.opcode,
		w.num_sge ? w.sge[w.num_sge - 1].length : 0, w.num_sge, w.flags);
	app_post_send(q, &w);
	if (!s->honest && r->b[10])
		spoil(q->sq_ring + (size_t)place * q->sq_stride, q->sq_stride, r);
}

static void post_one_recv(
	struct stage *s, const struct record *r, const struct abi_sge *sge, unsigned n)
{
	struct app_qp *q = s->qp;
	uint32_t place = q->rq_posted & (s->spec.rq_depth - 1);
	uint8_t *slot = q->rq_ring + (size_t)place * q->rq_stride;
	uint32_t stride = q->rq_stride;

	if (s->srq) {
		stride = s->srq->srq.stride;
		slot = s->srq->at.entries +
		       (size_t)(s->srq->posted & (s->srq->at.depth - 1)) * stride;
		app_post_srq(s->srq, s->wr_id++, sge, n);
	} else {
		app_post_recv(q, s->wr_id++, sge, n);
	}
	if (!s->honest && r->b[10])
		spoil(slot, stride, r);
}

/* b[0] how many, b[2] pieces, b[3..4] length, b[6..8] memory */
static void post_recv(struct stage *s, const struct record *r)
{
	unsigned n = r->b[2] ? r->b[2] % (SGE_MAX + 1) : 1;
	uint32_t len = r->b[3] || r->b[4] ? record_u16(r, 3) % REGION_LEN : 4096;
	struct abi_sge sge[SGE_MAX];

	if (s->spec.type == ABI_QPT_XRC_SEND)
		return; /* XRC-02 */
	if (n > s->spec.max_sge)
		n = s->spec.max_sge;
	for (unsigned i = 0; i < n; i++)
		sge[i] = piece(s, r, i, len / n);
	for (unsigned i = 0; i <= r->b[0] % 4u; i++) {
		if (s->honest && !(s->srq ? app_srq_room(s->srq) : app_rq_room(s->qp)))
			return;
		trace("  post R%u +%u sges %u\n", s->wr_id, len, n);
		post_one_recv(s, r, sge, n);
	}
}

/* A byte of what the application shares with the worker: b[0] where, b[1..2] offset, b[3] value. */
static void scribble(struct stage *s, const struct record *r)
{
	struct abi_queue *rq = s->srq ? s->srq->shared : s->qp->rq_shared;
	const struct {
		void *at;
		size_t len;
	} words[] = {
		{s->qp->sq_ring, (size_t)s->qp->sq_stride * s->spec.sq_depth},
		{s->srq ? s->srq->at.entries : s->qp->rq_ring,
			(s->srq ? s->srq->srq.stride : s->qp->rq_stride) *
				(size_t)s->spec.rq_depth},
		{s->qp->sq_shared, sizeof(*s->qp->sq_shared)},
		{rq, sizeof(*rq)},
		{s->send_cq->lane, 4},
		{s->recv_cq->lane, 4},
		{s->send_cq->shared, 4},
		{s->recv_cq->shared, 4},
	};
	unsigned which = r->b[0] % ARRAY_SIZE(words);
	size_t at = record_u16(r, 1) % words[which].len;

	if (s->honest || (which == 1 && s->spec.type == ABI_QPT_XRC_SEND))
		return;
	trace("  scribble %u[%zu] = %02x\n", which, at, r->b[3]);
	((uint8_t *)words[which].at)[at] = r->b[3];
}

/* --- commands ------------------------------------------------------------------------- */

static void query(struct stage *s)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP, .qp = s->qp->qp};

	MUST(core_cmd(&s->host->core, &cmd, s->now) == 0);
	MUST(cmd.attr.qp_state == s->qp->qp->state &&
		cmd.attr.dest_qpn == s->qp->qp->attr.dest_qpn);
}

/* The attributes of the next transition. */
static uint32_t next_mask(const struct stage *s, uint8_t *to)
{
	switch (s->qp->qp->state) {
	case ABI_QPS_RESET:
		*to = ABI_QPS_INIT;
		return ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS;
	case ABI_QPS_INIT:
		*to = ABI_QPS_RTR;
		return ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN |
		       ABI_QP_RQ_PSN | ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER;
	case ABI_QPS_RTR:
		*to = ABI_QPS_RTS;
		return ABI_QP_STATE | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY |
		       ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC;
	case ABI_QPS_RTS:
		*to = ABI_QPS_RTS;
		return ABI_QP_ACCESS_FLAGS | ABI_QP_MIN_RNR_TIMER;
	case ABI_QPS_SQD:
		*to = ABI_QPS_SQD;
		return ABI_QP_PORT | ABI_QP_AV | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT |
		       ABI_QP_RNR_RETRY | ABI_QP_MAX_QP_RD_ATOMIC | ABI_QP_MAX_DEST_RD_ATOMIC |
		       ABI_QP_ACCESS_FLAGS | ABI_QP_PKEY_INDEX | ABI_QP_MIN_RNR_TIMER;
	case ABI_QPS_SQE:
		*to = ABI_QPS_RTS;
		return ABI_QP_STATE;
	default:
		*to = ABI_QPS_RESET;
		return ABI_QP_STATE;
	}
}

/* The next transition with something odd: b[1..4] mask, the rest values. Not 0 is odd. */
static int modify_anyhow(struct stage *s, const struct record *r)
{
	struct abi_qp_attr a = s->attr;
	uint32_t mask = (record_u16(r, 1) | record_u16(r, 3) << 16) ^ next_mask(s, &a.qp_state);
	struct path_spec path = s->path;

	a.qp_state = (a.qp_state + r->b[5]) % 8;
	a.cur_qp_state = s->qp->qp->state + (r->b[5] >> 4);
	a.en_sqd_async_notify = r->b[6] & 1;
	a.port = (uint8_t)(1 + r->b[6] / 2);
	a.pkey_index = r->b[7] & 15;
	a.ah.sl = r->b[7] >> 4;
	a.access_flags ^= r->b[8];
	a.path_mtu ^= r->b[9] * 32u;
	a.timeout ^= r->b[10];
	a.retry_cnt ^= r->b[11] & 15;
	a.rnr_retry ^= r->b[11] >> 4;
	a.min_rnr_timer ^= r->b[12];
	a.max_rd_atomic ^= r->b[13];
	a.max_dest_rd_atomic ^= r->b[14];
	trace("  modify mask %x\n", mask);
	return app_modify(s->qp, mask, &a, &path, s->now);
}

static void modify(struct stage *s, const struct record *r)
{
	struct abi_qp_attr a = {.qp_state = ABI_QPS_SQD, .en_sqd_async_notify = r->b[1] & 1};
	unsigned before = s->qp->qp->state;
	int rc;

	stage_poll(s); /* a reset takes what is posted without a completion */
	switch (r->b[0] % 8) {
	case 0:
		rc = app_modify(s->qp, ABI_QP_STATE | ABI_QP_EN_SQD_ASYNC_NOTIFY, &a, NULL, s->now);
		break;
	case 1:
		rc = app_to_state(s->qp, ABI_QPS_RTS, s->now);
		break;
	case 2:
		rc = app_to_state(s->qp, ABI_QPS_ERR, s->now);
		break;
	case 3:
		rc = app_to_state(s->qp, ABI_QPS_RESET, s->now);
		break;
	case 4:
		rc = app_to_init(s->qp, &s->attr, s->now);
		break;
	case 5:
		rc = app_to_rtr(s->qp, &s->attr, &s->path, s->now);
		break;
	case 6:
		rc = app_to_rts(s->qp, &s->attr, s->now);
		break;
	default:
		rc = modify_anyhow(s, r);
		if (!rc && s->qp->qp->state == ABI_QPS_RESET) {
			s->qp->sq_done = s->qp->sq_posted;
			s->qp->rq_done = s->qp->rq_posted;
		}
		break;
	}
	trace("  modify %u: state %u -> %u, %d\n", r->b[0] % 8, before, s->qp->qp->state, rc);
	/* QPS-13; but what SQE -> RTS flushes may overflow a CQ. */
	MUST(rc == 0 || s->qp->qp->state == before ||
		(before == ABI_QPS_SQE && s->qp->qp->state == ABI_QPS_ERR));
	if (before == ABI_QPS_SQE && !rc)
		s->rules.life++; /* a message may have been cut off */
	if (s->qp->qp->state == ABI_QPS_RTR && before == ABI_QPS_INIT)
		rules_start(&s->rules, s->qp->qp, &s->host->mrs);
	query(s);
}

/* --- time ----------------------------------------------------------------------------- */

/* b[0] how, b[1..2] how long */
static void let_pass(struct stage *s, const struct record *r)
{
	uint64_t due = core_deadline(&s->host->core);
	uint64_t n = record_u16(r, 1);

	switch (r->b[0] % 4) {
	case 0:
		n = due && due != WHEEL_NEVER && due > s->now ? due - s->now : 100000;
		break;
	case 1:
		n *= 100;
		break;
	case 2:
		n *= 1000000;
		break;
	default:
		n <<= 28;
		break;
	}
	trace("  wait %llu ns\n", (unsigned long long)n);
	stage_wait(s, n);
}

/* --- all of it ------------------------------------------------------------------------ */

enum action {
	REQUEST,
	RESPONSE,
	POST_SEND,
	POST_RECV,
	TX,
	WAIT,
	MODIFY,
	SCRIBBLE,
	DEREG,
	REREG,
	REVIVE,
	RECREATE,
	STALL,
	DEAF,
	ARM,
	DOORBELL,
	ACTIONS
};

/* The action byte's upper bit: the QP has no turn after it. */
#define NO_TURN 0x80

static void act(struct stage *s, const struct record *r)
{
	static const char *const names[ACTIONS] = {"request", "response", "post send", "post recv",
		"tx", "wait", "modify", "scribble", "dereg", "rereg", "revive", "recreate", "stall",
		"deaf", "arm", "doorbell"};
	unsigned what = (r->act & ~NO_TURN) % ACTIONS;

	trace("%s\n", names[what]);
	switch ((enum action)what) {
	case REQUEST:
		peer_request(s, r);
		break;
	case RESPONSE:
		peer_response(s, r);
		break;
	case POST_SEND:
		for (unsigned i = 0; i <= r->b[14] % 4u; i++)
			post_send(s, r);
		break;
	case POST_RECV:
		post_recv(s, r);
		break;
	case TX:
		stage_tx(s, r->b[0] ? r->b[0] % BURST + 1 : BURST, r->b[1] & 1);
		return;
	case WAIT:
		let_pass(s, r);
		break;
	case MODIFY:
		modify(s, r);
		break;
	case SCRIBBLE:
		scribble(s, r);
		break;
	case DEREG:
		stage_dereg(s, r->b[0] % REGIONS_ALL);
		break;
	case REREG:
		stage_rereg(s, r->b[0] % REGIONS_ALL);
		break;
	case REVIVE:
		stage_revive(s);
		break;
	case RECREATE:
		stage_recreate(s);
		break;
	case STALL:
		s->stalled = r->b[0] & 1;
		break;
	case DEAF:
		s->deaf = r->b[0] & 1;
		stage_srq(s, !(r->b[2] & 1));
		if (r->b[1])
			qp_event(&s->host->core, s->qp->qp, ABI_EVENT_QP_FATAL);
		break;
	case ARM:
		app_arm(r->b[0] & 1 ? s->recv_cq : s->send_cq, r->b[1] & 1);
		break;
	default:
		core_doorbell(&s->host->core, s->qp->qp, s->now);
		break;
	}
	if (!(r->act & NO_TURN))
		stage_tx(s, BURST, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct records in = {data, size, 0};
	struct record r;

	if (!records_take(&in, &r))
		return 0;
	stage_init(&stage, &r);
	while (records_take(&in, &r)) {
		act(&stage, &r);
		stage_check(&stage);
	}
	stage_fini(&stage);
	return 0;
}
