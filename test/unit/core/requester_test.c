/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests become packets: REQ-*, CRD-*, BTH-* of the requester. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lone.h"
#include "requester.h"

static struct lone l;

static int setup(void **state)
{
	lone_init(&l);
	return 0;
}

static int teardown(void **state)
{
	lone_fini(&l);
	return 0;
}

/* --- segmentation --------------------------------------------------------------------- */

/* What a WRITE of @p len bytes from PSN @p psn must look like, AckReq on the last only. */
static void expect_write(char *to, uint32_t psn, uint32_t len, uint32_t mtu)
{
	uint32_t n = len ? (len + mtu - 1) / mtu : 1;

	to[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		bool first = i == 0, last = i == n - 1;
		uint32_t part = last ? len - i * mtu : mtu;

		to += sprintf(to, "%s%s@%x", first ? "" : " ",
			first && last ? "WRITE_ONLY"
			: first	      ? "WRITE_FIRST"
			: last	      ? "WRITE_LAST"
				      : "WRITE_MIDDLE",
			(psn + i) & 0xFFFFFF);
		if (part)
			to += sprintf(to, "+%u", part);
		if (last)
			to += sprintf(to, "!");
		if (first)
			to += sprintf(to, "(0,%u)", len);
	}
}

/* REQ-01, REQ-02, REQ-03, REQ-06, BTH-13, BTH-15: every MTU, around its multiples, and across
 * the wrap of the PSN. */
static void requester_next__cuts_at_mtu(void **state)
{
	char want[4096];

	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		const uint32_t sizes[] = {0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu, 5 * mtu - 1};

		for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
			if (mtu != 256 || i)
				lone_init(&l);
			l.attr.path_mtu = mtu;
			l.attr.sq_psn = 0xFFFFFE;
			lone_start(&l);
			lone_post(&l, ABI_WR_RDMA_WRITE, 1, sizes[i], 0);
			expect_write(want, 0xFFFFFE, sizes[i], mtu);
			assert_string_equal(lone_tx(&l), want);
			if (mtu != 4096 || i != ARRAY_SIZE(sizes) - 1)
				lone_fini(&l);
		}
	}
}

static void requester_next__names_the_operations(void **state)
{
	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 300, 0);
	assert_string_equal(lone_tx(&l), "SEND_FIRST@200+256 SEND_LAST@201+44!");
	lone_post(&l, ABI_WR_SEND_WITH_IMM, 2, 600, 0);
	assert_string_equal(
		lone_tx(&l), "SEND_FIRST@202+256 SEND_MIDDLE@203+256 SEND_LAST_IMM@204+88!#beef");
	lone_post(&l, ABI_WR_SEND_WITH_IMM, 3, 0, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY_IMM@205!#beef");
	lone_post(&l, ABI_WR_RDMA_WRITE_WITH_IMM, 4, 257, 0);
	assert_string_equal(lone_tx(&l), "WRITE_FIRST@206+256(0,257) WRITE_LAST_IMM@207+1!#beef");
	lone_post(&l, ABI_WR_RDMA_WRITE_WITH_IMM, 5, 4, 0);
	assert_string_equal(lone_tx(&l), "WRITE_ONLY_IMM@208+4!(0,4)#beef"); /* BTH-19 */
	lone_post(&l, ABI_WR_RDMA_READ, 6, 1000, 0);
	assert_string_equal(lone_tx(&l), "READ_REQ@209!(0,1000)"); /* BTH-07 */
	lone_post(&l, ABI_WR_SEND, 7, 1, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@20d+1!"); /* REQ-04: four PSNs */
	lone_post(&l, ABI_WR_RDMA_READ, 8, 0, 0);
	assert_string_equal(lone_tx(&l), "READ_REQ@20e!(0,0)");
	lone_post(&l, ABI_WR_SEND, 9, 1, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@20f+1!");
}

/* BTH-09 */
static void requester_next__sets_se_only_where_a_receive_completes(void **state)
{
	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 300, ABI_WQE_SOLICITED);
	assert_string_equal(lone_tx(&l), "SEND_FIRST@200+256 SEND_LAST@201+44!*");
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 4, ABI_WQE_SOLICITED);
	assert_string_equal(lone_tx(&l), "WRITE_ONLY@202+4!(0,4)");
	lone_post(&l, ABI_WR_RDMA_WRITE_WITH_IMM, 3, 4, ABI_WQE_SOLICITED);
	assert_string_equal(lone_tx(&l), "WRITE_ONLY_IMM@203+4!*(0,4)#beef");
	lone_post(&l, ABI_WR_RDMA_READ, 4, 4, ABI_WQE_SOLICITED);
	assert_string_equal(lone_tx(&l), "READ_REQ@204!(0,4)");
}

/* --- payload -------------------------------------------------------------------------- */

static void requester_next__gathers_sixteen_sges(void **state)
{
	struct app_send s = {
		.opcode = ABI_WR_SEND, .flags = ABI_WQE_SIGNALED, .wr_id = 1, .num_sge = SGE_MAX};
	uint8_t want[2048];
	uint32_t len = 0;

	l.attr.path_mtu = 256;
	lone_start(&l);
	for (unsigned i = 0; i < LONE_MEM; i++)
		l.mr->mem[i] = (uint8_t)(i * 7 + i / 256);
	for (unsigned i = 0; i < SGE_MAX; i++) {
		uint32_t part = i % 3 == 1 ? 0 : 13 * i + 1; /* empty ones with a bad key: MR-07 */

		s.sge[i] = app_sge(l.mr, 5000 - 300 * i, part);
		if (!part)
			s.sge[i].lkey = 0x666;
		memcpy(want + len, l.mr->mem + 5000 - 300 * i, part);
		len += part;
	}
	app_post_send(l.qp, &s);
	for (uint32_t off = 0; off < len; off += 256) {
		uint32_t part = len - off < 256 ? len - off : 256;

		lone_tx_max(&l, 1);
		assert_memory_equal(l.frame + 54, want + off, part);
	}
	assert_string_equal(lone_tx(&l), "");
}

/* REQ-15, and the slot of the ring is the application's again once it is fetched. */
static void requester_next__sends_inline_data_as_posted(void **state)
{
	uint8_t data[100];
	struct app_send s = {.opcode = ABI_WR_SEND,
		.flags = ABI_WQE_SIGNALED | ABI_WQE_INLINE,
		.wr_id = 1,
		.inline_data = data,
		.inline_len = sizeof(data)};

	lone_start(&l);
	memset(data, 0x33, sizeof(data));
	app_post_send(l.qp, &s);
	memset(data, 0x44, sizeof(data));
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+100!");
	memset(l.qp->sq_ring + ABI_WQE_HDR, 0x55, sizeof(data));
	lone_nak(&l, 0x60, 0x200, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+100!");
	for (unsigned i = 0; i < sizeof(data); i++)
		assert_int_equal(l.frame[54 + i], 0x33);
}

/* --- window and AckReq ---------------------------------------------------------------- */

/* REQ-51, design.md 3: AckReq each quarter of the window, and nothing beyond it. */
static void requester_next__keeps_within_the_window(void **state)
{
	l.attr.path_mtu = 256;
	l.spec.window = 8;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 256 * 10, 0);
	assert_string_equal(lone_tx(&l),
		"SEND_FIRST@200+256 SEND_MIDDLE@201+256! SEND_MIDDLE@202+256 "
		"SEND_MIDDLE@203+256! SEND_MIDDLE@204+256 SEND_MIDDLE@205+256! "
		"SEND_MIDDLE@206+256 SEND_MIDDLE@207+256!");
	lone_ack(&l, 0x201, 0);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@208+256 SEND_LAST@209+256!");
	lone_ack(&l, 0x209, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* BTH-16: not even WRITEs behind a huge READ. */
static void requester_next__keeps_within_the_psn_window(void **state)
{
	struct app_mr *big;
	struct app_send s = {.opcode = ABI_WR_RDMA_READ,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = 1,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = 1};

	l.attr.path_mtu = 256;
	l.spec.window = 64;
	l.attr.sq_psn = 0xFFFFF0;
	lone_start(&l);
	big = app_mr(&l.app, 4096, ABI_ACCESS_LOCAL_WRITE);
	big->mr.length = MSG_LEN_MAX; /* nobody writes there: no response comes for it */
	s.sge[0] = app_sge(big, 0, MSG_LEN_MAX);
	app_post_send(l.qp, &s);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 256 * 60, 0);
	/* 2^23 PSNs as two requests; the second must wait for a response. */
	assert_string_equal(lone_tx(&l), "READ_REQ@fffff0!(0,1073741824)");
	lone_rx(&l, &(struct shot){.opcode = 0x0D, .psn = 0xFFFFF0, .syndrome = 0x1F, .len = 256});
	assert_string_equal(lone_tx(&l), "READ_REQ@3ffff0!(40000000,1073741824)");
	for (uint32_t i = 1; i < 4; i++) {
		uint32_t out;

		lone_rx(&l, &(struct shot){
				    .opcode = 0x0E, .psn = (0xFFFFF0 + i) & 0xFFFFFF, .len = 256});
		lone_tx(&l);
		out = (l.qp->qp->req.psn_new - l.qp->qp->comp.una) & 0xFFFFFF;
		assert_true(out <= (1u << 23) - 1);
		assert_int_equal(l.packets, 2 + i); /* one PSN free, one packet */
	}
	assert_string_equal(lone_cqes(&l), "");
}

/* REQ-08, REQ-04 */
static void requester_next__limits_outstanding_reads(void **state)
{
	l.attr.max_rd_atomic = 2;
	lone_start(&l);
	for (unsigned i = 1; i <= 3; i++)
		lone_post(&l, ABI_WR_RDMA_READ, i, 4, 0);
	lone_post(&l, ABI_WR_SEND, 4, 4, 0);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) READ_REQ@201!(0,4)");
	lone_rx(&l, &(struct shot){.opcode = 0x10, .psn = 0x200, .syndrome = 0x1F, .len = 4});
	assert_string_equal(lone_tx(&l), "READ_REQ@202!(0,4) SEND_ONLY@203+4!");
}

/* REQ-10 */
static void requester_next__fence_waits_for_reads(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_post(&l, ABI_WR_SEND, 3, 4, ABI_WQE_FENCE);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) SEND_ONLY@201+4!");
	lone_rx(&l, &(struct shot){.opcode = 0x10, .psn = 0x200, .syndrome = 0x1F, .len = 4});
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+4!"); /* SENDs need no fence */
}

/* --- credits -------------------------------------------------------------------------- */

static void ack_credit(uint32_t psn, uint32_t msn, uint8_t code)
{
	lone_rx(&l, &(struct shot){.opcode = 0x11, .psn = psn, .syndrome = code, .msn = msn});
}

/* CRD-04, CRD-05, CRD-06, CRD-09 */
static void requester_next__obeys_credits(void **state)
{
	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	ack_credit(0x200, 1, 1); /* LSN = 1 + 1 */
	lone_post(&l, ABI_WR_SEND, 2, 300, 0);
	lone_post(&l, ABI_WR_SEND, 3, 300, 0);
	/* Message 2 may go whole; 3 is beyond and something is in flight. */
	assert_string_equal(lone_tx(&l), "SEND_FIRST@201+256! SEND_LAST@202+44!");
	ack_credit(0x202, 2, 0); /* none: one packet goes all the same */
	lone_post(&l, ABI_WR_RDMA_WRITE, 4, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_FIRST@203+256!");
	ack_credit(0x203, 2, 0);
	/* The rest of 3, and the WRITE, which credits do not hold back. */
	assert_string_equal(lone_tx(&l), "SEND_LAST@204+44! WRITE_ONLY@205+4!(0,4)");
	ack_credit(0x205, 4, 0x1F); /* no limit any more */
	lone_post(&l, ABI_WR_SEND, 5, 4, 0);
	lone_post(&l, ABI_WR_SEND, 6, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@206+4! SEND_ONLY@207+4!");
}

/* CRD-09: credits that end in the middle of a message must not hold it back while nothing that
 * is in flight asks for an ACK: only the timeout would get it going again. */
static void requester_next__asks_for_an_ack_before_it_waits_for_credits(void **state)
{
	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 256 * 10, 0);
	assert_string_equal(
		lone_tx_max(&l, 3), "SEND_ONLY@200+4! SEND_FIRST@201+256 SEND_MIDDLE@202+256");
	ack_credit(0x200, 1, 0);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@203+256!");
	ack_credit(0x203, 1, 0);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@204+256!");
}

/* CRD-01, REQ-37: an old ACK does not take credits back; a duplicate may bring new ones. */
static void requester_next__takes_the_newest_credits(void **state)
{
	lone_start(&l);
	for (unsigned i = 1; i <= 3; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	lone_tx(&l);
	ack_credit(0x202, 3, 1);
	lone_post(&l, ABI_WR_SEND, 4, 4, 0);
	lone_post(&l, ABI_WR_SEND, 5, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@203+4!");
	ack_credit(0x200, 1, 2); /* late: LSN 3 */
	assert_string_equal(lone_tx(&l), "");
	ack_credit(0x202, 3, 2); /* the same ACK with more credits: LSN 5 */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@204+4!");
}

/* CRD-01, CRD-08: the AETH of a READ response says ACK too, and has credits as any other. */
static void requester_next__takes_the_credits_of_read_responses(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	ack_credit(0x200, 1, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	lone_tx(&l);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	lone_post(&l, ABI_WR_SEND, 4, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	lone_rx(&l,
		&(struct shot){.opcode = 0x10, .psn = 0x201, .syndrome = 2, .msn = 2, .len = 4});
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+4! SEND_ONLY@203+4!"); /* LSN 2 + 2 */
}

/* --- local errors --------------------------------------------------------------------- */

/* One bad work request between two good ones: it fails when its turn comes, what is behind it
 * is flushed (REQ-12, REQ-18, CQ-10). */
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
	assert_int_equal(l.host->core.count.req_cqe_error, 1);
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

static void requester_fetch__refuses_unknown_lkey(void **state)
{
	struct app_send s;

	lone_start(&l);
	s = bad_send(ABI_WR_SEND);
	s.sge[0].lkey ^= 1; /* MR-01: the key part counts */
	expect_local_error(&s, "LOC_PROT");
}

static void requester_fetch__refuses_beyond_the_region(void **state)
{
	struct app_send s;

	lone_start(&l);
	s = bad_send(ABI_WR_SEND);
	s.sge[0].addr += LONE_MEM - 3;
	expect_local_error(&s, "LOC_PROT");
}

static void requester_fetch__refuses_other_pd(void **state)
{
	struct app_send s;

	lone_start(&l);
	s = bad_send(ABI_WR_SEND);
	l.qp->qp->pd++; /* MR-06 */
	l.mr->mr.pd++;
	s.sge[0] = app_sge(app_mr(&l.app, 64, ABI_ACCESS_LOCAL_WRITE), 0, 4);
	expect_local_error(&s, "LOC_PROT");
}

/* REQ-45 */
static void requester_fetch__refuses_read_into_read_only_memory(void **state)
{
	struct app_send s;

	lone_start(&l);
	s = bad_send(ABI_WR_RDMA_READ);
	s.sge[0] = app_sge(app_mr(&l.app, 64, 0), 0, 4);
	expect_local_error(&s, "LOC_PROT");
}

/* REQ-09 */
static void requester_fetch__refuses_read_without_depth(void **state)
{
	struct app_send s;

	l.attr.max_rd_atomic = 0;
	lone_start(&l);
	s = bad_send(ABI_WR_RDMA_READ);
	expect_local_error(&s, "LOC_QP_OP");
}

/* REQ-07: two SGEs that sum up to 2^31 + 1. */
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

/* What a hostile client may write into the ring: nothing of it may do more than fail. */
static void requester_fetch__survives_garbage(void **state)
{
	static const uint32_t ctl[] = {
		ABI_WQE_CTL(0xFF, 1, 0),
		ABI_WQE_CTL(ABI_WR_SEND, 65535, 0),
		ABI_WQE_CTL(ABI_WR_SEND, 17, 0),
		ABI_WQE_CTL(ABI_WR_SEND, 65535, ABI_WQE_INLINE),
		ABI_WQE_CTL(ABI_WR_SEND, 129, ABI_WQE_INLINE),
		ABI_WQE_CTL(ABI_WR_RDMA_READ, 4, ABI_WQE_INLINE),
		ABI_WQE_CTL(ABI_WR_ATOMIC_CMP_AND_SWP, 1, 0),
		ABI_WQE_CTL(ABI_WR_BIND_MW, 0, 0xE0),
	};

	for (unsigned i = 0; i < ARRAY_SIZE(ctl); i++) {
		uint32_t wqe[64];

		if (i)
			lone_init(&l);
		lone_start(&l);
		l.qp->free_ids = true;
		memset(wqe, 0xFF, sizeof(wqe));
		wqe[0] = ctl[i];
		app_post_raw(l.qp, wqe, sizeof(wqe));
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l), "S18446744073709551615:LOC_QP_OP");
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		if (i + 1 < ARRAY_SIZE(ctl))
			lone_fini(&l);
	}
}

static void requester_fetch__survives_random_wqes(void **state)
{
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
				wqe[1] &= 7;
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

/* REQ-18: the region goes away between two packets of a message. */
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

/* --- the doorbell --------------------------------------------------------------------- */

/* design.md 5: asked for when the queue was found empty, not before; nothing is missed. */
static void requester_idle__asks_for_the_doorbell(void **state)
{
	lone_start(&l);
	assert_int_equal(atomic_load(&l.qp->sq_shared->need_doorbell), 1);
	lone_post(&l, ABI_WR_SEND, 1, 1, 0);
	assert_true(l.qp->rung);
	l.qp->rung = false; /* the worker has not looked yet */
	assert_string_equal(lone_tx(&l), "");
	core_doorbell(&l.host->core, l.qp->qp, l.now);
	assert_int_equal(atomic_load(&l.qp->sq_shared->need_doorbell), 0);
	lone_post(&l, ABI_WR_SEND, 2, 1, 0);
	assert_false(l.qp->rung);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+1! SEND_ONLY@201+1!");
	assert_int_equal(atomic_load(&l.qp->sq_shared->need_doorbell), 1);
}

static void requester_idle__notices_what_was_posted_meanwhile(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 1, 0);
	assert_false(requester_idle(l.qp->qp));
	assert_int_equal(atomic_load(&l.qp->sq_shared->need_doorbell), 0);
}

/* REQ-21, QPS-18 */
static void requester_next__holds_until_rts(void **state)
{
	lone_start_in(&l, ABI_QPS_RTR);
	lone_post(&l, ABI_WR_SEND, 1, 1, 0);
	core_doorbell(&l.host->core, l.qp->qp, l.now);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(app_to_rts(l.qp, &l.attr, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+1!");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(requester_next__cuts_at_mtu),
		T(requester_next__names_the_operations),
		T(requester_next__sets_se_only_where_a_receive_completes),
		T(requester_next__gathers_sixteen_sges),
		T(requester_next__sends_inline_data_as_posted),
		T(requester_next__keeps_within_the_window),
		T(requester_next__keeps_within_the_psn_window),
		T(requester_next__limits_outstanding_reads),
		T(requester_next__fence_waits_for_reads),
		T(requester_next__obeys_credits),
		T(requester_next__asks_for_an_ack_before_it_waits_for_credits),
		T(requester_next__takes_the_newest_credits),
		T(requester_next__takes_the_credits_of_read_responses),
		T(requester_fetch__refuses_unknown_lkey),
		T(requester_fetch__refuses_beyond_the_region),
		T(requester_fetch__refuses_other_pd),
		T(requester_fetch__refuses_read_into_read_only_memory),
		T(requester_fetch__refuses_read_without_depth),
		T(requester_fetch__refuses_too_long_message),
		T(requester_fetch__survives_garbage),
		T(requester_fetch__survives_random_wqes),
		T(requester_next__waits_when_the_private_ring_is_full),
		T(requester_next__fails_when_the_region_goes),
		T(requester_idle__asks_for_the_doorbell),
		T(requester_idle__notices_what_was_posted_meanwhile),
		T(requester_next__holds_until_rts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
