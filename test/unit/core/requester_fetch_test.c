/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests that cannot be done, and garbage in their place. */
#include <stdio.h>
#include "fixture.h"
#include "qp.h"
#include "random.h"
#include "requester.h"
#include "txd.h"
#include "wqe.h"

/* One bad work request between two good ones: it fails when its turn comes, later ones are flushed
 * (REQ-12, REQ-18, CQ-10). */
static void expect_local_error(const struct app_send *bad, const char *status)
{
	char want[64];

	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	app_post_send(l.qp, bad);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_tx(&l), "");
	snprintf(want, sizeof(want), "S1:OK S2:%s S3:FLUSH", status);
	assert_string_equal(lone_cqes(&l), want);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(l.host->core.count.req_cqe_error, 2);
	assert_int_equal(l.host->core.count.req_cqe_flush_error, 1);
}

/* The keys of a SEND or a WRITE are looked up again when it is sent, those of a READ are not before
 * its responses come. */
static const uint8_t ops[] = {ABI_WR_SEND, ABI_WR_RDMA_WRITE, ABI_WR_RDMA_READ};

static void again(void)
{
	lone_fini(&l);
	lone_init(&l);
}

static struct app_send bad_send(uint8_t opcode)
{
	return (struct app_send){.opcode = opcode,
		.wr_id = 2,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = 1,
		.sge = {app_sge(l.mr, 0, 4)}};
}

/* proves REQ-18 (MR-01): the key part counts, of the second SGE too. */
static void requester_fetch__refuses_unknown_lkey(void **state)
{
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(ops); i++) {
		struct app_send s;

		if (i)
			again();
		lone_start(&l);
		s = bad_send(ops[i / 2]);
		s.num_sge = 2;
		s.sge[1] = app_sge(l.mr, 100, 4);
		s.sge[i % 2].lkey ^= 1;
		expect_local_error(&s, "LOC_PROT");
	}
}

/* proves REQ-18 */
static void requester_fetch__refuses_beyond_the_region(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
		struct app_send s;

		if (i)
			again();
		lone_start(&l);
		s = bad_send(ops[i]);
		s.sge[0].addr += LONE_MEM - 3;
		expect_local_error(&s, "LOC_PROT");
	}
}

/* proves REQ-18 (MR-06) */
static void requester_fetch__refuses_other_pd(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
		struct app_send s;

		if (i)
			again();
		lone_start(&l);
		s = bad_send(ops[i]);
		l.qp->qp->pd++;
		l.mr->mr.pd++;
		s.sge[0] = app_sge(app_mr(&l.app, 64, ABI_ACCESS_LOCAL_WRITE), 0, 4);
		expect_local_error(&s, "LOC_PROT");
	}
}

/* proves REQ-18, REQ-45 */
static void requester_fetch__refuses_read_into_read_only_memory(void **state)
{
	struct app_send s;

	lone_start(&l);
	s = bad_send(ABI_WR_RDMA_READ);
	s.sge[0] = app_sge(app_mr(&l.app, 64, 0), 0, 4);
	expect_local_error(&s, "LOC_PROT");
}

/* proves REQ-18: after a READ that is good. */
static void requester_fetch__refuses_the_second_of_a_run_of_reads(void **state)
{
	struct app_send s;

	lone_start(&l);
	s = bad_send(ABI_WR_RDMA_READ);
	s.sge[0] = app_sge(app_mr(&l.app, 64, 0), 0, 4);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
	app_post_send(l.qp, &s);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4)");
	lone_rx(&l, &(struct shot){.opcode = 0x10, .psn = 0x200, .syndrome = 0x1F, .len = 4});
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:OK S2:LOC_PROT");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
}

/* proves REQ-09 */
static void requester_fetch__refuses_read_without_depth(void **state)
{
	struct app_send s;

	l.attr.max_rd_atomic = 0;
	lone_start(&l);
	s = bad_send(ABI_WR_RDMA_READ);
	expect_local_error(&s, "LOC_QP_OP");
}

/* proves REQ-07: two SGEs that sum up to 2^31 + 1. */
static void requester_fetch__refuses_too_long_message(void **state)
{
	struct app_send s;
	struct app_mr *big;

	lone_start(&l);
	s = bad_send(ABI_WR_RDMA_WRITE);
	big = app_mr(&l.app, 64, 0);
	big->mr.length = 1ull << 32;
	s.num_sge = 2;
	s.sge[0] = app_sge(big, 0, MSG_LEN_MAX);
	s.sge[1] = app_sge(big, 0, 1);
	expect_local_error(&s, "LOC_LEN");
}

/* proves REQ-07: and takes the longest. */
static void requester_fetch__takes_2_to_31_bytes(void **state)
{
	struct app_send s;
	struct app_mr *big;

	lone_start(&l);
	s = bad_send(ABI_WR_RDMA_WRITE);
	big = app_mr(&l.app, 4096, 0);
	big->mr.length = 1u << 31;
	s.sge[0] = app_sge(big, 0, 1u << 31);
	app_post_send(l.qp, &s);
	assert_string_equal(lone_tx_max(&l, 1), "WRITE_FIRST@200+1024(0,2147483648)");
}

/* proves REQ-16 */
static void requester_fetch__takes_as_much_inline_as_was_agreed(void **state)
{
	static const uint8_t bytes[128];
	struct app_send s = {.opcode = ABI_WR_SEND,
		.flags = ABI_WQE_INLINE,
		.inline_data = bytes,
		.inline_len = sizeof(bytes)};

	lone_start(&l);
	assert_int_equal(l.qp->qp->max_inline, sizeof(bytes));
	app_post_send(l.qp, &s);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+128!");
}

/* proves REQ-16, REQ-17: what a hostile client may write into the ring: nothing of it may do more
 * than fail. */
static void requester_fetch__survives_garbage(void **state)
{
	static const struct {
		uint32_t ctl;
		const char *status;
	} row[] = {
		{ABI_WQE_CTL(0xFF, 1, 0), "LOC_QP_OP"},
		{ABI_WQE_CTL(10, 1, 0), "LOC_QP_OP"}, /* between those that exist */
		{ABI_WQE_CTL(16, 1, 0), "LOC_QP_OP"},
		{ABI_WQE_CTL(ABI_WR_SEND, 65535, 0), "LOC_QP_OP"},
		{ABI_WQE_CTL(ABI_WR_SEND, 17, 0), "LOC_QP_OP"},
		{ABI_WQE_CTL(ABI_WR_SEND, 65535, ABI_WQE_INLINE), "LOC_QP_OP"},
		{ABI_WQE_CTL(ABI_WR_SEND, 129, ABI_WQE_INLINE), "LOC_QP_OP"},
		{ABI_WQE_CTL(ABI_WR_RDMA_READ, 4, ABI_WQE_INLINE), "LOC_QP_OP"},
		{ABI_WQE_CTL(ABI_WR_ATOMIC_WRITE, 65535, ABI_WQE_INLINE), "LOC_QP_OP"},
		{ABI_WQE_CTL(ABI_WR_ATOMIC_WRITE, 65535, 0), "LOC_QP_OP"},
		{ABI_WQE_CTL(ABI_WR_FLUSH, 65535, 0xFF), "LOC_LEN"},
		{ABI_WQE_CTL(ABI_WR_LOCAL_INV, 1, 0), "MW_BIND"},
		{ABI_WQE_CTL(ABI_WR_BIND_MW, 0, 0xE0), "MW_BIND"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		char want[64];

		uint32_t wqe[64];

		if (i)
			lone_init(&l);
		lone_start(&l);
		l.qp->free_ids = true;
		memset(wqe, 0xFF, sizeof(wqe));
		wqe[0] = row[i].ctl;
		app_post_raw(l.qp, wqe, sizeof(wqe));
		assert_string_equal(lone_tx(&l), "");
		snprintf(want, sizeof(want), "S18446744073709551615:%s", row[i].status);
		assert_string_equal(lone_cqes(&l), want);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

static void requester_fetch__survives_random_wqes(void **state)
{
	const uint32_t rkey = PEER_KEY; /* lone_tx() looks at it */
	struct random r = {.state = 4711};

	for (unsigned i = 0; i < 200; i++) {
		if (i)
			lone_init(&l);
		l.spec.sq_depth = 4;
		lone_start(&l);
		l.qp->free_ids = true;
		for (unsigned k = 0; k < 12; k++) { /* three times what the queue holds */
			uint8_t wqe[256];

			random_fill(&r, wqe, sizeof(wqe));
			if (k & 1) /* else it hardly ever passes the checks */
				wqe[1] &= 15;
			memcpy(wqe + offsetof(struct abi_wqe, rkey), &rkey, sizeof(rkey));
			app_post_raw(l.qp, wqe, sizeof(wqe));
			app_post_recv_raw(l.qp, wqe, sizeof(wqe));
			if (k & 2)
				lone_tx(&l);
		}
		lone_tx(&l);
		lone_cqes(&l);
		if (i + 1 < 200)
			lone_fini(&l);
	}
}

/* More in flight than the queue holds: the rest waits until something completes. */
static void requester_next__waits_when_the_private_ring_is_full(void **state)
{
	l.spec.sq_depth = 2;
	lone_start(&l);
	l.qp->free_ids = true;
	lone_post(&l, ABI_WR_SEND, 1, 1, 0);
	lone_post(&l, ABI_WR_SEND, 2, 2, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+1! SEND_ONLY@201+2!");
	lone_post(&l, ABI_WR_SEND, 3, 3, 0); /* the slots are copied: the marks say "posted" */
	lone_post(&l, ABI_WR_SEND, 4, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	lone_nak(&l, 0x60, 0x200, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+1! SEND_ONLY@201+2!");
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+3! SEND_ONLY@203+4!");
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* proves REQ-18: the region goes away between two packets of a message. */
static void requester_next__fails_when_the_region_goes(void **state)
{
	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 600, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_FIRST@200+256");
	app_mr_dereg(&l.app, l.mr);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:LOC_PROT");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
}

/* proves MR-06: a request of which a part has no memory for a while, as while REREG_MR changes its
 * region, is gathered from its begin the next time: packets follow the direct way. */
static void requester_payload__begins_again(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND, .wr_id = 2, .num_sge = 2};
	struct txd t = {0};
	struct send_wqe *w;
	struct app_mr *m;

	lone_start(&l);
	m = app_mr(&l.app, 64, ABI_ACCESS_LOCAL_WRITE);
	s.sge[0] = app_sge(l.mr, 0, 4);
	s.sge[1] = app_sge(m, 0, 8);
	app_post_send(l.qp, &s); /* leaves the cursor at the PSN of the next */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+12!");
	app_post_send(l.qp, &s);
	assert_true(requester_fetch(&l.host->core, l.qp->qp));
	w = qp_wqe(l.qp->qp, l.qp->qp->req.cur);
	m->mr.length = 7;
	assert_false(requester_payload(&l.host->core, l.qp->qp, w, &t, 0, 12));
	m->mr.length = 64;
	t.nsegs = 0;
	assert_true(requester_payload(&l.host->core, l.qp->qp, w, &t, 0, 12));
	assert_int_equal(t.nsegs, 2);
	assert_int_equal(t.seg[0].len, 4);
	assert_int_equal(t.seg[0].key, l.mr->mr.key);
	assert_int_equal(t.seg[1].len, 8);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(requester_fetch__refuses_unknown_lkey),
		T(requester_fetch__refuses_beyond_the_region),
		T(requester_fetch__refuses_other_pd),
		T(requester_fetch__refuses_read_into_read_only_memory),
		T(requester_fetch__refuses_the_second_of_a_run_of_reads),
		T(requester_fetch__refuses_read_without_depth),
		T(requester_fetch__refuses_too_long_message),
		T(requester_fetch__takes_2_to_31_bytes),
		T(requester_fetch__takes_as_much_inline_as_was_agreed),
		T(requester_fetch__survives_garbage),
		T(requester_fetch__survives_random_wqes),
		T(requester_next__waits_when_the_private_ring_is_full),
		T(requester_next__fails_when_the_region_goes),
		T(requester_payload__begins_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
