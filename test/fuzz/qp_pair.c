/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two honest ends and a network that is the fuzzer's. The first record sets them up, each other
 * one is an action: work (traffic.h, with its mistakes), impairments of a link, time, a command.
 * Completions are judged by traffic.h; and once the links are good again everything ends.
 * FUZZ_PRINT=1 fuzz_qp_pair FILE tells what happens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "frame.h"
#include "icrc.h"
#include "opcode.h"
#include "oracle.h"
#include "qp.h"
#include "records.h"
#include "seq24.h"
#include "target.h"
#include "traffic.h"

#define LEN_MAX	  2048u
#define AREA	  32768u
#define STEPS_RUN 300u
/* Steps in which everything ends on good links. */
#define STEPS_END 40000u
#define GONE	  TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR)
#define RETRY_EXC TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR)

static struct world {
	struct pair pair;
	struct traffic traffic;
} w;

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
		p.qp[e] = (struct app_qp_spec){.sq_depth = 16u >> r->b[5] % 5,
			.rq_depth = 16u >> (r->b[5] >> 4) % 5,
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

/* A bad network can do that much. */
static void allow_network(void)
{
	for (int e = A; e < ENDS; e++) {
		traffic_allow(&w.traffic, e, RETRY_EXC, 0);
		if (w.pair.spec.attr[e].rnr_retry != 7)
			traffic_allow(&w.traffic, e, TRAFFIC_MAY(ABI_WC_RNR_RETRY_EXC_ERR), 0);
	}
}

static void world_init(const struct record *r)
{
	struct pair_spec spec = spec_of(r);
	struct traffic_spec t = {
		.seed = spec.seed, .area = AREA, .recv_len = LEN_MAX, .lossy = true};

	pair_init(&w.pair, &spec);
	traffic_init(&w.traffic, w.pair.end[A].qp, w.pair.end[B].qp, &t);
	allow_network();
	for (int e = A; e < ENDS; e++) {
		w.pair.end[e].host->burst = 1 + r->b[12 + e] % BURST;
		trace("%c: mtu %u sq %u@%x rq %u rd %u/%u timeout %u retry %u/%u window %u\n",
			'A' + e, spec.attr[e].path_mtu, spec.qp[e].sq_depth, spec.attr[e].sq_psn,
			spec.qp[e].rq_depth, spec.attr[e].max_rd_atomic,
			spec.attr[e].max_dest_rd_atomic, spec.attr[e].timeout,
			spec.attr[e].retry_cnt, spec.attr[e].rnr_retry, spec.qp[e].window);
	}
}

/* --- work ----------------------------------------------------------------------------- */

/* b[1] operation, b[2..3] length, b[4] flags, b[5] pieces, b[6] mistake */
static void post(int e, const struct record *r)
{
	struct traffic_wr wr = {
		.op = (enum traffic_op)(r->b[1] % TRAFFIC_OPS),
		.mistake = (enum traffic_mistake)(r->b[6] % MISTAKE_RECV_LKEY),
		.len = record_u16(r, 2) % (LEN_MAX + 1),
		.flags = (r->b[4] ^ ABI_WQE_SIGNALED) &
			 (ABI_WQE_SIGNALED | ABI_WQE_SOLICITED | ABI_WQE_FENCE),
		.sges = r->b[5] % 5,
	};
	bool posted;

	if ((r->b[4] & ABI_WQE_INLINE) && !wr.mistake && !traffic_fetches(wr.op) &&
		wr.len <= w.pair.spec.qp[e].max_inline)
		wr.flags |= ABI_WQE_INLINE;
	posted = traffic_post(&w.traffic, e, &wr);
	trace("  %c %s +%u flags %x%s%s\n", 'A' + e, traffic_op_name[wr.op], wr.len, wr.flags,
		wr.mistake ? " mistaken" : "", posted ? "" : ": no room");
}

/* --- time ----------------------------------------------------------------------------- */

static bool step(uint64_t until)
{
	unsigned seen[ENDS] = {w.pair.end[A].cqes, w.pair.end[B].cqes};
	bool more = pair_step(&w.pair, until);

	for (int e = A; e < ENDS; e++)
		for (unsigned i = seen[e]; i < w.pair.end[e].cqes; i++) {
			const struct abi_cqe *cqe = &w.pair.end[e].cqe[i % 4096];

			trace("  %c completes a %s: %u\n", 'A' + e,
				cqe->opcode & ABI_WC_RECV ? "receive" : "send", cqe->status);
		}
	traffic_take(&w.traffic, &w.pair);
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

static struct link_tap judge[ENDS]; /* the pair's own */

static void tap(void *arg, const uint8_t *frame, size_t len, uint64_t now)
{
	const struct link_tap *next = arg;
	struct pkt p;

	MUST(frame_parse(&p, frame, len) == DROP_NONE && icrc_check(icrc_by_name("table"), &p));
	trace("  %8llu %c sends %s @%x +%u%s", (unsigned long long)now, 'A' + (int)(next - judge),
		p.op->name, p.psn, p.payload_len, p.ackreq ? "!" : "");
	if (p.op->aeth)
		trace(" %02x/%u", p.syndrome, p.msn);
	trace("\n");
	next->see(next->arg, frame, len, now);
}

static void plug_taps(void)
{
	for (int e = A; e < ENDS; e++) {
		judge[e] = w.pair.end[e].link.tap;
		w.pair.end[e].link.tap = (struct link_tap){tap, &judge[e]};
	}
}

/* b[1] what, b[2] how often; or the frames of a mask are lost */
static void set_impair(int e, const struct record *r)
{
	uint32_t millionths = 2000u + r->b[2] * 1500u;
	struct link_impair f = {.reorder_ns = 200u + r->b[3] * 200u};

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
	link_set_impair(&w.pair.end[e].link, &f);
}

static void heal(void)
{
	for (int e = A; e < ENDS; e++) {
		link_set_impair(&w.pair.end[e].link, &(struct link_impair){0});
		link_pause(&w.pair.end[e].link, 0);
	}
}

/* --- commands ------------------------------------------------------------------------- */

static void to_err(int e)
{
	if (app_to_state(w.pair.end[e].qp, ABI_QPS_ERR, w.pair.fabric.now))
		return;
	traffic_allow(&w.traffic, e, GONE, GONE);
	traffic_allow(&w.traffic, !e, RETRY_EXC, 0);
}

static bool busy(void)
{
	return core_deadline(&w.pair.end[A].host->core) == 0 ||
	       core_deadline(&w.pair.end[B].host->core) == 0;
}

/* Everything that was posted comes back, and nothing is on the way any more. */
static void disconnect(void)
{
	for (int e = A; e < ENDS; e++)
		to_err(e);
	for (int e = A; e < ENDS; e++)
		while (link_receive(&w.pair.end[e].link, SIM_NEVER - 1))
			;
	for (unsigned i = 0; busy(); i++) {
		MUST(i < STEPS_RUN);
		step(w.pair.fabric.now);
	}
	for (int e = A; e < ENDS; e++) {
		const struct app_qp *q = w.pair.end[e].qp;

		MUST(app_sq_room(q) == q->spec.sq_depth && app_rq_room(q) == q->spec.rq_depth);
		MUST(w.traffic.side[e].recv_done == w.traffic.side[e].recv_posted); /* QPS-20 */
	}
}

static void reconnect(void)
{
	uint64_t now = w.pair.fabric.now;

	disconnect();
	for (int e = A; e < ENDS; e++)
		MUST(app_to_state(w.pair.end[e].qp, ABI_QPS_RESET, now) == 0);
	traffic_restart(&w.traffic, w.pair.end[A].qp, w.pair.end[B].qp);
	allow_network();
	for (int e = A; e < ENDS; e++) {
		struct path_spec path =
			host_path(w.pair.end[e].host, w.pair.end[!e].host, 0, w.pair.spec.gid);
		const struct abi_qp_attr *attr = &w.pair.spec.attr[e];

		MUST(app_to_init(w.pair.end[e].qp, attr, now) == 0);
		MUST(app_to_rtr(w.pair.end[e].qp, attr, &path, now) == 0);
		MUST(app_to_rts(w.pair.end[e].qp, attr, now) == 0);
	}
	pair_wire(&w.pair);
}

/* --- all of it ------------------------------------------------------------------------ */

enum action {
	POST,
	POST_RECV,
	RUN,
	IMPAIR,
	PAUSE,
	HEAL,
	BURSTS,
	SQD,
	RTS,
	ERR,
	RECONNECT,
	ACTIONS
};

/* b[0]: which end, how often */
static void act(const struct record *r)
{
	static const char *const names[ACTIONS] = {"post", "post recv", "run", "impair", "pause",
		"heal", "bursts", "sqd", "rts", "err", "reconnect"};
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
			traffic_post_recv(&w.traffic, e, r->b[1] % 5,
				r->b[2] ? MISTAKE_RECV_LKEY + r->b[2] % 2 : MISTAKE_NONE);
		break;
	case RUN:
		run(r->b[1] || r->b[2] ? record_u16(r, 1) * 1000ull : 100 * MSEC);
		break;
	case IMPAIR:
		set_impair(e, r);
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
		to_err(e);
		break;
	default:
		reconnect();
		break;
	}
}

/* Every send is complete, or its QP has failed. */
static bool over(void)
{
	for (int e = A; e < ENDS; e++) {
		const struct app_qp *q = w.pair.end[e].qp;

		if (q->qp->state != ABI_QPS_ERR && q->qp->comp.head != q->sq_posted)
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
			if (w.pair.end[e].qp->qp->state != ABI_QPS_ERR)
				traffic_post_recv(&w.traffic, e, 0, MISTAKE_NONE);
		if (!step(w.pair.fabric.now + 100 * SEC))
			MUST(over()); /* there is nothing to wait for: it hangs */
	}
	disconnect();
	traffic_restart(&w.traffic, w.pair.end[A].qp, w.pair.end[B].qp); /* judges memory */
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
	traffic_fini(&w.traffic);
	pair_fini(&w.pair);
	return 0;
}
