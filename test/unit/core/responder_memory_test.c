/* SPDX-License-Identifier: BSD-3-Clause */
/* FLUSH and ATOMIC WRITE, at both ends. */
#include <stdio.h>
#include "fixture.h"
#include "opcodes.h"
#include "qp.h"
#include "timers.h"

#define GLOBAL	1u
#define PERSIST 2u
#define SEL_MR	0x10u

static int setup(void **state)
{
	lone_setup_256(state);
	l.attr.access_flags |= ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_FLUSH_PERSIST;
	return 0;
}

static void start(void)
{
	lone_start(&l);
	l.mr->mr.access |= ABI_ACCESS_FLUSH_GLOBAL;
}

static uint64_t word(uint64_t off)
{
	uint64_t v;

	memcpy(&v, l.mr->mem + off, sizeof(v));
	return v;
}

static void flush(uint32_t psn, uint32_t feth, uint64_t off, uint32_t len)
{
	lone_rx(&l, &(struct shot){.opcode = FLUSH,
			    .psn = psn,
			    .ackreq = true,
			    .feth = feth,
			    .va = app_va(l.mr, off),
			    .rkey = l.mr->mr.key,
			    .dma_len = len});
}

static void atomic_write(uint32_t psn, uint64_t off, const char *eight)
{
	lone_rx(&l, &(struct shot){.opcode = ATOMIC_WRITE,
			    .psn = psn,
			    .ackreq = true,
			    .va = app_va(l.mr, off),
			    .rkey = l.mr->mr.key,
			    .dma_len = 8,
			    .payload = eight,
			    .len = 8});
}

static void write_some(uint32_t psn, uint64_t off)
{
	lone_rx(&l, &(struct shot){.opcode = WRITE_ONLY,
			    .psn = psn,
			    .ackreq = true,
			    .va = app_va(l.mr, off),
			    .rkey = l.mr->mr.key,
			    .dma_len = 8,
			    .len = 8});
}

/* --- the responder ---------------------------------------------------------------------- */

/* proves FLU-01, FLU-02, FLU-05, FLU-07, RSP-25: an ACK that was asked for goes first. */
static void responder_rx__executes_flush(void **state)
{
	start();
	write_some(0x100, 0);
	flush(0x101, GLOBAL, 0, 64);
	assert_int_equal(word(0), 0x0706050403020100);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1 RESP_ONLY@1011f/2");
	lone_rx(&l, &(struct shot){.opcode = FLUSH,
			    .psn = 0x102,
			    .feth = GLOBAL | SEL_MR,
			    .va = 0xDEAD, /* proves FLU-05 */
			    .rkey = l.mr->mr.key,
			    .dma_len = ~0u});
	assert_string_equal(lone_tx(&l), "RESP_ONLY@1021f/3");
	l.mr->mr.access |= ABI_ACCESS_FLUSH_PERSIST;
	flush(0x103, GLOBAL | PERSIST, 0, LONE_MEM);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@1031f/4");
	lone_rx(&l, &(struct shot){.opcode = FLUSH, .psn = 0x104, .feth = GLOBAL, .rkey = 0x5555});
	assert_string_equal(lone_tx(&l), "RESP_ONLY@1041f/5"); /* proves RSP-12 */
	assert_int_equal(count()->rx_flush_requests, 4);
	assert_string_equal(lone_cqes(&l), ""); /* proves RSP-19 */
}

/* proves FLU-04, FLU-05, RSP-08 and what no FLUSH may ask for. EVT-03 */
static void responder_rx__refuses_flush(void **state)
{
	static const struct {
		uint32_t feth;
		uint64_t off;
		uint32_t len;
		uint32_t qp; /* rights taken from the QP */
		uint32_t mr;
		uint8_t syndrome;
	} rows[] = {
		{.feth = GLOBAL, .len = 8, .mr = ABI_ACCESS_FLUSH_GLOBAL, .syndrome = 0x62},
		{.feth = GLOBAL | SEL_MR, .mr = ABI_ACCESS_FLUSH_GLOBAL, .syndrome = 0x62},
		{.feth = GLOBAL | SEL_MR,
			.len = 8,
			.mr = ABI_ACCESS_FLUSH_GLOBAL,
			.syndrome = 0x62},
		{.feth = PERSIST, .len = 8, .syndrome = 0x62},
		{.feth = GLOBAL | PERSIST, .len = 8, .syndrome = 0x62},
		{.feth = GLOBAL, .off = LONE_MEM - 4, .len = 8, .syndrome = 0x62},
		{.feth = GLOBAL, .off = (uint64_t)-1, .len = 8, .syndrome = 0x62},
		{.feth = GLOBAL, .len = (1u << 31) + 1, .syndrome = 0x61}, /* proves RSP-10 */
		{.feth = GLOBAL, .len = 8, .qp = ABI_ACCESS_FLUSH_GLOBAL, .syndrome = 0x61},
		{.feth = 0, .len = 8, .syndrome = 0x61},
		{.feth = GLOBAL | 4, .len = 8, .syndrome = 0x61},
		{.feth = GLOBAL | 0x20, .len = 8, .syndrome = 0x61},
		{.feth = GLOBAL | 0x30, .len = 8, .syndrome = 0x61},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char want[64];

		l.attr.access_flags &= ~rows[i].qp;
		start();
		l.mr->mr.access &= ~rows[i].mr;
		flush(0x100, rows[i].feth, rows[i].off, rows[i].len);
		snprintf(want, sizeof(want), "ACK@100%02x/0", rows[i].syndrome);
		if (strcmp(lone_tx(&l), want))
			fail_msg("row %u: %s", i, l.log);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(
			app_event_count(&l.app, rows[i].syndrome == 0x61 ? ABI_EVENT_QP_REQ_ERR
									 : ABI_EVENT_QP_ACCESS_ERR),
			1);
		lone_teardown(state);
		setup(state);
	}
	start();
}

/* proves FLU-08, RSP-25 */
static void responder_rx__executes_atomic_write(void **state)
{
	start();
	atomic_write(0x100, 64, "\x88\x77\x66\x55\x44\x33\x22\x11");
	assert_int_equal(word(64), 0x1122334455667788);
	assert_int_equal(word(56), 0x1111111111111111);
	assert_int_equal(word(72), 0x1111111111111111);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@1001f/1");
	assert_int_equal(count()->rx_atomic_write_requests, 1);
	assert_int_equal(count()->rx_write_requests, 0);
	assert_string_equal(lone_cqes(&l), "");
}

/* proves FLU-08, RSP-08, RSP-13 */
static void responder_rx__refuses_atomic_write(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t dma_len, len;
		uint32_t qp, mr;
		int crooked;
		uint32_t cut; /* bytes that the region is shorter */
		uint8_t syndrome;
	} rows[] = {
		{.off = 4, .dma_len = 8, .len = 8, .syndrome = 0x61},
		{.off = 0, .dma_len = 4, .len = 8, .syndrome = 0x61},
		{.off = 0, .dma_len = 8, .len = 4, .syndrome = 0x61},
		{.off = 0, .dma_len = 0, .len = 0, .syndrome = 0x61},
		{.off = 0, .dma_len = 16, .len = 16, .syndrome = 0x61},
		{.off = 0, .dma_len = 8, .len = 8, .crooked = 4, .syndrome = 0x61},
		{.off = 0, .dma_len = 8, .len = 8, .qp = ABI_ACCESS_REMOTE_WRITE, .syndrome = 0x61},
		{.off = 0, .dma_len = 8, .len = 8, .mr = ABI_ACCESS_REMOTE_WRITE, .syndrome = 0x62},
		{.off = LONE_MEM, .dma_len = 8, .len = 8, .syndrome = 0x62},
		{.off = LONE_MEM - 8, .dma_len = 8, .len = 8, .cut = 4, .syndrome = 0x62},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char want[64];

		l.attr.access_flags &= ~rows[i].qp;
		start();
		l.mr->mr.access &= ~rows[i].mr;
		l.mr->mr.base += rows[i].crooked;
		l.mr->mr.length -= rows[i].cut;
		lone_rx(&l, &(struct shot){.opcode = ATOMIC_WRITE,
				    .psn = 0x100,
				    .va = app_va(l.mr, rows[i].off),
				    .rkey = l.mr->mr.key,
				    .dma_len = rows[i].dma_len,
				    .len = rows[i].len});
		l.mr->mr.base -= rows[i].crooked;
		snprintf(want, sizeof(want), "ACK@100%02x/0", rows[i].syndrome);
		if (strcmp(lone_tx(&l), want))
			fail_msg("row %u: %s", i, l.log);
		for (unsigned b = 0; b < 64; b++)
			assert_int_equal(l.mr->mem[b], 0x11);
		lone_teardown(state);
		setup(state);
	}
	start();
}

/* proves FLU-03, FLU-06, FLU-09: the answer again, nothing else; one of another kind is none of
 * theirs. */
static void responder_rx__answers_duplicates(void **state)
{
	start();
	atomic_write(0x100, 0, "AAAAAAAA");
	flush(0x101, GLOBAL, 0, 8);
	lone_tx(&l);
	memcpy(l.mr->mem, "BBBBBBBB", 8);
	atomic_write(0x100, 0, "AAAAAAAA");
	assert_string_equal(lone_tx(&l), "RESP_ONLY@1001f/1");
	l.mr->mr.access &= ~(uint32_t)ABI_ACCESS_FLUSH_GLOBAL;
	flush(0x101, GLOBAL, 0, 8);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@1011f/2");
	assert_memory_equal(l.mr->mem, "BBBBBBBB", 8);
	assert_int_equal(count()->rx_atomic_write_requests, 1);
	assert_int_equal(count()->rx_flush_requests, 1);
	assert_int_equal(count()->duplicate_request, 2);
	flush(0x100, GLOBAL, 0, 8);
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	atomic_write(0x101, 0, "AAAAAAAA");
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	assert_string_equal(lone_tx(&l), "");
}

/* proves FLU-03, RSP-30, RSP-27: they share max_dest_rd_atomic with READs, and wait for them. */
static void responder_rx__counts_them_as_reads(void **state)
{
	l.attr.max_dest_rd_atomic = 2;
	start();
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = 0x100,
			    .va = app_va(l.mr, 1024),
			    .rkey = l.mr->mr.key,
			    .dma_len = 512});
	flush(0x102, GLOBAL, 0, 8);
	assert_string_equal(lone_tx_max(&l, 1), "RESP_FIRST@100+2561f/1");
	atomic_write(0x103, 0, "AAAAAAAA");
	assert_string_equal(lone_tx(&l), "RESP_LAST@101+2561f/1 RESP_ONLY@1021f/2 ACK@10361/2");
	assert_int_equal(word(0), 0x1111111111111111);
}

/* proves RSP-38: of more than are remembered the oldest is forgotten. */
static void responder_rx__forgets_the_oldest(void **state)
{
	l.attr.max_dest_rd_atomic = 1;
	start();
	flush(0x100, GLOBAL, 0, 8);
	lone_tx(&l);
	atomic_write(0x101, 0, "AAAAAAAA");
	lone_tx(&l);
	flush(0x100, GLOBAL, 0, 8);
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
}

/* --- the requester and the completer ------------------------------------------------------ */

static void post_flush(uint64_t wr_id, uint32_t feth, uint32_t len)
{
	struct app_send s = {.opcode = ABI_WR_FLUSH,
		.flags = ABI_WQE_SIGNALED,
		.imm = feth,
		.wr_id = wr_id,
		.remote_addr = PEER_VA + 16,
		.rkey = PEER_KEY,
		.flush_len = len};

	app_post_send(l.qp, &s);
}

static void post_atomic_write(uint64_t wr_id, bool inl)
{
	struct app_send s = {.opcode = ABI_WR_ATOMIC_WRITE,
		.flags = ABI_WQE_SIGNALED | (inl ? ABI_WQE_INLINE : 0),
		.wr_id = wr_id,
		.remote_addr = PEER_VA + 8,
		.rkey = PEER_KEY,
		.num_sge = 2,
		.sge = {app_sge(l.mr, 0, 3), app_sge(l.mr, 100, 5)},
		.inline_data = "CDEFGHIJ",
		.inline_len = 8};

	app_post_send(l.qp, &s);
}

static void answer(uint32_t psn)
{
	lone_rx(&l, &(struct shot){.opcode = RESP_ONLY, .psn = psn, .syndrome = 0x1F, .msn = 1});
}

/* proves BTH-23, REQ-05: one PSN each, however long the range is; CQ-09. */
static void requester__sends_flush_and_atomic_write(void **state)
{
	start();
	memcpy(l.mr->mem, "abc", 3);
	memcpy(l.mr->mem + 100, "defgh", 5);
	post_flush(1, GLOBAL | PERSIST, 1u << 31);
	post_flush(2, GLOBAL | SEL_MR | 0xFFFFFF00, 0);
	post_atomic_write(3, false);
	assert_string_equal(lone_tx(&l), "FLUSH@200!{3}(10,2147483648) FLUSH@201!{11}(10,0) "
					 "ATOMIC_WRITE@202+8!(8,8)");
	assert_memory_equal(l.frame + l.frame_len - 12, "abcdefgh", 8);
	post_atomic_write(4, true);
	assert_string_equal(lone_tx(&l), "ATOMIC_WRITE@203+8!(8,8)");
	assert_memory_equal(l.frame + l.frame_len - 12, "CDEFGHIJ", 8);
	answer(0x200);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(l.last.opcode, ABI_WC_FLUSH);
	answer(0x201);
	answer(0x202);
	answer(0x203);
	assert_string_equal(lone_cqes(&l), "S2:OK S3:OK S4:OK");
	assert_int_equal(l.last.opcode, ABI_WC_ATOMIC_WRITE);
	assert_int_equal(l.last.byte_len, 8);
}

/* proves REQ-08, REQ-09, REQ-10: they count as READs do. */
static void requester__they_wait_for_max_rd_atomic(void **state)
{
	l.attr.max_rd_atomic = 1;
	start();
	post_flush(1, GLOBAL, 8);
	post_atomic_write(2, true);
	lone_post(&l, ABI_WR_SEND, 3, 4, ABI_WQE_FENCE);
	assert_string_equal(lone_tx(&l), "FLUSH@200!{1}(10,8)");
	answer(0x200);
	assert_string_equal(lone_tx(&l), "ATOMIC_WRITE@201+8!(8,8)");
	answer(0x201);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+4!");
	lone_teardown(state);
	setup(state);
	l.attr.max_rd_atomic = 0;
	start();
	post_atomic_write(1, true);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:LOC_QP_OP");
}

/* proves REQ-24, REQ-38, REQ-48: no ACK completes them, the same packets again. */
static void requester__repeats_them(void **state)
{
	start();
	post_flush(1, GLOBAL, 8);
	post_atomic_write(2, true);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x202, 3);
	assert_string_equal(lone_cqes(&l), "");
	assert_string_equal(
		lone_tx(&l), "FLUSH@200!{1}(10,8) ATOMIC_WRITE@201+8!(8,8) SEND_ONLY@202+4!");
	answer(0x200);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "ATOMIC_WRITE@201+8!(8,8) SEND_ONLY@202+4!");
	answer(0x201);
	lone_ack(&l, 0x202, 3);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK S3:OK");
}

/* proves REQ-40, REQ-42, REQ-43: what is none of their answers. */
static void completer_rx__bad_answers(void **state)
{
	static const struct {
		struct shot shot;
		const char *want;
	} rows[] = {
		{{.opcode = RESP_ONLY, .psn = 0x200, .syndrome = 0x1F, .len = 8}, "S1:LOC_LEN"},
		{{.opcode = RESP_FIRST, .psn = 0x200, .syndrome = 0x1F, .len = 256}, "S1:BAD_RESP"},
		{{.opcode = RESP_ONLY, .psn = 0x200, .syndrome = 0x61}, "S1:BAD_RESP"},
		{{.opcode = ATOMIC_ACK, .psn = 0x200, .syndrome = 0x1F}, "S1:BAD_RESP"},
	};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		start();
		if (i % 2)
			post_flush(1, GLOBAL, 8);
		else
			post_atomic_write(1, true);
		lone_tx(&l);
		lone_rx(&l, &rows[i / 2].shot);
		assert_string_equal(lone_cqes(&l), rows[i / 2].want);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		lone_teardown(state);
		setup(state);
	}
	start();
}

/* proves REQ-33 */
static void completer_rx__refused(void **state)
{
	start();
	post_flush(1, PERSIST, 8);
	post_atomic_write(2, true);
	lone_tx(&l);
	lone_nak(&l, 0x62, 0x200, 0);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S1:REM_ACCESS S2:FLUSH");
}

/* Mistakes of applications: FLU-08, REQ-07, REQ-16, REQ-18. */
static void requester_fetch__bad_words(void **state)
{
	static const struct {
		uint32_t len, inline_len, flags;
		bool key;
		const char *want;
	} rows[] = {
		{.len = 4, .want = "S1:LOC_LEN"},
		{.len = 0, .want = "S1:LOC_LEN"},
		{.len = 16, .want = "S1:LOC_LEN"},
		{.flags = ABI_WQE_INLINE, .inline_len = 7, .want = "S1:LOC_LEN"},
		{.flags = ABI_WQE_INLINE, .inline_len = 129, .want = "S1:LOC_QP_OP"},
		{.len = 8, .key = true, .want = "S1:LOC_PROT"},
	};
	static const uint8_t bytes[256];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct app_send s = {.opcode = ABI_WR_ATOMIC_WRITE,
			.wr_id = 1,
			.flags = rows[i].flags | ABI_WQE_SIGNALED,
			.num_sge = 1,
			.inline_data = bytes,
			.inline_len = rows[i].inline_len};

		start();
		s.sge[0] = app_sge(l.mr, 0, rows[i].len);
		s.sge[0].lkey ^= rows[i].key;
		app_post_send(l.qp, &s);
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l), rows[i].want);
		lone_teardown(state);
		setup(state);
	}
	start();
	post_flush(1, GLOBAL, (1u << 31) + 1);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:LOC_LEN");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(responder_rx__executes_flush),
		TEST(responder_rx__refuses_flush),
		TEST(responder_rx__executes_atomic_write),
		TEST(responder_rx__refuses_atomic_write),
		TEST(responder_rx__answers_duplicates),
		TEST(responder_rx__counts_them_as_reads),
		TEST(responder_rx__forgets_the_oldest),
		TEST(requester__sends_flush_and_atomic_write),
		TEST(requester__they_wait_for_max_rd_atomic),
		TEST(requester__repeats_them),
		TEST(completer_rx__bad_answers),
		TEST(completer_rx__refused),
		TEST(requester_fetch__bad_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
