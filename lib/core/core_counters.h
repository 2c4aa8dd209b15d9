/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core_counters.h
 * The counters of a core.
 */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

#include <stdint.h>
#include "drop.h"
#include "limits.h"

/* Names and meanings are those of RDMA tools (hw_counters) where they have such a counter;
 * doc/counters.md names the source. Features that are not built yet have no counter.
 * X(field, name, help)
 */
#define CORE_COUNTERS(X)                                                                          \
	X(rx_packets, "rx_packets", "RoCE packets received, on all ports")                        \
	X(rx_bytes, "rx_bytes", "bytes received, from IP or GRH to ICRC")                         \
	X(tx_packets, "tx_packets", "RoCE packets sent, on all ports and to QPs of this rocid")   \
	X(tx_bytes, "tx_bytes", "bytes sent, from IP or GRH to ICRC")                             \
	X(tx_acks, "tx_acks", "ACK and NAK packets sent")                                         \
	X(rx_acks, "rx_acks", "ACK and NAK packets received")                                     \
	X(rx_write_requests, "rx_write_requests", "RDMA WRITE messages received")                 \
	X(rx_read_requests, "rx_read_requests", "RDMA READ requests received")                    \
	X(rx_atomic_requests, "rx_atomic_requests", "CmpSwap and FetchAdd requests received")     \
	X(rx_flush_requests, "rx_flush_requests", "FLUSH requests received")                      \
	X(rx_atomic_write_requests, "rx_atomic_write_requests", "ATOMIC WRITE requests received") \
	X(rx_send_requests, "rx_send_requests", "SEND messages received")                         \
	X(retransmits, "retransmits", "request packets retransmitted")                            \
	X(out_of_sequence, "out_of_sequence",                                                     \
		"request packets received with a PSN ahead of the expected one")                  \
	X(duplicate_request, "duplicate_request",                                                 \
		"request packets received again after their execution")                           \
	X(packet_seq_err, "packet_seq_err", "PSN sequence NAKs received")                         \
	X(implied_nak_seq_err, "implied_nak_seq_err",                                             \
		"responses received ahead of an outstanding READ response")                       \
	X(out_of_buffer, "out_of_buffer", "packets dropped because no receive WQE was posted")    \
	X(rnr_nak_sent, "rnr_nak_sent", "RNR NAKs sent")                                          \
	X(rnr_nak_recv, "rnr_nak_recv", "RNR NAKs received")                                      \
	X(rnr_nak_retry_err, "rnr_nak_retry_err",                                                 \
		"RNR NAKs received that did not exceed the QP's retry limit")                     \
	X(retry_rnr_exceeded_err, "retry_rnr_exceeded_err",                                       \
		"QPs that failed because the peer was not ready too often")                       \
	X(local_ack_timeout_err, "local_ack_timeout_err", "local ACK timers that expired")        \
	X(retry_exceeded_err, "retry_exceeded_err",                                               \
		"QPs that failed because the peer did not respond to retries")                    \
	X(req_remote_access_errors, "req_remote_access_errors",                                   \
		"remote access error NAKs received")                                              \
	X(req_remote_invalid_request, "req_remote_invalid_request",                               \
		"invalid request NAKs received")                                                  \
	X(req_cqe_error, "req_cqe_error",                                                         \
		"send queue completions with an error, including flushed ones")                   \
	X(req_cqe_flush_error, "req_cqe_flush_error", "send queue completions that were flushed") \
	X(resp_cqe_error, "resp_cqe_error",                                                       \
		"receive queue completions with an error, including flushed ones")                \
	X(resp_cqe_flush_error, "resp_cqe_flush_error",                                           \
		"receive queue completions that were flushed")                                    \
	X(resp_remote_access_errors, "resp_remote_access_errors",                                 \
		"requests received with a remote access error")                                   \
	X(resp_remote_invalid_request, "resp_remote_invalid_request", "invalid requests")         \
	X(resp_local_length_error, "resp_local_length_error",                                     \
		"messages received that were longer than their receive WQE")                      \
	X(cq_overflow, "cq_overflow", "completions lost because a CQ was full")                   \
	X(access_faults, "access_faults", "accesses to application memory that faulted")          \
	X(direct_messages, "direct_messages",                                                     \
		"messages that went to a QP of this rocid without frames")                        \
	X(direct_bytes, "direct_bytes", "their bytes")                                            \
	X(named_packets, "named_packets",                                                         \
		"packets to a QP of this rocid that named their payload instead of carrying it")  \
	X(np_ecn_marked_roce_packets, "np_ecn_marked_roce_packets",                               \
		"packets received with congestion experienced, by QPs that answer with CNPs")     \
	X(np_cnp_sent, "np_cnp_sent", "CNPs sent")                                                \
	X(rp_cnp_handled, "rp_cnp_handled", "CNPs accepted")                                      \
	X(rp_cnp_ignored, "rp_cnp_ignored", "CNPs for QPs that were not accepted")                \
	X(rp_cnp_repeated, "rp_cnp_repeated",                                                     \
		"accepted CNPs and Fast CNPs about an event that the QP knew of")                 \
	X(rp_fast_cnp_handled, "rp_fast_cnp_handled", "QPs that accepted a Fast CNP")             \
	X(rp_fast_cnp_detours, "rp_fast_cnp_detours",                                             \
		"changes of source port and flow label after a Fast CNP")                         \
	X(rp_fast_cnp_ignored, "rp_fast_cnp_ignored", "QPs that did not accept a Fast CNP")       \
	X(injected_faults, "injected_faults", "faults injected into packets, see show faults")

/** Traffic of one port. */
struct core_port_counters {
	uint64_t rx_packets;
	uint64_t rx_bytes; /* from IP or GRH to ICRC */
	uint64_t tx_packets;
	uint64_t tx_bytes;
};

/** One writer, the worker; the control thread reads with relaxed loads and sums. The core itself
 *  counts packets and bytes per port only; core_sum_ports() computes the totals. */
struct core_counters {
#define X(field, name, help) uint64_t field;
	CORE_COUNTERS(X)
#undef X
	uint64_t drop[DROP_MAX];     /* indexed by enum drop */
	uint64_t bad_pkey[PORT_MAX]; /* BadPKeyCounter of each port, up to BAD_PKEY_MAX (VAL-10) */
	uint64_t bad_qkey[PORT_MAX]; /* QKeyViolations of each port, saturates likewise */
	struct core_port_counters port[PORT_MAX];
};
#define BAD_PKEY_MAX 0xFFFFu

/** @return the name of the i-th counter in declaration order, NULL beyond the last. */
const char *core_counter_name(unsigned i);

/** @return a short description of what the i-th counter counts. */
const char *core_counter_help(unsigned i);

/** Sets the totals of @p c: rx_packets, rx_bytes, tx_packets, tx_bytes. */
void core_sum_ports(struct core_counters *c);

#endif
