/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion notification: packets that are marked, CNPs that are lost, late or doubled, and CNPs
 * and Fast CNPs that nobody should have sent. None of them changes the work of the transport.
 */
#include "abi_ctl.h"
#include "opcode.h"
#include "scenario_forge.h"
#include "scenario_row.h"

/** The interval of CNPs in these rows. */
#define INTERVAL (50 * USEC)
#define WRITES(n)                                   \
	{                                           \
		A, TRAFFIC_WRITE, 1, (n)*1024, 0, 0 \
	}
/** IPv6 takes 20 bytes more of each packet, a RETH 16. */
#define PKT6 (PKT + 16)
#define ALL  1000000u
#define ON   .cnp_interval = INTERVAL
#define ON6  .cnp_interval = INTERVAL, .ipv6 = true

/** Forged at A while it writes; all that moves are @p ... */
#define FORGED(named, rule, how, ...)                                                  \
	{                                                                              \
		.name = named, .rules = rule, ON, .work = {WRITES(10)},                \
		.event = {{2 * USEC, CNP, A, how}, {3 * USEC, CNP, A, how}},           \
		.count = {COUNT(A, rp_cnp_handled, NONE), COUNT(A, retransmits, NONE), \
			__VA_ARGS__},                                                  \
		.most = 10 * PKT + RTT + 2 * 200                                       \
	}
#define FAST(named, rule, how, ...)                                      \
	{                                                                \
		.name = named, .rules = rule, ON6, .work = {WRITES(10)}, \
		.event = {{2 * USEC, FAST_CNP, A, how}},                 \
		.count = {COUNT(A, retransmits, NONE), __VA_ARGS__},     \
		.most = 10 * PKT6 + RTT + 1000                           \
	}
#define NOT_TOLD COUNT(A, rp_fast_cnp_handled, NONE)

static const struct scenario row[] = {
	/* --- marks and CNPs ------------------------------------------------------------------- */
	{
		/* 1 ms of them, and an interval of 50 us */
		.name = "ce_flood",
		.rules = "CNP-01 CNP-06",
		ON,
		.end = {[A] = {.impair = {.mark = ALL}}},
		.work = {{A, TRAFFIC_WRITE, 1126, 1024, 0, 0}},
		.count = {COUNT(B, np_ecn_marked_roce_packets, N(1126)),
			COUNT(B, np_cnp_sent, TO(19, 21)), COUNT(A, rp_cnp_handled, TO(19, 21)),
			COUNT(A, retransmits, NONE)},
		.most = 1126 * PKT6 + RTT + 21 * 100, /* each has a RETH */
	},
	{
		/* ACKs and READ responses, too */
		.name = "ce_flood_of_answers",
		.rules = "CNP-09",
		ON,
		.end = {[B] = {.impair = {.mark = ALL}}},
		.work = {{A, TRAFFIC_READ, 1, 100 * 1024, 0, 0}, WRITE_3},
		.count = {COUNT(A, np_cnp_sent, TO(2, 4)), COUNT(B, rp_cnp_handled, TO(2, 4))},
		.most = 110 * PKT + 3 * RTT,
	},
	{
		/* without congestion management nothing is ECN-capable, so nothing is marked */
		.name = "ce_without_cc",
		.rules = "CNP-14 IP4-05",
		.work = {WRITES(10)},
		.event = {{2 * USEC, CNP, A, CNP_AS_THE_PEERS}},
		.count = {COUNT(B, np_ecn_marked_roce_packets, NONE), COUNT(B, np_cnp_sent, NONE),
			COUNT(A, rp_cnp_ignored, ONE), DROPS(A, CNP_IGNORED, ONE)},
		.most = 10 * PKT + RTT + 100,
	},
	{
		.name = "cnp_lost",
		.rules = "CNP-06 CNP-11",
		ON,
		.end = {[A] = {.impair = {.mark = ALL}}},
		.work = {WRITES(200)},
		.pick = {{B, OPCODE_CNP, 0, 0, 2, LINK_LOSE}},
		.count = {COUNT(B, np_cnp_sent, N(4)), COUNT(A, rp_cnp_handled, N(2)),
			COUNT(A, retransmits, NONE)},
		.most = 200 * PKT + RTT + 400,
	},
	{
		.name = "cnp_twice",
		.rules = "CNP-11",
		ON,
		.end = {[A] = {.impair = {.mark = ALL}}},
		.work = {WRITES(200)},
		.pick = {{B, OPCODE_CNP, 0, 0, 4, LINK_DUPLICATE}},
		.count = {COUNT(B, np_cnp_sent, N(4)), COUNT(A, rp_cnp_handled, N(8)),
			COUNT(A, retransmits, NONE)},
		.most = 200 * PKT + RTT + 800,
	},
	{
		/* by 1 ms: some come when the traffic is over, and in another order */
		.name = "cnp_late",
		.rules = "CNP-11",
		ON,
		.end = {[A] = {.impair = {.mark = ALL}}, [B] = {.impair = {.reorder_ns = MSEC}}},
		.work = {WRITES(200)},
		.pick = {{B, OPCODE_CNP, 0, 0, 4, LINK_REORDER}},
		.count = {COUNT(B, np_cnp_sent, N(4)), COUNT(A, rp_cnp_handled, N(4)),
			COUNT(A, retransmits, NONE)},
		.most = 200 * PKT + RTT + 400,
	},
	/* --- forged CNPs ---------------------------------------------------------------------- */
	FORGED("cnp_of_another_host", "CNP-16", CNP_ADDRESS, COUNT(A, rp_cnp_ignored, N(2)),
		DROPS(A, QP_ADDRESS, N(2))),
	FORGED("cnp_for_no_qp", "VAL-03", CNP_QPN, COUNT(A, rp_cnp_ignored, NONE),
		DROPS(A, QPN_UNKNOWN, N(2))),
	FORGED("cnp_of_another_partition", "VAL-09", CNP_PKEY, COUNT(A, rp_cnp_ignored, N(2)),
		DROPS(A, PKEY, N(2))),
	FORGED("cnp_with_wrong_icrc", "ICRC-11", CNP_ICRC, COUNT(A, rp_cnp_ignored, NONE),
		DROPS(A, ICRC, N(2))),
	FORGED("cnp_over_rocev1", "CNP-16", CNP_ROCEV1, COUNT(A, rp_cnp_ignored, N(2)),
		DROPS(A, CNP_UNMANAGED, N(2))),
	{
		/* the peer's are believed, in ERR no longer */
		.name = "cnp_in_error",
		.rules = "CNP-11 QPS-20",
		ON,
		.status = {[A] = ABI_WC_WR_FLUSH_ERR},
		.work = {WRITES(10)},
		.event = {{1 * USEC, CNP, A, CNP_AS_THE_PEERS},
			{4 * USEC, CNP, A, CNP_AS_THE_PEERS}, {5 * USEC, TO_ERR, A, 0}},
		.count = {COUNT(A, rp_cnp_handled, ONE), COUNT(A, rp_cnp_ignored, ONE),
			DROPS(A, QP_STATE, SOME)},
		.most = 20 * USEC,
	},
	{
		/* one comes while it sends, one when it has sent nothing for 30 ms */
		.name = "cnp_when_idle",
		.rules = "CNP-16",
		ON,
		.work = {WRITES(10), WRITES(3)},
		.end = {[A] = {.window = 4}},
		.event = {{2 * USEC, TO_SQD, A, 0}, {3 * USEC, CNP, A, CNP_AS_THE_PEERS},
			{40 * MSEC, CNP, A, CNP_AS_THE_PEERS}, {41 * MSEC, TO_RTS, A, 0},
			{41 * MSEC + 3 * USEC, CNP, A, CNP_AS_THE_PEERS}},
		.event_of = {[A] = ABI_EVENT_SQ_DRAINED},
		.count = {COUNT(A, rp_cnp_handled, N(2)), COUNT(A, rp_cnp_ignored, ONE),
			DROPS(A, CNP_IDLE, ONE), COUNT(A, retransmits, NONE)},
		.least = 41 * MSEC,
		.most = 41 * MSEC + 3 * PKT + RTT + 200,
	},
	/* --- Fast CNPs ------------------------------------------------------------------------ */
	FAST("fast_cnp", "FCN-03 FCN-08", FAST_GOOD, COUNT(A, rp_fast_cnp_handled, ONE)),
	FAST("fast_cnp_with_trace", "FCN-06", FAST_GOOD | FAST_WITH_TRACE,
		COUNT(A, rp_fast_cnp_handled, ONE)),
	FAST("fast_cnp_padded", "FCN-07", FAST_PADDED, COUNT(A, rp_fast_cnp_handled, ONE)),
	FAST("fast_cnp_not_listed", "FCN-10", FAST_GOOD | FAST_NOT_LISTED, NOT_TOLD,
		DROPS(A, FAST_CNP_SOURCE, ONE)),
	FAST("fast_cnp_of_no_qp", "FCN-08", FAST_GOOD | FAST_OF_NO_QP, NOT_TOLD,
		DROPS(A, FAST_CNP_NO_QP, ONE)),
	FAST("fast_cnp_too_short", "FCN-05", FAST_SHORT, NOT_TOLD, DROPS(A, FAST_CNP_LENGTH, ONE)),
	FAST("fast_cnp_too_long", "FCN-05", FAST_LONG, NOT_TOLD, DROPS(A, FAST_CNP_LENGTH, ONE)),
	FAST("fast_cnp_twice", "FCN-03", FAST_TWICE, NOT_TOLD, DROPS(A, FAST_CNP_TWICE, ONE)),
	FAST("fast_cnp_unknown", "FCN-14", FAST_UNKNOWN, NOT_TOLD, DROPS(A, FAST_CNP_UNKNOWN, ONE)),
	FAST("fast_cnp_without_option", "FCN-12", FAST_NONE, NOT_TOLD,
		DROPS(A, FAST_CNP_UNKNOWN, ONE)),
	FAST("fast_cnp_overruns", "FCN-07", FAST_OVERRUN, NOT_TOLD, DROPS(A, FAST_CNP_HEADER, ONE)),
	FAST("fast_cnp_beyond_the_packet", "FCN-07", FAST_BEYOND, NOT_TOLD,
		DROPS(A, IP_NEXT_HEADER, ONE)),
	FAST("fast_cnp_is_no_cnp", "FCN-03", FAST_OPCODE, NOT_TOLD, DROPS(A, FAST_CNP_OPCODE, ONE)),
	FAST("fast_cnp_with_wrong_icrc", "ICRC-10 ICRC-11", FAST_ICRC, NOT_TOLD,
		DROPS(A, ICRC, ONE)),
	FAST("fast_cnp_over_ipv4", "FCN-02", FAST_IP4, NOT_TOLD, DROPS(A, IP_NEXT_HEADER, ONE)),
	FAST("fast_cnp_after_udp", "FCN-03", FAST_AFTER_UDP, NOT_TOLD, DROPS(A, BTH_TVER, ONE)),
	{
		/* two at once, then one in a millisecond */
		.name = "fast_cnp_over_the_bucket",
		.rules = "FCN-11",
		ON6,
		.work = {WRITES(20)},
		.event = {{1 * USEC, FAST_CNP, A, FAST_GOOD}, {2 * USEC, FAST_CNP, A, FAST_GOOD},
			{3 * USEC, FAST_CNP, A, FAST_GOOD}, {4 * USEC, FAST_CNP, A, FAST_GOOD}},
		.count = {COUNT(A, rp_fast_cnp_handled, N(2)), DROPS(A, FAST_CNP_RATE, N(2)),
			COUNT(A, retransmits, NONE)},
		.most = 20 * PKT6 + RTT + 1000,
	},
	{
		/* of one event: the switch told first, the peer's CNP came within the interval */
		.name = "fast_cnp_and_cnp",
		.rules = "FCN-13",
		ON6,
		.end = {[A] = {.impair = {.mark = ALL}}},
		.work = {WRITES(20)},
		.event = {{0, FAST_CNP, A, FAST_GOOD}},
		.count = {COUNT(A, rp_fast_cnp_handled, ONE), COUNT(A, rp_cnp_handled, ONE),
			COUNT(A, rp_cnp_repeated, ONE)},
		.most = 20 * PKT6 + RTT + 1000,
	},
	{
		/* the QP sends over IPv4 to the same host */
		.name = "fast_cnp_over_ipv4_qps",
		.rules = "FCN-02 FCN-08",
		ON,
		.work = {WRITES(10)},
		.event = {{2 * USEC, FAST_CNP, A, FAST_GOOD}},
		.count = {NOT_TOLD, DROPS(A, FAST_CNP_NO_QP, ONE)},
		.most = 10 * PKT + RTT + 1000,
	},
};

const struct scenario_table scenario_cnp = {row, ARRAY_SIZE(row)};
