/* SPDX-License-Identifier: BSD-3-Clause */
/* The notes of why a QP failed and packets were dropped: one per QP, a few per reason. */
#include <errno.h>
#include <stdio.h>
#include "cause.h"
#include "core_command.h"
#include "fixture.h"
#include "headers.h"
#include "opcodes.h"
#include "pair.h"
#include "qp.h"

static const struct cause_note *note(void)
{
	return &l.qp->qp->why.error;
}

/* --- the table -------------------------------------------------------------------------- */

static void cause_rule__of_all(void **state)
{
	assert_string_equal(cause_name(CAUSE_NONE), "none");
	for (unsigned i = CAUSE_NONE + 1; i < CAUSE_MAX; i++) {
		assert_non_null(cause_name((enum cause)i));
		assert_non_null(strchr(cause_rule((enum cause)i), '-'));
	}
	assert_null(cause_name(CAUSE_MAX));
	assert_null(cause_rule(CAUSE_MAX));
}

/* --- responder -------------------------------------------------------------------------- */

static void make_no_remote_write(void)
{
	l.attr.access_flags = ABI_ACCESS_REMOTE_READ;
}

static void make_no_remote_read(void)
{
	l.attr.access_flags = ABI_ACCESS_REMOTE_WRITE;
}

static void make_no_reads(void)
{
	l.attr.max_dest_rd_atomic = 0;
}

static void tell_sequence(void)
{
	lone_request(&l, SEND_MIDDLE, 0x100, 0, 0, 256);
}

static void tell_unsupported(void)
{
	lone_request(&l, RESERVED, 0x100, 0, 0, 0);
}

static void tell_write(void)
{
	lone_request(&l, WRITE_ONLY, 0x100, 0, 16, 16);
}

static void tell_read(void)
{
	lone_request(&l, READ_REQ, 0x100, 0, 16, 0);
}

static void tell_packet_length(void)
{
	lone_request(&l, WRITE_FIRST, 0x100, 0, 2048, 1024);
}

static void tell_message_length(void)
{
	lone_request(&l, WRITE_FIRST, 0x100, 0, (1u << 31) + 1, 256);
}

static void tell_write_length(void)
{
	lone_request(&l, WRITE_ONLY, 0x100, 0, 17, 16);
}

static void tell_rkey(void)
{
	lone_request(&l, WRITE_ONLY, 0x100, LONE_MEM - 8, 16, 16);
}

static void tell_rkey_gone(void)
{
	lone_request(&l, WRITE_FIRST, 0x100, 0, 600, 256);
	app_mr_dereg(&l.app, l.mr);
	lone_request(&l, WRITE_MIDDLE, 0x101, 0, 0, 256);
	app_mr_again(&l.app, l.mr);
}

static void tell_recv_length(void)
{
	lone_recv(&l, 7, 0, 300);
	lone_request(&l, SEND_FIRST, 0x100, 0, 0, 256);
	lone_request(&l, SEND_MIDDLE, 0x101, 0, 0, 256);
}

static void tell_recv_key(void)
{
	lone_recv(&l, 7, LONE_MEM, 300);
	lone_request(&l, SEND_ONLY, 0x100, 0, 0, 16);
}

static void tell_atomic(void)
{
	lone_request(&l, FETCH_ADD, 0x100, 0, 0, 0);
}

static void tell_odd_atomic(void)
{
	lone_request(&l, FETCH_ADD, 0x100, 4, 0, 0);
}

static void cause_request__each(void **state)
{
	static const struct {
		enum cause why;
		void (*make)(void);
		void (*tell)(void);
		uint32_t psn, value, limit;
	} row[] = {
		{CAUSE_OP_SEQUENCE, NULL, tell_sequence, 0x100, 256, 0},
		{CAUSE_OP_UNSUPPORTED, NULL, tell_unsupported, 0x100, 0, 0},
		{CAUSE_NO_REMOTE_WRITE, make_no_remote_write, tell_write, 0x100, 16, 0},
		{CAUSE_NO_REMOTE_READ, make_no_remote_read, tell_read, 0x100, 0, 0},
		{CAUSE_NO_REMOTE_ATOMIC, make_no_remote_read, tell_atomic, 0x100, 0, 0},
		{CAUSE_ATOMIC_ALIGNMENT, NULL, tell_odd_atomic, 0x100, 0, 0},
		{CAUSE_READS_EXCEEDED, make_no_reads, tell_read, 0x100, 1, 0},
		{CAUSE_PACKET_LENGTH, NULL, tell_packet_length, 0x100, 1024, 256},
		{CAUSE_MESSAGE_LENGTH, NULL, tell_message_length, 0x100, 256, 0},
		{CAUSE_WRITE_LENGTH, NULL, tell_write_length, 0x100, 16, 17},
		{CAUSE_RKEY, NULL, tell_rkey, 0x100, 16, 0},
		{CAUSE_RKEY_GONE, NULL, tell_rkey_gone, 0x101, 256, 0},
		{CAUSE_RECV_LENGTH, NULL, tell_recv_length, 0x101, 512, 300},
		{CAUSE_RECV_KEY, NULL, tell_recv_key, 0, 0, 0},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		if (i) {
			lone_fini(&l);
			lone_setup_256(NULL);
		}
		if (row[i].make)
			row[i].make();
		lone_start(&l);
		assert_false(note()->known);
		row[i].tell();
		assert_true(note()->known);
		assert_string_equal(cause_name((enum cause)note()->cause), cause_name(row[i].why));
		assert_int_equal(note()->psn, row[i].psn);
		assert_int_equal(note()->value, row[i].value);
		assert_int_equal(note()->limit, row[i].limit);
		assert_int_equal(note()->time, l.now);
	}
}

/* RSP-13: what was wanted of which region, and what was wrong with it. */
static void cause_request__tells_the_range(void **state)
{
	lone_start(&l);
	tell_rkey();
	assert_int_equal(note()->key, l.mr->mr.key);
	assert_int_equal(note()->va, app_va(l.mr, LONE_MEM - 8));
	assert_int_equal(note()->len, 16);
	assert_int_equal(note()->access, ABI_ACCESS_REMOTE_WRITE);
	assert_int_equal(note()->found.status, MR_RANGE);
}

/* RSP-13: the region may go before anyone asks. */
static void cause_request__tells_of_the_region(void **state)
{
	lone_start(&l);
	tell_rkey();
	app_mr_dereg(&l.app, l.mr);
	assert_int_equal(note()->found.named, NAMED_REGION);
	assert_int_equal(note()->found.iova, l.mr->mr.iova);
	assert_int_equal(note()->found.length, l.mr->mr.length);
	assert_int_equal(note()->found.pd, l.mr->mr.pd);
	app_mr_again(&l.app, l.mr);
}

/* Regions of other sessions are not told of, whatever their protection domain. */
static void cause_find__only_of_its_own_session(void **state)
{
	struct cause_note n = {.len = 8};

	lone_start(&l);
	n.key = l.mr->mr.key;
	n.pd = l.mr->mr.pd;
	n.va = l.mr->mr.iova;
	cause_find(l.host->core.cfg.mrs, l.mr->mr.session, 1, &n);
	assert_int_equal(n.found.named, NAMED_REGION);
	cause_find(l.host->core.cfg.mrs, l.mr->mr.session + 1, 1, &n);
	assert_int_equal(n.found.named, NAMED_NOTHING);
	n.key ^= 1;
	cause_find(l.host->core.cfg.mrs, l.mr->mr.session, 1, &n);
	assert_int_equal(n.found.named, NAMED_BY_FORMER);
	assert_int_equal(n.found.key, l.mr->mr.key);
	n.key = __builtin_bswap32(l.mr->mr.key);
	cause_find(l.host->core.cfg.mrs, l.mr->mr.session, 1, &n);
	assert_int_equal(n.found.named, NAMED_BY_SWAP);
}

/* Nothing that comes later changes it; RESET forgets it. */
static void cause_request__first_counts(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP, .mask = ABI_QP_STATE};

	lone_start(&l);
	lone_recv(&l, 7, 0, 4);
	tell_recv_length();
	assert_int_equal(note()->cause, CAUSE_RECV_LENGTH);
	assert_int_equal(note()->limit, 4);
	lone_wait(&l, 1000);
	tell_sequence();
	assert_int_equal(note()->cause, CAUSE_RECV_LENGTH);
	cmd.qp = l.qp->qp;
	cmd.attr.qp_state = ABI_QPS_RESET;
	while (core_cmd(&l.host->core, &cmd, l.now) == -EAGAIN)
		;
	assert_false(note()->known);
	assert_int_equal(note()->cause, CAUSE_NONE);
}

static void cause_publish__by_command(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP, .mask = ABI_QP_STATE};

	lone_start(&l);
	cmd.qp = l.qp->qp;
	cmd.attr.qp_state = ABI_QPS_ERR;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_true(note()->known);
	assert_int_equal(note()->cause, CAUSE_COMMAND);
}

/* --- requester -------------------------------------------------------------------------- */

/* REQ-18: the SGE that is wrong, also when something else completes before it fails. */
static void cause_wqe__key(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, LONE_MEM + 1, 0);
	lone_tx(&l);
	assert_false(note()->known);
	lone_ack(&l, 0x200, 1);
	lone_tx(&l);
	assert_int_equal(note()->cause, CAUSE_POST_KEY);
	assert_int_equal(note()->wr_id, 2);
	assert_int_equal(note()->len, LONE_MEM + 1);
	assert_int_equal(note()->found.status, MR_RANGE);
	assert_int_equal(note()->value, 0);
}

/* REQ-18: it was refused when it was posted, and fails when what is before it is complete. */
static void cause_wqe__key_of_a_region_that_went_since(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, LONE_MEM + 1, 0);
	lone_post(&l, ABI_WR_SEND, 3, LONE_MEM + 2, 0);
	lone_tx(&l);
	app_mr_dereg(&l.app, l.mr);
	lone_ack(&l, 0x200, 1);
	lone_tx(&l);
	assert_int_equal(note()->wr_id, 2);
	assert_int_equal(note()->found.named, NAMED_REGION);
	assert_int_equal(note()->found.status, MR_RANGE);
	app_mr_again(&l.app, l.mr);
}

static void cause_wqe__refused(void **state)
{
	static const struct {
		uint8_t syndrome;
		enum cause why;
	} row[] = {{NAK_INVALID_REQ, CAUSE_REFUSED_REQUEST},
		{NAK_REMOTE_ACCESS, CAUSE_REFUSED_ACCESS}, {NAK_REMOTE_OP, CAUSE_REFUSED_OPERATION},
		{NAK_INVALID_RD_REQ, CAUSE_REFUSED_REQUEST}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		if (i) {
			lone_fini(&l);
			lone_setup_256(NULL);
		}
		lone_start(&l);
		lone_post(&l, ABI_WR_RDMA_WRITE, 9, 600, 0);
		lone_tx(&l);
		lone_nak(&l, row[i].syndrome, 0x201, 0);
		assert_int_equal(note()->cause, row[i].why);
		assert_int_equal(note()->syndrome, row[i].syndrome);
		assert_int_equal(note()->psn, 0x201);
		assert_int_equal(note()->wr_id, 9);
		assert_int_equal(note()->va, PEER_VA);
		assert_int_equal(note()->key, PEER_KEY);
		assert_int_equal(note()->len, 600);
		assert_true(note()->heard); /* the NAK acknowledges what was before */
	}
}

static void cause_wqe__rnr(void **state)
{
	l.attr.rnr_retry = 0;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x2E, 0x200, 0);
	assert_int_equal(note()->cause, CAUSE_RNR_RETRIES);
	assert_false(note()->heard);
}

/* The slots of the private ring keep what earlier WQEs left there. */
static void cause_wqe__of_a_slot_that_was_used_before(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND, .num_sge = 2};

	l.attr.rnr_retry = 0;
	lone_start(&l);
	s.sge[0] = app_sge(l.mr, 0, 4);
	s.sge[1] = app_sge(l.mr, 0, LONE_MEM + 1);
	for (uint32_t i = 0; i < l.spec.sq_depth; i++)
		app_post_send(l.qp, &s);
	lone_tx(&l);
	assert_int_equal(note()->cause, CAUSE_POST_KEY);
	assert_int_equal(note()->value, 1);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	lone_climb(&l, ABI_QPS_RTS);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x2E, 0x200, 0);
	assert_int_equal(note()->cause, CAUSE_RNR_RETRIES);
	assert_int_equal(note()->value, 0);
}

static void let_it_fail(void)
{
	for (int i = 0; i < 20 && !note()->known; i++) {
		lone_tx(&l);
		lone_wait(&l, 20000000000ull);
	}
	assert_int_equal(note()->cause, CAUSE_RETRIES);
}

/* The control thread is to look for the neighbour: told once until it has taken notice. */
static void qp_late__once(void **state)
{
	struct core *core;
	_Atomic uint32_t *slot;

	l.attr.retry_cnt = 7;
	lone_start(&l);
	core = &l.host->core;
	slot = &core->late[l.qp->qp->attr.ah.dgid[15] % LATE_SLOTS];
	lone_post(&l, ABI_WR_SEND, 1, 100, 0);
	lone_tx(&l);
	assert_false(core->late_news);
	lone_wait(&l, 20000000000ull);
	assert_true(core->late_news);
	assert_int_equal(*slot, l.qp->qp->qpn);
	core->late_news = false;
	lone_tx(&l);
	lone_wait(&l, 20000000000ull);
	assert_false(core->late_news);
	*slot = 0;
	lone_tx(&l);
	lone_wait(&l, 20000000000ull);
	assert_true(core->late_news);
}

/* Smaller requests were answered before: the path may not carry the larger ones. */
static void cause_retries__sizes(void **state)
{
	l.attr.retry_cnt = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 100, 0);
	lone_post(&l, ABI_WR_SEND, 2, 40, 0);
	lone_post(&l, ABI_WR_SEND, 3, 700, 0);
	lone_tx(&l);
	lone_ack(&l, 0x201, 2);
	let_it_fail();
	assert_true(note()->heard);
	assert_int_equal(note()->value, 256);
	assert_int_equal(note()->limit, 100);
	assert_int_equal(note()->wr_id, 3);
}

static void cause_retries__never_answered(void **state)
{
	l.attr.retry_cnt = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 100, 0);
	let_it_fail();
	assert_false(note()->heard);
	assert_int_equal(note()->value, 100);
	assert_int_equal(note()->limit, 0);
}

/* The same message got part of the way. */
static void cause_retries__in_the_middle(void **state)
{
	l.attr.retry_cnt = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 700, 0);
	lone_tx(&l);
	lone_ack(&l, 0x200, 0);
	let_it_fail();
	assert_int_equal(note()->limit, 256);
}

static void cause_response__each(void **state)
{
	for (int length = 0; length < 2; length++) {
		if (length) {
			lone_fini(&l);
			lone_setup_256(NULL);
		}
		lone_start(&l);
		lone_post(&l, ABI_WR_RDMA_READ, 3, 100, 0);
		lone_tx(&l);
		lone_rx(&l, &(struct shot){.opcode = length ? RESP_ONLY : RESP_MIDDLE,
				    .psn = 0x200,
				    .syndrome = 0x1F,
				    .len = length ? 64 : 256});
		assert_int_equal(note()->cause, length ? CAUSE_READ_LENGTH : CAUSE_READ_SEQUENCE);
		assert_int_equal(note()->value, length ? 64 : 256);
		assert_int_equal(note()->limit, 100);
	}
}

static void cause_plain__cq_overflow(void **state)
{
	l.cq_depth = 1;
	lone_start(&l);
	for (unsigned i = 0; i < 3; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, ABI_WQE_SIGNALED);
	lone_tx(&l);
	lone_ack(&l, 0x202, 3);
	assert_int_equal(note()->cause, CAUSE_CQ_OVERFLOW);
}

/* --- drops ------------------------------------------------------------------------------ */

static const struct drop_note *dropped(enum drop why)
{
	return &l.host->core.cfg.drops->note[why][l.qp->qp->qpn % DROP_NOTES];
}

static void drop_count__tells_of_the_packet(void **state)
{
	struct drop_note n;

	lone_start(&l);
	assert_false(drop_note_read(&n, dropped(DROP_PKEY)));
	for (int i = 0; i < 3; i++)
		lone_rx(&l, &(struct shot){.opcode = SEND_ONLY, .psn = 0x100, .pkey = 0x8001});
	assert_true(drop_note_read(&n, dropped(DROP_PKEY)));
	assert_int_equal(n.count, 3);
	assert_int_equal(n.dest_qp, l.qp->qp->qpn);
	assert_int_equal(n.pkey, 0x8001);
	assert_int_equal(n.qp_pkey, 0xFFFF);
	assert_int_equal(n.psn, 0x100);
	assert_int_equal(n.opcode, SEND_ONLY);
	assert_int_equal(n.state, ABI_QPS_RTS);
	assert_true(n.has_qp);
	assert_false(n.begun);
	assert_int_equal(n.time, l.now);
	assert_int_equal(l.host->core.count.drop[DROP_PKEY], 3);
}

/* The wire may be hostile: details are written seldom, and a flood for others takes no slot away.
 */
static void drop_count__seldom(void **state)
{
	uint64_t first;
	struct drop_note n;
	uint32_t version;

	lone_start(&l);
	first = l.now;
	lone_rx(&l, &(struct shot){.opcode = SEND_ONLY, .psn = 0x100, .pkey = 0x8001});
	version = dropped(DROP_PKEY)->version;
	lone_rx(&l, &(struct shot){.opcode = SEND_ONLY, .psn = 0x100, .pkey = 0x8002});
	assert_int_equal(dropped(DROP_PKEY)->version, version);
	lone_wait(&l, DROP_NOTE_NS - (l.now - first));
	lone_rx(&l, &(struct shot){.opcode = SEND_ONLY, .psn = 0x100, .pkey = 0x8003});
	assert_true(drop_note_read(&n, dropped(DROP_PKEY)));
	assert_int_equal(n.pkey, 0x8003);
	assert_int_equal(n.count, 3);
	/* another QPN of the same slot waits until the slot is old */
	for (unsigned i = 1; i < 100; i++)
		lone_rx(&l, &(struct shot){.opcode = SEND_ONLY,
				    .dest_qp = l.qp->qp->qpn + i * DROP_NOTES});
	assert_true(drop_note_read(&n, dropped(DROP_PKEY)));
	assert_int_equal(n.dest_qp, l.qp->qp->qpn);
	assert_true(drop_note_read(&n, dropped(DROP_QPN_UNKNOWN)));
	assert_int_equal(n.dest_qp, l.qp->qp->qpn + DROP_NOTES);
	assert_int_equal(n.count, 1);
	assert_false(n.has_qp);
}

static void drop_note_read__not_while_it_is_written(void **state)
{
	struct drop_note n;

	lone_start(&l);
	lone_rx(&l, &(struct shot){.opcode = SEND_ONLY, .psn = 0x100, .pkey = 0x8001});
	l.host->core.cfg.drops->note[DROP_PKEY][l.qp->qp->qpn % DROP_NOTES].version++;
	assert_false(drop_note_read(&n, dropped(DROP_PKEY)));
}

/* No loss explains what is older than the first PSN, before anything was taken. The peer is
 * answered as RSP-39 has it, and takes it for done. */
static void duplicate_request__before_the_first(void **state)
{
	struct drop_note n;

	lone_start(&l);
	lone_request(&l, SEND_ONLY, 0xF0, 0, 0, 4);
	assert_int_equal(l.verdict, DROP_PSN_BEHIND);
	assert_string_equal(lone_tx(&l), "ACK@ff1f/0");
	assert_true(drop_note_read(&n, dropped(DROP_PSN_BEHIND)));
	assert_int_equal(n.psn, 0xF0);
	assert_int_equal(n.epsn, 0x100);
	lone_request(&l, READ_REQ, 0xF1, 0, 4, 0);
	assert_int_equal(l.verdict, DROP_PSN_BEHIND);
	lone_request(&l, WRITE_ONLY, 0x100, 0, 4, 4);
	lone_request(&l, WRITE_ONLY, 0x100, 0, 4, 4);
	assert_int_equal(l.verdict, DROP_NONE);
	assert_int_equal(l.host->core.count.drop[DROP_PSN_BEHIND], 2);
	assert_int_equal(l.qp->qp->why.sq_psn, 0x200);
}

/* The lowest PSN, to which the peer goes back, until a request was good. */
static void cause_ahead__where_the_peer_begins(void **state)
{
	const struct qp_why *y;

	lone_start(&l);
	y = &l.qp->qp->why;
	lone_request(&l, WRITE_ONLY, 0x108, 0, 4, 4);
	for (unsigned i = 0; i < 3; i++) {
		lone_request(&l, WRITE_ONLY, 0x107, 0, 4, 4);
		lone_request(&l, WRITE_ONLY, 0x108, 0, 4, 4);
	}
	assert_int_equal(y->ahead_psn, 0x107);
	assert_int_equal(y->ahead_times, 3);
	lone_request(&l, WRITE_ONLY, 0x100, 0, 4, 4);
	lone_request(&l, WRITE_ONLY, 0x107, 0, 4, 4);
	assert_int_equal(y->ahead_times, 3);
}

static void cause_not_ready__since_the_last_good_one(void **state)
{
	const struct qp_why *y;

	lone_start(&l);
	y = &l.qp->qp->why;
	for (unsigned i = 0; i < 3; i++)
		lone_request(&l, SEND_ONLY, 0x100, 0, 0, 4);
	assert_int_equal(y->rnr_times, 3);
	assert_int_equal(y->rnr_psn, 0x100);
	assert_int_equal(y->rnr_opcode, SEND_ONLY);
	assert_int_equal(y->rnr_time, l.now);
	lone_recv(&l, 7, 0, 4);
	lone_request(&l, SEND_ONLY, 0x100, 0, 0, 4);
	lone_request(&l, SEND_ONLY, 0x101, 0, 0, 4);
	assert_int_equal(y->rnr_times, 1);
}

/* REQ-37: ignored, but the peer was heard. */
static void cause_old_ack__until_one_is_good(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	for (int i = 0; i < 3; i++)
		lone_ack(&l, 0xFFFFFF, 0);
	assert_int_equal(l.qp->qp->why.old_acks, 3);
	assert_int_equal(l.qp->qp->why.old_ack_psn, 0xFFFFFF);
	lone_ack(&l, 0x200, 1);
	lone_ack(&l, 0x1FF, 1);
	assert_int_equal(l.qp->qp->why.old_acks, 3);
}

#define T(f) cmocka_unit_test_setup_teardown(f, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(cause_rule__of_all),
		T(cause_request__each),
		T(cause_request__tells_the_range),
		T(cause_request__tells_of_the_region),
		T(cause_find__only_of_its_own_session),
		T(cause_request__first_counts),
		T(cause_publish__by_command),
		T(cause_wqe__key),
		T(cause_wqe__key_of_a_region_that_went_since),
		T(cause_wqe__refused),
		T(cause_wqe__rnr),
		T(cause_wqe__of_a_slot_that_was_used_before),
		T(qp_late__once),
		T(cause_retries__sizes),
		T(cause_retries__never_answered),
		T(cause_retries__in_the_middle),
		T(cause_response__each),
		T(cause_plain__cq_overflow),
		T(drop_count__tells_of_the_packet),
		T(drop_count__seldom),
		T(drop_note_read__not_while_it_is_written),
		T(duplicate_request__before_the_first),
		T(cause_ahead__where_the_peer_begins),
		T(cause_not_ready__since_the_last_good_one),
		T(cause_old_ack__until_one_is_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
