/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file drop.h
 * Reasons for dropping a frame. Each has its own counter and its own name (CA17-24, VAL-01,
 * SEC-05). They are in the order of the checks.
 */
#ifndef DROP_H
#define DROP_H

/* X(identifier, counter name, rule) */
#define DROP_REASONS(X)                                            \
	/* frame.c: layers 2 to 4, before any QP is known */       \
	X(NOT_ROCE, "not_roce", "ETH-01")                          \
	X(ETH_SHORT, "eth_short", "ETH-02")                        \
	X(VLAN_STACKED, "vlan_stacked", "ETH-03")                  \
	X(IP_VERSION, "ip_version", "CA17-27")                     \
	X(IP4_IHL, "ip4_ihl", "CA17-3")                            \
	X(IP4_CHECKSUM, "ip4_checksum", "CA17-2")                  \
	X(IP4_FRAGMENT, "ip4_fragment", "CA17-8")                  \
	X(IP4_NOT_DF, "ip4_not_df", "CA17-7")                      \
	X(IP_LENGTH, "ip_length", "CA17-6")                        \
	X(IP_NEXT_HEADER, "ip_next_header", "CA17-16")             \
	X(GRH_NEXT_HEADER, "grh_next_header", "C9-44")             \
	X(UDP_PORT, "udp_port", "CA17-20")                         \
	X(UDP_LENGTH, "udp_length", "CA17-21")                     \
	X(BTH_SHORT, "bth_short", "VAL-18")                        \
	X(BTH_TVER, "bth_tver", "BTH-02")                          \
	X(BTH_ALIGN, "bth_align", "BTH-06")                        \
	X(OPCODE_CLASS, "opcode_class", "VAL-21")                  \
	X(HEADER_SHORT, "header_short", "VAL-18")                  \
	X(PAD, "pad", "BTH-06")                                    \
	/* fast_cnp.c, with Fast CNP only */                       \
	X(FAST_CNP_HEADER, "fast_cnp_header", "FCN-07")            \
	X(FAST_CNP_UNKNOWN, "fast_cnp_unknown", "FCN-14")          \
	X(FAST_CNP_TWICE, "fast_cnp_twice", "FCN-03")              \
	X(FAST_CNP_LENGTH, "fast_cnp_length", "FCN-05")            \
	X(FAST_CNP_OPCODE, "fast_cnp_opcode", "FCN-03")            \
	/* classify.c */                                           \
	X(DMAC, "dmac", "ETH-10")                                  \
	X(SGID, "sgid", "VAL-15")                                  \
	X(MARTIAN, "martian", "SEC-03")                            \
	X(DGID, "dgid", "VAL-11")                                  \
	X(QP0, "qp0", "CA17-33")                                   \
	X(QPN_MCAST, "qpn_mcast", "VAL-17")                        \
	X(NO_GSI, "no_gsi", "CM-01")                               \
	X(QPN_UNKNOWN, "qpn_unknown", "VAL-03")                    \
	X(FAST_CNP_SOURCE, "fast_cnp_source", "FCN-10")            \
	X(ICRC, "icrc", "CA17-24")                                 \
	X(FAST_CNP_RATE, "fast_cnp_rate", "FCN-11")                \
	X(FAST_CNP_NO_QP, "fast_cnp_no_qp", "FCN-08")              \
	X(QP_TYPE, "qp_type", "VAL-04")                            \
	X(QP_STATE, "qp_state", "VAL-06")                          \
	X(QP_ADDRESS, "qp_address", "VAL-12")                      \
	X(QP_PEER, "qp_peer", "SEC-03")                            \
	X(PKEY, "pkey", "VAL-08")                                  \
	X(QKEY, "qkey", "VAL-16")                                  \
	X(OPCODE_UNSUPPORTED, "opcode_unsupported", "VAL-05")      \
	X(CNP_IGNORED, "cnp_ignored", "CNP-14")                    \
	X(CNP_IDLE, "cnp_idle", "CNP-16")                          \
	X(CNP_STRANGER, "cnp_stranger", "CNP-16")                  \
	X(CNP_UNMANAGED, "cnp_unmanaged", "CNP-08")                \
	/* named.c */                                              \
	X(NAMELESS, "nameless", "-")                               \
	/* responder.c */                                          \
	X(PSN_AHEAD, "psn_ahead", "RSP-03")                        \
	X(PSN_BEHIND, "psn_behind", "RSP-01")                      \
	X(DUP_NO_RESOURCE, "dup_no_resource", "RSP-38")            \
	X(RNR_PENDING, "rnr_pending", "RSP-18")                    \
	/* services that drop requests that they cannot execute */ \
	X(MESSAGE_TORN, "message_torn", "UC-05")                   \
	X(NO_RECV_WQE, "no_recv_wqe", "UC-09")                     \
	X(REQUEST_LENGTH, "request_length", "UC-13")               \
	X(REQUEST_ACCESS, "request_access", "UC-10")               \
	/* completer.c */                                          \
	X(GHOST_ACK, "ghost_ack", "REQ-36")                        \
	X(AETH_RESERVED, "aeth_reserved", "REQ-46")                \
	X(READ_RESP_UNEXPECTED, "read_resp_unexpected", "REQ-39")  \
	/* multicast.c */                                          \
	X(GROUP_BUSY, "group_busy", "-")                           \
	/* inject.c: lost on purpose */                            \
	X(INJECTED, "injected", "-")                               \
	/* shells: the frame never reached the core */             \
	X(HANDOFF_FULL, "handoff_full", "-")                       \
	X(FRAME_TOO_LONG, "frame_too_long", "-")

enum drop {
	DROP_NONE = 0, /* not dropped */
#define X(id, name, rule) DROP_##id,
	DROP_REASONS(X)
#undef X
	DROP_MAX
};

/** @return the counter name of @p d, "none" for DROP_NONE, NULL if out of range. */
const char *drop_name(enum drop d);

/** @return the rule that @p d enforces, for `rocictl show errors`. */
const char *drop_rule(enum drop d);

#endif
