/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues, RC's and XRC's: empty, short of WQEs, resized, broken, gone; what becomes
 * of both ends. */
#include "abi_ctl.h"
#include "opcode.h"
#include "scenario_row.h"

#define SRQ(n)               \
	{                    \
		.depth = (n) \
	}
#define XRC(n)                            \
	{                                 \
		.depth = (n), .xrc = true \
	}
#define LAST_WQE (1u << ABI_EVENT_QP_LAST_WQE)
/** The time of RNR timer code 14 (RSP-16). */
#define RNR14 (1280 * USEC)
/** A send of 100 bytes on the wire, at most: with XRCETH and all. */
#define SMALL 160ull

static const struct scenario row[] = {
	/* --- SRQ ------------------------------------------------------------------------------ */
	{
		/* one RNR NAK a wait, and nothing is lost */
		.name = "srq_empty_then_filled",
		.rules = "SRQ-03 RSP-16 RSP-18 REQ-30",
		.srq = SRQ(8),
		.end = {[B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {{A, TRAFFIC_SEND, 3, 100, 0, 0}},
		.event = {{100 * USEC, GIVE_RECEIVES, B, 3}},
		.count = {COUNT(B, rnr_nak_sent, ONE), COUNT(B, out_of_buffer, ONE),
			COUNT(A, rnr_nak_recv, ONE), COUNT(A, local_ack_timeout_err, NONE)},
		.least = RNR14,
		.most = RNR14 + TICK + 3 * SMALL + 2 * RTT,
	},
	{
		/* READs and WRITEs need none: only the SEND after them waits */
		.name = "srq_empty_for_a_write",
		.rules = "SRQ-03 RSP-19",
		.srq = SRQ(8),
		.end = {[B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {WRITE_3, READ_3, {A, TRAFFIC_SEND, 1, 100, 0, 0}},
		.event = {{100 * USEC, GIVE_RECEIVES, B, 1}},
		.count = {COUNT(B, rnr_nak_sent, ONE), COUNT(B, rx_write_requests, ONE),
			COUNT(B, rx_read_requests, ONE)},
		.least = RNR14,
		.most = RNR14 + TICK + 7 * PKT + SMALL + 2 * RTT,
	},
	{
		/* the third message leaves two: an event then, and none for the next two */
		.name = "srq_limit_once",
		.rules = "SRQ-04 EVT-04",
		.srq = SRQ(8),
		.end = {[B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 5, 1000, 0, 0}},
		.event = {{0, GIVE_RECEIVES, B, 5}, {0, ARM_LIMIT, B, 3}},
		.event_of = {[B] = ABI_EVENT_SRQ_LIMIT_REACHED},
		.event_least = {[B] = 3 * 860 + 2 * USEC},
		.most = 5 * PKT + RTT,
	},
	{
		/* as many as the limit are left: that is not below it */
		.name = "srq_limit_not_reached",
		.rules = "SRQ-04",
		.srq = SRQ(8),
		.end = {[B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 5, 1000, 0, 0}},
		.event = {{0, GIVE_RECEIVES, B, 8}, {0, ARM_LIMIT, B, 3}},
		.most = 5 * PKT + RTT,
	},
	{
		/* in the middle of a message, whose receive was taken from the old ring */
		.name = "srq_resized",
		.rules = "SRQ-05 SRQ-02",
		.srq = SRQ(8),
		.work = {{A, TRAFFIC_SEND, 40, 5000, 0, 0}},
		.event = {{10 * USEC, RESIZE_SRQ, B, 64}, {50 * USEC, RESIZE_SRQ, B, 64}},
		.count = {COUNT(B, rnr_nak_sent, NONE)},
		.most = 40 * 5 * PKT + RTT,
	},
	{
		/* the WQE that it holds is flushed, the others stay; then an event is raised */
		.name = "srq_last_wqe",
		.rules = "SRQ-07 EVT-04 QPS-20",
		.srq = SRQ(8),
		.end = {[A] = {.timeout = VAL(8)}},
		.work = {{A, TRAFFIC_SEND, 20, 20000, 0, 0}},
		.event = {{30 * USEC, TO_ERR, B, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.event_of = {[B] = ABI_EVENT_QP_LAST_WQE},
		.event_least = {[B] = 30 * USEC},
		.count = {COUNT(B, resp_cqe_flush_error, ONE)},
		.least = 8 * T(8),
		.most = 30 * USEC + RTT + 8 * (T(8) + TICK),
	},
	{
		/* it holds none: told all the same */
		.name = "srq_last_wqe_of_none",
		.rules = "SRQ-07",
		.srq = SRQ(8),
		.end = {[A] = {.timeout = VAL(8)}},
		.work = {{A, TRAFFIC_WRITE, 1, 100, 0, 0}},
		.event = {{0, TO_ERR, B, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.event_of = {[B] = ABI_EVENT_QP_LAST_WQE},
		.count = {COUNT(B, resp_cqe_flush_error, NONE)},
		.least = 8 * T(8),
		.most = SMALL + 8 * (T(8) + TICK) + RTT,
	},
	{
		/* the two that are there are used, then nobody waits in vain */
		.name = "srq_broken",
		.rules = "SRQ-08 EVT-04 RSP-22",
		.srq = SRQ(8),
		.end = {[B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 4, 1000, 0, 0}},
		.event = {{0, GIVE_RECEIVES, B, 2}, {USEC, BREAK_SRQ, B, 0}},
		.status = {[A] = ABI_WC_REM_OP_ERR},
		.event_of = {[B] = ABI_EVENT_SRQ_ERR},
		.also = {[B] = 1u << ABI_EVENT_QP_FATAL | LAST_WQE},
		.count = {COUNT(B, rx_send_requests, N(2)), COUNT(B, rnr_nak_sent, NONE)},
		.most = 4 * PKT + RTT,
	},
	{
		.name = "srq_receive_key_error",
		.rules = "RSP-21 SRQ-07",
		.srq = SRQ(8),
		.end = {[B] = {.bad_recv = VAL(2)}},
		.work = {{A, TRAFFIC_SEND, 4, 2000, 0, 0}},
		.status = {[A] = ABI_WC_REM_OP_ERR},
		.recv_status = {[B] = ABI_WC_LOC_PROT_ERR},
		.event_of = {[B] = ABI_EVENT_QP_LAST_WQE},
		.count = {COUNT(B, rx_send_requests, N(2))},
		.most = 5 * PKT + RTT,
	},
	{
		.name = "srq_send_too_long",
		.rules = "RSP-20 SRQ-07",
		.srq = SRQ(8),
		.work = {{A, TRAFFIC_SEND, 1, 3000, 0, 0},
			{A, TRAFFIC_SEND, 1, 3000, 0, MISTAKE_TOO_LONG}},
		.status = {[A] = ABI_WC_REM_INV_REQ_ERR},
		.recv_status = {[B] = ABI_WC_LOC_LEN_ERR},
		.event_of = {[B] = ABI_EVENT_QP_LAST_WQE},
		.most = 6 * PKT + RTT,
	},
	{
		/* a message that is sent again keeps the WQE that it took (SRQ-02) */
		.name = "srq_message_with_a_loss",
		.rules = "SRQ-02 RSP-02",
		.srq = SRQ(8),
		.end = {[B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 2, 3000, 0, 0}},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_LOSE}},
		.event = {{0, GIVE_RECEIVES, B, 2}},
		.count = {COUNT(B, rx_send_requests, N(2)), COUNT(B, rnr_nak_sent, NONE)},
		.most = 11 * PKT + 2 * RTT,
	},
	/* --- XRC ------------------------------------------------------------------------------ */
	{
		.name = "xrc_all_operations",
		.rules = "XRC-01 XRC-02 XRC-03 XRC-05",
		.srq = XRC(8),
		.work = {{A, TRAFFIC_SEND, 3, 3000, 0, 0}, {A, TRAFFIC_WRITE_IMM, 3, 3000, 0, 0},
			{A, TRAFFIC_READ, 2, 3000, 0, 0}, {A, TRAFFIC_FETCH_ADD, 2, 8, 0, 0},
			{A, TRAFFIC_SEND_IMM, 3, 3000, 0, 0}},
		.count = {COUNT(B, rx_send_requests, N(6)), COUNT(B, rx_write_requests, N(3)),
			COUNT(B, rx_atomic_requests, N(2)), COUNT(A, retransmits, NONE)},
		.most = (11 * 3 + 4) * PKT + 3 * RTT,
	},
	{
		/* each may be lost once: request, ACK, response */
		.name = "xrc_with_losses",
		.rules = "XRC-01 XRC-03 REQ-24 REQ-39",
		.srq = XRC(8),
		.work = {SEND_3, READ_3, SEND_3},
		.pick = {{A, OP_SEND_MIDDLE, 0, 0, 0, LINK_LOSE},
			{B, OP_READ_RESP_MIDDLE, 0, 0, 0, LINK_LOSE},
			{B, OP_ACKNOWLEDGE, 0, 1, 0, LINK_LOSE}},
		.count = {COUNT(B, rx_send_requests, N(2)), COUNT(A, packet_seq_err, ONE)},
		.most = 2 * (T(14) + TICK) + 20 * PKT + 4 * RTT,
	},
	{
		/* what is named is empty; a WRITE before it asks for nothing */
		.name = "xrc_empty_then_filled",
		.rules = "SRQ-03 XRC-02",
		.srq = XRC(8),
		.end = {[B] = {.starved = true, .rnr_timer = VAL(14)}},
		.work = {WRITE_3, {A, TRAFFIC_SEND, 3, 100, 0, 0}},
		.event = {{100 * USEC, GIVE_RECEIVES, B, 3}},
		.count = {COUNT(B, rnr_nak_sent, ONE), COUNT(A, rnr_nak_recv, ONE)},
		.least = RNR14,
		.most = RNR14 + TICK + 3 * PKT + 3 * SMALL + 2 * RTT,
	},
	{
		.name = "xrc_srq_of_another_domain",
		.rules = "XRC-04 EVT-03 SRQ-07",
		.srq = {.depth = 8, .xrc = true, .named = NAMED_STRANGE},
		.work = {{A, TRAFFIC_SEND, 3, 100, 0, 0}},
		.status = {[A] = ABI_WC_REM_INV_REQ_ERR},
		.event_of = {[B] = ABI_EVENT_QP_REQ_ERR},
		.also = {[B] = LAST_WQE},
		.count = {COUNT(B, resp_remote_invalid_request, ONE),
			COUNT(B, rx_send_requests, NONE), COUNT(B, rnr_nak_sent, NONE)},
		.most = 3 * SMALL + RTT,
	},
	{
		.name = "xrc_srq_of_no_domain",
		.rules = "XRC-04",
		.srq = {.depth = 8, .xrc = true, .named = NAMED_PLAIN},
		.work = {{A, TRAFFIC_SEND_IMM, 1, 100, 0, 0}},
		.status = {[A] = ABI_WC_REM_INV_REQ_ERR},
		.event_of = {[B] = ABI_EVENT_QP_REQ_ERR},
		.also = {[B] = LAST_WQE},
		.most = SMALL + RTT,
	},
	{
		/* with immediate data: at the LAST, the bytes before it are written */
		.name = "xrc_unknown_srq",
		.rules = "XRC-04 RSP-19",
		.srq = {.depth = 8, .xrc = true, .named = NAMED_UNKNOWN},
		.work = {{A, TRAFFIC_WRITE_IMM, 1, 3000, 0, 0}},
		.status = {[A] = ABI_WC_REM_INV_REQ_ERR},
		.event_of = {[B] = ABI_EVENT_QP_REQ_ERR},
		.also = {[B] = LAST_WQE},
		.most = 3 * PKT + RTT,
	},
	{
		/* they take no receive, so what they name does not count */
		.name = "xrc_unknown_srq_of_a_write",
		.rules = "XRC-03 XRC-04",
		.srq = {.depth = 8, .xrc = true, .named = NAMED_UNKNOWN},
		.work = {WRITE_3, READ_3, {A, TRAFFIC_CMP_SWAP, 1, 8, 0, 0}},
		.count = {COUNT(B, rx_write_requests, ONE), COUNT(B, rx_read_requests, ONE),
			COUNT(B, rx_atomic_requests, ONE)},
		.most = 8 * PKT + RTT,
	},
	{
		/* in the middle of a message that has a WQE of it: no completion, no byte more */
		.name = "xrc_srq_destroyed",
		.rules = "XRC-04",
		.srq = XRC(8),
		.work = {{A, TRAFFIC_SEND, 4, 20000, 0, 0}},
		.event = {{10 * USEC, WITHDRAW_SRQ, B, 0}},
		.status = {[A] = ABI_WC_REM_INV_REQ_ERR},
		.event_of = {[B] = ABI_EVENT_QP_REQ_ERR},
		.also = {[B] = LAST_WQE},
		.event_least = {[B] = 10 * USEC},
		.count = {COUNT(B, rx_send_requests, NONE)},
		.most = 10 * USEC + PKT + RTT,
	},
	{
		.name = "xrc_target_to_err",
		.rules = "SRQ-07 XRC-05 QPS-20",
		.srq = XRC(8),
		.end = {[A] = {.timeout = VAL(8)}},
		.work = {{A, TRAFFIC_SEND, 20, 20000, 0, 0}},
		.event = {{30 * USEC, TO_ERR, B, 0}},
		.status = {[A] = ABI_WC_RETRY_EXC_ERR},
		.recv_status = {[B] = ABI_WC_WR_FLUSH_ERR},
		.event_of = {[B] = ABI_EVENT_QP_LAST_WQE},
		.count = {COUNT(B, resp_cqe_flush_error, ONE)},
		.least = 8 * T(8),
		.most = 30 * USEC + RTT + 8 * (T(8) + TICK),
	},
	{
		.name = "xrc_srq_broken",
		.rules = "SRQ-08 EVT-04",
		.srq = XRC(8),
		.end = {[B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 4, 1000, 0, 0}},
		.event = {{0, GIVE_RECEIVES, B, 2}, {USEC, BREAK_SRQ, B, 0}},
		.status = {[A] = ABI_WC_REM_OP_ERR},
		.event_of = {[B] = ABI_EVENT_SRQ_ERR},
		.also = {[B] = 1u << ABI_EVENT_QP_FATAL | LAST_WQE},
		.count = {COUNT(B, rx_send_requests, N(2))},
		.most = 4 * PKT + RTT,
	},
	{
		.name = "xrc_limit_once",
		.rules = "SRQ-04 XRC-02",
		.srq = XRC(8),
		.end = {[B] = {.starved = true}},
		.work = {{A, TRAFFIC_SEND, 5, 1000, 0, 0}},
		.event = {{0, GIVE_RECEIVES, B, 5}, {0, ARM_LIMIT, B, 3}},
		.event_of = {[B] = ABI_EVENT_SRQ_LIMIT_REACHED},
		.event_least = {[B] = 3 * 860 + 2 * USEC},
		.most = 5 * PKT + RTT + 5 * 4,
	},
};

const struct scenario_table scenario_shared = {row, ARRAY_SIZE(row)};
