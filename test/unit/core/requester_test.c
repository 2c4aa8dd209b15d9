/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests become packets: REQ-*, BTH-* of the requester. */
#include <stdio.h>
#include "core_command.h"
#include "fixture.h"
#include "requester.h"

/* --- segmentation --------------------------------------------------------------------- */

/* The expected packets of a WRITE of @p len bytes from PSN @p psn; AckReq on the last only. */
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

/* proves REQ-01, REQ-02, REQ-03, REQ-06, BTH-01, BTH-03, BTH-04, BTH-08, BTH-12, BTH-13 (BTH-15):
 * every MTU, around its multiples, and across the wrap of the PSN. */
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

/* proves REQ-02, REQ-04, BTH-07, BTH-19 */
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
	lone_post(&l, ABI_WR_SEND, 10, 0, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 11, 0, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@210! WRITE_ONLY@211!(0,0)"); /* REQ-02 */
}

/* proves REQ-04: the request after a READ begins where its responses end. */
static void requester_next__read_takes_the_psns_of_its_responses(void **state)
{
	static const struct {
		uint32_t len, mtu, psns;
	} row[] = {{0, 256, 1}, {1, 256, 1}, {256, 256, 1}, {257, 256, 2}, {1000, 256, 4},
		{1024, 256, 4}, {1025, 256, 5}, {4096, 4096, 1}, {4097, 4096, 2}, {65536, 1024, 64},
		{1u << 31, 4096, 524288}, {1u << 31, 1024, 2097152}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct app_send s = {.opcode = ABI_WR_RDMA_READ,
			.remote_addr = PEER_VA,
			.rkey = PEER_KEY,
			.num_sge = 1};
		struct app_mr *big;
		char want[128];

		if (i)
			lone_init(&l);
		l.attr.path_mtu = row[i].mtu;
		l.attr.sq_psn = 0xFFFFFF;
		lone_start(&l);
		big = app_mr(&l.app, 4096, ABI_ACCESS_LOCAL_WRITE);
		big->mr.length = 1u << 31; /* nobody writes there: no response comes */
		s.sge[0] = app_sge(big, 0, row[i].len);
		app_post_send(l.qp, &s);
		lone_post(&l, ABI_WR_SEND, 2, 1, 0);
		snprintf(want, sizeof(want), "READ_REQ@ffffff!(0,%u) SEND_ONLY@%x+1!", row[i].len,
			(0xFFFFFF + row[i].psns) & 0xFFFFFF);
		assert_string_equal(lone_tx(&l), want);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* proves BTH-09 */
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

/* proves REQ-15, and the slot of the ring is the application's again once it is fetched. */
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

/* proves REQ-51 (decision 0000.3): AckReq each quarter of the window, and nothing beyond it. */
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

/* proves REQ-51: the last packet that the window has room for asks, also when no quarter ends
 * there. */
static void requester_next__asks_before_the_window_closes(void **state)
{
	l.attr.path_mtu = 256;
	l.spec.window = 14; /* a quarter is three packets */
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 256 * 20, 0);
	lone_tx_max(&l, 11);
	assert_string_equal(
		lone_tx(&l), "WRITE_MIDDLE@20b+256! WRITE_MIDDLE@20c+256 WRITE_MIDDLE@20d+256!");
}

/* proves REQ-51: nobody has asked yet when the window closes over what is in flight. Without a
 * time-out the QP would stand still for ever. */
static void requester_next__asks_when_the_window_was_made_smaller(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_SET_WINDOW, .n = 4};

	l.attr.path_mtu = 256;
	l.attr.timeout = 0;
	l.spec.window = 64; /* a quarter is sixteen packets */
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 256 * 20, 0);
	lone_tx_max(&l, 10);
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_string_equal(lone_tx(&l), "WRITE_MIDDLE@20a+256!");
	assert_string_equal(lone_tx(&l), "");
	lone_ack(&l, 0x20a, 0);
	assert_string_equal(lone_tx(&l),
		"WRITE_MIDDLE@20b+256! WRITE_MIDDLE@20c+256! WRITE_MIDDLE@20d+256! "
		"WRITE_MIDDLE@20e+256!");
}

/* proves REQ-10, BTH-16: not even WRITEs after a huge READ. REQ-10: its fence holds the first of
 * its two requests, not the second. */
static void requester_next__keeps_within_the_psn_window(void **state)
{
	struct app_mr *big;
	struct app_send s = {.opcode = ABI_WR_RDMA_READ,
		.flags = ABI_WQE_SIGNALED | ABI_WQE_FENCE,
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

/* proves BTH-16: nor do WRITEs of one packet. */
static void requester_next__run_keeps_within_the_psn_window(void **state)
{
	struct app_mr *big;
	struct app_send s = {.opcode = ABI_WR_RDMA_READ,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = 1,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = 1};

	(void)state;
	l.attr.path_mtu = 256;
	l.attr.sq_psn = 0xFFFFF0;
	lone_start(&l);
	big = app_mr(&l.app, 4096, ABI_ACCESS_LOCAL_WRITE);
	big->mr.length = MSG_LEN_MAX;
	s.sge[0] = app_sge(big, 0, MSG_LEN_MAX);
	app_post_send(l.qp, &s);
	lone_tx(&l);
	lone_rx(&l, &(struct shot){.opcode = 0x0D, .psn = 0xFFFFF0, .syndrome = 0x1F, .len = 256});
	assert_string_equal(lone_tx(&l), "READ_REQ@3ffff0!(40000000,1073741824)");
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	lone_rx(&l, &(struct shot){.opcode = 0x0E, .psn = 0xFFFFF1, .len = 256});
	assert_string_equal(lone_tx(&l), "WRITE_ONLY@7ffff0+4!(0,4)");
	assert_string_equal(lone_tx(&l), "");
}

/* proves REQ-08 (REQ-04) */
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
	lone_nak(&l, 0x60, 0x201, 1); /* from there on again: no more than two either */
	lone_post(&l, ABI_WR_RDMA_READ, 5, 4, 0);
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(0,4) READ_REQ@202!(0,4) SEND_ONLY@203+4!");
	lone_rx(&l, &(struct shot){.opcode = 0x10, .psn = 0x201, .syndrome = 0x1F, .len = 4});
	assert_string_equal(lone_tx(&l), "READ_REQ@204!(0,4)");
}

/* proves REQ-10 */
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

/* proves REQ-10: a READ is fenced as well, and the fence stands when all is sent again; it holds
 * the start of a message, not its middle. */
static void requester_next__fence_holds_after_a_retry(void **state)
{
	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 300, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 3, 4, ABI_WQE_FENCE);
	lone_post(&l, ABI_WR_RDMA_WRITE, 4, 300, ABI_WQE_FENCE);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,300) READ_REQ@202!(0,4)");
	lone_rx(&l, &(struct shot){.opcode = 0x0D, .psn = 0x200, .syndrome = 0x1F, .len = 256});
	lone_nak(&l, 0x60, 0x201, 1);
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(100,44) READ_REQ@202!(0,4)");
	lone_rx(&l, &(struct shot){.opcode = 0x10, .psn = 0x201, .syndrome = 0x1F, .len = 44});
	assert_string_equal(lone_tx(&l), "");
	lone_rx(&l, &(struct shot){.opcode = 0x10, .psn = 0x202, .syndrome = 0x1F, .len = 4});
	assert_string_equal(lone_tx(&l), "READ_REQ@203!(0,4)");
	lone_rx(&l, &(struct shot){.opcode = 0x10, .psn = 0x203, .syndrome = 0x1F, .len = 4});
	lone_post(&l, ABI_WR_RDMA_READ, 5, 4, 0);
	assert_string_equal(
		lone_tx(&l), "WRITE_FIRST@204+256(0,300) WRITE_LAST@205+44! READ_REQ@206!(0,4)");
	lone_nak(&l, 0x60, 0x205, 1);
	assert_string_equal(lone_tx(&l), "WRITE_LAST@205+44! READ_REQ@206!(0,4)");
}

/* --- sending again -------------------------------------------------------------------- */

#define AGAIN_MAX 16u

static struct {
	uint8_t frame[FRAME_MAX];
	uint16_t len;
} sent[AGAIN_MAX];

/* These may differ: AckReq, and so the ICRC; the IP identification and checksum. */
static void blank(uint8_t *f, uint16_t len)
{
	memset(f + 14 + 4, 0, 2);
	memset(f + 14 + 10, 0, 2);
	f[42 + 8] = 0;
	memset(f + len - 4, 0, 4);
}

static unsigned take_frames(unsigned n, bool compare)
{
	for (; *lone_tx_max(&l, 1); n++) {
		assert_true(n < AGAIN_MAX);
		blank(l.frame, l.frame_len);
		if (!compare) {
			memcpy(sent[n].frame, l.frame, l.frame_len);
			sent[n].len = l.frame_len;
			continue;
		}
		assert_int_equal(l.frame_len, sent[n].len);
		assert_memory_equal(l.frame, sent[n].frame, l.frame_len);
	}
	return n;
}

static void post_three(void)
{
	uint8_t text[120];
	struct app_send s = {.opcode = ABI_WR_RDMA_WRITE_WITH_IMM,
		.flags = ABI_WQE_SIGNALED | ABI_WQE_SOLICITED,
		.imm = 0x11223344,
		.wr_id = 1,
		.remote_addr = PEER_VA + 77,
		.rkey = PEER_KEY,
		.num_sge = 3};
	struct app_send in = {.opcode = ABI_WR_SEND,
		.flags = ABI_WQE_SIGNALED | ABI_WQE_INLINE,
		.wr_id = 2,
		.inline_data = text,
		.inline_len = sizeof(text)};

	for (unsigned i = 0; i < LONE_MEM; i++)
		l.mr->mem[i] = (uint8_t)(i * 7 + i / 256);
	memset(text, 0x5A, sizeof(text));
	s.sge[0] = app_sge(l.mr, 9, 333);
	s.sge[1] = app_sge(l.mr, 5000, 1);
	s.sge[2] = app_sge(l.mr, 1000, 700);
	app_post_send(l.qp, &s);
	app_post_send(l.qp, &in);
	lone_post(&l, ABI_WR_SEND_WITH_IMM, 3, 600, ABI_WQE_SOLICITED);
}

/* proves REQ-48, REQ-49, ICRC-15: from every PSN on, by a NAK and by a timeout, each packet is what
 * it was. The application's ring is its own meanwhile. */
static void requester_next__sends_the_same_again(void **state)
{
	const unsigned n = 5 + 1 + 3;

	for (unsigned from = 0; from < n; from++) {
		if (from)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start(&l);
		post_three();
		assert_int_equal(take_frames(0, false), n);
		memset(l.qp->sq_ring, 0, (size_t)l.qp->sq_stride * 3);
		lone_nak(&l, 0x60, 0x200 + from, 0);
		assert_int_equal(take_frames(from, true), n);
		lone_wait(&l, 1000000000);
		assert_int_equal(take_frames(from, true), n);
		lone_ack(&l, 0x200 + n - 1, 3);
		lone_cqes(&l);
		assert_int_equal(l.last.wr_id, 3);
		if (from + 1 < n)
			lone_fini(&l);
	}
}

/* --- states --------------------------------------------------------------------------- */

/* proves REQ-20, REQ-50: what is posted in SQD is queued and goes in RTS; in ERR it is flushed. */
static void requester_next__queues_in_sqd_and_flushes_in_err(void **state)
{
	struct abi_qp_attr attr = {.qp_state = ABI_QPS_RTS};

	lone_start(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(app_modify(l.qp, ABI_QP_STATE, &attr, NULL, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4! READ_REQ@201!(0,4)");
	lone_ack(&l, 0x200, 1);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:FLUSH");
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S3:FLUSH");
}

/* --- the doorbell --------------------------------------------------------------------- */

/* decision 0000.5: asked for when the queue was found empty, not before; nothing is missed. */
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

/* proves REQ-21 (QPS-18) */
static void requester_next__holds_until_rts(void **state)
{
	lone_start_in(&l, ABI_QPS_RTR);
	lone_post(&l, ABI_WR_SEND, 1, 1, 0);
	core_doorbell(&l.host->core, l.qp->qp, l.now);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(app_to_rts(l.qp, &l.attr, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+1!");
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(requester_next__cuts_at_mtu),
		T(requester_next__names_the_operations),
		T(requester_next__read_takes_the_psns_of_its_responses),
		T(requester_next__sets_se_only_where_a_receive_completes),
		T(requester_next__gathers_sixteen_sges),
		T(requester_next__sends_inline_data_as_posted),
		T(requester_next__keeps_within_the_window),
		T(requester_next__asks_before_the_window_closes),
		T(requester_next__asks_when_the_window_was_made_smaller),
		T(requester_next__keeps_within_the_psn_window),
		T(requester_next__run_keeps_within_the_psn_window),
		T(requester_next__limits_outstanding_reads),
		T(requester_next__fence_waits_for_reads),
		T(requester_next__fence_holds_after_a_retry),
		T(requester_next__sends_the_same_again),
		T(requester_next__queues_in_sqd_and_flushes_in_err),
		T(requester_idle__asks_for_the_doorbell),
		T(requester_idle__notices_what_was_posted_meanwhile),
		T(requester_next__holds_until_rts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
