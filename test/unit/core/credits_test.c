/* SPDX-License-Identifier: BSD-3-Clause */
/* End-to-end credits: what a peer grants, and what is done without. */
#include "fixture.h"
#include "qp.h"
#include "random.h"

static void ack_credit(uint32_t psn, uint32_t msn, uint8_t code)
{
	lone_rx(&l, &(struct shot){.opcode = 0x11, .psn = psn, .syndrome = code, .msn = msn});
}

/* proves CRD-04, CRD-05, CRD-09 (CRD-06) */
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

/* proves CRD-09: credits that end in the middle of a message must not hold it back while nothing
 * that is in flight asks for an ACK: only the timeout would get it going again. */
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

/* proves REQ-37 (CRD-01): an old ACK does not take credits back; a duplicate may bring new ones. */
static void requester_next__takes_the_newest_credits(void **state)
{
	lone_start(&l);
	for (unsigned i = 1; i <= 3; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	lone_tx(&l);
	ack_credit(0x202, 3, 2); /* LSN 5 */
	for (unsigned i = 4; i <= 6; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_ONLY@203+4!");
	ack_credit(0x200, 1, 2); /* late: LSN 3 */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@204+4!");
	ack_credit(0x202, 3, 3); /* the same ACK with more credits: LSN 6 */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@205+4!");
}

/* CRD-04: a READ that goes out as two requests counts twice in the peer's MSN, and so in our SSN.
 */
static void requester_next__long_read_is_two_messages(void **state)
{
	const uint32_t len = (1u << 30) + 256;
	struct app_send read = {.opcode = ABI_WR_RDMA_READ, .wr_id = 2, .num_sge = 1};

	l.attr.path_mtu = 256;
	lone_start(&l);
	read.remote_addr = PEER_VA;
	read.rkey = PEER_KEY;
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	ack_credit(0x200, 1, 2); /* LSN 3: the READ's, and no SEND after it */
	l.mr->mr.length = len;	 /* nobody writes there: no response comes */
	read.sge[0] = app_sge(l.mr, 0, len);
	app_post_send(l.qp, &read);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(
		lone_tx(&l), "READ_REQ@201!(0,1073741824) READ_REQ@400201!(40000000,256)");
	ack_credit(0x200, 1, 3); /* LSN 4 */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@400202+4!");
	l.mr->mr.length = LONE_MEM;
}

/* proves REQ-37, CRD-04: message numbers have 24 bits, and which is the newer is known across their
 * end.
 */
static void requester_next__counts_messages_across_the_wrap(void **state)
{
	lone_start(&l);
	l.qp->qp->req.ssn = 0xFFFFFC;
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	ack_credit(0x200, 0xFFFFFD, 2); /* LSN 0xFFFFFF */
	for (unsigned i = 2; i <= 9; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4! SEND_ONLY@202+4!");
	ack_credit(0x202, 0xFFFFFF, 1); /* LSN 0 */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@203+4!");
	ack_credit(0x201, 0xFFFFFE, 1); /* late: LSN 0xFFFFFF */
	assert_int_equal(l.qp->qp->comp.limit, 0);
	ack_credit(0x203, 0, 3); /* LSN 3 */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@204+4! SEND_ONLY@205+4! SEND_ONLY@206+4!");
}

/* --- what a code is worth ------------------------------------------------------------- */

/* proves CRD-01: the table of the specification, and 31 for none; bit 7 does not count (REQ-46). */
static void completer_rx__credit_codes(void **state)
{
	static const uint32_t want[31] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
		32768};

	for (uint8_t code = 0; code < 31; code++) {
		if (code)
			lone_init(&l);
		lone_start(&l);
		lone_post(&l, ABI_WR_SEND, 1, 4, 0);
		lone_tx(&l);
		ack_credit(0x200, 0xFFFFFE, code | 0x80);
		assert_true(l.qp->qp->comp.limited);
		assert_int_equal(l.qp->qp->comp.limit, (0xFFFFFE + want[code]) & 0xFFFFFF);
		ack_credit(0x200, 1, 0x1F);
		assert_false(l.qp->qp->comp.limited);
		if (code < 30)
			lone_fini(&l);
	}
}

/* proves CRD-01, CRD-04: as many messages go at once as were granted, or one. */
static void requester_next__sends_what_was_granted(void **state)
{
	static const unsigned want[8] = {1, 1, 2, 3, 4, 6, 8, 12};

	for (uint8_t code = 0; code < 8; code++) {
		if (code)
			lone_init(&l);
		lone_start(&l);
		lone_post(&l, ABI_WR_SEND, 0, 0, 0);
		lone_tx(&l);
		ack_credit(0x200, 1, code);
		for (unsigned i = 1; i < 16; i++)
			lone_post(&l, i & 1 ? ABI_WR_SEND : ABI_WR_RDMA_WRITE_WITH_IMM, i, 0, 0);
		lone_tx(&l);
		assert_int_equal(l.packets, 1 + want[code]);
		if (code < 7)
			lone_fini(&l);
	}
}

/* proves CRD-05, CRD-06: a WRITE and a READ go without credits, also with something in flight. */
static void requester_next__needs_no_credits_for_write_and_read(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	ack_credit(0x200, 1, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 3, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 4, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 5, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE_WITH_IMM, 6, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4! WRITE_ONLY@202+4!(0,4) "
					 "READ_REQ@203!(0,4) WRITE_ONLY@204+4!(0,4)");
}

/* proves CRD-01, CRD-08: the AETH of a READ response says ACK too, and has credits as any other. */
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

/* proves CRD-07: nothing is known before the first ACK, so nothing is held back; and again after
 * RESET, whatever the last peer granted. */
static void requester_next__starts_without_a_limit(void **state)
{
	lone_start(&l);
	for (unsigned i = 1; i <= 3; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4! SEND_ONLY@201+4! SEND_ONLY@202+4!");
	ack_credit(0x202, 3, 0);
	lone_cqes(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	lone_climb(&l, ABI_QPS_RTS);
	for (unsigned i = 4; i <= 5; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4! SEND_ONLY@201+4!");
}

/* proves CRD-08: the MSN of a NAK grants nothing, neither do the code bits of a NAK or RNR NAK. */
static void completer_rx__naks_grant_no_credits(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	ack_credit(0x200, 1, 0);
	for (unsigned i = 2; i <= 4; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	lone_nak(&l, 0x60, 0x201, 100); /* code 0 */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	lone_nak(&l, 0x3E, 0x201, 100); /* code 30 */
	lone_wait(&l, 400000000);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	lone_nak(&l, 0x3F, 0x201, 100); /* code 31 */
	lone_wait(&l, 500000000);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	assert_int_equal(l.qp->qp->comp.limit, 1);
	assert_true(l.qp->qp->comp.limited);
}

/* "No limit any more" in an ACK that acknowledges nothing new sets a held back message free. */
static void completer_rx__lifts_the_limit_at_once(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	ack_credit(0x200, 1, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	ack_credit(0x200, 1, 0x1F);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+4!");
}

/* proves CRD-02, CRD-03: however many receives are posted, our acknowledgements grant nothing. */
static void responder_next__grants_no_credits(void **state)
{
	lone_start(&l);
	for (unsigned i = 0; i < 10; i++)
		lone_recv(&l, i, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = 0x100, .ackreq = true, .len = 4});
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	lone_rx(&l, &(struct shot){.opcode = 0x0C,
			    .psn = 0x101,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = 4});
	assert_string_equal(lone_tx(&l), "RESP_ONLY@101+41f/2");
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = 0x100, .ackreq = true, .len = 4});
	assert_string_equal(lone_tx(&l), "ACK@1001f/2"); /* of a duplicate */
	for (unsigned i = 1; i < 10; i++)		 /* the last receives, and none left */
		lone_rx(&l,
			&(struct shot){.opcode = 0x04, .psn = 0x101 + i, .ackreq = true, .len = 4});
	assert_string_equal(lone_tx(&l), "ACK@10a1f/11");
}

/* --- every mix ------------------------------------------------------------------------ */

/* A peer that keeps the books of the specification. */
static struct {
	struct random r;
	uint32_t psn, msn;    /* of the next packet; messages done */
	uint32_t lsn;	      /* newest credits that were delivered */
	bool limited;	      /* and whether they count */
	bool asked;	      /* by the last packet */
	struct shot owed[32]; /* answers that have not been delivered */
	unsigned owes;
	uint8_t opcode[64]; /* of the work requests, by SSN */
} peer;

static uint8_t any_code(void)
{
	static const uint8_t codes[] = {0, 0, 0, 0, 1, 1, 2, 3, 5, 0x1F};

	return codes[random_below(&peer.r, ARRAY_SIZE(codes))];
}

/* Takes the packet in l.frame. */
static void peer_takes(void)
{
	const uint8_t *bth = l.frame + 42;
	uint8_t op = bth[0] & 0x1F;
	uint8_t wr = peer.opcode[(peer.msn + 1) % 64];
	bool last = op == 0x0C || !(op == 0x00 || op == 0x01 || op == 0x06 || op == 0x07);
	bool ackreq = bth[8] & 0x80;

	assert_int_equal(get_be24(bth + 9), peer.psn);
	/* CRD-04: beyond the limit one packet that asks for an ACK, and then its ACK first. */
	if (wr != ABI_WR_RDMA_READ && wr != ABI_WR_RDMA_WRITE && peer.limited &&
		peer.msn + 1 > peer.lsn) {
		assert_true(!peer.owes || !peer.asked);
		assert_true(ackreq);
	}
	peer.asked = ackreq;
	peer.msn += last;
	if (op == 0x0C)
		peer.owed[peer.owes++] = (struct shot){.opcode = 0x10,
			.psn = peer.psn,
			.syndrome = any_code(),
			.msn = peer.msn,
			.len = get_be32(bth + 12 + 12)};
	else if (ackreq)
		peer.owed[peer.owes++] = (struct shot){
			.opcode = 0x11, .psn = peer.psn, .syndrome = any_code(), .msn = peer.msn};
	peer.psn = (peer.psn + 1) & 0xFFFFFF;
	assert_true(peer.owes < ARRAY_SIZE(peer.owed));
}

/* Delivers an answer; one that the next also says may be left out. */
static void peer_answers(void)
{
	struct shot s = peer.owed[0];

	memmove(peer.owed, peer.owed + 1, --peer.owes * sizeof(s));
	if (s.opcode == 0x11 && peer.owes && random_below(&peer.r, 4) == 0)
		return;
	if (s.syndrome == 0x1F) {
		peer.limited = false;
	} else {
		static const uint32_t worth[] = {0, 1, 2, 3, 4, 6};
		uint32_t lsn = s.msn + worth[s.syndrome];

		if (!peer.limited || lsn > peer.lsn)
			peer.lsn = lsn;
		peer.limited = true;
	}
	lone_rx(&l, &s);
}

static void post_anything(uint32_t n)
{
	static const uint8_t ops[] = {ABI_WR_SEND, ABI_WR_SEND_WITH_IMM, ABI_WR_RDMA_WRITE,
		ABI_WR_RDMA_WRITE_WITH_IMM, ABI_WR_RDMA_READ};
	uint8_t op = ops[random_below(&peer.r, ARRAY_SIZE(ops))];
	uint32_t len = random_below(&peer.r, op == ABI_WR_RDMA_READ ? 257 : 1500);

	peer.opcode[(n + 1) % 64] = op;
	lone_post(&l, op, n, len, random_below(&peer.r, 5) ? 0 : ABI_WQE_FENCE);
}

/* proves CRD-04, CRD-05, CRD-09: whatever a peer grants, and be it nothing, every mix of SEND,
 * WRITE and READ gets through, and with no timer's help. */
static void requester_next__gets_every_mix_through(void **state)
{
	for (unsigned seed = 0; seed < 200; seed++) {
		uint32_t posted = 0;

		if (seed)
			lone_init(&l);
		l.attr.path_mtu = 256;
		l.attr.timeout = 0;
		l.attr.max_rd_atomic = 1 + seed % 3;
		l.spec.window = 4 + seed % 20;
		lone_start(&l);
		memset(&peer, 0, sizeof(peer));
		peer.r.state = seed + 1;
		peer.psn = SQ_PSN;
		while (posted < 100 || peer.owes || app_sq_room(l.qp) < l.spec.sq_depth) {
			while (posted < 100 && app_sq_room(l.qp) && random_below(&peer.r, 3))
				post_anything(posted++);
			if (random_below(&peer.r, 4) && *lone_tx_max(&l, 1))
				peer_takes();
			else if (peer.owes && (random_below(&peer.r, 3) || peer.owes > 20))
				peer_answers();
			else if (*lone_tx_max(&l, 1))
				peer_takes();
			else if (!peer.owes && (posted == 100 || !app_sq_room(l.qp)))
				fail_msg("seed %u: nothing moves any more", seed);
			lone_cqes(&l);
		}
		assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
		if (seed < 199)
			lone_fini(&l);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(requester_next__obeys_credits),
		T(requester_next__asks_for_an_ack_before_it_waits_for_credits),
		T(requester_next__takes_the_newest_credits),
		T(requester_next__long_read_is_two_messages),
		T(requester_next__counts_messages_across_the_wrap),
		T(requester_next__takes_the_credits_of_read_responses),
		T(completer_rx__credit_codes),
		T(requester_next__sends_what_was_granted),
		T(requester_next__needs_no_credits_for_write_and_read),
		T(requester_next__starts_without_a_limit),
		T(completer_rx__naks_grant_no_credits),
		T(completer_rx__lifts_the_limit_at_once),
		T(responder_next__grants_no_credits),
		T(requester_next__gets_every_mix_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
