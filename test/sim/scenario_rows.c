/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scenarios. Unless a row says otherwise: path MTU 1024, 10 Gb/s and 2 us each way, ACK timeout
 * code 14 (67.1 ms), seven retries, RNR retry infinite, RNR timer code 1 (10 us), 16 READs.
 *
 * Bounds: a frame of 1024 bytes takes 0.9 us on the wire, so a message of a few packets and its ACK
 * take RT; each recovery by NAK takes another RT, each by timeout a T(code). Timers may be late by
 * TICK.
 */
#include <stddef.h>
#include "bits.h"
#include "scenario.h"

#define T(code) (4096ull << (code)) /* REQ-22 */
#define RT	(10 * USEC)
#define TICK	(10 * USEC)
#define ONE	1, 1
#define NONE	0, 0
#define SOME	1, UINT64_MAX

/* Three packets each way. */
#define SEND_3                                 \
	{                                      \
		A, TRAFFIC_SEND, 1, 3000, 0, 0 \
	}
#define WRITE_3                                 \
	{                                       \
		A, TRAFFIC_WRITE, 1, 3000, 0, 0 \
	}
#define READ_3                                 \
	{                                      \
		A, TRAFFIC_READ, 1, 3000, 0, 0 \
	}

const struct scenario scenario_table[] = {
	/* --- nothing goes wrong --------------------------------------------------------------- */
	{
		.name = "send",
		.rules = "REQ-01 REQ-03 RSP-23 RSP-25",
		.work = {SEND_3},
		.most = RT,
		.trace = "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		.name = "send_empty",
		.rules = "REQ-02",
		.work = {{A, TRAFFIC_SEND, 1, 0, 0, 0}},
		.most = RT,
		.trace = "A> SEND_ONLY 0\nB> ACK 0 msn 1\n",
	},
	{
		.name = "write_with_immediate",
		.rules = "REQ-01 REQ-06 RSP-19",
		.work = {{A, TRAFFIC_WRITE_IMM, 1, 2048, 0, 0}},
		.most = RT,
		.trace = "A> WRITE_FIRST 0\nA> WRITE_LAST_WITH_IMM 1\nB> ACK 1 msn 1\n",
	},
	{
		.name = "read",
		.rules = "REQ-04 RSP-28 RSP-29",
		.work = {READ_3, {A, TRAFFIC_SEND, 1, 1, 0, 0}},
		.most = RT,
		.trace = "A> READ_REQUEST 0 len 3000\n"
			 "A> SEND_ONLY 3\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_MIDDLE 1\n"
			 "B> READ_RESP_LAST 2\n"
			 "B> ACK 3 msn 2\n",
	},
	{
		.name = "read_empty",
		.rules = "RSP-28",
		.work = {{A, TRAFFIC_READ, 1, 0, 0, 0}},
		.most = RT,
		.trace = "A> READ_REQUEST 0 len 0\nB> READ_RESP_ONLY 0\n",
	},
	{
		/* 4,096 packets of 338 bytes and gap: 1.11 ms; the window of 128 never closes if
		 * ACKs are asked for in time */
		.name = "write_many_packets",
		.rules = "REQ-51",
		.mtu = 256,
		.work = {{A, TRAFFIC_WRITE, 1, 1 << 20, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(A, local_ack_timeout_err, NONE),
			COUNT(A, tx_packets, 4096, 4096)},
		.most = 1200 * USEC,
	},
	{
		.name = "solicited",
		.rules = "BTH-09 RSP-51",
		.work = {{A, TRAFFIC_SEND, 2, 3000, ABI_WQE_SOLICITED, 0},
			{A, TRAFFIC_WRITE_IMM, 2, 3000, ABI_WQE_SOLICITED, 0},
			{A, TRAFFIC_WRITE, 2, 3000, ABI_WQE_SOLICITED, 0}},
		.most = 3 * RT,
	},
	{
		.name = "both_ways",
		.rules = "RSP-25 REQ-12",
		.work = {{A, TRAFFIC_SEND, 100, 5000, 0, 0}, {B, TRAFFIC_WRITE, 100, 5000, 0, 0},
			{A, TRAFFIC_READ, 20, 9000, 0, 0}, {B, TRAFFIC_SEND_IMM, 20, 9000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(B, retransmits, NONE)},
		.most = 1500 * USEC,
	},
	{
		.name = "psn_wraps",
		.rules = "BTH-15",
		.end = {[A] = {.sq_psn = VAL(0xFFFFFE)}},
		.work = {{A, TRAFFIC_SEND, 20, 3000, 0, 0}, {A, TRAFFIC_READ, 20, 3000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE)},
		.most = 200 * USEC,
	},
	/* --- a request is lost ---------------------------------------------------------------- */
	{
		.name = "send_first_lost",
		.rules = "RSP-02 RSP-03 REQ-28",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(B, out_of_sequence, 2, 2),
			COUNT(A, retransmits, 3, 3), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RT,
		.trace = "A> SEND_FIRST 0 lost\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> NAK 0 60 msn 0\n"
			 "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		.name = "send_middle_lost",
		.rules = "REQ-28 REQ-49",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, retransmits, 2, 2)},
		.most = 2 * RT,
		.trace = "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1 lost\n"
			 "A> SEND_LAST 2\n"
			 "B> NAK 1 60 msn 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		.name = "send_last_lost",
		.rules = "REQ-22 REQ-24",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_LAST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
		.trace = "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2 lost\n"
			 "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		.name = "write_first_lost",
		.rules = "REQ-28 REQ-48",
		.work = {WRITE_3},
		.pick = {{A, OP_WRITE_FIRST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RT,
	},
	{
		.name = "write_middle_lost",
		.rules = "REQ-49 RSP-44",
		.work = {WRITE_3},
		.pick = {{A, OP_WRITE_MIDDLE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RT,
	},
	{
		.name = "write_last_lost",
		.rules = "REQ-24",
		.work = {{A, TRAFFIC_WRITE_IMM, 1, 3000, 0, 0}},
		.pick = {{A, OP_WRITE_LAST_WITH_IMM, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
	},
	{
		.name = "resent_packet_lost",
		.rules = "RSP-03 REQ-24",
		.work = {{A, TRAFFIC_SEND, 1, 6000, 0, 0}},
		/* the NAK was sent; the same packet lost again is not NAKed again */
		.pick = {{A, OP_SEND_FIRST, 0, 0, 2, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + 3 * RT + TICK,
	},
	{
		.name = "two_losses_two_naks",
		.rules = "RSP-03",
		.work = {{A, TRAFFIC_SEND, 1, 8000, 0, 0}},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_LOSE},
			{A, OP_SEND_MIDDLE, 0, 9, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, 2, 2), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 5 * RT,
	},
	{
		/* the copy of the first message comes when the NAK is out */
		.name = "duplicate_behind_a_nak",
		.rules = "RSP-04 RSP-03",
		.end = {[A] = {.faults = {.reorder_ns = 5000}}},
		.work = {{A, TRAFFIC_SEND, 1, 10, 0, 0}, {A, TRAFFIC_SEND, 1, 9000, 0, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 0, LINK_DUPLICATE | LINK_REORDER},
			{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(B, duplicate_request, ONE)},
		.most = 3 * RT,
	},
	{
		/* one burst: the second packet, the first, the third */
		.name = "late_packet_in_a_burst",
		.rules = "RSP-02 RSP-03",
		.end = {[A] = {.faults = {.reorder_ns = 1200}}},
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 0, LINK_REORDER}},
		.event = {{0, STOP_HOST, B, 2 * RT}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 4 * RT,
		.trace = "A> SEND_FIRST 0 late\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> NAK 1 60 msn 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	/* --- what answers it is lost ---------------------------------------------------------- */
	{
		.name = "ack_lost",
		.rules = "REQ-24 RSP-39",
		.work = {SEND_3},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE), COUNT(B, duplicate_request, SOME),
			COUNT(B, rx_send_requests, ONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
	},
	{
		.name = "ack_of_duplicate_lost",
		.rules = "RSP-39 REQ-27",
		.work = {{A, TRAFFIC_WRITE, 1, 10, 0, 0}},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 2, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, 2, 2), COUNT(B, duplicate_request, 2, 2)},
		.least = 2 * T(14),
		.most = 2 * T(14) + RT + 2 * TICK,
	},
	{
		.name = "ack_lost_next_covers",
		.rules = "REQ-35",
		.end = {[A] = {.sq_depth = 8}},
		.work = {{A, TRAFFIC_SEND, 8, 100, 0, 0}},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_REORDER | LINK_LOSE}},
		.event = {{500 * USEC, NOTHING, 0, 0}},
		.count = {COUNT(B, rx_send_requests, 8, 8)},
		.most = T(14) + RT + TICK,
	},
	{
		.name = "nak_lost",
		.rules = "RSP-03 REQ-24",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE},
			{B, OP_ACKNOWLEDGE, 0x60, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, NONE), COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
	},
	{
		.name = "rnr_nak_lost",
		.rules = "RSP-18 REQ-24",
		.end = {[B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 1, 10, 0, 0}},
		.pick = {{B, OP_ACKNOWLEDGE, 0x21, 0, 0, LINK_LOSE}},
		.event = {{RT, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, NONE), COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
	},
	/* --- READ ----------------------------------------------------------------------------- */
	{
		.name = "read_request_lost",
		.rules = "REQ-24",
		.work = {READ_3},
		.pick = {{A, OP_READ_REQUEST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
	},
	{
		.name = "read_response_first_lost",
		.rules = "REQ-39 RSP-40",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_FIRST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RT,
	},
	{
		.name = "read_response_middle_lost",
		.rules = "REQ-39 REQ-41 RSP-43",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_MIDDLE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RT,
		.trace = "A> READ_REQUEST 0 len 3000\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_MIDDLE 1 lost\n"
			 "B> READ_RESP_LAST 2\n"
			 "A> READ_REQUEST 1 len 1976\n"
			 "B> READ_RESP_FIRST 1\n"
			 "B> READ_RESP_LAST 2\n",
	},
	{
		.name = "read_response_last_lost",
		.rules = "REQ-39 REQ-41 RSP-43",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_LAST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
		.trace = "A> READ_REQUEST 0 len 3000\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_MIDDLE 1\n"
			 "B> READ_RESP_LAST 2 lost\n"
			 "A> READ_REQUEST 2 len 952\n"
			 "B> READ_RESP_ONLY 2\n",
	},
	{
		.name = "read_tail_lost_again",
		.rules = "REQ-39 RSP-43",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_LAST, 0, 0, 0, LINK_LOSE},
			{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, 2, 2)},
		.least = 2 * T(14),
		.most = 2 * T(14) + RT + 2 * TICK,
	},
	{
		.name = "read_lost_ack_behind",
		.rules = "REQ-38",
		.work = {{A, TRAFFIC_READ, 1, 100, 0, 0}, {A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.pick = {{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RT,
		.trace = "A> READ_REQUEST 0 len 100\n"
			 "A> SEND_ONLY 1\n"
			 "B> READ_RESP_ONLY 0 lost\n"
			 "B> ACK 1 msn 2\n"
			 "A> READ_REQUEST 0 len 100\n"
			 "A> SEND_ONLY 1\n"
			 "B> READ_RESP_ONLY 0\n"
			 "B> ACK 1 msn 2\n",
	},
	{
		.name = "read_lost_duplicate_write_behind",
		.rules = "RSP-27 RSP-39 REQ-38",
		.work = {{A, TRAFFIC_WRITE, 1, 100, 0, 0}, {A, TRAFFIC_READ, 1, 100, 0, 0}},
		/* the WRITE's duplicate comes when the READ's response is out and lost */
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_LOSE},
			{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE},
			{A, OP_WRITE_ONLY, 0, 0, 0, LINK_DUPLICATE}},
		.most = T(14) + RT + TICK,
	},
	{
		/* each READ waits for the one before it: 20 round trips of 4.3 us */
		.name = "reads_one_at_a_time",
		.rules = "REQ-08",
		.end = {[A] = {.rd_atomic = 1}},
		.work = {{A, TRAFFIC_READ, 20, 100, 0, 0}},
		.least = 20 * 4 * USEC,
		.most = 20 * 5 * USEC,
	},
	{
		.name = "reads_at_the_limit",
		.rules = "REQ-08 RSP-30",
		.end = {[A] = {.rd_atomic = 4}},
		.work = {{A, TRAFFIC_READ, 40, 2000, 0, 0}, {A, TRAFFIC_SEND, 1, 1, 0, 0}},
		.count = {COUNT(A, retransmits, NONE)},
		.most = 10 * RT,
	},
	{
		.name = "fence_waits_for_read",
		.rules = "REQ-10",
		.work = {{A, TRAFFIC_READ, 1, 2000, 0, 0},
			{A, TRAFFIC_SEND, 1, 10, ABI_WQE_FENCE, 0}},
		.most = 2 * RT,
		.trace = "A> READ_REQUEST 0 len 2000\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_LAST 1\n"
			 "A> SEND_ONLY 2\n"
			 "B> ACK 2 msn 2\n",
	},
	{
		.name = "read_across_the_psn_wrap",
		.rules = "BTH-15 REQ-39",
		.end = {[A] = {.sq_psn = VAL(0xFFFFFF)}},
		.work = {{A, TRAFFIC_READ, 1, 5000, 0, 0}},
		.pick = {{B, OP_READ_RESP_MIDDLE, 0, 1, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 3 * RT,
	},
	{
		/* responses fill the link when the SEND arrives: 1,024 frames of 0.9 us */
		.name = "ack_waits_for_read",
		.rules = "RSP-27",
		.work = {{A, TRAFFIC_READ, 1, 1 << 20, 0, 0}, {A, TRAFFIC_SEND, 1, 1, 0, 0}},
		.count = {COUNT(A, implied_nak_seq_err, NONE), COUNT(A, retransmits, NONE)},
		.most = 1024 * USEC,
	},
	/* --- retries run out, or nearly ------------------------------------------------------- */
	{
		.name = "retry_cnt_0",
		.rules = "REQ-26",
		.end = {[A] = {.retry_cnt = VAL(0)}},
		.work = {SEND_3},
		.event = {{0, CUT, A, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.count = {COUNT(A, local_ack_timeout_err, ONE), COUNT(A, retransmits, NONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
	},
	{
		.name = "retry_cnt_1",
		.rules = "REQ-24 REQ-26",
		.end = {[A] = {.retry_cnt = VAL(1)}},
		.work = {SEND_3},
		.event = {{0, CUT, B, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.count = {COUNT(A, local_ack_timeout_err, 2, 2), COUNT(A, retransmits, 3, 3)},
		.least = 2 * T(14),
		.most = 2 * T(14) + RT + 2 * TICK,
	},
	{
		.name = "retry_cnt_7_is_finite",
		.rules = "REQ-25 REQ-26",
		.end = {[A] = {.timeout = VAL(10)}},
		.work = {WRITE_3},
		.event = {{0, CUT, A, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.count = {COUNT(A, local_ack_timeout_err, 8, 8)},
		.least = 8 * T(10),
		.most = 8 * T(10) + RT + 8 * TICK,
	},
	{
		.name = "retry_cnt_7_suffices",
		.rules = "REQ-25 REQ-27",
		.end = {[A] = {.timeout = VAL(10)}},
		.work = {WRITE_3},
		.event = {{0, CUT, A, 0}, {7 * T(10) - USEC, MEND, A, 0}},
		.count = {COUNT(A, local_ack_timeout_err, 7, 7)},
		.least = 7 * T(10),
		.most = 7 * T(10) + RT + 7 * TICK,
	},
	{
		/* twice six of seven retries, with progress between */
		.name = "retries_are_reloaded",
		.rules = "REQ-27",
		.end = {[A] = {.timeout = VAL(10), .sq_depth = 1}},
		.work = {{A, TRAFFIC_SEND, 2, 100, 0, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 6, LINK_LOSE},
			{A, OP_SEND_ONLY, 0, 7, 6, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, 12, 12)},
		.least = 12 * T(10),
		.most = 12 * T(10) + 2 * RT + 12 * TICK,
	},
	{
		.name = "timer_restarts_on_progress",
		.rules = "REQ-23",
		/* 100 messages of 8.9 us each outlast T(4), 65 us, ten times */
		.end = {[A] = {.timeout = VAL(4), .sq_depth = 4}},
		.work = {{A, TRAFFIC_SEND, 100, 10000, 0, 0}},
		.count = {COUNT(A, local_ack_timeout_err, NONE)},
		.least = 800 * USEC,
		.most = 1000 * USEC,
	},
	{
		.name = "timeout_0_waits_for_ever",
		.rules = "REQ-22",
		.end = {[A] = {.timeout = VAL(0)}},
		.work = {{A, TRAFFIC_SEND, 1, 10, 0, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 0, LINK_LOSE}},
		.event = {{100 * SEC, TO_ERR, A, 0}},
		.status = {[A] = ABI_WC_WR_FLUSH_ERR},
		.count = {COUNT(A, retransmits, NONE)},
		.least = 100 * SEC,
		.most = 100 * SEC + RT,
	},
	/* --- the receiver is not ready -------------------------------------------------------- */
	{
		.name = "rnr_waits_its_timer",
		.rules = "REQ-29 REQ-32 RSP-16",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{RT, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, ONE)},
		.least = 1280 * USEC,
		.most = 1280 * USEC + RT + TICK,
		.trace = "A> SEND_ONLY 0\nB> RNR 0 2E msn 0\nA> SEND_ONLY 0\nB> ACK 0 msn 1\n",
	},
	{
		.name = "rnr_code_0",
		.rules = "REQ-32",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(0)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{RT, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, ONE)},
		.least = 655360 * USEC,
		.most = 655360 * USEC + RT + TICK,
	},
	{
		.name = "rnr_retry_0",
		.rules = "REQ-30",
		.end = {[A] = {.rnr_retry = VAL(0)}, [B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.status = {[A] = ABI_WC_RNR_RETRY_EXC_ERR},
		.most = RT,
	},
	{
		.name = "rnr_retry_1",
		.rules = "REQ-30",
		.end = {[A] = {.rnr_retry = VAL(1)}, [B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.status = {[A] = ABI_WC_RNR_RETRY_EXC_ERR},
		.count = {COUNT(A, rnr_nak_recv, 2, 2)},
		.least = 1280 * USEC,
		.most = 1280 * USEC + RT + TICK,
	},
	{
		/* REQ-31: with no retry at all a wait that cost one would end it */
		.name = "rnr_retry_7_is_infinite",
		.rules = "REQ-30 REQ-31",
		.end = {[A] = {.retry_cnt = VAL(0), .timeout = VAL(4)},
			[B] = {.starved = true, .rnr_timer = VAL(13)}},
		.work = {{A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{50 * MSEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, 50, 53), COUNT(A, local_ack_timeout_err, NONE)},
		.least = 50 * MSEC,
		.most = 51 * MSEC + RT + TICK,
	},
	{
		.name = "rnr_in_a_burst",
		.rules = "RSP-18 RSP-16 REQ-29",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(5)}},
		.work = {{A, TRAFFIC_SEND, 8, 3000, 0, 0}},
		.event = {{0, GIVE_RECEIVES, B, 2}, {5 * RT, GIVE_RECEIVES, B, 6}},
		.count = {COUNT(A, rnr_nak_recv, SOME), COUNT(A, local_ack_timeout_err, NONE),
			COUNT(B, rx_send_requests, 8, 8)},
		.most = 25 * RT,
	},
	{
		.name = "rnr_write_with_immediate",
		.rules = "RSP-17",
		.end = {[B] = {.starved = true, .rnr_timer = VAL(5)}},
		.work = {{A, TRAFFIC_WRITE_IMM, 1, 3000, 0, 0}},
		.event = {{RT, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, SOME)},
		.least = 60 * USEC,
		.most = 60 * USEC + 2 * RT + TICK,
		.trace = "A> WRITE_FIRST 0\n"
			 "A> WRITE_MIDDLE 1\n"
			 "A> WRITE_LAST_WITH_IMM 2\n"
			 "B> RNR 2 25 msn 0\n"
			 "A> WRITE_LAST_WITH_IMM 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		.name = "rnr_finite_with_progress",
		.rules = "REQ-31",
		.end = {[A] = {.rnr_retry = VAL(2), .sq_depth = 1},
			[B] = {.starved = true, .rnr_timer = VAL(5)}},
		.work = {{A, TRAFFIC_SEND, 3, 100, 0, 0}},
		.event = {{100 * USEC, GIVE_RECEIVES, B, 1}, {220 * USEC, GIVE_RECEIVES, B, 1},
			{340 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, 4, 6)},
		.least = 340 * USEC,
		.most = 500 * USEC,
	},
	/* --- each fault alone, all the time --------------------------------------------------- */
	{
		/* 1,000 packets; a loss costs a round trip, that of what recovers it a T(8) */
		.name = "loss_1_percent",
		.rules = "REQ-28",
		.end = {[A] = {.faults = {.loss = 10000}, .timeout = VAL(8)}},
		.work = {{A, TRAFFIC_SEND, 100, 10000, 0, 0}},
		.count = {COUNT(A, retransmits, SOME)},
		.most = 1000 * USEC + 20 * RT + 5 * T(8),
	},
	{
		.name = "loss_1_percent_of_answers",
		.rules = "REQ-35 RSP-39",
		.end = {[B] = {.faults = {.loss = 10000}}, [A] = {.timeout = VAL(8)}},
		.work = {{A, TRAFFIC_READ, 50, 10000, 0, 0}, {A, TRAFFIC_WRITE, 50, 10000, 0, 0}},
		.count = {COUNT(A, retransmits, SOME)},
		.most = 1000 * USEC + 20 * RT + 5 * T(8),
	},
	{
		/* 4,096 packets each way; 205 losses each, of which one in ten is that of a
		 * retransmission or NAK and waits for a timeout */
		.name = "loss_5_percent_both_ways",
		.rules = "REQ-24 REQ-28 REQ-38",
		.end = {[A] = {.faults = {.loss = 50000}, .timeout = VAL(8)},
			[B] = {.faults = {.loss = 50000}, .timeout = VAL(8)}},
		.work = {{A, TRAFFIC_SEND, 2, 1 << 20, 0, 0}, {B, TRAFFIC_WRITE, 2, 1 << 20, 0, 0},
			{A, TRAFFIC_READ, 2, 1 << 20, 0, 0}},
		.count = {COUNT(A, packet_seq_err, SOME), COUNT(A, implied_nak_seq_err, SOME),
			COUNT(A, local_ack_timeout_err, SOME)},
		.most = 8 * MSEC + 600 * RT + 90 * T(8),
	},
	{
		.name = "duplicates",
		.rules = "RSP-39 REQ-36",
		.end = {[A] = {.faults = {.duplicate = 500000}},
			[B] = {.faults = {.duplicate = 500000}}},
		.work = {{A, TRAFFIC_SEND, 50, 5000, 0, 0}, {A, TRAFFIC_READ, 50, 5000, 0, 0},
			{B, TRAFFIC_WRITE_IMM, 50, 5000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(B, duplicate_request, SOME)},
		.most = 2 * MSEC,
	},
	{
		.name = "reordering",
		.rules = "RSP-01 RSP-03",
		.end = {[A] = {.faults = {.reorder = 20000, .reorder_ns = 5000}, .timeout = VAL(8)},
			[B] = {.faults = {.reorder = 20000, .reorder_ns = 5000}}},
		.work = {{A, TRAFFIC_SEND, 50, 10000, 0, 0}, {A, TRAFFIC_READ, 50, 10000, 0, 0}},
		.count = {COUNT(B, out_of_sequence, SOME)},
		.most = 1000 * USEC + 50 * RT + 5 * T(8),
	},
	{
		.name = "corruption",
		.rules = "ICRC-11",
		.end = {[A] = {.faults = {.corrupt = 20000}, .timeout = VAL(8)},
			[B] = {.faults = {.corrupt = 20000}}},
		.work = {{A, TRAFFIC_SEND, 50, 10000, 0, 0}, {A, TRAFFIC_READ, 50, 10000, 0, 0}},
		.count = {DROPS(B, DROP_ICRC, SOME), DROPS(A, DROP_ICRC, SOME)},
		.most = 1000 * USEC + 50 * RT + 8 * T(8),
	},
	{
		.name = "truncation",
		.rules = "ETH-08 VAL-18",
		.end = {[A] = {.faults = {.truncate = 20000}, .timeout = VAL(8)},
			[B] = {.faults = {.truncate = 20000}}},
		.work = {{A, TRAFFIC_SEND, 50, 10000, 0, 0}, {A, TRAFFIC_READ, 50, 10000, 0, 0}},
		.count = {COUNT(A, retransmits, SOME)},
		.most = 1000 * USEC + 50 * RT + 8 * T(8),
	},
	{
		.name = "pauses_of_the_link",
		.rules = "REQ-23",
		.end = {[A] = {.faults = {.pause = 10000, .pause_ns = 100000}},
			[B] = {.faults = {.pause = 10000, .pause_ns = 100000}}},
		.work = {{A, TRAFFIC_SEND, 50, 10000, 0, 0}, {A, TRAFFIC_READ, 50, 10000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(B, retransmits, NONE)},
		.most = 1000 * USEC + 30 * 100 * USEC,
	},
	{
		/* 89 us a packet, and room for 16: a window of 128 that does not shrink only
		 * repeats itself; 200 packets take 18 ms */
		.name = "slow_bottleneck",
		.rules = "REQ-51",
		.rate_bps = 100000000,
		.end = {[A] = {.timeout = VAL(8), .queue_ns = 16 * 89000}},
		.work = {{A, TRAFFIC_WRITE, 2, 100 << 10, 0, 0}},
		.count = {COUNT(A, retransmits, 1, 400)},
		.most = 3 * 18 * MSEC,
	},
	/* --- pauses --------------------------------------------------------------------------- */
	{
		/* what came meanwhile is looked at before the timers: no retry is charged */
		.name = "requester_stops_60_ms",
		.rules = "REQ-23",
		.end = {[A] = {.timeout = VAL(8), .retry_cnt = VAL(0)}},
		.work = {{A, TRAFFIC_WRITE, 20, 20000, 0, 0}},
		.event = {{50 * USEC, STOP_HOST, A, 60 * MSEC}},
		.count = {COUNT(A, local_ack_timeout_err, NONE), COUNT(A, retransmits, NONE)},
		.least = 60 * MSEC,
		.most = 61 * MSEC,
	},
	{
		.name = "requester_stops_while_a_packet_is_lost",
		.rules = "REQ-24",
		.end = {[A] = {.timeout = VAL(8), .retry_cnt = VAL(1)}},
		.work = {SEND_3},
		.pick = {{A, OP_SEND_LAST, 0, 0, 0, LINK_LOSE}},
		.event = {{3 * USEC, STOP_HOST, A, 60 * MSEC}},
		/* however late, it costs one retry */
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = 60 * MSEC,
		.most = 60 * MSEC + RT + TICK + 3 * USEC,
	},
	{
		.name = "responder_stops_5_ms",
		.rules = "REQ-24 RSP-39",
		.end = {[A] = {.timeout = VAL(8)}},
		.work = {{A, TRAFFIC_SEND, 20, 20000, 0, 0}},
		.event = {{50 * USEC, STOP_HOST, B, 5 * MSEC}},
		.count = {COUNT(A, local_ack_timeout_err, 3, 5),
			COUNT(B, rx_send_requests, 20, 20)},
		.least = 5 * MSEC,
		.most = 5 * MSEC + T(8) + 1 * MSEC,
	},
	{
		.name = "link_stops_60_ms",
		.rules = "REQ-22",
		.work = {{A, TRAFFIC_SEND, 20, 20000, 0, 0}},
		.event = {{50 * USEC, STOP_LINK, A, 60 * MSEC}},
		.count = {COUNT(A, local_ack_timeout_err, NONE)},
		.least = 60 * MSEC,
		.most = 61 * MSEC,
	},
	/* --- ACKs of nothing ------------------------------------------------------------------ */
	{
		.name = "ghost_ack",
		.rules = "REQ-36",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_LAST, 0, 0, 0, LINK_LOSE}},
		.event = {{RT, GHOST_ACK, A, 0}, {RT, GHOST_ACK, A, 5}},
		.count = {DROPS(A, DROP_GHOST_ACK, 2, 2), COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + RT + TICK,
	},
	/* --- SQD ------------------------------------------------------------------------------ */
	{
		/* what was started is finished, what was posted behind it waits */
		.name = "sqd_in_a_message",
		.rules = "REQ-50 QPS-19 EVT-02",
		.work = {{A, TRAFFIC_SEND, 1, 20000, 0, 0}, {A, TRAFFIC_SEND, 3, 100, 0, 0}},
		.end = {[A] = {.window = 4}},
		.event = {{2 * USEC, TO_SQD, A, 0}, {1 * MSEC, TO_RTS, A, 0}},
		.drained = {[A] = 2 * USEC + 20 * USEC},
		.count = {COUNT(A, tx_packets, 23, 23)},
		.least = 1 * MSEC,
		.most = 1 * MSEC + RT,
	},
	{
		.name = "sqd_with_a_loss",
		.rules = "REQ-50",
		.work = {{A, TRAFFIC_WRITE, 1, 20000, 0, 0}, {A, TRAFFIC_SEND, 3, 100, 0, 0}},
		.end = {[A] = {.window = 4}},
		.pick = {{A, OP_WRITE_LAST, 0, 0, 0, LINK_LOSE}},
		.event = {{2 * USEC, TO_SQD, A, 0}, {100 * MSEC, TO_RTS, A, 0}},
		.drained = {[A] = T(14)},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = 100 * MSEC,
		.most = 100 * MSEC + RT,
	},
	/* --- errors, and what they do to both ends ---------------------------------------------
	 */
	{
		.name = "local_key_error",
		.rules = "REQ-18 CQ-10 QPS-20",
		.work = {{A, TRAFFIC_SEND, 3, 2000, 0, 0},
			{A, TRAFFIC_SEND, 1, 2000, 0, MISTAKE_LKEY},
			{A, TRAFFIC_SEND, 3, 2000, 0, 0}},
		.status = {[A] = ABI_WC_LOC_PROT_ERR},
		.count = {COUNT(B, rx_send_requests, 3, 3)},
		.most = 2 * RT,
	},
	{
		.name = "remote_access_error",
		.rules = "REQ-33 REQ-34 RSP-13 RSP-22",
		.work = {{A, TRAFFIC_SEND, 3, 2000, 0, 0},
			{A, TRAFFIC_WRITE, 1, 2000, 0, MISTAKE_RKEY},
			{A, TRAFFIC_SEND, 3, 2000, 0, 0}},
		.status = {[A] = ABI_WC_REM_ACCESS_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.count = {COUNT(A, req_remote_access_errors, ONE), COUNT(B, rx_send_requests, 3, 3),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 3 * RT,
	},
	{
		/* two bytes, of which one lies behind the region */
		.name = "write_range_error_by_one",
		.rules = "RSP-13",
		.work = {{A, TRAFFIC_WRITE, 1, 2, 0, MISTAKE_REMOTE_RANGE}},
		.status = {[A] = ABI_WC_REM_ACCESS_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.most = RT,
	},
	{
		.name = "remote_permission_error",
		.rules = "RSP-13",
		.work = {{A, TRAFFIC_WRITE, 1, 2, 0, MISTAKE_REMOTE_ACCESS}},
		.status = {[A] = ABI_WC_REM_ACCESS_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.most = RT,
	},
	{
		.name = "read_range_error",
		.rules = "REQ-33 RSP-13",
		.work = {{A, TRAFFIC_READ, 1, 2000, 0, MISTAKE_REMOTE_RANGE}},
		.status = {[A] = ABI_WC_REM_ACCESS_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.count = {COUNT(B, resp_remote_access_errors, ONE)},
		.most = RT,
	},
	{
		.name = "send_too_long",
		.rules = "REQ-33 RSP-20",
		.work = {{A, TRAFFIC_SEND, 1, 3000, 0, 0},
			{A, TRAFFIC_SEND, 1, 3000, 0, MISTAKE_TOO_LONG}},
		.status = {[A] = ABI_WC_REM_INV_REQ_ERR},
		.recv_status = {[B] = ABI_WC_LOC_LEN_ERR},
		.most = 2 * RT,
	},
	{
		.name = "fatal_nak_lost",
		.rules = "RSP-22 REQ-26",
		.end = {[A] = {.timeout = VAL(8)}},
		.work = {{A, TRAFFIC_WRITE, 1, 2000, 0, MISTAKE_RKEY}},
		.pick = {{B, OP_ACKNOWLEDGE, 0x62, 0, 0, LINK_LOSE}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.least = 8 * T(8),
		.most = 8 * T(8) + RT + 8 * TICK,
	},
	{
		.name = "target_deregistered",
		.rules = "RSP-15 REQ-33",
		.work = {{A, TRAFFIC_WRITE, 4, 20000, 0, 0}},
		.event = {{20 * USEC, DEREGISTER, A, REGION_TARGET}},
		.status = {[A] = ABI_WC_REM_ACCESS_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.most = 20 * USEC + RT,
	},
	{
		/* up to 512 responses of 0.9 us are on their way before the NAK */
		.name = "read_source_deregistered",
		.rules = "RSP-31",
		.work = {{A, TRAFFIC_READ, 3, 1 << 20, 0, 0}},
		.event = {{20 * USEC, DEREGISTER, A, REGION_TARGET}},
		.status = {[A] = ABI_WC_REM_ACCESS_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.most = 20 * USEC + 512 * USEC + RT,
	},
	{
		.name = "source_deregistered",
		.rules = "REQ-18",
		.work = {{A, TRAFFIC_WRITE, 4, 20000, 0, 0}},
		.end = {[A] = {.window = 8}},
		.event = {{20 * USEC, DEREGISTER, A, REGION_LOCAL}},
		.status = {[A] = ABI_WC_LOC_PROT_ERR},
		.most = 20 * USEC + 2 * RT,
	},
	{
		.name = "peer_goes_to_err",
		.rules = "QPS-20 REQ-26",
		.end = {[A] = {.timeout = VAL(8)}},
		.work = {{A, TRAFFIC_SEND, 20, 20000, 0, 0}},
		.event = {{20 * USEC, TO_ERR, B, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.least = 8 * T(8),
		.most = 20 * USEC + 8 * T(8) + RT + 8 * TICK,
	},
	{
		.name = "flush_in_order",
		.rules = "CQ-10 QPS-20",
		.work = {{A, TRAFFIC_SEND, 20, 20000, 0, 0}},
		.event = {{20 * USEC, TO_ERR, A, 0}},
		.status = {[A] = ABI_WC_WR_FLUSH_ERR},
		.recv_status = {[A] = ABI_WC_WR_FLUSH_ERR},
		.most = 20 * USEC + RT,
	},
};

const unsigned scenario_rows = ARRAY_SIZE(scenario_table);
