/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One frame that is late, doubled or damaged; then each impairment alone, all the time. Bounds of
 * the latter: the packets, for each impairment that is expected a window of packets sent in vain,
 * or a timeout where nothing else can tell.
 */
#include "headers.h"
#include "opcode.h"
#include "scenario_row.h"

/* The cost of impairments: n times half a window of 128. */
#define WASTED(n) ((n)*64 * PKT)

static const struct scenario row[] = {
	/* --- one frame ------------------------------------------------------------------------ */
	{
		/* it is only late, but what overtook it was dropped and is NAKed */
		.name = "request_late",
		.rules = "RSP-01 RSP-03",
		.end = {[A] = {.impair = {.reorder_ns = 1000}}},
		.work = {SEND_3},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_REORDER}},
		.count = {COUNT(B, out_of_sequence, ONE), COUNT(A, packet_seq_err, ONE)},
		.most = 5 * PKT + 2 * RTT,
	},
	{
		/* in one burst the second packet, the first, the third: the NAK is for the second
		 */
		.name = "request_late_in_a_burst",
		.rules = "RSP-02 RSP-03",
		.end = {[A] = {.impair = {.reorder_ns = 1200}}},
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 0, LINK_REORDER}},
		.event = {{0, STOP_HOST, B, 10 * USEC}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 10 * USEC + 2 * PKT + 2 * RTT,
		.trace = "A> SEND_FIRST 0 late\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> NAK 1 60 msn 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		/* when the resent packets are there, the late one is a duplicate */
		.name = "request_very_late",
		.rules = "RSP-39 RSP-44",
		.end = {[A] = {.impair = {.reorder_ns = 50 * USEC}}},
		.work = {SEND_3},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_REORDER}},
		.count = {COUNT(B, out_of_sequence, ONE), COUNT(B, duplicate_request, ONE),
			COUNT(B, rx_send_requests, ONE)},
		.most = 5 * PKT + 2 * RTT,
	},
	{
		.name = "request_twice",
		.rules = "RSP-39 REQ-37",
		.work = {{A, TRAFFIC_WRITE_IMM, 1, 3000, 0, 0}},
		.pick = {{A, ANY_OPCODE, 0, 0, 3, LINK_DUPLICATE}},
		.count = {COUNT(B, duplicate_request, N(3)), COUNT(B, rx_write_requests, ONE),
			COUNT(A, retransmits, NONE)},
		.most = 3 * PKT + RTT,
	},
	{
		/* in the middle of another message, which it must not touch */
		.name = "old_request_late_again",
		.rules = "RSP-39 RSP-44 RSP-25",
		.end = {[A] = {.impair = {.reorder_ns = 2000}}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}, {A, TRAFFIC_WRITE, 1, 5000, 0, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 0, LINK_DUPLICATE | LINK_REORDER}},
		.count = {COUNT(B, duplicate_request, ONE), COUNT(A, retransmits, NONE)},
		.most = 5 * PKT + 150 + RTT,
		.trace = "A> SEND_ONLY 0 twice late\n"
			 "A> WRITE_FIRST 1\n"
			 "A> WRITE_MIDDLE 2\n"
			 "A> WRITE_MIDDLE 3\n"
			 "A> WRITE_MIDDLE 4\n"
			 "A> WRITE_LAST 5\n"
			 "B> ACK 0 msn 1\n"
			 "B> ACK 2 msn 1\n"
			 "B> ACK 5 msn 2\n",
	},
	{
		.name = "read_request_twice",
		.rules = "RSP-40 REQ-39",
		.work = {READ_3},
		.pick = {{A, OP_READ_REQUEST, 0, 0, 0, LINK_DUPLICATE}},
		.count = {COUNT(B, duplicate_request, ONE), COUNT(A, retransmits, NONE)},
		.most = 6 * PKT + RTT,
	},
	{
		.name = "answers_twice",
		.rules = "REQ-37 REQ-36",
		.work = {SEND_3, READ_3, SEND_3},
		.pick = {{B, ANY_OPCODE, 0, 0, 5, LINK_DUPLICATE}},
		.count = {COUNT(A, retransmits, NONE)},
		.most = 9 * PKT + RTT,
	},
	{
		/* A has given up on it and sent again; then it comes, and the second one is old */
		.name = "ack_later_than_the_timeout",
		.rules = "REQ-24 REQ-37",
		.end = {[A] = {.timeout = VAL(4)}, [B] = {.impair = {.reorder_ns = T(4)}}},
		.work = {SEND_3},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_REORDER}},
		.count = {COUNT(A, local_ack_timeout_err, ONE), COUNT(A, rx_acks, N(2))},
		.least = T(4),
		.most = T(4) + 3 * PKT + RTT,
	},
	{
		.name = "nak_twice",
		.rules = "REQ-28",
		.end = {[A] = {.retry_cnt = VAL(1)}},
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE},
			{B, OP_ACKNOWLEDGE, NAK_PSN_SEQUENCE, 0, 0, LINK_DUPLICATE}},
		.count = {COUNT(A, packet_seq_err, N(2)), COUNT(A, retransmits, N(3))},
		.most = 6 * PKT + 2 * RTT,
	},
	{
		/* the wait does not begin anew, and costs one of one */
		.name = "rnr_nak_twice",
		.rules = "REQ-29 REQ-30",
		.end = {[A] = {.rnr_retry = VAL(1)},
			[B] = {.starved = true,
				.rnr_timer = VAL(14),
				.impair = {.reorder_ns = 200 * USEC}}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_DUPLICATE | LINK_REORDER}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, N(2))},
		.least = 1280 * USEC,
		.most = 1280 * USEC + TICK + 2 * RTT,
	},
	{
		.name = "request_corrupted",
		.rules = "ICRC-11 RSP-02",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_CORRUPT}},
		.count = {DROPS(B, ICRC, ONE), COUNT(A, packet_seq_err, ONE)},
		.most = 5 * PKT + 2 * RTT,
		.trace = "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1 corrupted\n"
			 "A> SEND_LAST 2\n"
			 "B> NAK 1 60 msn 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		.name = "response_truncated",
		.rules = "REQ-39 ETH-08",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_MIDDLE, 0, 0, 0, LINK_TRUNCATE}},
		.count = {DROPS(A, IP_LENGTH, ONE), COUNT(A, implied_nak_seq_err, ONE)},
		.most = 5 * PKT + 2 * RTT,
	},
	/* --- all the time --------------------------------------------------------------------- */
	{
		/* ten of 1,000; the timeout for one that was sent again, or the last */
		.name = "loss_of_requests",
		.rules = "REQ-28 RSP-03",
		.end = {[A] = {.impair = {.loss = 10000}, .timeout = VAL(8)}},
		.work = {{A, TRAFFIC_SEND, 100, 10000, 0, 0}},
		.count = {COUNT(A, retransmits, SOME), COUNT(A, packet_seq_err, SOME)},
		.most = 1000 * PKT + WASTED(10) + T(8),
	},
	{
		/* five of 500 responses, and of ACKs, which the next one makes good */
		.name = "loss_of_answers",
		.rules = "REQ-35 REQ-38 REQ-39",
		.end = {[A] = {.timeout = VAL(8)}, [B] = {.impair = {.loss = 10000}}},
		.work = {{A, TRAFFIC_READ, 50, 10000, 0, 0}, {A, TRAFFIC_WRITE, 50, 10000, 0, 0}},
		.count = {COUNT(A, implied_nak_seq_err, SOME)},
		.most = 1000 * PKT + WASTED(5) + T(8),
	},
	{
		/* Of 2,048 packets of each work item 102 are lost. The window is then as small as
		 * it gets, four packets; a loss of the last of them is not NAKed, nor is that of a
		 * packet that was NAKed before: up to half of them wait for a timeout. A's items
		 * come one after the other. */
		.name = "loss_of_5_percent_both_ways",
		.rules = "REQ-24 REQ-28 REQ-38 REQ-27",
		.end = {[A] = {.impair = {.loss = 50000}, .timeout = VAL(8)},
			[B] = {.impair = {.loss = 50000}, .timeout = VAL(8)}},
		.work = {{A, TRAFFIC_SEND, 2, 1 << 20, 0, 0}, {B, TRAFFIC_WRITE, 2, 1 << 20, 0, 0},
			{A, TRAFFIC_READ, 2, 1 << 20, 0, 0}},
		.count = {COUNT(A, packet_seq_err, SOME), COUNT(A, implied_nak_seq_err, SOME),
			COUNT(A, local_ack_timeout_err, TO(1, 102))},
		.most = 2 * 2048 * PKT + WASTED(2 * 102) / 8 + 102 * T(8),
	},
	{
		/* 10 and 20 packets per message, half of them twice: B sends 250, and 500 + 250
		   responses */
		.name = "duplicates",
		.rules = "RSP-39 REQ-37 RSP-40",
		.end = {[A] = {.impair = {.duplicate = 500000}},
			[B] = {.impair = {.duplicate = 500000}}},
		.work = {{A, TRAFFIC_SEND, 50, 5000, 0, 0}, {A, TRAFFIC_READ, 50, 5000, 0, 0},
			{B, TRAFFIC_WRITE_IMM, 50, 5000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(B, retransmits, NONE),
			COUNT(B, duplicate_request, SOME), COUNT(A, duplicate_request, SOME)},
		.most = 750 * PKT + 2 * RTT,
	},
	{
		/* 2 % of 1,000, by up to five packets */
		.name = "reordering",
		.rules = "RSP-01 RSP-03 REQ-39",
		.end = {[A] = {.impair = {.reorder = 20000, .reorder_ns = 5000}, .timeout = VAL(8)},
			[B] = {.impair = {.reorder = 20000, .reorder_ns = 5000}}},
		.work = {{A, TRAFFIC_SEND, 50, 10000, 0, 0}, {A, TRAFFIC_READ, 50, 10000, 0, 0}},
		.count = {COUNT(B, out_of_sequence, SOME), COUNT(A, implied_nak_seq_err, SOME),
			COUNT(A, local_ack_timeout_err, TO(0, 1))},
		.most = 1000 * PKT + WASTED(20) + T(8),
	},
	{
		/* a flipped bit is a loss, and the ICRC is what finds it */
		.name = "corruption",
		.rules = "ICRC-11 ICRC-12",
		.end = {[A] = {.impair = {.corrupt = 20000}, .timeout = VAL(8)},
			[B] = {.impair = {.corrupt = 20000}}},
		.work = {{A, TRAFFIC_SEND, 50, 10000, 0, 0}, {A, TRAFFIC_READ, 50, 10000, 0, 0}},
		.count = {DROPS(A, ICRC, SOME), DROPS(B, ICRC, SOME),
			COUNT(A, local_ack_timeout_err, TO(0, 5))},
		.most = 1000 * PKT + WASTED(20) + 5 * T(8),
	},
	{
		.name = "truncation",
		.rules = "ETH-08 VAL-18",
		.end = {[A] = {.impair = {.truncate = 20000}, .timeout = VAL(8)},
			[B] = {.impair = {.truncate = 20000}}},
		.work = {{A, TRAFFIC_SEND, 50, 10000, 0, 0}, {A, TRAFFIC_READ, 50, 10000, 0, 0}},
		.count = {DROPS(A, IP_LENGTH, SOME), DROPS(B, IP_LENGTH, SOME),
			COUNT(A, local_ack_timeout_err, TO(0, 5))},
		.most = 1000 * PKT + WASTED(20) + 5 * T(8),
	},
	{
		/* 1,000 packets and 150 small ones; 1 % of them stop the link for 50 us on average
		 */
		.name = "pauses_of_the_link",
		.rules = "REQ-22 REQ-23",
		.end = {[A] = {.impair = {.pause = 10000, .pause_ns = 100000}, .timeout = VAL(8)},
			[B] = {.impair = {.pause = 10000, .pause_ns = 100000}}},
		.work = {{A, TRAFFIC_SEND, 50, 10000, 0, 0}, {A, TRAFFIC_READ, 50, 10000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(B, duplicate_request, NONE)},
		.most = 1000 * PKT + 12 * 50 * USEC + RTT,
	},
	{
		/* 89 us a packet, room for 16 of them, 200 to send. A window of 128 that does not
		 * shrink would send again what is dropped again: on average no packet goes twice.
		 */
		.name = "slow_peer",
		.rules = "REQ-28",
		.rate_bps = 100000000,
		.end = {[A] = {.timeout = VAL(8), .queue_ns = 16 * 100 * PKT}},
		.work = {{A, TRAFFIC_WRITE, 2, 100 << 10, 0, 0}},
		.count = {COUNT(A, retransmits, TO(1, 400))},
		.least = 200 * 100 * 880,
		.most = 2 * 200 * 100 * PKT,
	},
	{
		.name = "all_impairments",
		.rules = "REQ-12 REQ-24 REQ-27 REQ-28 REQ-38 RSP-39 RSP-40",
		.end = {[A] = {.timeout = VAL(8),
				.impair = {.loss = 10000,
					.duplicate = 10000,
					.reorder = 10000,
					.reorder_ns = 20000,
					.corrupt = 5000,
					.truncate = 5000,
					.pause = 2000,
					.pause_ns = 50000}},
			[B] = {.timeout = VAL(8),
				.impair = {.loss = 10000,
					.duplicate = 10000,
					.reorder = 10000,
					.reorder_ns = 20000,
					.corrupt = 5000,
					.truncate = 5000,
					.pause = 2000,
					.pause_ns = 50000}}},
		.work = {{A, TRAFFIC_SEND, 100, 10000, 0, 0}, {B, TRAFFIC_WRITE, 100, 10000, 0, 0},
			{A, TRAFFIC_READ, 100, 10000, 0, 0},
			{B, TRAFFIC_WRITE_IMM, 100, 10000, 0, 0}},
		/* 2,000 packets of A's, of which 2 % are gone and 1 % late, some as the last in a
		 * window */
		.most = 3000 * PKT + WASTED(60) + 15 * T(8),
	},
};

const struct scenario_table scenario_impair = {row, ARRAY_SIZE(row)};
