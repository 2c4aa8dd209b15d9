/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two honest ends and a network that is the fuzzer's. The first record sets them up, each other
 * one is an action: work, faults of a link, time, a command. Every byte that is reported to be
 * there is there, nothing fails that nobody spoilt, and once the links are good again everything
 * ends. FUZZ_PRINT=1 fuzz_qp_pair FILE tells what happens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "oracle.h"
#include "pair.h"
#include "random.h"
#include "records.h"
#include "seq24.h"
#include "target.h"

#define SLOT	  2048u
#define DEPTH	  16u
#define MSGS	  64u  /* more than can be under way: queue, and CQEs that are not taken */
#define FILL	  0x5A /* what lies around messages */
#define STEPS_RUN 300u
/* Steps in which everything ends on good links. */
#define STEPS_END 40000u

enum area {
	LOCAL, /* sources of SEND and WRITE, destinations of READ */
	TARGET,
	RECV,
	AREAS
};

struct message {
	uint8_t op; /* enum abi_wr_opcode */
	uint32_t len;
	uint32_t slot;
	bool expected; /* its receive completed */
};

struct side {
	struct pair_end *end;
	struct app_mr *mr[AREAS];
	struct message msg[MSGS]; /* by wr_id */
	unsigned posted, done;
	unsigned expect; /* peer's message that completes the next receive */
	unsigned recv_posted, recv_done;
	unsigned cqes; /* looked at */
	bool failed;   /* either queue */
	bool send_failed;
};

static struct world {
	struct pair pair;
	struct side side[ENDS];
	struct random random;
	bool spoilt; /* an end was told to fail, or its memory went */
} w;

static bool takes_recv(uint8_t op)
{
	return op != ABI_WR_RDMA_WRITE && op != ABI_WR_RDMA_READ;
}

static uint8_t *slot_of(const struct side *s, enum area area, uint32_t slot)
{
	return s->mr[area]->mem + (size_t)slot * SLOT;
}

/* --- set-up --------------------------------------------------------------------------- */

static struct pair_spec spec_of(const struct record *r)
{
	struct pair_spec p = pair_defaults();
	uint8_t rd[ENDS] = {1 + r->b[3] % 16, 1 + r->b[4] % 16};

	p.seed = 1 + r->b[14];
	p.gid = (enum host_gid)(r->act % HOST_GIDS);
	p.cq_depth = 64;
	for (int e = A; e < ENDS; e++) {
		p.link[e].delay_ns = 1000u + r->b[10] * 500u;
		p.link[e].rate_bps = r->b[11] ? 100000000ull * r->b[11] : 0;
		p.qp[e] = (struct app_qp_spec){.sq_depth = DEPTH >> r->b[5] % 5,
			.rq_depth = DEPTH >> (r->b[5] >> 4) % 5,
			.max_sge = 4,
			.max_inline = 64,
			.window = r->b[6]};
		p.attr[e].path_mtu = 256u << r->b[2] % 3;
		p.attr[e].sq_psn = (0xFFFFF0u + (uint32_t)e * 5 + record_u16(r, 0)) & SEQ24_MASK;
		p.attr[e].max_rd_atomic = rd[e];
		p.attr[e].max_dest_rd_atomic = rd[!e];
		p.attr[e].timeout = 10 + r->b[7] % 5;
		p.attr[e].retry_cnt = 7 - r->b[8] % 8;
		p.attr[e].rnr_retry = 7 - (r->b[8] >> 4) % 8;
		p.attr[e].min_rnr_timer = 1 + r->b[9] % 12;
	}
	return p;
}

static void side_init(struct side *s, struct pair_end *end)
{
	static const uint32_t access[AREAS] = {
		[LOCAL] = ABI_ACCESS_LOCAL_WRITE,
		[TARGET] =
			ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
		[RECV] = ABI_ACCESS_LOCAL_WRITE,
	};

	memset(s, 0, sizeof(*s));
	s->end = end;
	for (unsigned i = 0; i < AREAS; i++)
		s->mr[i] = app_mr(&end->app, (size_t)SLOT * DEPTH, access[i]);
}

static void world_init(const struct record *r)
{
	struct pair_spec spec = spec_of(r);

	w.random.state = spec.seed;
	w.spoilt = false;
	pair_init(&w.pair, &spec);
	for (int e = A; e < ENDS; e++) {
		side_init(&w.side[e], &w.pair.end[e]);
		w.pair.end[e].host->burst = 1 + r->b[12 + e] % BURST;
		trace("%c: mtu %u sq %u@%x rq %u rd %u/%u timeout %u retry %u/%u window %u\n",
			'A' + e, spec.attr[e].path_mtu, spec.qp[e].sq_depth, spec.attr[e].sq_psn,
			spec.qp[e].rq_depth, spec.attr[e].max_rd_atomic,
			spec.attr[e].max_dest_rd_atomic, spec.attr[e].timeout,
			spec.attr[e].retry_cnt, spec.attr[e].rnr_retry, spec.qp[e].window);
	}
}

/* --- work ----------------------------------------------------------------------------- */

/* Cuts the message into @p n pieces that follow each other. */
static unsigned cut(
	const struct app_mr *mr, uint32_t off, uint32_t len, unsigned n, struct abi_sge *sge)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len : len / (n - i) + i;

		if (part > len)
			part = len;
		sge[i] = app_sge(mr, off, part);
		off += part;
		len -= part;
	}
	return n;
}

/* b[1] opcode, b[2..3] length, b[4] flags, b[5] pieces */
static void post(int e, const struct record *r)
{
	static const uint8_t ops[] = {ABI_WR_SEND, ABI_WR_RDMA_WRITE, ABI_WR_RDMA_READ,
		ABI_WR_SEND_WITH_IMM, ABI_WR_RDMA_WRITE_WITH_IMM};
	struct side *me = &w.side[e], *peer = &w.side[!e];
	struct message *m = &me->msg[me->posted % MSGS];
	struct app_send s = {.opcode = ops[r->b[1] % 5], .wr_id = me->posted};
	uint8_t *local, *target;

	if (!app_sq_room(me->end->qp) || me->posted - me->done >= me->end->qp->spec.sq_depth)
		return;
	*m = (struct message){s.opcode, record_u16(r, 2) % (SLOT + 1), me->posted % DEPTH, false};
	local = slot_of(me, LOCAL, m->slot);
	target = slot_of(peer, TARGET, m->slot);
	memset(local, FILL, SLOT);
	memset(target, FILL, SLOT);
	random_fill(&w.random, s.opcode == ABI_WR_RDMA_READ ? target : local, m->len);
	s.flags = r->b[4] & (ABI_WQE_SOLICITED | ABI_WQE_FENCE);
	/* Slots are used again: one in four says how far it is. */
	if (!(r->b[4] & ABI_WQE_SIGNALED) || me->posted % 4 == 3 || me->end->qp->spec.sq_depth < 8)
		s.flags |= ABI_WQE_SIGNALED;
	s.imm = me->posted;
	s.remote_addr = app_va(peer->mr[TARGET], (uint64_t)m->slot * SLOT);
	s.rkey = peer->mr[TARGET]->mr.key;
	s.num_sge = cut(me->mr[LOCAL], m->slot * SLOT, m->len, 1 + r->b[5] % 4, s.sge);
	if ((r->b[4] & ABI_WQE_INLINE) && s.opcode != ABI_WR_RDMA_READ && m->len <= 64) {
		s.flags |= ABI_WQE_INLINE;
		s.inline_data = local;
		s.inline_len = m->len;
	}
	trace("  %c posts %u: op %u +%u flags %x\n", 'A' + e, me->posted, m->op, m->len, s.flags);
	app_post_send(me->end->qp, &s);
	me->posted++;
}

static void post_recv(int e, unsigned pieces)
{
	struct side *me = &w.side[e];
	uint32_t slot = me->recv_posted % DEPTH;
	struct abi_sge sge[4];

	if (me->recv_posted - me->recv_done >= me->end->qp->spec.rq_depth)
		return;
	memset(slot_of(me, RECV, slot), FILL, SLOT);
	cut(me->mr[RECV], slot * SLOT, SLOT, 1 + pieces % 4, sge);
	app_post_recv(me->end->qp, me->recv_posted++, sge, 1 + pieces % 4);
}

/* --- what is reported ------------------------------------------------------------------- */

static bool filled(const uint8_t *p, size_t n)
{
	return !n || (p[0] == FILL && !memcmp(p, p + 1, n - 1));
}

/* The sender was told that @p m is done. */
static void check_message(int e, const struct message *m)
{
	const uint8_t *local = slot_of(&w.side[e], LOCAL, m->slot);
	const uint8_t *target = slot_of(&w.side[!e], TARGET, m->slot);

	if (!takes_recv(m->op) || m->op == ABI_WR_RDMA_WRITE_WITH_IMM) {
		MUST(!memcmp(local, target, m->len));
		MUST(filled(local + m->len, SLOT - m->len));
		MUST(filled(target + m->len, SLOT - m->len));
	}
	MUST(!takes_recv(m->op) || m->expected || w.side[!e].failed); /* RSP-24 */
}

/* What may go wrong on a bad network, and no more. */
static void check_failure(const struct side *me, unsigned status)
{
	if (me->send_failed || w.spoilt)
		return;
	MUST(status == ABI_WC_RETRY_EXC_ERR ||
		(status == ABI_WC_RNR_RETRY_EXC_ERR && me->end->qp->qp->attr.rnr_retry != 7));
}

static void send_cqe(int e, const struct abi_cqe *cqe)
{
	struct side *me = &w.side[e];

	if (cqe->status != ABI_WC_SUCCESS) {
		check_failure(me, cqe->status);
		me->failed = me->send_failed = true;
		return;
	}
	MUST(!me->send_failed); /* CQ-10 */
	MUST(cqe->wr_id < me->posted && cqe->wr_id >= me->done);
	while (me->done <= cqe->wr_id)
		check_message(e, &me->msg[me->done++ % MSGS]);
}

static void recv_cqe(int e, const struct abi_cqe *cqe)
{
	struct side *me = &w.side[e], *peer = &w.side[!e];
	uint32_t slot = me->recv_done++ % DEPTH;
	const uint8_t *got = slot_of(me, RECV, slot);
	struct message *m;
	uint32_t len;

	if (cqe->status != ABI_WC_SUCCESS) {
		MUST(cqe->status == ABI_WC_WR_FLUSH_ERR || w.spoilt);
		me->failed = true;
		return;
	}
	while (me->expect < peer->posted && !takes_recv(peer->msg[me->expect % MSGS].op))
		me->expect++;
	MUST(me->expect < peer->posted);
	m = &peer->msg[me->expect % MSGS];
	m->expected = true;
	len = m->op == ABI_WR_RDMA_WRITE_WITH_IMM ? 0 : m->len;
	MUST(cqe->byte_len == m->len); /* CQ-09 */
	MUST(!!(cqe->flags & ABI_WC_WITH_IMM) == (m->op != ABI_WR_SEND));
	MUST(m->op == ABI_WR_SEND || cqe->imm == me->expect);
	/* The sender's memory may be used again when it knows that this one is done. */
	if (peer->done <= me->expect)
		MUST(!memcmp(got, slot_of(peer, LOCAL, m->slot), len));
	MUST(filled(got + len, SLOT - len));
	me->expect++;
}

/* Receives first: an ACK may be taken in the step in which it was sent. */
static void look(void)
{
	for (int recv = 1; recv >= 0; recv--)
		for (int e = A; e < ENDS; e++) {
			struct side *me = &w.side[e];

			for (unsigned i = me->cqes; i < me->end->cqes; i++) {
				const struct abi_cqe *cqe = &me->end->cqe[i % 4096];
				bool is_recv = cqe->opcode & ABI_WC_RECV;

				if (is_recv != recv)
					continue;
				trace("  %c %s %llu: %u\n", 'A' + e, recv ? "R" : "S",
					(unsigned long long)cqe->wr_id, cqe->status);
				if (recv)
					recv_cqe(e, cqe);
				else
					send_cqe(e, cqe);
			}
			if (!recv)
				me->cqes = me->end->cqes;
		}
}

/* --- time ----------------------------------------------------------------------------- */

static bool step(uint64_t until)
{
	bool more = pair_step(&w.pair, until);

	look();
	return more;
}

static void run(uint64_t ns)
{
	uint64_t until = w.pair.fabric.now + ns;

	trace("  run %llu ns\n", (unsigned long long)ns);
	for (unsigned i = 0; i < STEPS_RUN && step(until); i++)
		;
}

/* --- the network ---------------------------------------------------------------------- */

static void tap(void *arg, const uint8_t *frame, size_t len, uint64_t now)
{
	struct pkt p;

	MUST(frame_parse(&p, frame, len) == DROP_NONE);
	trace("  %8llu %s sends %s @%x +%u%s", (unsigned long long)now, (const char *)arg,
		p.op->name, p.psn, p.payload_len, p.ackreq ? "!" : "");
	if (p.op->aeth)
		trace(" %02x/%u", p.syndrome, p.msn);
	trace("\n");
}

static void plug_taps(void)
{
	static char name[ENDS][2] = {"A", "B"};

	for (int e = A; e < ENDS; e++)
		w.pair.end[e].link.tap = (struct link_tap){tap, name[e]};
}

/* b[1] what, b[2] how often; or the frames of a mask are lost */
static void set_faults(int e, const struct record *r)
{
	uint32_t millionths = 2000u + r->b[2] * 1500u;
	struct link_faults f = {.reorder_ns = 200u + r->b[3] * 200u};

	if (r->b[1] & 1)
		memcpy(&f.loss_mask, r->b + 4, sizeof(f.loss_mask));
	f.loss = r->b[1] & 2 ? millionths : 0;
	f.duplicate = r->b[1] & 4 ? millionths : 0;
	f.reorder = r->b[1] & 8 ? millionths : 0;
	f.corrupt = r->b[1] & 16 ? millionths : 0;
	f.truncate = r->b[1] & 32 ? millionths : 0;
	trace("  %c's link: mask %llx loss %u dup %u reorder %u corrupt %u truncate %u\n", 'A' + e,
		(unsigned long long)f.loss_mask, f.loss, f.duplicate, f.reorder, f.corrupt,
		f.truncate);
	link_set_faults(&w.pair.end[e].link, &f);
}

static void heal(void)
{
	for (int e = A; e < ENDS; e++) {
		link_set_faults(&w.pair.end[e].link, &(struct link_faults){0});
		link_pause(&w.pair.end[e].link, 0);
	}
}

/* --- commands ------------------------------------------------------------------------- */

static void dereg(int e, enum area area)
{
	app_mr_dereg(&w.pair.end[e].app, w.side[e].mr[area]);
	w.spoilt = true;
}

/* Both ends anew, with nothing of before on the way. */
static void reconnect(void)
{
	uint64_t now = w.pair.fabric.now;

	for (int e = A; e < ENDS; e++) {
		struct side *me = &w.side[e];

		while (link_receive(&me->end->link, SIM_NEVER - 1))
			;
		MUST(app_to_state(me->end->qp, ABI_QPS_RESET, now) == 0);
		for (unsigned i = 0; i < AREAS; i++)
			atomic_store(&me->end->host->mrs.slot[me->mr[i]->slot], &me->mr[i]->mr);
		me->done = me->posted;
		me->recv_done = me->recv_posted;
		me->failed = me->send_failed = false;
	}
	for (int e = A; e < ENDS; e++) {
		struct path_spec path =
			host_path(w.side[e].end->host, w.side[!e].end->host, 0, w.pair.spec.gid);
		const struct abi_qp_attr *attr = &w.pair.spec.attr[e];
		struct app_qp *q = w.side[e].end->qp;

		w.side[e].expect = w.side[!e].posted;
		MUST(app_to_init(q, attr, now) == 0);
		MUST(app_to_rtr(q, attr, &path, now) == 0);
		MUST(app_to_rts(q, attr, now) == 0);
	}
	w.spoilt = false;
}

/* --- all of it ------------------------------------------------------------------------ */

enum action {
	POST,
	POST_RECV,
	RUN,
	FAULTS,
	PAUSE,
	HEAL,
	BURSTS,
	SQD,
	RTS,
	ERR,
	DEREG,
	RECONNECT,
	ACTIONS
};

/* b[0]: which end, how often */
static void act(const struct record *r)
{
	static const char *const names[ACTIONS] = {"post", "post recv", "run", "faults", "pause",
		"heal", "bursts", "sqd", "rts", "err", "dereg", "reconnect"};
	int e = r->b[0] & 1;
	unsigned again = 1 + (r->b[0] >> 1) % 8;
	unsigned what = r->act % ACTIONS;
	uint64_t now = w.pair.fabric.now;

	trace("%c %s\n", 'A' + e, names[what]);
	switch ((enum action)what) {
	case POST:
		while (again--)
			post(e, r);
		break;
	case POST_RECV:
		while (again--)
			post_recv(e, r->b[1]);
		break;
	case RUN:
		run(r->b[1] || r->b[2] ? record_u16(r, 1) * 1000ull : 100 * MSEC);
		break;
	case FAULTS:
		set_faults(e, r);
		break;
	case PAUSE:
		link_pause(&w.pair.end[e].link, now + record_u16(r, 1) * 1000ull);
		break;
	case HEAL:
		heal();
		break;
	case BURSTS:
		w.pair.end[e].host->burst = 1 + r->b[1] % BURST;
		break;
	case SQD:
		app_to_state(w.pair.end[e].qp, ABI_QPS_SQD, now);
		break;
	case RTS:
		app_to_state(w.pair.end[e].qp, ABI_QPS_RTS, now);
		break;
	case ERR:
		w.spoilt |= app_to_state(w.pair.end[e].qp, ABI_QPS_ERR, now) == 0;
		break;
	case DEREG:
		dereg(e, r->b[1] % AREAS);
		break;
	default:
		reconnect();
		break;
	}
}

static bool over(void)
{
	for (int e = A; e < ENDS; e++) {
		const struct app_qp *q = w.side[e].end->qp;

		if (!w.side[e].failed && q->qp->state != ABI_QPS_ERR &&
			q->qp->comp.head != q->sq_posted)
			return false;
	}
	return true;
}

/* Good links, receives as fast as they are taken: everything succeeds, or has failed. */
static void finish(void)
{
	trace("finish\n");
	heal();
	for (int e = A; e < ENDS; e++)
		app_to_state(w.pair.end[e].qp, ABI_QPS_RTS, w.pair.fabric.now);
	for (unsigned i = 0; !over(); i++) {
		MUST(i < STEPS_END);
		for (int e = A; e < ENDS; e++)
			if (!w.side[e].failed) /* or it would come back at once, for ever */
				post_recv(e, 0);
		if (!step(w.pair.fabric.now + 100 * SEC))
			MUST(over()); /* there is nothing to wait for: it hangs */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct records in = {data, size, 0};
	struct record r;

	if (!records_take(&in, &r))
		return 0;
	world_init(&r);
	plug_taps();
	while (records_take(&in, &r)) {
		act(&r);
		step(w.pair.fabric.now);
	}
	finish();
	pair_fini(&w.pair);
	return 0;
}
