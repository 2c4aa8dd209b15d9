/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND and WRITE: nothing goes wrong; a request is lost; what answers it is lost. */
#include "abi_ctl.h"
#include "headers.h"
#include "opcode.h"
#include "scenario_row.h"

static const struct scenario row[] = {
	/* --- nothing goes wrong --------------------------------------------------------------- */
	{
		.name = "send",
		.rules = "REQ-01 REQ-03 RSP-01 RSP-23 RSP-25 BTH-13",
		.work = {SEND_3},
		.most = 3 * PKT + RTT,
		.trace = "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		.name = "send_empty",
		.rules = "REQ-02",
		.work = {{A, TRAFFIC_SEND, 1, 0, 0, 0}},
		.most = RTT,
		.trace = "A> SEND_ONLY 0\n"
			 "B> ACK 0 msn 1\n",
	},
	{
		/* traffic.c names a key that does not exist in some of them */
		.name = "writes_empty",
		.rules = "REQ-02 RSP-12",
		.work = {{A, TRAFFIC_WRITE, 8, 0, 0, 0}, {A, TRAFFIC_WRITE_IMM, 8, 0, 0, 0}},
		.most = 16 * 80 + RTT,
	},
	{
		.name = "write_with_immediate",
		.rules = "REQ-01 REQ-06 RSP-19 CQ-09",
		.work = {{B, TRAFFIC_WRITE_IMM, 1, 2048, 0, 0}},
		.most = 2 * PKT + RTT,
		.trace = "B> WRITE_FIRST 0\n"
			 "B> WRITE_LAST_WITH_IMM 1\n"
			 "A> ACK 1 msn 1\n",
	},
	{
		/* B's worker sleeps while eight arrive: one ACK for all of them */
		.name = "coalesced_ack",
		.rules = "REQ-35 RSP-23 REQ-12",
		.work = {{A, TRAFFIC_SEND, 8, 100, 0, 0}},
		.event = {{0, STOP_HOST, B, 50 * USEC}},
		.count = {COUNT(B, tx_acks, ONE), COUNT(B, rx_send_requests, N(8))},
		.least = 50 * USEC,
		.most = 50 * USEC + RTT,
		.trace = "A> SEND_ONLY 0\n"
			 "A> SEND_ONLY 1\n"
			 "A> SEND_ONLY 2\n"
			 "A> SEND_ONLY 3\n"
			 "A> SEND_ONLY 4\n"
			 "A> SEND_ONLY 5\n"
			 "A> SEND_ONLY 6\n"
			 "A> SEND_ONLY 7\n"
			 "B> ACK 7 msn 8\n",
	},
	{
		/* 4,096 packets of 342 bytes, 274 ns: the wire is never idle, for ACKs are asked
		 * for before the window closes */
		.name = "window_stays_open",
		.rules = "REQ-51",
		.mtu = 256,
		.work = {{A, TRAFFIC_WRITE, 1, 1 << 20, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(A, local_ack_timeout_err, NONE),
			COUNT(A, port[0].tx_packets, N(4096))},
		.most = 4096 * 274 + RTT,
	},
	{
		/* traffic.c overwrites the buffers as soon as they are posted */
		.name = "inline_data",
		.rules = "REQ-15",
		.work = {{A, TRAFFIC_SEND, 10, 100, ABI_WQE_INLINE, 0},
			{A, TRAFFIC_WRITE, 10, 128, ABI_WQE_INLINE, 0}},
		.most = 20 * 190 + RTT,
	},
	{
		/* sent again long after, when their places in the queue are the application's */
		.name = "inline_data_lost",
		.rules = "REQ-15 REQ-48 REQ-24",
		.work = {{A, TRAFFIC_SEND, 8, 100, ABI_WQE_INLINE, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 8, LINK_LOSE}},
		.count = {COUNT(A, retransmits, N(8))},
		.least = T(14),
		.most = T(14) + TICK + 8 * 150 + RTT,
	},
	{
		/* 31 of 32 messages complete without saying so, and one that fails says so */
		.name = "unsignaled",
		.rules = "REQ-13 REQ-12 CQ-10",
		.work = {{A, TRAFFIC_SEND, 32, 100, UNSIGNALED, 0},
			{A, TRAFFIC_WRITE, 32, 100, UNSIGNALED, 0}},
		.most = 64 * 180 + RTT,
	},
	{
		.name = "unsignaled_failure",
		.rules = "REQ-13 REQ-34 CQ-10",
		.work = {{A, TRAFFIC_SEND, 3, 100, UNSIGNALED, 0},
			{A, TRAFFIC_WRITE, 2, 100, UNSIGNALED, MISTAKE_RKEY},
			{A, TRAFFIC_SEND, 3, 100, UNSIGNALED, 0}},
		.status = {[A] = ABI_WC_REM_ACCESS_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.event_of = {[B] = ABI_EVENT_QP_ACCESS_ERR},
		.most = 8 * 170 + RTT,
	},
	{
		/* SE on the last packet of what takes a receive, nowhere else: wirecheck.c,
		   traffic.c */
		.name = "solicited",
		.rules = "BTH-09 RSP-51",
		.work = {{A, TRAFFIC_SEND, 2, 3000, ABI_WQE_SOLICITED, 0},
			{A, TRAFFIC_WRITE_IMM, 2, 3000, ABI_WQE_SOLICITED, 0},
			{A, TRAFFIC_WRITE, 2, 3000, ABI_WQE_SOLICITED, 0}},
		.most = 18 * PKT + RTT,
	},
	{
		/* B has more to send: 100 * 5 + 20 * 9 packets, and 20 * 9 of READ responses */
		.name = "both_ways",
		.rules = "REQ-12 RSP-25",
		.work = {{A, TRAFFIC_SEND, 100, 5000, 0, 0}, {B, TRAFFIC_WRITE, 100, 5000, 0, 0},
			{A, TRAFFIC_READ, 20, 9000, 0, 0}, {B, TRAFFIC_SEND_IMM, 20, 9000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(B, retransmits, NONE)},
		.most = 860 * PKT + 2 * RTT,
	},
	{
		/* 50 packets of A's, 20 of READ responses that overlap with them */
		.name = "mixed_operations_in_order",
		.rules = "REQ-12 RSP-27 RSP-53",
		.end = {[A] = {.rd_atomic = 2}},
		.work = {{A, TRAFFIC_WRITE, 10, 2000, 0, 0}, {A, TRAFFIC_READ, 5, 2000, 0, 0},
			{A, TRAFFIC_SEND_IMM, 10, 100, 0, 0}, {A, TRAFFIC_READ, 5, 2000, 0, 0},
			{A, TRAFFIC_WRITE_IMM, 10, 1000, 0, 0}, {A, TRAFFIC_SEND, 10, 1000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE), COUNT(B, rx_read_requests, N(10)),
			COUNT(B, rx_write_requests, N(20)), COUNT(B, rx_send_requests, N(20))},
		/* a third READ waits for the first: five more ways there and back */
		.most = 70 * PKT + 6 * RTT,
	},
	{
		.name = "psn_wraps",
		.rules = "BTH-15",
		.end = {[A] = {.sq_psn = VAL(0xFFFFFE)}},
		.work = {{A, TRAFFIC_SEND, 20, 3000, 0, 0}, {A, TRAFFIC_READ, 20, 3000, 0, 0}},
		.count = {COUNT(A, retransmits, NONE)},
		.most = 120 * PKT + 3 * RTT,
	},
	/* --- a request is lost ---------------------------------------------------------------- */
	{
		.name = "send_first_lost",
		.rules = "RSP-02 RSP-03 RSP-26 REQ-28",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(B, out_of_sequence, N(2)),
			COUNT(A, retransmits, N(3)), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 6 * PKT + 2 * RTT,
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
		/* what lies before the NAK is acknowledged: FIRST is not sent again */
		.name = "send_middle_lost",
		.rules = "REQ-28 REQ-49 RSP-02",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, retransmits, N(2))},
		.most = 5 * PKT + 2 * RTT,
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
		.rules = "REQ-22 REQ-24 RSP-44 REQ-48",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_LAST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + TICK + 3 * PKT + RTT,
		.trace = "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2 lost\n"
			 "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		/* the next message reveals it, long before the timer */
		.name = "last_lost_next_message_tells",
		.rules = "RSP-02 REQ-28 RSP-25",
		.work = {{A, TRAFFIC_WRITE, 2, 2000, 0, 0}},
		.pick = {{A, OP_WRITE_LAST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, NONE)},
		.most = 7 * PKT + 2 * RTT,
		.trace = "A> WRITE_FIRST 0\n"
			 "A> WRITE_LAST 1 lost\n"
			 "A> WRITE_FIRST 2\n"
			 "A> WRITE_LAST 3\n"
			 "B> NAK 1 60 msn 0\n"
			 "A> WRITE_LAST 1\n"
			 "A> WRITE_FIRST 2\n"
			 "A> WRITE_LAST 3\n"
			 "B> ACK 1 msn 1\n"
			 "B> ACK 3 msn 2\n",
	},
	{
		.name = "write_first_lost",
		.rules = "REQ-28 REQ-48 REQ-06",
		.work = {{B, TRAFFIC_WRITE, 1, 3000, 0, 0}},
		.pick = {{B, OP_WRITE_FIRST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(B, packet_seq_err, ONE), COUNT(B, local_ack_timeout_err, NONE)},
		.most = 6 * PKT + 2 * RTT,
	},
	{
		.name = "write_middle_lost",
		.rules = "REQ-49 REQ-28",
		.work = {WRITE_3},
		.pick = {{A, OP_WRITE_MIDDLE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 5 * PKT + 2 * RTT,
	},
	{
		.name = "write_last_with_immediate_lost",
		.rules = "REQ-24 RSP-44",
		.work = {{A, TRAFFIC_WRITE_IMM, 1, 3000, 0, 0}},
		.pick = {{A, OP_WRITE_LAST_WITH_IMM, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE), COUNT(B, duplicate_request, N(2))},
		.least = T(14),
		.most = T(14) + TICK + 3 * PKT + RTT,
	},
	{
		/* it was NAKed, so its second loss is not NAKed again */
		.name = "resent_packet_lost",
		.rules = "RSP-03 REQ-24",
		.work = {{A, TRAFFIC_SEND, 1, 6000, 0, 0}},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 2, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + TICK + 18 * PKT + 2 * RTT,
	},
	{
		/* the packet that was expected came between them: a NAK for each */
		.name = "two_losses_two_naks",
		.rules = "RSP-03 REQ-28",
		.work = {{A, TRAFFIC_SEND, 1, 8000, 0, 0}},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_LOSE},
			{A, OP_SEND_MIDDLE, 0, 9, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, N(2)), COUNT(A, local_ack_timeout_err, NONE)},
		.most = 24 * PKT + 3 * RTT,
	},
	{
		/* a copy of the first message comes when the NAK is out: no second one */
		.name = "duplicate_behind_a_nak",
		.rules = "RSP-04 RSP-03",
		.end = {[A] = {.impair = {.reorder_ns = 5000}}},
		.work = {{A, TRAFFIC_SEND, 1, 10, 0, 0}, {A, TRAFFIC_SEND, 1, 9000, 0, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 0, LINK_DUPLICATE | LINK_REORDER},
			{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(B, duplicate_request, ONE)},
		.most = 18 * PKT + 100 + 2 * RTT,
	},
	{
		/* the same in one burst, before the NAK is out: an ACK must not take its place */
		.name = "duplicate_behind_an_owed_nak",
		.rules = "RSP-04 RSP-02",
		.end = {[A] = {.impair = {.reorder_ns = 5000}}},
		.work = {{A, TRAFFIC_SEND, 1, 10, 0, 0}, {A, TRAFFIC_SEND, 1, 9000, 0, 0}},
		.pick = {{A, OP_SEND_ONLY, 0, 0, 0, LINK_DUPLICATE | LINK_REORDER},
			{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE}},
		.event = {{0, STOP_HOST, B, 20 * USEC}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(B, duplicate_request, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 20 * USEC + 9 * PKT + 2 * RTT,
	},
	{
		.name = "loss_at_the_psn_wrap",
		.rules = "BTH-15 RSP-02 REQ-28",
		.end = {[A] = {.sq_psn = VAL(0xFFFFFE)}},
		.work = {{A, TRAFFIC_SEND, 2, 3000, 0, 0}},
		.pick = {{A, OP_SEND_LAST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, ONE), COUNT(A, retransmits, N(4))},
		.most = 10 * PKT + 2 * RTT,
	},
	/* --- what answers it is lost ---------------------------------------------------------- */
	{
		.name = "ack_lost",
		.rules = "REQ-24 RSP-39 RSP-25",
		.work = {SEND_3},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE), COUNT(B, duplicate_request, N(3)),
			COUNT(B, rx_send_requests, ONE)},
		.least = T(14),
		.most = T(14) + TICK + 3 * PKT + RTT,
		.trace = "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1 lost\n"
			 "A> SEND_FIRST 0\n"
			 "A> SEND_MIDDLE 1\n"
			 "A> SEND_LAST 2\n"
			 "B> ACK 2 msn 1\n",
	},
	{
		/* the duplicates lie before the wrap, the expected PSN after it */
		.name = "ack_lost_at_the_psn_wrap",
		.rules = "BTH-15 RSP-01 RSP-39",
		.end = {[A] = {.sq_psn = VAL(0xFFFFFE)}},
		.work = {SEND_3},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE), COUNT(B, duplicate_request, N(3)),
			COUNT(B, out_of_sequence, NONE)},
		.least = T(14),
		.most = T(14) + TICK + 3 * PKT + RTT,
	},
	{
		.name = "ack_of_duplicate_lost",
		.rules = "RSP-39 REQ-24",
		.work = {{B, TRAFFIC_WRITE, 1, 10, 0, 0}},
		.pick = {{A, OP_ACKNOWLEDGE, 0, 0, 2, LINK_LOSE}},
		.count = {COUNT(B, local_ack_timeout_err, N(2)), COUNT(A, duplicate_request, N(2))},
		.least = 2 * T(14),
		.most = 2 * (T(14) + TICK) + RTT,
	},
	{
		/* eight ACKs, of which seven are lost: the last one does for all */
		.name = "acks_lost_last_one_covers",
		.rules = "REQ-35",
		.work = {{A, TRAFFIC_SEND, 8, 100, 0, 0}},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 7, LINK_LOSE}},
		.count = {COUNT(B, tx_acks, N(8)), COUNT(A, rx_acks, ONE),
			COUNT(A, retransmits, NONE)},
		.most = 8 * 150 + RTT,
	},
	{
		.name = "nak_lost",
		.rules = "RSP-03 REQ-24",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 0, LINK_LOSE},
			{B, OP_ACKNOWLEDGE, NAK_PSN_SEQUENCE, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, NONE), COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + TICK + 3 * PKT + RTT,
	},
	{
		/* a NAK for a loss, and its place is lost too: the timer is the last resort */
		.name = "nak_lost_with_the_resent",
		.rules = "RSP-03 RSP-04 REQ-24 REQ-27",
		.work = {SEND_3},
		.pick = {{A, OP_SEND_FIRST, 0, 0, 2, LINK_LOSE},
			{B, OP_ACKNOWLEDGE, NAK_PSN_SEQUENCE, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, packet_seq_err, NONE), COUNT(A, local_ack_timeout_err, N(2)),
			COUNT(B, out_of_sequence, N(4))},
		.least = 2 * T(14),
		.most = 2 * (T(14) + TICK) + 3 * PKT + RTT,
	},
	{
		.name = "rnr_nak_lost",
		.rules = "RSP-16 REQ-24",
		.end = {[B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 1, 10, 0, 0}},
		.pick = {{B, OP_ACKNOWLEDGE, AETH_RNR_NAK | 1, 0, 0, LINK_LOSE}},
		.event = {{10 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(A, rnr_nak_recv, NONE), COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + TICK + RTT,
	},
};

const struct scenario_table scenario_loss = {row, ARRAY_SIZE(row)};
