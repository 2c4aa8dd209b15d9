/* SPDX-License-Identifier: BSD-3-Clause */
/* Retries that run out, or nearly; receivers that are not ready; workers and links that stop. */
#include "opcode.h"
#include "scenario_row.h"

static const struct scenario row[] = {
	/* --- ACK timeout ---------------------------------------------------------------------- */
	{
		.name = "retry_cnt_0",
		.rules = "REQ-22 REQ-26",
		.end = {[A] = {.retry_cnt = VAL(0)}},
		.work = {SEND_3},
		.event = {{0, CUT, A, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.count = {COUNT(A, local_ack_timeout_err, ONE), COUNT(A, retransmits, NONE),
			COUNT(A, retry_exceeded_err, ONE)},
		.least = T(14),
		.most = T(14) + TICK,
	},
	{
		/* a NAK costs a retry as well */
		.name = "retry_cnt_0_nak",
		.rules = "REQ-26 REQ-28",
		.end = {[A] = {.retry_cnt = VAL(0)}},
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.count = {COUNT(A, retransmits, NONE)},
		.most = 3 * PKT + RTT,
	},
	{
		.name = "retry_cnt_0_implied_nak",
		.rules = "REQ-26 REQ-38",
		.end = {[A] = {.retry_cnt = VAL(0)}},
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_FIRST, 0, 0, 0, LINK_LOSE}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.count = {COUNT(A, retransmits, NONE)},
		.most = 3 * PKT + RTT,
	},
	{
		.name = "retry_cnt_1",
		.rules = "REQ-24 REQ-26",
		.end = {[A] = {.retry_cnt = VAL(1)}},
		.work = {SEND_3},
		.event = {{0, CUT, B, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.count = {COUNT(A, local_ack_timeout_err, N(2)), COUNT(A, retransmits, N(3))},
		.least = 2 * T(14),
		.most = 2 * (T(14) + TICK),
	},
	{
		.name = "retry_cnt_1_suffices",
		.rules = "REQ-24 REQ-26",
		.end = {[A] = {.retry_cnt = VAL(1)}},
		.work = {SEND_3},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + TICK + 3 * PKT + RTT,
	},
	{
		.name = "retry_cnt_7_is_finite",
		.rules = "REQ-25 REQ-26",
		.end = {[A] = {.timeout = VAL(10)}},
		.work = {WRITE_3},
		.event = {{0, CUT, A, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.count = {COUNT(A, local_ack_timeout_err, N(8)), COUNT(A, retransmits, N(21))},
		.least = 8 * T(10),
		.most = 8 * (T(10) + TICK),
	},
	{
		.name = "retry_cnt_7_suffices",
		.rules = "REQ-25",
		.end = {[A] = {.timeout = VAL(10)}},
		.work = {WRITE_3},
		.pick = {{A, OP_WRITE_FIRST, 0, 0, 7, LINK_LOSE},
			{B, OP_ACKNOWLEDGE, 0, 0, 1, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, N(7))},
		.least = 7 * T(10),
		.most = 7 * (T(10) + TICK) + 3 * PKT + RTT,
	},
	{
		/* twice six of seven retries, with progress between */
		.name = "retries_are_reloaded",
		.rules = "REQ-27",
		.end = {[A] = {.timeout = VAL(10), .sq_depth = 1}},
		.work = {{A, TRAFFIC_SEND, 2, 100, 0, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 6, LINK_LOSE},
			{A, OP_SEND_ONLY, 0, 7, 6, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, N(12))},
		.least = 12 * T(10),
		.most = 12 * (T(10) + TICK) + 2 * RTT,
	},
	{
		/* 1,000 packets take ten times T(4), 65 us; each message far less */
		.name = "timer_restarts_on_progress",
		.rules = "REQ-23",
		.end = {[A] = {.timeout = VAL(4), .sq_depth = 4}},
		.work = {{A, TRAFFIC_SEND, 100, 10000, 0, 0}},
		.count = {COUNT(A, local_ack_timeout_err, NONE), COUNT(A, retransmits, NONE)},
		.most = 1000 * PKT + RTT,
	},
	{
		/* a response every 89 us, and an ACK of nothing but the last of 40 */
		.name = "timer_restarts_on_responses",
		.rules = "REQ-23",
		.rate_bps = 100000000,
		.end = {[A] = {.timeout = VAL(6)}},
		.work = {{A, TRAFFIC_READ, 1, 40 * 1024, 0, 0}},
		.count = {COUNT(A, local_ack_timeout_err, NONE), COUNT(B, duplicate_request, NONE)},
		.most = 40 * 100 * PKT + 2 * RTT,
	},
	{
		/* nothing is outstanding: nothing expires in the second that each row waits at its
		   end */
		.name = "timer_stops",
		.rules = "REQ-23",
		.end = {[A] = {.timeout = VAL(4), .retry_cnt = VAL(0)}},
		.work = {SEND_3, READ_3, WRITE_3},
		.count = {COUNT(A, local_ack_timeout_err, NONE)},
		.most = 9 * PKT + RTT,
	},
	{
		.name = "timeout_0_waits_for_ever",
		.rules = "REQ-22",
		.end = {[A] = {.timeout = VAL(0)}},
		.work = {{A, TRAFFIC_SEND, 1, 10, 0, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 0, LINK_LOSE}},
		.event = {{100 * SEC, TO_ERR, A, 0}},
		.status = {[A] = ABI_WC_WR_FLUSH_ERR},
		.count = {COUNT(A, retransmits, NONE), COUNT(A, local_ack_timeout_err, NONE)},
		.least = 100 * SEC,
		.most = 100 * SEC,
	},
	/* --- RNR ------------------------------------------------------------------------------ */
	{
		.name = "rnr_waits_its_timer",
		.rules = "REQ-29 REQ-32 RSP-16 RSP-26",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, ONE)},
		.least = 1280 * USEC + 8 * USEC,
		.most = 1280 * USEC + TICK + 2 * RTT,
		.trace = "A> SEND_ONLY 0\n"
			 "B> RNR 0 2E msn 0\n"
			 "A> SEND_ONLY 0\n"
			 "B> ACK 0 msn 1\n",
	},
	{
		.name = "rnr_code_0",
		.rules = "REQ-32",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(0)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, ONE)},
		.least = 655360 * USEC,
		.most = 655360 * USEC + TICK + 2 * RTT,
	},
	{
		/* soft-RoCE's table says 61,410 */
		.name = "rnr_code_25",
		.rules = "REQ-32",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(25)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, ONE)},
		.least = 61440 * USEC,
		.most = 61440 * USEC + TICK + 2 * RTT,
	},
	{
		.name = "rnr_code_31",
		.rules = "REQ-32",
		.end = {[A] = {.starved = true, .rnr_timer = VAL(31)}},
		.work = {{B, TRAFFIC_SEND_IMM, 1, 100, 0, 0}},
		.event = {{10 * USEC, GIVE_RECEIVES, A, 1}},
		.count = {COUNT(B, rnr_nak_recv, ONE)},
		.least = 491520 * USEC,
		.most = 491520 * USEC + TICK + 2 * RTT,
	},
	{
		.name = "rnr_retry_0",
		.rules = "REQ-30",
		.end = {[A] = {.rnr_retry = VAL(0)}, [B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.status = {[A] = ABI_WC_RNR_RETRY_EXC_ERR},
		.count = {COUNT(A, retransmits, NONE), COUNT(A, retry_rnr_exceeded_err, ONE)},
		.most = RTT,
	},
	{
		.name = "rnr_retry_1",
		.rules = "REQ-30",
		.end = {[A] = {.rnr_retry = VAL(1)}, [B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.status = {[A] = ABI_WC_RNR_RETRY_EXC_ERR},
		.count = {COUNT(A, rnr_nak_recv, N(2))},
		.least = 1280 * USEC,
		.most = 1280 * USEC + TICK + 2 * RTT,
	},
	{
		.name = "rnr_retry_1_suffices",
		.rules = "REQ-30",
		.end = {[A] = {.rnr_retry = VAL(1)}, [B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{1280 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, ONE)},
		.least = 1280 * USEC,
		.most = 1280 * USEC + TICK + 2 * RTT,
	},
	{
		/* 50 ms of waits of 0.96 ms each. With no retry at all and an ACK timer of 65 us,
		 * one that ran meanwhile would end it */
		.name = "rnr_retry_7_is_infinite",
		.rules = "REQ-30 REQ-31",
		.end = {[A] = {.retry_cnt = VAL(0), .timeout = VAL(4)},
			[B] = {.starved = true, .rnr_timer = VAL(13)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{50 * MSEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, TO(51, 53)),
			COUNT(A, local_ack_timeout_err, NONE)},
		.least = 50 * MSEC,
		.most = 50 * MSEC + 960 * USEC + TICK + 2 * RTT,
	},
	{
		/* two receives for eight messages of three packets; six more, when A has waited
		   once */
		.name = "rnr_in_a_burst",
		.rules = "RSP-16 RSP-18 REQ-29 REQ-34",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(5)}},
		.work = {{A, TRAFFIC_SEND, 8, 3000, 0, 0}},
		.event = {{0, GIVE_RECEIVES, B, 2}, {50 * USEC, GIVE_RECEIVES, B, 6}},
		.count = {COUNT(A, rnr_nak_recv, ONE), COUNT(A, packet_seq_err, NONE),
			COUNT(A, retransmits, N(18)), COUNT(B, rx_send_requests, N(8)),
			DROPS(B, RNR_PENDING, N(17))},
		.least = 60 * USEC,
		.most = 60 * USEC + TICK + 25 * PKT + 2 * RTT,
	},
	{
		/* its first packets need no receive request, and are not sent again */
		.name = "rnr_write_with_immediate",
		.rules = "RSP-17 RSP-19 REQ-29",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(5)}},
		.work = {{A, TRAFFIC_WRITE_IMM, 1, 3000, 0, 0}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}},
		.least = 60 * USEC,
		.most = 60 * USEC + TICK + 4 * PKT + 2 * RTT,
		.trace = "A> WRITE_FIRST 0\n"
			 "A> WRITE_MIDDLE 1\n"
			 "A> WRITE_LAST_WITH_IMM 2\n"
			 "B> RNR 2 25 msn 0\n"
			 "A> WRITE_LAST_WITH_IMM 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		.name = "rnr_write_only_with_immediate",
		.rules = "RSP-17 RSP-16 REQ-29",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(5)}},
		.work = {{A, TRAFFIC_WRITE_IMM, 1, 100, 0, 0}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}},
		.least = 60 * USEC,
		.most = 60 * USEC + TICK + 2 * RTT,
		.trace = "A> WRITE_ONLY_WITH_IMM 0\n"
			 "B> RNR 0 25 msn 0\n"
			 "A> WRITE_ONLY_WITH_IMM 0\n"
			 "B> ACK 0 msn 1\n",
	},
	{
		/* when the flow continues, a loss is NAKed again */
		.name = "loss_after_rnr",
		.rules = "RSP-18 RSP-02",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(5)}},
		.work = {{A, TRAFFIC_SEND, 1, 5000, 0, 0}},
		.pick = {{A, OP_SEND_MIDDLE, 0, 4, 0, LINK_LOSE}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, ONE), COUNT(A, packet_seq_err, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.least = 60 * USEC,
		.most = 60 * USEC + TICK + 10 * PKT + 3 * RTT,
	},
	{
		/* three messages wait twice each, though only twice in a row is allowed */
		.name = "rnr_retries_are_reloaded",
		.rules = "REQ-31",
		.end = {[A] = {.rnr_retry = VAL(2), .sq_depth = 1},
			[B] = {.starved = true, .rnr_timer = VAL(5)}},
		.work = {{A, TRAFFIC_SEND, 3, 100, 0, 0}},
		.event = {{100 * USEC, GIVE_RECEIVES, B, 1}, {230 * USEC, GIVE_RECEIVES, B, 1},
			{360 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, N(6))},
		.least = 6 * 60 * USEC,
		.most = 6 * (60 * USEC + TICK) + 9 * RTT,
	},
	/* --- pauses --------------------------------------------------------------------------- */
	{
		/* what came meanwhile is received before timers expire: it costs no retry */
		.name = "requester_stops_60_ms",
		.rules = "REQ-22 REQ-23",
		.end = {[A] = {.timeout = VAL(8), .retry_cnt = VAL(0)}},
		.work = {{A, TRAFFIC_WRITE, 20, 20000, 0, 0}},
		.event = {{50 * USEC, STOP_HOST, A, 60 * MSEC}},
		.count = {COUNT(A, local_ack_timeout_err, NONE), COUNT(A, retransmits, NONE)},
		.least = 60 * MSEC,
		.most = 60 * MSEC + 50 * USEC + 400 * PKT + RTT,
	},
	{
		/* if an ACK is missing, 60 timeouts that passed cost one retry */
		.name = "requester_stops_while_a_packet_is_lost",
		.rules = "REQ-24",
		.end = {[A] = {.timeout = VAL(8), .retry_cnt = VAL(1)}},
		.work = {SEND_3},
		.pick = {{A, OP_SEND_LAST, 0, 0, 0, LINK_LOSE}},
		.event = {{3 * USEC, STOP_HOST, A, 60 * MSEC}},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = 60 * MSEC,
		.most = 60 * MSEC + 3 * USEC + 3 * PKT + RTT,
	},
	{
		/* seven retries of T(12), 16.8 ms, outlast it; what they repeat is not executed
		   again */
		.name = "responder_stops_60_ms",
		.rules = "REQ-24 RSP-39",
		.end = {[A] = {.timeout = VAL(12)}},
		.work = {{A, TRAFFIC_SEND, 20, 20000, 0, 0}},
		.event = {{50 * USEC, STOP_HOST, B, 60 * MSEC}},
		.count = {COUNT(A, local_ack_timeout_err, N(3)), COUNT(B, rx_send_requests, N(20))},
		.least = 60 * MSEC,
		.most = 60 * MSEC + 50 * USEC + 2 * 400 * PKT + 2 * RTT,
	},
	{
		.name = "both_stop_60_ms",
		.rules = "REQ-22 REQ-24",
		.end = {[A] = {.timeout = VAL(8), .retry_cnt = VAL(1)}},
		.work = {{A, TRAFFIC_READ, 20, 20000, 0, 0}},
		.event = {{50 * USEC, STOP_HOST, A, 60 * MSEC},
			{50 * USEC, STOP_HOST, B, 60 * MSEC}},
		.least = 60 * MSEC,
		.most = 60 * MSEC + 50 * USEC + 2 * 400 * PKT + 2 * RTT,
	},
	{
		.name = "requester_stops_in_an_rnr_wait",
		.rules = "REQ-29 REQ-31",
		.end = {[A] = {.retry_cnt = VAL(0), .timeout = VAL(4)},
			[B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}, {10 * USEC, STOP_HOST, A, 60 * MSEC}},
		.count = {COUNT(A, rnr_nak_recv, ONE), COUNT(A, local_ack_timeout_err, NONE)},
		.least = 60 * MSEC,
		.most = 60 * MSEC + 10 * USEC + RTT,
	},
	{
		/* shorter than the timeout: it only takes longer */
		.name = "link_stops_60_ms",
		.rules = "REQ-22",
		.work = {{A, TRAFFIC_SEND, 20, 20000, 0, 0}},
		.event = {{50 * USEC, STOP_LINK, A, 60 * MSEC}},
		.count = {COUNT(A, local_ack_timeout_err, NONE), COUNT(A, retransmits, NONE)},
		.least = 60 * MSEC,
		.most = 60 * MSEC + 400 * PKT + RTT,
	},
};

const struct scenario_table scenario_timers = {row, ARRAY_SIZE(row)};
