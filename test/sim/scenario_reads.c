/* SPDX-License-Identifier: BSD-3-Clause */
/* READ: requests and responses that are lost, limits, fences. */
#include "abi_ctl.h"
#include "opcode.h"
#include "scenario_row.h"

static const struct scenario row[] = {
	{
		.name = "read",
		.rules = "REQ-04 RSP-28 RSP-29 RSP-25",
		.work = {READ_3, {A, TRAFFIC_SEND, 1, 1, 0, 0}},
		.most = 3 * PKT + RTT,
		.trace = "A> READ_REQUEST 0 len 3000\n"
			 "A> SEND_ONLY 3\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_MIDDLE 1\n"
			 "B> READ_RESP_LAST 2\n"
			 "B> ACK 3 msn 2\n",
	},
	{
		.name = "read_empty",
		.rules = "RSP-28 RSP-12",
		.work = {{A, TRAFFIC_READ, 1, 0, 0, 0}},
		.most = RTT,
		.trace = "A> READ_REQUEST 0 len 0\n"
			 "B> READ_RESP_ONLY 0\n",
	},
	{
		.name = "reads_empty",
		.rules = "RSP-12 RSP-28 REQ-04",
		.work = {{A, TRAFFIC_READ, 8, 0, 0, 0}},
		.most = 8 * 85 + RTT,
	},
	{
		/* the link is full of responses when the SEND arrives: its ACK follows them */
		.name = "ack_waits_for_read",
		.rules = "RSP-27",
		.work = {{A, TRAFFIC_READ, 1, 1 << 20, 0, 0}, {A, TRAFFIC_SEND, 1, 1, 0, 0}},
		.count = {COUNT(A, implied_nak_seq_err, NONE), COUNT(A, retransmits, NONE)},
		.most = 1024 * PKT + RTT,
	},
	/* --- losses --------------------------------------------------------------------------- */
	{
		.name = "read_request_lost",
		.rules = "REQ-24",
		.work = {READ_3},
		.pick = {{A, OP_READ_REQUEST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE), COUNT(B, duplicate_request, NONE)},
		.least = T(14),
		.most = T(14) + TICK + 3 * PKT + RTT,
	},
	{
		.name = "read_response_first_lost",
		.rules = "REQ-39 RSP-40",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_FIRST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE), COUNT(B, duplicate_request, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 6 * PKT + 2 * RTT,
		.trace = "A> READ_REQUEST 0 len 3000\n"
			 "B> READ_RESP_FIRST 0 lost\n"
			 "B> READ_RESP_MIDDLE 1\n"
			 "B> READ_RESP_LAST 2\n"
			 "A> READ_REQUEST 0 len 3000\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_MIDDLE 1\n"
			 "B> READ_RESP_LAST 2\n",
	},
	{
		/* the duplicate asks for the rest alone, and the bytes are those of its place */
		.name = "read_response_middle_lost",
		.rules = "REQ-39 REQ-41 RSP-40 RSP-43",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_MIDDLE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 5 * PKT + 2 * RTT,
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
		.rules = "REQ-24 REQ-39 REQ-41 RSP-43",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_LAST, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, ONE)},
		/* from the response before it on */
		.least = T(14) + 2 * 880,
		.most = T(14) + TICK + 4 * PKT + 2 * RTT,
		.trace = "A> READ_REQUEST 0 len 3000\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_MIDDLE 1\n"
			 "B> READ_RESP_LAST 2 lost\n"
			 "A> READ_REQUEST 2 len 952\n"
			 "B> READ_RESP_ONLY 2\n",
	},
	{
		.name = "read_tail_lost_again",
		.rules = "REQ-24 REQ-39 RSP-43",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_LAST, 0, 0, 0, LINK_LOSE},
			{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, N(2))},
		.least = 2 * T(14),
		.most = 2 * (T(14) + TICK) + 4 * PKT + 2 * RTT,
	},
	{
		.name = "read_retry_lost",
		.rules = "REQ-24 REQ-38 REQ-39",
		.work = {READ_3},
		.pick = {{B, OP_READ_RESP_MIDDLE, 0, 0, 0, LINK_LOSE},
			{A, OP_READ_REQUEST, 0, 1, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE), COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + TICK + 5 * PKT + 2 * RTT,
	},
	{
		/* twice from the middle, each time from another byte */
		.name = "read_retried_twice",
		.rules = "REQ-39 RSP-40 RSP-43",
		.work = {{B, TRAFFIC_READ, 1, 9000, 0, 0}},
		.pick = {{A, OP_READ_RESP_MIDDLE, 0, 1, 0, LINK_LOSE},
			{A, OP_READ_RESP_MIDDLE, 0, 9, 0, LINK_LOSE}},
		.count = {COUNT(B, implied_nak_seq_err, N(2)),
			COUNT(B, local_ack_timeout_err, NONE)},
		.most = 22 * PKT + 3 * RTT,
		.trace = "B> READ_REQUEST 0 len 9000\n"
			 "A> READ_RESP_FIRST 0\n"
			 "A> READ_RESP_MIDDLE 1\n"
			 "A> READ_RESP_MIDDLE 2 lost\n"
			 "A> READ_RESP_MIDDLE 3\n"
			 "A> READ_RESP_MIDDLE 4\n"
			 "A> READ_RESP_MIDDLE 5\n"
			 "A> READ_RESP_MIDDLE 6\n"
			 "A> READ_RESP_MIDDLE 7\n"
			 "A> READ_RESP_LAST 8\n"
			 "B> READ_REQUEST 2 len 6952\n"
			 "A> READ_RESP_FIRST 2\n"
			 "A> READ_RESP_MIDDLE 3\n"
			 "A> READ_RESP_MIDDLE 4\n"
			 "A> READ_RESP_MIDDLE 5 lost\n"
			 "A> READ_RESP_MIDDLE 6\n"
			 "A> READ_RESP_MIDDLE 7\n"
			 "A> READ_RESP_LAST 8\n"
			 "B> READ_REQUEST 5 len 3880\n"
			 "A> READ_RESP_FIRST 5\n"
			 "A> READ_RESP_MIDDLE 6\n"
			 "A> READ_RESP_MIDDLE 7\n"
			 "A> READ_RESP_LAST 8\n",
	},
	/* --- implied NAK ---------------------------------------------------------------------- */
	{
		/* an ACK of a later request does not complete a READ */
		.name = "read_lost_ack_behind",
		.rules = "REQ-38",
		.work = {{A, TRAFFIC_READ, 1, 100, 0, 0}, {A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.pick = {{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE), COUNT(B, rx_send_requests, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RTT + 2 * 150,
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
		/* no ACK timer: the second ACK after it reveals the second loss */
		.name = "read_lost_twice_without_timer",
		.rules = "REQ-38",
		.work = {{A, TRAFFIC_READ, 1, 100, 0, 0}, {A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.end = {[A] = {.timeout = VAL(0)}},
		.pick = {{B, OP_READ_RESP_ONLY, 0, 0, 2, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, N(2)),
			COUNT(A, local_ack_timeout_err, NONE)},
		.least = T(16),
		.most = T(16) + TICK + 3 * RTT + 4 * 150,
		.trace = "A> READ_REQUEST 0 len 100\n"
			 "A> SEND_ONLY 1\n"
			 "B> READ_RESP_ONLY 0 lost\n"
			 "B> ACK 1 msn 2\n"
			 "A> READ_REQUEST 0 len 100\n"
			 "A> SEND_ONLY 1\n"
			 "B> READ_RESP_ONLY 0 lost\n"
			 "B> ACK 1 msn 2\n"
			 "A> READ_REQUEST 0 len 100\n"
			 "A> SEND_ONLY 1\n"
			 "B> READ_RESP_ONLY 0\n"
			 "B> ACK 1 msn 2\n",
	},
	{
		.name = "read_lost_read_behind",
		.rules = "REQ-38 RSP-40",
		.work = {{A, TRAFFIC_READ, 2, 100, 0, 0}},
		.pick = {{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE), COUNT(B, duplicate_request, N(2)),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RTT + 2 * 150,
		.trace = "A> READ_REQUEST 0 len 100\n"
			 "A> READ_REQUEST 1 len 100\n"
			 "B> READ_RESP_ONLY 0 lost\n"
			 "B> READ_RESP_ONLY 1\n"
			 "A> READ_REQUEST 0 len 100\n"
			 "A> READ_REQUEST 1 len 100\n"
			 "B> READ_RESP_ONLY 0\n"
			 "B> READ_RESP_ONLY 1\n",
	},
	{
		/* a NAK for a later loss: the READ comes first */
		.name = "read_lost_nak_behind",
		.rules = "REQ-38 REQ-28 RSP-27",
		.work = {{A, TRAFFIC_READ, 1, 100, 0, 0}, {A, TRAFFIC_SEND, 2, 100, 0, 0}},
		.pick = {{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE},
			{A, OP_SEND_ONLY, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE), COUNT(A, packet_seq_err, NONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 2 * RTT + 4 * 150,
	},
	{
		/* a READ response acknowledges the WRITE before it, whose ACK was lost */
		.name = "read_response_acknowledges",
		.rules = "REQ-44",
		.work = {WRITE_3, {A, TRAFFIC_READ, 1, 100, 0, 0}},
		.pick = {{B, OP_ACKNOWLEDGE, 0, 0, 0, LINK_LOSE}},
		.count = {COUNT(A, retransmits, NONE)},
		.most = 3 * PKT + 150 + RTT,
	},
	{
		/* The WRITE comes a second time, when the READ's only response is out and lost: its
		 * ACK must not stand for the READ. */
		.name = "read_lost_duplicate_write_behind",
		.rules = "RSP-39 REQ-38",
		.work = {{A, TRAFFIC_WRITE, 1, 100, 0, 0}, {A, TRAFFIC_READ, 1, 100, 0, 0}},
		.end = {[A] = {.impair = {.reorder_ns = 10 * USEC}}},
		.pick = {{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE},
			{A, OP_WRITE_ONLY, 0, 0, 0, LINK_DUPLICATE | LINK_REORDER}},
		.count = {COUNT(A, implied_nak_seq_err, NONE), COUNT(B, duplicate_request, N(2)),
			COUNT(A, local_ack_timeout_err, ONE)},
		.least = T(14),
		.most = T(14) + TICK + 2 * RTT,
		.trace = "A> WRITE_ONLY 0 twice late\n"
			 "A> READ_REQUEST 1 len 100\n"
			 "B> ACK 0 msn 1\n"
			 "B> READ_RESP_ONLY 1 lost\n"
			 "B> ACK 0 msn 2\n"
			 "A> READ_REQUEST 1 len 100\n"
			 "B> READ_RESP_ONLY 1\n",
	},
	{
		.name = "read_across_the_psn_wrap",
		.rules = "BTH-15 REQ-39 RSP-40",
		.end = {[A] = {.sq_psn = VAL(0xFFFFFF)}},
		.work = {{A, TRAFFIC_READ, 1, 5000, 0, 0}},
		.pick = {{B, OP_READ_RESP_MIDDLE, 0, 1, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, ONE),
			COUNT(A, local_ack_timeout_err, NONE)},
		.most = 8 * PKT + 2 * RTT,
	},
	/* --- limits --------------------------------------------------------------------------- */
	{
		/* each waits for the one before it */
		.name = "reads_one_at_a_time",
		.rules = "REQ-08",
		.end = {[A] = {.rd_atomic = 1}},
		.work = {{A, TRAFFIC_READ, 20, 100, 0, 0}},
		.count = {COUNT(A, retransmits, NONE)},
		.least = 20 * 4 * USEC,
		.most = 20 * RTT,
	},
	{
		/* a window that is counted wrong after a retry would stop, or break B's limit */
		.name = "reads_one_at_a_time_with_losses",
		.rules = "REQ-08 REQ-24 RSP-30",
		.end = {[A] = {.rd_atomic = 1, .timeout = VAL(4)}},
		.work = {{A, TRAFFIC_READ, 20, 100, 0, 0}},
		.pick = {{B, OP_READ_RESP_ONLY, 0, 3, 2, LINK_LOSE},
			{A, OP_READ_REQUEST, 0, 12, 2, LINK_LOSE}},
		.count = {COUNT(A, local_ack_timeout_err, N(4)), COUNT(B, rx_read_requests, N(20))},
		.least = 20 * 4 * USEC + 4 * T(4),
		.most = 22 * RTT + 4 * (T(4) + TICK),
	},
	{
		/* 80 responses without a pause: four READs of two packets cover the way there and
		   back */
		.name = "reads_at_the_limit",
		.rules = "REQ-08 RSP-30",
		.end = {[A] = {.rd_atomic = 4}},
		.work = {{A, TRAFFIC_READ, 40, 2000, 0, 0}, {A, TRAFFIC_SEND, 1, 1, 0, 0}},
		.count = {COUNT(A, retransmits, NONE)},
		.most = 80 * PKT + RTT,
	},
	{
		/* duplicates are answered again, and count no more than once */
		.name = "reads_at_the_limit_with_losses",
		.rules = "REQ-08 RSP-30 RSP-40 REQ-38",
		.end = {[A] = {.rd_atomic = 2, .timeout = VAL(4)}},
		.work = {{A, TRAFFIC_READ, 20, 3000, 0, 0}},
		.pick = {{B, OP_READ_RESP_FIRST, 0, 2, 0, LINK_LOSE},
			{B, OP_READ_RESP_MIDDLE, 0, 6, 2, LINK_LOSE},
			{B, OP_READ_RESP_LAST, 0, 12, 0, LINK_LOSE}},
		.count = {COUNT(A, implied_nak_seq_err, TO(3, 4)),
			COUNT(B, rx_read_requests, N(20))},
		/* of each loss, two READs again */
		.most = (60 + 4 * 6) * PKT + 5 * RTT,
	},
	{
		/* all four are there before the first is answered */
		.name = "reads_beyond_the_limit",
		.rules = "RSP-30 REQ-33 EVT-03",
		.end = {[B] = {.rd_accept = 2}},
		.work = {{A, TRAFFIC_READ, 4, 2000, 0, 0}},
		.event = {{0, STOP_HOST, B, 10 * USEC}},
		.status = {[A] = ABI_WC_REM_INV_REQ_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.event_of = {[B] = ABI_EVENT_QP_REQ_ERR},
		.most = 10 * USEC + 4 * PKT + RTT,
		.trace = "A> READ_REQUEST 0 len 2000\n"
			 "A> READ_REQUEST 2 len 2000\n"
			 "A> READ_REQUEST 4 len 2000\n"
			 "A> READ_REQUEST 6 len 2000\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_LAST 1\n"
			 "B> READ_RESP_FIRST 2\n"
			 "B> READ_RESP_LAST 3\n"
			 "B> NAK 4 61 msn 2\n",
	},
	{
		.name = "fence_waits_for_read",
		.rules = "REQ-10",
		.work = {{A, TRAFFIC_READ, 1, 2000, 0, 0},
			{A, TRAFFIC_SEND, 1, 10, ABI_WQE_FENCE, 0}},
		.least = 8 * USEC,
		.most = 2 * PKT + 2 * RTT,
		.trace = "A> READ_REQUEST 0 len 2000\n"
			 "B> READ_RESP_FIRST 0\n"
			 "B> READ_RESP_LAST 1\n"
			 "A> SEND_ONLY 2\n"
			 "B> ACK 2 msn 2\n",
	},
	{
		.name = "fence_does_not_wait_for_write",
		.rules = "REQ-10",
		.work = {WRITE_3, {A, TRAFFIC_SEND, 1, 10, ABI_WQE_FENCE, 0}},
		.most = 3 * PKT + 100 + RTT,
	},
	{
		/* the fenced message must not start with the retry either */
		.name = "fence_after_a_lost_response",
		.rules = "REQ-10 REQ-24",
		.work = {{A, TRAFFIC_READ, 1, 100, 0, 0},
			{A, TRAFFIC_WRITE, 1, 10, ABI_WQE_FENCE, 0}},
		.pick = {{B, OP_READ_RESP_ONLY, 0, 0, 0, LINK_LOSE}},
		.least = T(14),
		.most = T(14) + TICK + 2 * RTT,
		.trace = "A> READ_REQUEST 0 len 100\n"
			 "B> READ_RESP_ONLY 0 lost\n"
			 "A> READ_REQUEST 0 len 100\n"
			 "B> READ_RESP_ONLY 0\n"
			 "A> WRITE_ONLY 1\n"
			 "B> ACK 1 msn 2\n",
	},
};

const struct scenario_table scenario_reads = {row, ARRAY_SIZE(row)};
