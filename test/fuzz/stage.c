/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "ah.h"
#include "core_command.h"
#include "headers.h"
#include "hole.h"
#include "hosts.h"
#include "invariants.h"
#include "mcast.h"
#include "opcode.h"
#include "oracle.h"
#include "seq24.h"
#include "srq.h"
#include "stage.h"
#include "txd.h"

#define OUR_ID	1
#define PEER_ID 2
#define OTHER	3
#define START	1000000ull
/* core_tx() calls in which a QP has to come to rest when nothing new happens: its private ring
 * flushed by eights, its READ responses sent. */
#define CALLS_TO_REST 4096u

/* --- objects -------------------------------------------------------------------------- */

/* Pages that nobody wrote cost nothing. */
static struct mr *huge_open(struct sim_host *h)
{
	static struct mr mr;

	if (!mr.base) {
		mr = (struct mr){.pd = APP_PD,
			.access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE |
				  ABI_ACCESS_REMOTE_READ,
			.iova = 1ull << 40,
			.length = REGION_HUGE_LEN,
			.base = mmap(NULL, REGION_HUGE_LEN, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)};
		MUST(mr.base != MAP_FAILED);
	}
	mr.key = 0xAAAA00;
	atomic_store(&h->mrs.slot[mr.key >> 8], &mr);
	return &mr;
}

static void huge_close(struct sim_host *h, const struct mr *mr)
{
	atomic_store(&h->mrs.slot[mr->key >> 8], NULL);
	madvise(mr->base, mr->length, MADV_DONTNEED);
}

/* The first contents of regions. */
static const uint8_t *pattern(void)
{
	static uint8_t bytes[REGION_LEN + REGIONS];

	for (unsigned b = 0; !bytes[1] && b < sizeof(bytes); b++)
		bytes[sizeof(bytes) - 1 - b] = (uint8_t)(b * 7 + (b >> 8));
	return bytes;
}

static void make_regions(struct stage *s)
{
	static const uint32_t access[REGIONS] = {
		[REGION_ALL] =
			ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
		[REGION_LOCAL] = ABI_ACCESS_LOCAL_WRITE,
		[REGION_RO] = ABI_ACCESS_REMOTE_READ,
		[REGION_FOREIGN] =
			ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
	};

	for (unsigned i = 0; i < REGIONS; i++) {
		struct stage_region *r = &s->region[i];

		r->app = app_mr(&s->app, REGION_LEN, access[i]);
		r->mr = &r->app->mr;
		memcpy(r->app->mem, pattern() + i, REGION_LEN);
		r->frozen = i == REGION_RO || i == REGION_FOREIGN;
		memcpy(r->was, r->app->mem, REGION_LEN);
	}
	s->region[REGION_FOREIGN].mr->pd = APP_PD + 1;
	s->region[REGION_HOLE].mr = hole_open(s->host, APP_PD);
	s->region[REGION_HUGE].mr = huge_open(s->host);
}

static void make_srq(struct stage *s)
{
	if (s->srq)
		return;
	if (s->spec.type == ABI_QPT_XRC_RECV)
		s->srq = app_xrc_srq(
			&s->app, s->spec.rq_depth, s->spec.max_sge, s->spec.xrcd, s->recv_cq);
	else if (s->shared)
		s->srq = s->spec.srq = app_srq(&s->app, s->spec.rq_depth, s->spec.max_sge);
}

void stage_srq(struct stage *s, bool there)
{
	s->forgot |= !there;
	if (s->spec.type == ABI_QPT_XRC_RECV)
		atomic_store(&s->host->srqs.slot[SRQN_SLOT(s->srq->srq.srqn)],
			there ? &s->srq->srq : NULL);
}

/* One to the peer, one to a group that nobody here has attached to. */
static void make_ahs(struct stage *s)
{
	struct path_spec spec = s->path;

	for (unsigned i = 0; i < 2; i++) {
		s->ah[i] = (struct ah){.id = STAGE_AH + i, .pd = APP_PD, .hashed = true};
		if (i) {
			spec.dgid[spec.sgid->net == NET_IPV4 ? 12 : 0] =
				spec.sgid->net == NET_IPV4 ? 0xE0 : 0xFF;
			mcast_mac(spec.dmac, spec.dgid);
		}
		path_init(&s->ah[i].path, &spec);
		atomic_store(&s->host->ahs.slot[AH_SLOT(STAGE_AH + i)], &s->ah[i]);
	}
}

static void make_qp(struct stage *s)
{
	if (s->app.cqs + 2 <= APP_OBJS) {
		s->send_cq = app_cq(&s->app, s->spec.sq_depth * 2);
		s->recv_cq = app_cq(&s->app, s->spec.rq_depth * 2);
	}
	s->spec.send_cq = s->send_cq;
	s->spec.recv_cq = s->recv_cq;
	make_srq(s);
	s->qp = app_qp(&s->app, &s->spec);
	s->qp->spec.srq = s->srq; /* whose receives an XRC target's are, too */
	s->qp->free_ids = !s->honest;
}

static void to_rts(struct stage *s)
{
	MUST(app_to_init(s->qp, &s->attr, s->now) == 0);
	MUST(app_to_rtr(s->qp, &s->attr, &s->path, s->now) == 0);
	MUST(app_to_rts(s->qp, &s->attr, s->now) == 0);
	rules_start(&s->rules, s->qp->qp, &s->host->mrs);
}

/* --- set-up --------------------------------------------------------------------------- */

static void set_attr(struct stage *s, const struct record *cfg)
{
	struct abi_qp_attr *a = &s->attr;

	*a = app_attr(STAGE_PEER_QPN, 0xFFFFF0u + record_u16(cfg, 0), record_u16(cfg, 2));
	a->sq_psn &= SEQ24_MASK;
	a->rq_psn = (0xFFFFF8u + a->rq_psn) & SEQ24_MASK;
	a->qkey = STAGE_QKEY;
	a->path_mtu = 256u << (cfg->b[4] & 15) % 5;
	a->max_rd_atomic = cfg->b[5] ? cfg->b[5] % (RD_ATOMIC_MAX + 1) : 4;
	a->max_dest_rd_atomic = cfg->b[6] ? cfg->b[6] % (RD_ATOMIC_MAX + 1) : 4;
	a->timeout = cfg->b[7] ? cfg->b[7] % 32 : 8;
	a->retry_cnt = 7 - cfg->b[8] % 8;
	a->rnr_retry = 7 - (cfg->b[8] >> 4) % 8;
	a->min_rnr_timer = cfg->b[9] % 32;
	if (cfg->b[9] & 0x80)
		a->access_flags &= ~ABI_ACCESS_REMOTE_READ;
	if (cfg->b[9] & 0x40)
		a->access_flags &= ~ABI_ACCESS_REMOTE_WRITE;
}

/* b[14]: which service, where b[12] does not say UC; 8: receives are an SRQ's */
static uint8_t type_of(const struct record *cfg)
{
	static const uint8_t types[] = {ABI_QPT_RC, ABI_QPT_UD, ABI_QPT_XRC_RECV, ABI_QPT_XRC_SEND};

	return cfg->b[12] & 8 ? ABI_QPT_UC : types[cfg->b[14] % 4];
}

static void set_spec(struct stage *s, const struct record *cfg)
{
	s->spec = (struct app_qp_spec){
		.type = type_of(cfg),
		.xrcd = 1,
		.sq_depth = 16u >> (cfg->b[10] & 7) % 5,
		.rq_depth = 16u >> (cfg->b[10] >> 4) % 5,
		.max_sge = cfg->b[11] ? 1 + cfg->b[11] % SGE_MAX : 4,
		.max_inline = cfg->b[12] & 1 ? 0 : 64,
		.window = cfg->b[13] ? cfg->b[13] % 64 : 0,
		.sig_all = cfg->b[12] >> 1 & 1,
	};
	s->honest = !(cfg->b[12] >> 2 & 1);
	s->shared = cfg->b[14] & 8 && s->spec.type != ABI_QPT_XRC_SEND;
}

static void make_paths(struct stage *s, enum host_gid gid)
{
	struct path_spec p = host_path(s->peer, s->host, 0, gid);
	struct path_spec stranger = host_path(fuzz_host(OTHER, START), s->host, 0, gid);
	struct path_spec lost = host_path(s->peer, fuzz_host(OTHER, START), 0, gid);
	struct gid_entry sgid = *p.sgid;

	path_init(&s->from[FROM_PEER], &p);
	path_init(&s->from[FROM_STRANGER], &stranger);
	memcpy(lost.dmac, p.dmac, 6);
	path_init(&s->from[FROM_LOST], &lost);
	p.sgid = &sgid;
	sgid.vid = 7;
	path_init(&s->from[FROM_VLAN], &p);
	sgid.vid = 0;
	sgid.gid[gid == HOST_GID_IPV4 ? 12 : 0] = gid == HOST_GID_IPV4 ? 0xE0 : 0xFF;
	path_init(&s->from[FROM_MULTICAST], &p);
	s->path = host_path(s->host, s->peer, 0, gid);
}

void stage_init(struct stage *s, const struct record *cfg)
{
	enum host_gid gid = (enum host_gid)(cfg->act % HOST_GIDS);

	memset(s, 0, offsetof(struct stage, region));
	s->now = START;
	s->honest = s->stalled = s->deaf = s->huge = s->forgot = false;
	s->came = 0;
	s->wr_id = 0;
	s->host = fuzz_host(OUR_ID, START);
	s->peer = fuzz_host(PEER_ID, START);
	app_init(&s->app, s->host);
	make_paths(s, gid);
	set_attr(s, cfg);
	set_spec(s, cfg);
	make_regions(s);
	make_qp(s);
	make_ahs(s);
	to_rts(s);
	trace("type %u%s net %u mtu %u sq %u@%x rq %u@%x rd %u/%u timeout %u retry %u/%u window "
	      "%u%s\n",
		s->spec.type, s->srq ? " SRQ" : "", gid, s->attr.path_mtu, s->spec.sq_depth,
		s->attr.sq_psn, s->spec.rq_depth, s->attr.rq_psn, s->attr.max_rd_atomic,
		s->attr.max_dest_rd_atomic, s->attr.timeout, s->attr.retry_cnt, s->attr.rnr_retry,
		s->spec.window, s->honest ? "" : " hostile");
}

/* --- its turn ------------------------------------------------------------------------- */

static unsigned tx_once(struct stage *s, unsigned n)
{
	struct rules_before before = rules_before(s->qp->qp);
	struct txd t[BURST];
	struct pkt p;

	for (unsigned i = 0; i < n; i++)
		t[i].frame = s->host->tx[i];
	n = core_tx(&s->host->core, t, n, s->now);
	for (unsigned i = 0; i < n; i++) {
		uint32_t faults = s->host->faults;
		uint16_t len = core_seal(&s->host->core, &t[i]);

		MUST(len <= FRAME_MAX && !len == (s->host->faults != faults));
		if (!len) { /* it counts as sent */
			MUST(s->qp->qp->state == ABI_QPS_ERR ||
				(!s->qp->qp->reliable &&
					s->qp->qp->state == ABI_QPS_SQE)); /* UC-11 */
			s->rules.blind = true;
			continue;
		}
		MUST(t[i].qp == s->qp->qp);
		rules_see(&s->rules, &before, t[i].frame, len, &p);
		s->sent++;
		trace("  sent %s @%x +%u%s", p.op->name, p.psn, p.payload_len, p.ackreq ? "!" : "");
		if (p.op->aeth)
			trace(" %02x/%u", p.syndrome, p.msn);
		trace("\n");
	}
	return n;
}

void stage_tx(struct stage *s, unsigned n, bool repeat)
{
	/* Nothing holds back what is not reliable: a long message goes out as a whole. */
	bool endless = s->huge || !s->qp->qp->reliable;
	unsigned calls = 0;

	app_ring(&s->app, s->now);
	while (tx_once(s, n) == n && repeat)
		if (++calls == CALLS_TO_REST || (endless && calls == 8)) {
			MUST(endless);
			return;
		}
}

void stage_wait(struct stage *s, uint64_t ns)
{
	uint64_t due;

	s->now += ns;
	core_expire(&s->host->core, s->now);
	due = core_deadline(&s->host->core);
	MUST(due == 0 || due >> WHEEL_TICK_SHIFT >= s->now >> WHEEL_TICK_SHIFT);
}

/* --- regions -------------------------------------------------------------------------- */

void stage_dereg(struct stage *s, enum region which)
{
	struct stage_region *r = &s->region[which];

	atomic_store(&s->host->mrs.slot[r->mr->key >> 8], NULL);
	r->frozen = r->app;
	if (r->frozen)
		memcpy(r->was, r->app->mem, REGION_LEN);
}

void stage_rereg(struct stage *s, enum region which)
{
	struct stage_region *r = &s->region[which];

	r->mr->key ^= 0x55; /* MR-04: never the key that it had */
	r->frozen = which == REGION_RO || which == REGION_FOREIGN;
	atomic_store(&s->host->mrs.slot[r->mr->key >> 8], r->mr);
}

/* --- checks --------------------------------------------------------------------------- */

void stage_poll(struct stage *s)
{
	struct abi_cqe cqe;

	while (app_poll(&s->app, s->send_cq, &cqe) || app_poll(&s->app, s->recv_cq, &cqe)) {
		s->came += !!(cqe.opcode & ABI_WC_RECV);
		trace("  %c%llu: status %u len %u\n", cqe.opcode & ABI_WC_RECV ? 'R' : 'S',
			(unsigned long long)cqe.wr_id, cqe.status, cqe.byte_len);
	}
}

static void check_qp(const struct stage *s)
{
	const struct qp *qp = s->qp->qp;
	const struct qp_resp *r = &qp->resp;

	MUST(r->res_head - r->res_next <= RD_ATOMIC_MAX);
	MUST(r->res_head - r->res_done <= RD_ATOMIC_MAX);
	MUST(!r->have_wqe || r->recv_off <= r->wqe.length);
	MUST(qp->sq.next - qp->comp.head <= qp->sq.depth);
}

void stage_check(struct stage *s)
{
	/* CQ-01: what it lost, nobody can count on. */
	s->qp->free_ids |= s->host->core.count.cq_overflow != 0;
	if (!s->stalled)
		stage_poll(s);
	if (!s->deaf)
		app_events(&s->app);
	invariants_check(&s->app, s->now);
	for (unsigned i = 0; i < REGIONS; i++)
		if (s->region[i].frozen)
			MUST(!memcmp(s->region[i].was, s->region[i].app->mem, REGION_LEN));
	check_qp(s);
	s->forgot |= s->qp->qp->state == ABI_QPS_RESET;
}

/* --- life and death ------------------------------------------------------------------- */

/* CQEs that are not taken yet are from before. */
void stage_revive(struct stage *s)
{
	stage_poll(s);
	s->forgot = true;
	MUST(app_to_state(s->qp, ABI_QPS_RESET, s->now) == 0);
	to_rts(s);
}

/* The old ones stay until the end; nobody completes to them any more. */
static void detach_cqs(struct stage *s)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_CQ, .cq = &s->send_cq->cq};

	MUST(core_cmd(&s->host->core, &cmd, s->now) == 0);
	cmd.cq = &s->recv_cq->cq;
	MUST(core_cmd(&s->host->core, &cmd, s->now) == 0);
}

void stage_recreate(struct stage *s)
{
	if (s->spec.type == ABI_QPT_XRC_RECV)
		return;
	stage_poll(s);
	s->forgot = true;
	app_qp_destroy(s->qp, s->now);
	detach_cqs(s);
	make_qp(s);
	to_rts(s);
}

/* The rest succeeded, unsignaled. */
static void check_all_done(const struct app_qp *q)
{
	MUST(app_sq_room(q) == q->spec.sq_depth && app_rq_room(q) == q->spec.rq_depth);
	MUST(q->spec.srq || q->rq_done == q->rq_posted);
	for (uint32_t i = q->sq_done; i != q->sq_posted; i++)
		MUST(!q->sq_wr[i & (q->sq_wrs - 1)].signaled);
}

/* QPS-20: an ERR QP gives back everything, in a bounded time, and then rests. */
static void check_flush(struct stage *s)
{
	bool counted = s->honest && !s->host->core.count.cq_overflow;

	stage_poll(s);
	MUST(app_to_state(s->qp, ABI_QPS_ERR, s->now) == 0);
	s->qp->rung = true;
	stage_tx(s, 8, true);
	for (unsigned i = 0; core_deadline(&s->host->core) == 0; i++) {
		if (s->huge && i == 64)
			return;
		MUST(i < CALLS_TO_REST);
		stage_tx(s, 8, true);
		stage_poll(s);
	}
	stage_check(s);
	stage_poll(s);
	if (counted && !s->host->core.count.cq_overflow) {
		check_all_done(s->qp);
		/* SRQ-02: what was taken came back. */
		MUST(!s->srq || s->forgot || atomic_load(&s->srq->shared->consumer) == s->came);
	}
	MUST(core_deadline(&s->host->core) == WHEEL_NEVER);
}

void stage_fini(struct stage *s)
{
	unsigned state = s->qp->qp->state;

	if (state != ABI_QPS_RESET)
		check_flush(s);
	for (unsigned i = 0; i < REGIONS; i++)
		app_mr_dereg(&s->app, s->region[i].app);
	stage_srq(s, false);
	for (unsigned i = 0; i < 2; i++)
		atomic_store(&s->host->ahs.slot[AH_SLOT(STAGE_AH + i)], NULL);
	hole_close(s->host);
	huge_close(s->host, s->region[REGION_HUGE].mr);
	app_fini(&s->app);
}
