/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer and an application that do what they like: random packets with a good ICRC around the
 * PSNs that matter, random work requests, time steps, regions that go, commands. Nothing may
 * crash, write outside a region or break the QP's own order (SEC-01).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "lone.h"
#include "qp_impl.h"
#include "random.h"
#include "seq24.h"
#include "txd.h"
#include "wqe.h"

#define SEEDS 400u
#define STEPS 400u

/* Receives lie at the ends of slots, with gaps after them where nothing may be written. */
#define SLOTS	 8u
#define SLOT	 4096u
#define GAP	 64u
#define GAP_BYTE 0x5A

static struct lone l;
static struct app_mr *slots;
static struct random rnd;
static uint64_t seed;
static uint64_t taken, answered, completed, errors;

static uint32_t below(uint32_t n)
{
	return (uint32_t)random_below(&rnd, n);
}

/* An offset in the region, now and then one that leads to its end or beyond. */
static uint64_t offset(void)
{
	return below(16) ? below(4000) : LONE_MEM - below(2000);
}

static uint32_t near(uint32_t psn)
{
	return (psn + below(12) - (below(2) ? 0 : 6)) & SEQ24_MASK;
}

static void random_packet(void)
{
	static const uint8_t syndromes[] = {
		0x1F, 0x00, 0x03, 0x21, 0x3F, 0x60, 0x61, 0x62, 0x63, 0x64, 0x40, 0x7F, 0x9F};
	const struct qp *qp = l.qp->qp;
	uint32_t mtu = 1u << qp->mtu_shift;
	uint8_t op = (uint8_t)(below(10) ? below(18) : below(32));
	bool response = op >= 0x0D && op <= 0x12;
	struct shot s = {
		.opcode = op,
		.psn = near(response ? (below(2) ? qp->comp.una : qp->req.psn_new) : qp->resp.epsn),
		.ackreq = below(2),
		.se = below(2),
		.va = app_va(l.mr, offset()),
		.rkey = below(20) ? l.mr->mr.key : below(1u << 24),
		.dma_len = below(3) ? below(3 * mtu) : below(mtu + 1),
		.syndrome = syndromes[below(below(2) ? 1 : sizeof(syndromes))],
		.msn = below(100),
		.len = op == 0x0C || op == 0x11 ? 0
		       : below(3)		? mtu
						: below(mtu + 1),
	};

	if (!response && below(3)) {
		s.psn = qp->resp.epsn;
		if (below(2) && (op == 0x0A || op == 0x0B))
			s.dma_len = s.len;
	}
	if (response && op != 0x11 && below(2))
		s.psn = qp->comp.una;
	s.orig = below(2);
	s.swap_add = below(2);
	s.compare = below(2);
	if (op >= 0x12) { /* of those that are reserved, what follows does not matter */
		static const uint8_t len[] = {[0x15] = 0, 4, 4, 0, 0, 0, 0, 0, 8, 0, 0};

		s.len = len[op];
	}
	taken += lone_rx(&l, &s) == 0;
}

/* Mostly the packet that a good peer would send next; otherwise the QP would soon be in ERR. */
static void good_request(void)
{
	const struct qp *qp = l.qp->qp;
	const struct qp_resp *r = &qp->resp;
	uint32_t mtu = 1u << qp->mtu_shift;
	static const uint8_t opens[] = {
		0x00, 0x04, 0x05, 0x06, 0x0A, 0x0B, 0x0C, 0x13, 0x14, 0x1C, 0x1D};
	struct shot s = {.opcode = opens[below(sizeof(opens))],
		.psn = r->epsn,
		.ackreq = below(2),
		.va = app_va(l.mr, offset()),
		.rkey = l.mr->mr.key,
		.swap_add = below(2),
		.compare = below(2)};

	if (s.opcode >= 0x13)
		s.va &= ~7ull;
	if (r->open == KIND_WRITE) {
		s.len = r->write_left <= mtu ? r->write_left : mtu;
		s.opcode = r->write_left <= mtu ? 0x08 + (uint8_t)below(2) : 0x07;
	} else if (r->open == KIND_SEND) {
		s.opcode = 0x01 + (uint8_t)below(3);
		s.len = s.opcode == 0x01 ? mtu : 1 + below(mtu);
	} else {
		s.dma_len = s.opcode == 0x06 ? mtu + 1 + below(3 * mtu) : below(mtu + 1);
		if (s.opcode == 0x1D)
			s.dma_len = 8;
		s.len = s.opcode == 0x1D		       ? 8
			: s.opcode == 0x0C || s.opcode >= 0x13 ? 0
			: s.opcode == 0x00 || s.opcode == 0x06 ? mtu
							       : s.dma_len;
		if (s.opcode == 0x0C)
			s.dma_len = below(4 * mtu);
	}
	taken += lone_rx(&l, &s) == 0;
}

static void good_response(void)
{
	struct qp *qp = l.qp->qp;
	uint32_t mtu = 1u << qp->mtu_shift;
	uint32_t out = (qp->req.psn_new - qp->comp.una) & SEQ24_MASK;
	const struct send_wqe *w = qp_wqe(qp, qp->comp.head);
	struct shot s = {.opcode = 0x11, .syndrome = 0x1F, .msn = below(100)};

	if (!out)
		return;
	if (w->opcode == ABI_WR_RDMA_READ) {
		uint32_t off = (uint32_t)seq24_diff(qp->comp.una, w->first_psn) * mtu;
		bool last = w->length - off <= mtu;
		bool first = qp->comp.una == w->read_psn[0];

		s.psn = qp->comp.una;
		s.len = last ? w->length - off : mtu;
		s.opcode = first && last ? 0x10 : first ? 0x0D : last ? 0x0F : 0x0E;
	} else {
		s.psn = seq24_add(qp->comp.una, below(out));
	}
	taken += lone_rx(&l, &s) == 0;
}

static void random_post(void)
{
	struct app_send s = {
		.opcode = (uint8_t)(below(30) ? below(5) : below(20)),
		.mw = l.app.mw[0]->mw.index,
		.imm = below(4) ? FETH_PLT_GLOBAL : below(64),
		.lkey = l.mr->mr.key,
		.bind_len = below(5000),
		.access = below(16),
		.flags = below(32) & ~ABI_WQE_PHASE & ~(uint32_t)ABI_WQE_INLINE,
		.wr_id = below(1000),
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = below(4),
	};

	for (unsigned i = 0; i < s.num_sge; i++) {
		s.sge[i] = app_sge(l.mr, offset(), below(1500));
		if (!below(60))
			s.sge[i].lkey ^= 1;
	}
	app_post_send(l.qp, &s); /* whether there is room or not */
}

static void random_recv(void)
{
	struct abi_sge sge[3];
	unsigned n = below(4);

	for (unsigned i = 0; i < n; i++) {
		uint32_t len = below(15) ? 3000 : below(1500);

		sge[i] = app_sge(slots, (1 + below(SLOTS)) * SLOT - GAP - len, len);
	}
	app_post_recv(l.qp, below(1000), sge, n);
}

static void revive(void)
{
	static struct sim_host *peer;
	struct path_spec path;

	if (!peer) {
		peer = aligned_alloc(CACHE_LINE, sizeof(*peer));
		host_init(peer, 2, icrc_best(), 0);
	}
	path = host_path(l.host, peer, 0, HOST_GID_IPV4);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	assert_int_equal(app_to_init(l.qp, &l.attr, l.now), 0);
	assert_int_equal(app_to_rtr(l.qp, &l.attr, &path, l.now), 0);
	assert_int_equal(app_to_rts(l.qp, &l.attr, l.now), 0);
}

static void check(void)
{
	const struct qp *qp = l.qp->qp;
	uint32_t depth = qp->req.fetched - qp->comp.head;

	assert_true(app_guards_ok(&l.app));
	assert_true(depth <= qp->sq.depth);
	assert_true(qp->resp.res_head - qp->resp.res_next <= RD_ATOMIC_MAX);
	assert_true(qp->resp.res_head - qp->resp.res_done <= qp->attr.max_dest_rd_atomic);
	if (qp->state != ABI_QPS_RTS && qp->state != ABI_QPS_SQD)
		return;
	assert_true(qp->req.cur - qp->comp.head <= depth);
	assert_true(seq24_le(qp->comp.una, qp->req.psn) && seq24_le(qp->req.psn, qp->req.psn_new));
	assert_true(qp->req.sent - qp->comp.acked <= qp->win.max + qp->attr.max_rd_atomic);
	assert_true(qp->req.rd_started - qp->comp.rd_done <= qp->attr.max_rd_atomic);
}

static void check_gaps(void)
{
	uint8_t gap[GAP];

	memset(gap, GAP_BYTE, sizeof(gap));
	for (unsigned i = 1; i <= SLOTS; i++)
		assert_memory_equal(slots->mem + i * SLOT - GAP, gap, GAP);
}

static void random_command(void)
{
	struct abi_qp_attr attr = l.attr;

	switch (below(4)) {
	case 0:
		attr.qp_state = ABI_QPS_SQD;
		app_modify(l.qp, ABI_QP_STATE, &attr, NULL, l.now);
		break;
	case 1:
		attr.qp_state = ABI_QPS_RTS;
		app_modify(l.qp, ABI_QP_STATE, &attr, NULL, l.now);
		break;
	case 2:
		app_to_state(l.qp, ABI_QPS_ERR, l.now);
		break;
	default:
		revive();
		break;
	}
}

static void step(void)
{
	switch (below(16)) {
	case 0:
	case 1:
		random_post();
		break;
	case 2:
	case 8:
		random_recv();
		break;
	case 3:
		lone_wait(&l, below(2) ? below(100000) : below(100000000));
		break;
	case 4:
		if (!below(40))
			random_command();
		break;
	case 5:
		if (!below(60))
			app_mr_dereg(&l.app, l.mr);
		else if (!below(4))
			atomic_store(&l.host->mrs.slot[l.mr->slot], &l.mr->mr);
		break;
	case 6:
	case 7: {
		struct txd t[4];
		unsigned n = 1 + below(4);

		app_ring(&l.app, l.now);
		for (unsigned i = 0; i < n; i++)
			t[i].frame = l.host->tx[i];
		n = core_tx(&l.host->core, t, n, l.now);
		for (unsigned i = 0; i < n; i++) {
			uint16_t len = core_seal(&l.host->core, &t[i]);
			struct pkt p;

			assert_true(len > 0);
			assert_int_equal(frame_parse(&p, t[i].frame, len), DROP_NONE);
			assert_true(icrc_check(icrc_by_name("table"), &p));
			answered++;
		}
		break;
	}
	default:
		if (!below(12))
			random_packet();
		else if (below(2))
			good_request();
		else
			good_response();
		break;
	}
}

static void drain(void)
{
	struct abi_cqe cqe;

	while (app_poll(&l.app, l.send_cq, &cqe) || app_poll(&l.app, l.recv_cq, &cqe)) {
		completed++;
		errors += cqe.status != ABI_WC_SUCCESS;
	}
	app_events(&l.app);
}

/* proves SEC-01 */
static void core__survives_hostile_peers(void **state)
{
	for (seed = 1; seed <= SEEDS; seed++) {
		rnd.state = seed * 0x9E3779B97F4A7C15ull | 1;
		lone_init(&l);
		l.attr.path_mtu = 256u << below(3);
		l.attr.sq_psn = below(2) ? 0xFFFFF0 + below(16) : below(1u << 24);
		l.attr.rq_psn = below(2) ? 0xFFFFF0 + below(16) : below(1u << 24);
		l.attr.max_rd_atomic = (uint8_t)(1 + below(4));
		l.attr.max_dest_rd_atomic = (uint8_t)(1 + below(4));
		l.attr.timeout = (uint8_t)below(16);
		l.attr.retry_cnt = (uint8_t)below(8);
		l.attr.rnr_retry = (uint8_t)below(8);
		l.spec.sq_depth = 1u << below(5);
		l.spec.rq_depth = 1u << below(5);
		l.spec.window = 4 + below(20);
		lone_start(&l);
		l.mr->mr.access |= ABI_ACCESS_MW_BIND | ABI_ACCESS_FLUSH_GLOBAL;
		app_mw(&l.app, MW_TYPE_1);
		l.qp->free_ids = true;
		slots = app_mr(&l.app, (size_t)SLOTS * SLOT, ABI_ACCESS_LOCAL_WRITE);
		memset(slots->mem, GAP_BYTE, (size_t)SLOTS * SLOT);
		for (unsigned i = 0; i < STEPS; i++) {
			step();
			check();
			drain();
			if (l.qp->qp->state == ABI_QPS_ERR && !below(30))
				revive();
		}
		check_gaps();
		lone_fini(&l);
	}
	seed = 0;
	/* An empty run would prove nothing. */
	assert_true(taken > 20 * SEEDS && answered > 20 * SEEDS && completed > 10 * SEEDS);
	assert_in_range(errors, SEEDS, completed - 5 * SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(core__survives_hostile_peers)};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	printf("%llu packets taken, %llu sent, %llu completions, %llu with errors\n",
		(unsigned long long)taken, (unsigned long long)answered,
		(unsigned long long)completed, (unsigned long long)errors);
	if (rc)
		printf("failed with seed %llu\n", (unsigned long long)seed);
	return rc;
}
