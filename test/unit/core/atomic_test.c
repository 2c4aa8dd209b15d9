/* SPDX-License-Identifier: BSD-3-Clause */
/* CmpSwap and FetchAdd, at both ends. */
#include <pthread.h>
#include <stdio.h>
#include "fixture.h"
#include "hole.h"
#include "opcodes.h"
#include "qp.h"
#include "step.h"
#include "timers.h"

static uint64_t word(uint64_t off)
{
	uint64_t v;

	memcpy(&v, l.mr->mem + off, sizeof(v));
	return v;
}

static void word_set(uint64_t off, uint64_t v)
{
	memcpy(l.mr->mem + off, &v, sizeof(v));
}

/* --- the responder -------------------------------------------------------------------- */

static void fetch_add(uint32_t psn, uint64_t off, uint64_t add)
{
	lone_rx(&l, &(struct shot){.opcode = FETCH_ADD,
			    .psn = psn,
			    .ackreq = true,
			    .va = app_va(l.mr, off),
			    .rkey = l.mr->mr.key,
			    .swap_add = add});
}

static void cmp_swap(uint32_t psn, uint64_t off, uint64_t compare, uint64_t swap)
{
	lone_rx(&l, &(struct shot){.opcode = CMP_SWAP,
			    .psn = psn,
			    .ackreq = true,
			    .va = app_va(l.mr, off),
			    .rkey = l.mr->mr.key,
			    .swap_add = swap,
			    .compare = compare});
}

/* proves RSP-33, RSP-34 (RSP-25): host order in memory, big-endian on the wire. */
static void responder_rx__executes_atomics(void **state)
{
	lone_start(&l);
	word_set(64, 0x1122334455667788);
	fetch_add(0x100, 64, 0x10);
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1001f/1=1122334455667788");
	assert_int_equal(word(64), 0x1122334455667798);
	cmp_swap(0x101, 64, 0x1122334455667798, 7);
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1011f/2=1122334455667798");
	assert_int_equal(word(64), 7);
	cmp_swap(0x102, 64, 8, 9); /* it is not 8 */
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1021f/3=7");
	assert_int_equal(word(64), 7);
	fetch_add(0x103, 64, UINT64_MAX); /* modulo 2^64 */
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1031f/4=7");
	assert_int_equal(word(64), 6);
	assert_int_equal(count()->rx_atomic_requests, 4);
	assert_string_equal(lone_cqes(&l), ""); /* RSP-19 */
}

/* proves RSP-36 (RSP-37): the answer is saved, the operation is not done again. */
static void responder_rx__replays_atomics(void **state)
{
	lone_start(&l);
	word_set(0, 5);
	fetch_add(0x100, 0, 1);
	fetch_add(0x101, 0, 1);
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1001f/1=5 ATOMIC_ACK@1011f/2=6");
	word_set(0, 100);
	fetch_add(0x100, 0, 1);
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1001f/1=5");
	fetch_add(0x101, 0, 1);
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1011f/2=6");
	assert_int_equal(word(0), 100);
	assert_int_equal(count()->duplicate_request, 2);
	assert_int_equal(count()->rx_atomic_requests, 2);
	fetch_add(0x102, 0, 1); /* the QP continues where it was */
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1021f/3=64");
}

/* proves RSP-37 (RSP-38): of more than max_dest_rd_atomic requests the oldest is forgotten. */
static void responder_rx__forgets_the_oldest_atomic(void **state)
{
	l.attr.max_dest_rd_atomic = 2;
	lone_start(&l);
	for (uint32_t i = 0; i < 3; i++) {
		fetch_add(0x100 + i, 0, 1);
		lone_tx(&l);
	}
	fetch_add(0x100, 0, 1);
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	assert_string_equal(lone_tx(&l), "");
	fetch_add(0x101, 0, 1);
	assert_int_equal(l.verdict, DROP_NONE);
	lone_tx(&l);
	/* A READ at its PSN is none of its duplicates. */
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = 0x102,
			    .ackreq = true,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = 8});
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	assert_int_equal(word(0), 0x1111111111111111 + 3);
}

/* proves RSP-38: an ATOMIC at the PSN of a READ is none of its duplicates either. */
static void responder_rx__a_read_is_no_atomic(void **state)
{
	lone_start(&l);
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = 0x100,
			    .ackreq = true,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = 8});
	assert_string_equal(lone_tx(&l), "RESP_ONLY@100+81f/1");
	fetch_add(0x100, 0, 1);
	assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	assert_int_equal(word(0), 0x1111111111111111);
}

/* RSP-27, RSP-30: answers in PSN order; READs and ATOMICs share max_dest_rd_atomic. */
static void responder_rx__atomics_wait_behind_reads(void **state)
{
	l.attr.max_dest_rd_atomic = 2;
	lone_start(&l);
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = 0x100,
			    .ackreq = true,
			    .va = app_va(l.mr, 1024),
			    .rkey = l.mr->mr.key,
			    .dma_len = 512});
	fetch_add(0x102, 0, 1);
	assert_string_equal(lone_tx_max(&l, 1), "RESP_FIRST@100+2561f/1");
	fetch_add(0x103, 0, 1); /* two are outstanding */
	assert_string_equal(lone_tx(&l),
		"RESP_LAST@101+2561f/1 ATOMIC_ACK@1021f/2=1111111111111111 ACK@10361/2");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(word(0), 0x1111111111111112);
}

/* An ACK that was asked for is not forgotten because an ATOMIC follows, and none follows that. */
static void responder_rx__acknowledges_before_an_atomic(void **state)
{
	lone_start(&l);
	lone_rx(&l, &(struct shot){.opcode = WRITE_ONLY,
			    .psn = 0x100,
			    .ackreq = true,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = 8,
			    .len = 8});
	fetch_add(0x101, 0, 1);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1 ATOMIC_ACK@1011f/2=706050403020100");
}

struct refusal {
	const char *what;
	uint64_t off;
	uint32_t access;    /* taken from the QP */
	uint32_t mr_access; /* taken from the region */
	bool foreign;
	bool bad_key;
	uint32_t cut; /* bytes that the region is shorter */
	uint8_t syndrome;
	uint32_t event;
};

/* proves RSP-08, RSP-13, RSP-32, MR-06 (EVT-03) */
static void responder_rx__refuses_atomics(void **state)
{
	static const struct refusal rows[] = {
		{"misaligned", .off = 4, .syndrome = 0x61, .event = ABI_EVENT_QP_REQ_ERR},
		{"out of bounds", .off = LONE_MEM - 4, .syndrome = 0x62,
			.event = ABI_EVENT_QP_ACCESS_ERR},
		{"reaches out", .off = LONE_MEM - 8, .cut = 4, .syndrome = 0x62,
			.event = ABI_EVENT_QP_ACCESS_ERR},
		{"QP", .access = ABI_ACCESS_REMOTE_ATOMIC, .syndrome = 0x61,
			.event = ABI_EVENT_QP_REQ_ERR},
		{"region", .mr_access = ABI_ACCESS_REMOTE_ATOMIC, .syndrome = 0x62,
			.event = ABI_EVENT_QP_ACCESS_ERR},
		{"PD", .foreign = true, .syndrome = 0x62, .event = ABI_EVENT_QP_ACCESS_ERR},
		{"key", .bad_key = true, .syndrome = 0x62, .event = ABI_EVENT_QP_ACCESS_ERR},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct refusal *r = &rows[i];
		char want[64];

		l.attr.access_flags &= ~r->access;
		lone_start(&l);
		l.mr->mr.access &= ~r->mr_access;
		l.mr->mr.pd += r->foreign;
		l.mr->mr.length -= r->cut;
		lone_rx(&l, &(struct shot){.opcode = FETCH_ADD,
				    .psn = 0x100,
				    .ackreq = true,
				    .va = app_va(l.mr, r->off),
				    .rkey = l.mr->mr.key ^ r->bad_key,
				    .swap_add = 1});
		snprintf(want, sizeof(want), "ACK@100%02x/0", r->syndrome);
		if (strcmp(lone_tx(&l), want))
			fail_msg("%s: %s", r->what, l.log);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(app_event_count(&l.app, r->event), 1);
		for (unsigned b = 0; b < 64; b++)
			assert_int_equal(l.mr->mem[b], 0x11);
		lone_teardown(state);
		lone_setup_256(state);
	}
}

/* proves RSP-32: where wire and memory differ in alignment there is no word that a CPU can lock. */
static void responder_rx__refuses_atomics_on_crooked_regions(void **state)
{
	lone_start(&l);
	l.mr->mr.base += 4;
	fetch_add(0x100, 0, 1);
	assert_string_equal(lone_tx(&l), "ACK@10061/0");
	l.mr->mr.base -= 4;
}

/* proves RSP-32: it is the VA that must be aligned, also where the word in memory is. */
static void responder_rx__refuses_atomics_on_crooked_addresses(void **state)
{
	lone_start(&l);
	l.mr->mr.base += 4;
	fetch_add(0x100, 4, 1);
	assert_string_equal(lone_tx(&l), "ACK@10061/0");
	l.mr->mr.base -= 4;
	assert_int_equal(word(8), 0x1111111111111111);
}

/* proves RSP-07 */
static void responder_rx__refuses_an_atomic_inside_a_message(void **state)
{
	lone_start(&l);
	lone_rx(&l, &(struct shot){.opcode = WRITE_FIRST,
			    .psn = 0x100,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = 512,
			    .len = 256});
	fetch_add(0x101, 512, 1);
	assert_string_equal(lone_tx(&l), "ACK@10161/0");
	assert_int_equal(word(512), 0x1111111111111111);
}

/* EVT-03: the page is gone; nobody else notices. */
static void responder_rx__atomic_on_a_hole(void **state)
{
	lone_start(&l);
	hole_open(l.host, APP_PD);
	lone_rx(&l, &(struct shot){.opcode = FETCH_ADD,
			    .psn = 0x100,
			    .ackreq = true,
			    .va = HOLE_VA + HOLE_PAGE,
			    .rkey = HOLE_KEY,
			    .swap_add = 1});
	assert_string_equal(lone_tx(&l), "ACK@10063/0");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(count()->access_faults, 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 1);
	hole_close(l.host);
}

#define OVERLAPS 5000u	  /* rounds that the CPU was seen to add in, too */
#define ROUNDS	 5000000u /* enough, should there be but one CPU */

static struct {
	_Atomic uint64_t *word;
	_Atomic uint64_t adds;
	_Atomic bool stop;
} cpu;

static void *add_by_cpu(void *arg)
{
	for (; !cpu.stop; cpu.adds++)
		atomic_fetch_add(cpu.word, 1);
	return NULL;
}

/* proves RSP-35: atomic with what the CPUs of the application do. */
static void responder_rx__atomics_are_atomic_with_the_cpus(void **state)
{
	pthread_t thread;
	uint32_t adds, overlaps = 0;

	lone_start(&l);
	word_set(0, 0);
	cpu.word = (_Atomic uint64_t *)l.mr->mem;
	assert_int_equal(pthread_create(&thread, NULL, add_by_cpu, NULL), 0);
	for (adds = 0; adds < ROUNDS && overlaps < OVERLAPS; adds++) {
		uint64_t before = cpu.adds;

		fetch_add((0x100 + adds) & 0xFFFFFF, 0, 1);
		overlaps += cpu.adds != before;
		lone_tx(&l);
	}
	cpu.stop = true;
	pthread_join(thread, NULL);
	assert_int_equal(word(0), adds + cpu.adds);
}

/* After each instruction the application adds 1. */
static void add_at_step(int sig)
{
	atomic_fetch_add(cpu.word, 1);
	cpu.adds++;
}

/* proves RSP-35: with one CPU too, where two threads seldom meet in the middle of it. */
static void responder_rx__atomics_are_one_instruction(void **state)
{
	lone_start(&l);
	word_set(0, 0);
	cpu.word = (_Atomic uint64_t *)l.mr->mem;
	cpu.adds = 0;
	step_begin(add_at_step);
	fetch_add(0x100, 0, 1);
	step_end();
	assert_true(cpu.adds > 100);
	assert_int_equal(word(0), 1 + cpu.adds);
	assert_int_equal(count()->rx_atomic_requests, 1);
}

/* --- the requester and the completer ---------------------------------------------------- */

static void post(uint8_t opcode, uint64_t wr_id, uint32_t len)
{
	struct app_send s = {.opcode = opcode,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = wr_id,
		.remote_addr = PEER_VA + 8,
		.rkey = PEER_KEY,
		.compare_add = 0xC0DE,
		.swap = 0x5A5A,
		.num_sge = 1,
		.sge = {app_sge(l.mr, 3, len)}};

	app_post_send(l.qp, &s);
}

static void answer(uint32_t psn, uint8_t syndrome, uint64_t orig)
{
	lone_rx(&l, &(struct shot){.opcode = ATOMIC_ACK,
			    .psn = psn,
			    .syndrome = syndrome,
			    .msn = 1,
			    .orig = orig});
}

/* proves REQ-47, RSP-33 (REQ-05, CQ-09): one PSN each; the answer in host order, in any 8 bytes. */
static void requester__sends_atomics(void **state)
{
	uint64_t got;

	lone_start(&l);
	post(ABI_WR_ATOMIC_CMP_AND_SWP, 1, 8);
	post(ABI_WR_ATOMIC_FETCH_AND_ADD, 2, 8);
	assert_string_equal(lone_tx(&l), "CMP_SWAP@200!(8,5a5a,c0de) FETCH_ADD@201!(8,c0de,0)");
	answer(0x200, 0x1F, 0x0102030405060708);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(l.last.opcode, ABI_WC_COMP_SWAP);
	assert_int_equal(l.last.byte_len, 8);
	memcpy(&got, l.mr->mem + 3, sizeof(got));
	assert_int_equal(got, 0x0102030405060708);
	assert_int_equal(l.mr->mem[2], 0x11);
	assert_int_equal(l.mr->mem[11], 0x11);
	answer(0x201, 0x1F, 0);
	assert_string_equal(lone_cqes(&l), "S2:OK");
	assert_int_equal(l.last.opcode, ABI_WC_FETCH_ADD);
}

/* REQ-08, REQ-10: they count as READs do. */
static void requester__atomics_wait_for_max_rd_atomic(void **state)
{
	l.attr.max_rd_atomic = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 8, 0);
	post(ABI_WR_ATOMIC_FETCH_AND_ADD, 2, 8);
	lone_post(&l, ABI_WR_SEND, 3, 4, ABI_WQE_FENCE);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,8)");
	lone_rx(&l, &(struct shot){.opcode = RESP_ONLY, .psn = 0x200, .syndrome = 0x1F, .len = 8});
	assert_string_equal(lone_tx(&l), "FETCH_ADD@201!(8,c0de,0)");
	assert_string_equal(lone_tx(&l), "");
	answer(0x201, 0x1F, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+4!");
}

/* REQ-09 */
static void requester__no_atomics_without_resources(void **state)
{
	l.attr.max_rd_atomic = 0;
	lone_start(&l);
	post(ABI_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:LOC_QP_OP");
}

/* REQ-24, REQ-48: the same packet again. */
static void requester__repeats_atomics(void **state)
{
	lone_start(&l);
	post(ABI_WR_ATOMIC_CMP_AND_SWP, 1, 8);
	assert_string_equal(lone_tx(&l), "CMP_SWAP@200!(8,5a5a,c0de)");
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "CMP_SWAP@200!(8,5a5a,c0de)");
	answer(0x200, 0x1F, 1);
	answer(0x200, 0x1F, 2); /* of the second copy: REQ-36 */
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(l.mr->mem[3], 1);
}

/* REQ-38: an ACKNOWLEDGE does not complete it, and tells that its answer was lost. */
static void completer_rx__ack_behind_an_atomic(void **state)
{
	lone_start(&l);
	post(ABI_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(count()->implied_nak_seq_err, 1);
	assert_string_equal(lone_tx(&l), "FETCH_ADD@200!(8,c0de,0) SEND_ONLY@201+4!");
	answer(0x200, 0x1F, 0);
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* REQ-44 */
static void completer_rx__an_atomic_answer_acknowledges(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post(ABI_WR_ATOMIC_FETCH_AND_ADD, 2, 8);
	lone_tx(&l);
	answer(0x201, 0x1F, 0);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* proves REQ-43 (REQ-40, REQ-46) */
static void completer_rx__bad_atomic_answers(void **state)
{
	static const struct shot rows[] = {
		{.opcode = RESP_ONLY, .psn = 0x200, .syndrome = 0x1F, .len = 8},
		{.opcode = ATOMIC_ACK, .psn = 0x200, .syndrome = 0x61},
		{.opcode = ATOMIC_ACK, .psn = 0x200, .syndrome = 0x20},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		lone_start(&l);
		post(ABI_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
		lone_tx(&l);
		lone_rx(&l, &rows[i]);
		assert_string_equal(lone_cqes(&l), "S1:BAD_RESP");
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		lone_teardown(state);
		lone_setup_256(state);
	}
	lone_start(&l); /* nor does an ATOMIC_ACK answer a READ */
	lone_post(&l, ABI_WR_RDMA_READ, 1, 8, 0);
	lone_tx(&l);
	answer(0x200, 0x1F, 0);
	assert_string_equal(lone_cqes(&l), "S1:BAD_RESP");
}

/* REQ-33, REQ-34 */
static void completer_rx__atomic_refused(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post(ABI_WR_ATOMIC_FETCH_AND_ADD, 2, 8);
	post(ABI_WR_ATOMIC_FETCH_AND_ADD, 3, 8);
	lone_tx(&l);
	lone_nak(&l, 0x62, 0x201, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:REM_ACCESS");
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S3:FLUSH");
}

/* REQ-16, REQ-17, REQ-18, REQ-45: what an application may get wrong. */
static void requester_fetch__bad_atomics(void **state)
{
	static const struct {
		uint32_t len, flags;
		unsigned sges;
		bool key, read_only;
		const char *want;
	} rows[] = {
		{.len = 4, .sges = 1, .want = "S1:LOC_LEN"},
		{.len = 16, .sges = 1, .want = "S1:LOC_LEN"},
		{.len = 8, .sges = 0, .want = "S1:LOC_QP_OP"},
		{.len = 8, .sges = 2, .want = "S1:LOC_QP_OP"},
		{.len = 8, .sges = 1, .flags = ABI_WQE_INLINE, .want = "S1:LOC_QP_OP"},
		{.len = 8, .sges = 1, .key = true, .want = "S1:LOC_PROT"},
		{.len = 8, .sges = 1, .read_only = true, .want = "S1:LOC_PROT"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct app_send s = {.opcode = ABI_WR_ATOMIC_FETCH_AND_ADD,
			.wr_id = 1,
			.flags = rows[i].flags | ABI_WQE_SIGNALED,
			.remote_addr = PEER_VA,
			.rkey = PEER_KEY,
			.num_sge = rows[i].sges,
			.inline_len = 8};

		lone_start(&l);
		if (rows[i].read_only)
			l.mr->mr.access = 0;
		s.sge[0] = app_sge(l.mr, 0, rows[i].len);
		s.sge[0].lkey ^= rows[i].key;
		app_post_send(l.qp, &s);
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l), rows[i].want);
		lone_teardown(state);
		lone_setup_256(state);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(responder_rx__executes_atomics),
		TEST(responder_rx__replays_atomics),
		TEST(responder_rx__forgets_the_oldest_atomic),
		TEST(responder_rx__a_read_is_no_atomic),
		TEST(responder_rx__atomics_wait_behind_reads),
		TEST(responder_rx__acknowledges_before_an_atomic),
		TEST(responder_rx__refuses_atomics),
		TEST(responder_rx__refuses_atomics_on_crooked_regions),
		TEST(responder_rx__refuses_atomics_on_crooked_addresses),
		TEST(responder_rx__refuses_an_atomic_inside_a_message),
		TEST(responder_rx__atomic_on_a_hole),
		TEST(responder_rx__atomics_are_atomic_with_the_cpus),
		TEST(responder_rx__atomics_are_one_instruction),
		TEST(requester__sends_atomics),
		TEST(requester__atomics_wait_for_max_rd_atomic),
		TEST(requester__no_atomics_without_resources),
		TEST(requester__repeats_atomics),
		TEST(completer_rx__ack_behind_an_atomic),
		TEST(completer_rx__an_atomic_answer_acknowledges),
		TEST(completer_rx__bad_atomic_answers),
		TEST(completer_rx__atomic_refused),
		TEST(requester_fetch__bad_atomics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
