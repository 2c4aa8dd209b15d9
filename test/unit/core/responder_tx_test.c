/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses: READ data, duplicates of READs, and the order of all that the responder sends. */
#include <stdio.h>
#include "fixture.h"
#include "hole.h"
#include "opcodes.h"
#include "qp.h"

static void read_req_key(uint32_t psn, uint64_t off, uint32_t len, uint32_t rkey)
{
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = psn,
			    .ackreq = true,
			    .va = app_va(l.mr, off),
			    .rkey = rkey,
			    .dma_len = len});
}

static void read_req(uint32_t psn, uint64_t off, uint32_t len)
{
	read_req_key(psn, off, len, l.mr->mr.key);
}

static void write_req(uint32_t psn, uint64_t off, uint32_t len)
{
	lone_rx(&l, &(struct shot){.opcode = WRITE_ONLY,
			    .psn = psn,
			    .ackreq = true,
			    .va = app_va(l.mr, off),
			    .rkey = l.mr->mr.key,
			    .dma_len = len,
			    .len = len});
}

/* proves RSP-28, RSP-29, RSP-53 (RSP-25, REQ-01) */
static void responder_next__answers_reads(void **state)
{
	static const struct {
		uint32_t len;
		uint32_t packets;
		const char *sent;
	} row[] = {
		{0, 1, "RESP_ONLY@1001f/1"},
		{1, 1, "RESP_ONLY@100+11f/1"},
		{255, 1, "RESP_ONLY@100+2551f/1"},
		{256, 1, "RESP_ONLY@100+2561f/1"},
		{257, 2, "RESP_FIRST@100+2561f/1 RESP_LAST@101+11f/1"},
		{512, 2, "RESP_FIRST@100+2561f/1 RESP_LAST@101+2561f/1"},
		{600, 3, "RESP_FIRST@100+2561f/1 RESP_MIDDLE@101+256 RESP_LAST@102+881f/1"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start(&l);
		read_req(0x100, 40, row[i].len);
		assert_string_equal(lone_tx(&l), row[i].sent);
		write_req(0x100 + row[i].packets, 0, 64);
		lone_tx(&l);
		read_req(0x101 + row[i].packets, 0, 64);
		lone_tx(&l);
		for (unsigned b = 0; b < 64; b++) /* what was written before */
			assert_int_equal(l.frame[58 + b], b);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* proves RSP-25, RSP-40, RSP-42, RSP-43: whole, tail, and a part in the middle; ePSN and MSN stay.
 */
static void responder_next__answers_duplicate_reads(void **state)
{
	lone_start(&l);
	read_req(0x100, 0, 1000);
	lone_tx(&l);
	read_req(0x100, 0, 1000);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@100+2561f/1 RESP_MIDDLE@101+256 "
					 "RESP_MIDDLE@102+256 RESP_LAST@103+2321f/1");
	for (unsigned b = 0; b < 1000; b++)
		l.mr->mem[b] = (uint8_t)(b / 256 + 1);
	read_req(0x102, 512, 488);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@102+2561f/1 RESP_LAST@103+2321f/1");
	assert_int_equal(l.frame[58], 4);
	read_req(0x103, 768, 232);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@103+2321f/1");
	read_req(0x101, 256, 300);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@101+2561f/1 RESP_LAST@102+441f/1");
	assert_int_equal(l.qp->qp->resp.epsn, 0x104);
	write_req(0x104, 0, 4);
	assert_string_equal(lone_tx(&l), "ACK@1041f/2");
}

/* proves RSP-40: what is not a part of the original is dropped. */
static void responder_rx__drops_foreign_duplicate_reads(void **state)
{
	lone_start(&l);
	read_req(0x100, 1000, 1000);
	lone_tx(&l);
	read_req_key(0x100, 1000, 1000, l.mr->mr.key ^ 1);
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	read_req(0x100, 999, 1000);
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	read_req(0x100, 1000, 1001);
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	read_req(0x101, 1257, 256); /* the address does not fit the PSN */
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	read_req(0x101, 1256, 745); /* one byte beyond the end */
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	read_req(0xFF, 1000, 10); /* of before */
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	assert_string_equal(lone_tx(&l), "");
	read_req(0x104, 1000, 1024);
	write_req(0x108, 0, 4);
	lone_tx(&l);
	read_req(0x108, 2024, 0); /* the WRITE's PSN, after the last of the READ */
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	assert_string_equal(lone_tx(&l), "");
}

/* proves RSP-41: the region is gone, its slot is another's, it may not be read any more. */
static void responder_next__duplicate_read_checks_the_key_again(void **state)
{
	for (int i = 0; i < 3; i++) {
		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start(&l);
		read_req(0x100, 0, 300);
		lone_tx(&l);
		if (i < 2)
			app_mr_dereg(&l.app, l.mr);
		if (i == 1)
			app_mr_as(&l.app, 4096, l.mr->mr.access, l.mr->mr.key ^ 1, l.mr->mr.iova);
		if (i == 2)
			l.mr->mr.access &= ~(uint32_t)ABI_ACCESS_REMOTE_READ;
		read_req(0x100, 0, 300);
		assert_string_equal(lone_tx(&l), "ACK@10062/1");
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		if (i < 2)
			lone_fini(&l);
	}
}

/* proves RSP-37: only as many are remembered as may be outstanding. */
static void responder_rx__forgets_the_oldest_read(void **state)
{
	l.attr.max_dest_rd_atomic = 2;
	lone_start(&l);
	for (uint32_t i = 0; i < 3; i++) {
		read_req(0x100 + i, 8 * i, 8);
		lone_tx(&l);
	}
	read_req(0x100, 0, 8);
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	read_req(0x101, 8, 8);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@101+81f/2");
}

/* proves RSP-37: the ring has gone round; of as many READs as were agreed each is still known, none
 * else. A duplicate that waits gives way to a new READ, whose requester needs it no more. */
static void responder_rx__ring_of_reads_goes_round(void **state)
{
	const uint32_t n = 3 * RD_ATOMIC_MAX + 5;
	uint32_t last = 0x100 + n - 1;
	char want[64];

	l.attr.max_dest_rd_atomic = RD_ATOMIC_MAX;
	lone_start(&l);
	for (uint32_t i = 0; i < n; i++) {
		l.mr->mem[8 * i] = (uint8_t)i;
		read_req(0x100 + i, 8 * i, 8);
		lone_tx(&l);
	}
	for (uint32_t k = 0; k < 2 * n; k++) { /* each twice */
		uint32_t i = k / 2;
		bool known = i >= n - RD_ATOMIC_MAX;

		read_req(0x100 + i, 8 * i, 8);
		assert_int_equal(l.verdict, known ? DROP_NONE : DROP_DUP_NO_RESOURCE);
		snprintf(want, sizeof(want), "RESP_ONLY@%x+81f/%u", 0x100 + i, i + 1);
		assert_string_equal(lone_tx(&l), known ? want : "");
		if (known)
			assert_int_equal(l.frame[58], i);
	}
	read_req(last - RD_ATOMIC_MAX + 1, 8 * (n - RD_ATOMIC_MAX), 8);
	read_req(last + 1, 0, 8);
	snprintf(want, sizeof(want), "RESP_ONLY@%x+81f/%u", last + 1, n + 1);
	assert_string_equal(lone_tx(&l), want);
	read_req(last - RD_ATOMIC_MAX + 2, 8 * (n - RD_ATOMIC_MAX + 1), 8);
	read_req(last - RD_ATOMIC_MAX + 3, 8 * (n - RD_ATOMIC_MAX + 2), 8);
	read_req(last + 2, 0, 8); /* over the slot of the first; the second goes before it */
	snprintf(want, sizeof(want), "RESP_ONLY@%x+81f/%u RESP_ONLY@%x+81f/%u",
		last - RD_ATOMIC_MAX + 3, n - RD_ATOMIC_MAX + 3, last + 2, n + 2);
	assert_string_equal(lone_tx(&l), want);
}

/* proves RSP-37: slots that nothing has been written to since RESET are nobody's, whatever is left
 * there.
 */
static void responder_rx__reset_forgets_the_reads(void **state)
{
	l.attr.max_dest_rd_atomic = RD_ATOMIC_MAX;
	lone_start(&l);
	for (uint32_t i = 0; i < 3; i++)
		read_req(0x100 + i, 8 * i, 8);
	lone_tx(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	l.attr.rq_psn = 0x103;
	lone_climb(&l, ABI_QPS_RTR);
	write_req(0x103, 0, 4);
	lone_tx(&l);
	for (uint32_t i = 0; i < 3; i++) {
		read_req(0x100 + i, 8 * i, 8);
		assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	}
	assert_string_equal(lone_tx(&l), "");
}

/* proves RSP-28, RSP-29, RSP-40, RSP-43: PSNs of a READ, and of its duplicates, on both sides of
 * the wrap.
 */
static void responder_next__reads_across_the_psn_wrap(void **state)
{
	l.attr.rq_psn = 0xFFFFFE;
	lone_start(&l);
	for (unsigned b = 0; b < 1000; b++)
		l.mr->mem[b] = (uint8_t)(b / 256 + 1);
	read_req(0xFFFFFE, 0, 1000);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@fffffe+2561f/1 RESP_MIDDLE@ffffff+256 "
					 "RESP_MIDDLE@0+256 RESP_LAST@1+2321f/1");
	assert_int_equal(l.frame[58], 4);
	read_req(0xFFFFFF, 256, 744);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@ffffff+2561f/1 RESP_MIDDLE@0+256 "
					 "RESP_LAST@1+2321f/1");
	assert_int_equal(l.frame[58], 4);
	read_req(0, 512, 488);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@0+2561f/1 RESP_LAST@1+2321f/1");
	read_req(1, 768, 232);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@1+2321f/1");
	read_req(0xFFFFFD, 0, 10); /* of before */
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	read_req(0, 256, 10); /* another packet's bytes */
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	read_req(2, 0, 8);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@2+81f/2");
}

/* proves RSP-30: all that was agreed, then one more. */
static void responder_rx__as_many_reads_as_agreed(void **state)
{
	static const uint8_t depth[] = {1, 3, RD_ATOMIC_MAX};

	for (unsigned i = 0; i < ARRAY_SIZE(depth); i++) {
		if (i)
			lone_init(&l);
		l.attr.max_dest_rd_atomic = depth[i];
		lone_start(&l);
		for (uint32_t n = 0; n < depth[i]; n++)
			read_req(0x100 + n, 0, 8);
		assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
		lone_tx(&l);
		assert_int_equal(l.packets, depth[i]);
		for (uint32_t n = 0; n <= depth[i]; n++)
			read_req(0x100 + depth[i] + n, 0, 8);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		lone_tx(&l);
		assert_int_equal(l.packets, 2 * depth[i] + 1u);
		assert_int_equal(l.frame[54], 0x61);
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_REQ_ERR), 1);
		if (i + 1 < ARRAY_SIZE(depth))
			lone_fini(&l);
	}
}

/* proves RSP-30 */
static void responder_rx__limits_outstanding_reads(void **state)
{
	l.attr.max_dest_rd_atomic = 2;
	lone_start(&l);
	read_req(0x100, 0, 8);
	read_req(0x101, 0, 8);
	read_req(0x102, 0, 8);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@100+81f/1 RESP_ONLY@101+81f/2 ACK@10261/2");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
}

/* proves RSP-30 */
static void responder_rx__no_reads_without_depth(void **state)
{
	l.attr.max_dest_rd_atomic = 0;
	lone_start(&l);
	read_req(0x100, 0, 8);
	assert_string_equal(lone_tx(&l), "ACK@10061/0");
}

/* Duplicates whose responses wait do not use up the depth. */
static void responder_rx__duplicates_do_not_count_as_outstanding(void **state)
{
	l.attr.max_dest_rd_atomic = 1;
	lone_start(&l);
	read_req(0x100, 0, 8);
	lone_tx(&l);
	read_req(0x100, 0, 8);
	read_req(0x101, 0, 8);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@100+81f/1 RESP_ONLY@101+81f/2");
}

/* A first execution whose last response is out is over, even if the next thing is a duplicate of
 * it: the requester may have all responses and be ahead of its own duplicate. */
static void responder_rx__duplicate_finds_the_first_execution_over(void **state)
{
	l.attr.max_dest_rd_atomic = 1;
	lone_start(&l);
	read_req(0x100, 0, 8 * 256);
	lone_tx_max(&l, 8);
	assert_int_equal(l.packets, 8);
	read_req(0x100, 0, 8 * 256);
	read_req(0x108, 0, 8);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
}

/* REQ-38, C9-105: the answer to a duplicate must not acknowledge a later READ, whose responses
 * may be lost: soft-RoCE would complete that READ without its data. */
static void responder_next__duplicate_ack_covers_no_read(void **state)
{
	lone_start(&l);
	write_req(0x100, 0, 4);
	read_req(0x101, 0, 4);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1 RESP_ONLY@101+41f/2");
	write_req(0x100, 0, 4);
	assert_string_equal(lone_tx(&l), "ACK@1001f/2");
	write_req(0x100, 0, 4);
	read_req(0x102, 0, 4); /* nor must the ACK that goes before a READ */
	assert_string_equal(lone_tx(&l), "RESP_ONLY@102+41f/3 ACK@1001f/3");
	write_req(0x103, 0, 4);
	assert_string_equal(lone_tx(&l), "ACK@1031f/4");
}

/* proves RSP-31, EVT-03: a NAK in the place of the response; what was before it has been sent. */
static void responder_next__naks_in_the_stream(void **state)
{
	lone_start(&l);
	read_req(0x100, 0, 1000);
	assert_string_equal(lone_tx_max(&l, 2), "RESP_FIRST@100+2561f/1 RESP_MIDDLE@101+256");
	app_mr_dereg(&l.app, l.mr);
	assert_string_equal(lone_tx(&l), "ACK@10262/1");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_ACCESS_ERR), 1);
	assert_string_equal(lone_tx(&l), "");
}

/* proves RSP-31 (decision 0000.5): memory that faults when a response is sealed. The packets that
 * had been built after it are out of order, so the peer drops them. */
static void responder_next__naks_a_fault_in_the_stream(void **state)
{
	struct mr *mr;

	lone_start(&l);
	mr = hole_open(l.host, APP_PD);
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = 0x100,
			    .ackreq = true,
			    .va = mr->iova + HOLE_PAGE - 512,
			    .rkey = mr->key,
			    .dma_len = 4 * 256});
	assert_string_equal(lone_tx_max(&l, 3), "RESP_FIRST@100+2561f/1 RESP_MIDDLE@101+256");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_string_equal(lone_tx(&l), "ACK@10263/1");
	assert_int_equal(l.host->core.count.access_faults, 1);
	assert_int_equal(l.app.events, 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 1);
	assert_string_equal(lone_tx(&l), "");
	hole_close(l.host);
}

/* RSP-22: the WRITE's NAK is owed when the same happens to the READ before it: one NAK, for the
 * earlier PSN, and one event. */
static void responder_next__one_event_for_a_region_that_goes(void **state)
{
	lone_start(&l);
	read_req(0x100, 0, 600);
	assert_string_equal(lone_tx_max(&l, 1), "RESP_FIRST@100+2561f/1");
	app_mr_dereg(&l.app, l.mr);
	write_req(0x103, 0, 4);
	assert_string_equal(lone_tx(&l), "ACK@10162/1");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_ACCESS_ERR), 1);
	assert_int_equal(l.host->core.count.resp_remote_access_errors, 1);
}

/* proves RSP-27: in PSN order, whatever came in one burst. */
static void responder_next__keeps_psn_order(void **state)
{
	lone_start(&l);
	lone_recv(&l, 1, 0, 100);
	write_req(0x100, 0, 4);
	read_req(0x101, 0, 300);
	lone_rx(&l, &(struct shot){.opcode = SEND_ONLY, .psn = 0x103, .ackreq = true, .len = 4});
	read_req(0x104, 0, 4);
	write_req(0x105, 0, 4);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1 RESP_FIRST@101+2561f/2 RESP_LAST@102+441f/2 "
					 "ACK@1031f/3 RESP_ONLY@104+41f/4 ACK@1051f/5");
}

/* proves RSP-22, RSP-27: a fatal NAK goes last, and it does go. */
static void responder_next__nak_waits_for_reads(void **state)
{
	lone_start(&l);
	read_req(0x100, 0, 600);
	lone_rx(&l, &(struct shot){.opcode = 0x02, .psn = 0x103, .ackreq = true, .len = 4});
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@100+2561f/1 RESP_MIDDLE@101+256 "
					 "RESP_LAST@102+881f/1 ACK@10361/1");
	assert_string_equal(lone_tx(&l), "");
}

/* An error that is no NAK's: what was owed is void. */
static void responder_next__local_error_silences(void **state)
{
	lone_start(&l);
	read_req(0x100, 0, 600);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	assert_string_equal(lone_tx(&l), "");
}

/* A READ that has the PSN range of the one before: two are pending and the
 * older one is asked for again. */
static void responder_next__duplicate_restarts_a_pending_stream(void **state)
{
	lone_start(&l);
	read_req(0x100, 0, 600);
	read_req(0x103, 2000, 300);
	assert_string_equal(lone_tx_max(&l, 4), "RESP_FIRST@100+2561f/1 RESP_MIDDLE@101+256 "
						"RESP_LAST@102+881f/1 RESP_FIRST@103+2561f/2");
	read_req(0x101, 256, 344);
	read_req(0x103, 2000, 300);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@101+2561f/1 RESP_LAST@102+881f/1 "
					 "RESP_FIRST@103+2561f/2 RESP_LAST@104+441f/2");
}

/* RSP-27, RSP-28: packets that follow an older READ's responses begin anew, or the requester, which
 * waits for the first packet after them, would find a gap there. */
static void responder_next__duplicate_restarts_what_follows(void **state)
{
	lone_start(&l);
	read_req(0x100, 0, 600);
	read_req(0x103, 2000, 300);
	assert_string_equal(lone_tx_max(&l, 4), "RESP_FIRST@100+2561f/1 RESP_MIDDLE@101+256 "
						"RESP_LAST@102+881f/1 RESP_FIRST@103+2561f/2");
	read_req(0x101, 256, 344);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@101+2561f/1 RESP_LAST@102+881f/1 "
					 "RESP_FIRST@103+2561f/2 RESP_LAST@104+441f/2");
}

/* QPS-20: a NAK that is not the reason, here of a gap, does not keep the responder of an ERR QP
 * streaming. */
static void responder_next__local_error_silences_a_gap(void **state)
{
	lone_start(&l);
	read_req(0x100, 0, 2000);
	write_req(0x10A, 0, 4);
	assert_string_equal(lone_tx_max(&l, 1), "RESP_FIRST@100+2561f/1");
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	assert_string_equal(lone_tx(&l), "");
}

/* RSP-31: also while responses go out because a fatal NAK is owed after them. */
static void responder_next__naks_a_fault_before_a_nak(void **state)
{
	struct mr *mr;

	lone_start(&l);
	mr = hole_open(l.host, APP_PD);
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = 0x100,
			    .va = mr->iova + HOLE_PAGE - 256,
			    .rkey = mr->key,
			    .dma_len = 1024});
	lone_rx(&l, &(struct shot){.opcode = 0x02, .psn = 0x104, .len = 4}); /* LAST of nothing */
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_string_equal(lone_tx_max(&l, 1), "RESP_FIRST@100+2561f/1");
	assert_string_equal(lone_tx_max(&l, 1), "");
	assert_string_equal(lone_tx(&l), "ACK@10163/1");
	assert_int_equal(l.host->core.count.access_faults, 1);
	hole_close(l.host);
}

/* RSP-40: the ring's count of READs wraps, after 2^32 of them, and nothing is forgotten. */
static void responder_rx__count_of_reads_wraps(void **state)
{
	struct qp_resp *r;

	lone_start(&l);
	r = &l.qp->qp->resp;
	r->res_head = r->res_next = r->res_done = UINT32_MAX;
	read_req(0x100, 0, 4);
	read_req(0x101, 300, 4);
	lone_tx(&l);
	assert_int_equal(r->res_head, 1);
	read_req(0x100, 0, 4);
	read_req(0x101, 300, 4);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@100+41f/1 RESP_ONLY@101+41f/2");
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(responder_next__answers_reads),
		T(responder_next__answers_duplicate_reads),
		T(responder_rx__drops_foreign_duplicate_reads),
		T(responder_next__duplicate_read_checks_the_key_again),
		T(responder_rx__forgets_the_oldest_read),
		T(responder_rx__ring_of_reads_goes_round),
		T(responder_rx__reset_forgets_the_reads),
		T(responder_next__reads_across_the_psn_wrap),
		T(responder_rx__as_many_reads_as_agreed),
		T(responder_rx__limits_outstanding_reads),
		T(responder_rx__no_reads_without_depth),
		T(responder_rx__duplicates_do_not_count_as_outstanding),
		T(responder_next__duplicate_ack_covers_no_read),
		T(responder_rx__duplicate_finds_the_first_execution_over),
		T(responder_next__naks_in_the_stream),
		T(responder_next__naks_a_fault_in_the_stream),
		T(responder_next__one_event_for_a_region_that_goes),
		T(responder_next__keeps_psn_order),
		T(responder_next__nak_waits_for_reads),
		T(responder_next__local_error_silences),
		T(responder_next__duplicate_restarts_a_pending_stream),
		T(responder_next__duplicate_restarts_what_follows),
		T(responder_next__local_error_silences_a_gap),
		T(responder_next__naks_a_fault_before_a_nak),
		T(responder_rx__count_of_reads_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
