/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mad.h
 * Management datagrams (IBA 13.4) and the messages of the communication manager (IBA 12.6; CM-02,
 * CM-03, CM-06, CM-27): one table has the place and name of each field. Fields are read from and
 * written to the MAD in place; nothing is copied. All values are in host order.
 */
#ifndef MAD_H
#define MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_LEN		256u
#define MAD_DATA	24u /* where the message begins */
#define MAD_BASE_VER	1u
#define MAD_CLASS_CM	0x07u
#define MAD_CM_VER	2u
#define MAD_METHOD_SEND 0x03u
#define MAD_QKEY	0x80010000u /* Q_Key of QP1 (IBA 10.2.4.2) */

/** Attribute IDs (CM-03). */
enum cm_attr {
	CM_REQ = 0x10,
	CM_MRA,
	CM_REJ,
	CM_REP,
	CM_RTU,
	CM_DREQ,
	CM_DREP,
	CM_SIDR_REQ,
	CM_SIDR_REP,
	CM_LAP,
	CM_APR,
	CM_ATTR_END,
};
#define CM_ATTRS ((unsigned)CM_ATTR_END - CM_REQ)

/** Reasons of a REJ (IBA 12.6.7.2). */
enum cm_rej {
	CM_REJ_NO_QP = 1,
	CM_REJ_NO_RESOURCES = 3,
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_COMM_ID = 6,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_INVALID_TRANSPORT = 9,
	CM_REJ_STALE_CONN = 10,
	CM_REJ_INVALID_GID = 12,
	CM_REJ_INVALID_MTU = 26,
	CM_REJ_CONSUMER = 28,
	CM_REJ_VENDOR_OPTION = 35,
};

/** Messages that an MRA (CM-18) or a REJ refers to. */
enum cm_named {
	CM_NAMED_REQ = 0,
	CM_NAMED_REP = 1,
	CM_NAMED_OTHER = 2,
};

/** Transport service types of a REQ. */
enum cm_transport {
	CM_TRANSPORT_RC = 0,
	CM_TRANSPORT_UC = 1,
	CM_TRANSPORT_RD = 2,
	CM_TRANSPORT_EXTENDED = 3, /* XRC, if the extended type is 1 */
};

/** SIDR_REP statuses (IBA 12.11.2). */
enum cm_sidr_status {
	CM_SIDR_SUCCESS = 0,
	CM_SIDR_UNSUPPORTED = 1,
	CM_SIDR_REJECT = 2,
	CM_SIDR_NO_QP = 3,
};

#define CM_APR_UNSUPPORTED 2u /* CM-32 */

/** X(identifier, message, name, byte, first bit counted from the top of the byte, width). Widths
 *  above 64 are accessed as bytes: cm_bytes(). */
#define CM_FIELDS(X)                                                       \
	X(REQ_LOCAL_ID, REQ, "local_comm_id", 0, 0, 32)                    \
	X(REQ_SERVICE_ID, REQ, "service_id", 8, 0, 64)                     \
	X(REQ_GUID, REQ, "local_ca_guid", 16, 0, 64)                       \
	X(REQ_QKEY, REQ, "local_qkey", 28, 0, 32)                          \
	X(REQ_QPN, REQ, "local_qpn", 32, 0, 24)                            \
	X(REQ_RESP_RES, REQ, "responder_resources", 35, 0, 8)              \
	X(REQ_EECN, REQ, "local_eecn", 36, 0, 24)                          \
	X(REQ_INIT_DEPTH, REQ, "initiator_depth", 39, 0, 8)                \
	X(REQ_REMOTE_EECN, REQ, "remote_eecn", 40, 0, 24)                  \
	X(REQ_REMOTE_TIMEOUT, REQ, "remote_cm_response_timeout", 43, 0, 5) \
	X(REQ_TRANSPORT, REQ, "transport_service_type", 43, 5, 2)          \
	X(REQ_FLOW_CONTROL, REQ, "end_to_end_flow_control", 43, 7, 1)      \
	X(REQ_PSN, REQ, "starting_psn", 44, 0, 24)                         \
	X(REQ_LOCAL_TIMEOUT, REQ, "local_cm_response_timeout", 47, 0, 5)   \
	X(REQ_RETRY, REQ, "retry_count", 47, 5, 3)                         \
	X(REQ_PKEY, REQ, "partition_key", 48, 0, 16)                       \
	X(REQ_MTU, REQ, "path_mtu", 50, 0, 4)                              \
	X(REQ_RDC_EXISTS, REQ, "rdc_exists", 50, 4, 1)                     \
	X(REQ_RNR_RETRY, REQ, "rnr_retry_count", 50, 5, 3)                 \
	X(REQ_MAX_RETRIES, REQ, "max_cm_retries", 51, 0, 4)                \
	X(REQ_SRQ, REQ, "srq", 51, 4, 1)                                   \
	X(REQ_EXTENDED, REQ, "extended_transport_type", 51, 5, 3)          \
	X(REQ_LOCAL_LID, REQ, "primary_local_lid", 52, 0, 16)              \
	X(REQ_REMOTE_LID, REQ, "primary_remote_lid", 54, 0, 16)            \
	X(REQ_LOCAL_GID, REQ, "primary_local_gid", 56, 0, 128)             \
	X(REQ_REMOTE_GID, REQ, "primary_remote_gid", 72, 0, 128)           \
	X(REQ_FLOW_LABEL, REQ, "primary_flow_label", 88, 0, 20)            \
	X(REQ_RATE, REQ, "primary_packet_rate", 91, 2, 6)                  \
	X(REQ_TCLASS, REQ, "primary_traffic_class", 92, 0, 8)              \
	X(REQ_HOP_LIMIT, REQ, "primary_hop_limit", 93, 0, 8)               \
	X(REQ_SL, REQ, "primary_sl", 94, 0, 4)                             \
	X(REQ_SUBNET_LOCAL, REQ, "primary_subnet_local", 94, 4, 1)         \
	X(REQ_ACK_TIMEOUT, REQ, "primary_local_ack_timeout", 95, 0, 5)     \
	X(REQ_ALT_LOCAL_LID, REQ, "alternate_local_lid", 96, 0, 16)        \
	X(REQ_ALT_REMOTE_LID, REQ, "alternate_remote_lid", 98, 0, 16)      \
	X(REQ_ALT_LOCAL_GID, REQ, "alternate_local_gid", 100, 0, 128)      \
	X(REQ_ALT_REMOTE_GID, REQ, "alternate_remote_gid", 116, 0, 128)    \
	X(REQ_PRIVATE, REQ, "private_data", 140, 0, 736)                   \
	X(MRA_LOCAL_ID, MRA, "local_comm_id", 0, 0, 32)                    \
	X(MRA_REMOTE_ID, MRA, "remote_comm_id", 4, 0, 32)                  \
	X(MRA_NAMED, MRA, "message_mraed", 8, 0, 2)                        \
	X(MRA_TIMEOUT, MRA, "service_timeout", 9, 0, 5)                    \
	X(MRA_PRIVATE, MRA, "private_data", 10, 0, 1776)                   \
	X(REJ_LOCAL_ID, REJ, "local_comm_id", 0, 0, 32)                    \
	X(REJ_REMOTE_ID, REJ, "remote_comm_id", 4, 0, 32)                  \
	X(REJ_NAMED, REJ, "message_rejected", 8, 0, 2)                     \
	X(REJ_ARI_LEN, REJ, "reject_info_length", 9, 0, 7)                 \
	X(REJ_REASON, REJ, "reason", 10, 0, 16)                            \
	X(REJ_ARI, REJ, "ari", 12, 0, 576)                                 \
	X(REJ_PRIVATE, REJ, "private_data", 84, 0, 1184)                   \
	X(REP_LOCAL_ID, REP, "local_comm_id", 0, 0, 32)                    \
	X(REP_REMOTE_ID, REP, "remote_comm_id", 4, 0, 32)                  \
	X(REP_QKEY, REP, "local_qkey", 8, 0, 32)                           \
	X(REP_QPN, REP, "local_qpn", 12, 0, 24)                            \
	X(REP_EECN, REP, "local_eecn", 16, 0, 24)                          \
	X(REP_PSN, REP, "starting_psn", 20, 0, 24)                         \
	X(REP_RESP_RES, REP, "responder_resources", 24, 0, 8)              \
	X(REP_INIT_DEPTH, REP, "initiator_depth", 25, 0, 8)                \
	X(REP_ACK_DELAY, REP, "target_ack_delay", 26, 0, 5)                \
	X(REP_FAILOVER, REP, "failover_accepted", 26, 5, 2)                \
	X(REP_FLOW_CONTROL, REP, "end_to_end_flow_control", 26, 7, 1)      \
	X(REP_RNR_RETRY, REP, "rnr_retry_count", 27, 0, 3)                 \
	X(REP_SRQ, REP, "srq", 27, 3, 1)                                   \
	X(REP_GUID, REP, "local_ca_guid", 28, 0, 64)                       \
	X(REP_PRIVATE, REP, "private_data", 36, 0, 1568)                   \
	X(RTU_LOCAL_ID, RTU, "local_comm_id", 0, 0, 32)                    \
	X(RTU_REMOTE_ID, RTU, "remote_comm_id", 4, 0, 32)                  \
	X(RTU_PRIVATE, RTU, "private_data", 8, 0, 1792)                    \
	X(DREQ_LOCAL_ID, DREQ, "local_comm_id", 0, 0, 32)                  \
	X(DREQ_REMOTE_ID, DREQ, "remote_comm_id", 4, 0, 32)                \
	X(DREQ_QPN, DREQ, "remote_qpn", 8, 0, 24)                          \
	X(DREQ_PRIVATE, DREQ, "private_data", 12, 0, 1760)                 \
	X(DREP_LOCAL_ID, DREP, "local_comm_id", 0, 0, 32)                  \
	X(DREP_REMOTE_ID, DREP, "remote_comm_id", 4, 0, 32)                \
	X(DREP_PRIVATE, DREP, "private_data", 8, 0, 1792)                  \
	X(SIDR_REQ_ID, SIDR_REQ, "request_id", 0, 0, 32)                   \
	X(SIDR_REQ_PKEY, SIDR_REQ, "partition_key", 4, 0, 16)              \
	X(SIDR_REQ_SERVICE_ID, SIDR_REQ, "service_id", 8, 0, 64)           \
	X(SIDR_REQ_PRIVATE, SIDR_REQ, "private_data", 16, 0, 1728)         \
	X(SIDR_REP_ID, SIDR_REP, "request_id", 0, 0, 32)                   \
	X(SIDR_REP_STATUS, SIDR_REP, "status", 4, 0, 8)                    \
	X(SIDR_REP_INFO_LEN, SIDR_REP, "additional_info_length", 5, 0, 8)  \
	X(SIDR_REP_QPN, SIDR_REP, "qpn", 8, 0, 24)                         \
	X(SIDR_REP_SERVICE_ID, SIDR_REP, "service_id", 12, 0, 64)          \
	X(SIDR_REP_QKEY, SIDR_REP, "qkey", 20, 0, 32)                      \
	X(SIDR_REP_INFO, SIDR_REP, "additional_info", 24, 0, 576)          \
	X(SIDR_REP_PRIVATE, SIDR_REP, "private_data", 96, 0, 1088)         \
	X(LAP_LOCAL_ID, LAP, "local_comm_id", 0, 0, 32)                    \
	X(LAP_REMOTE_ID, LAP, "remote_comm_id", 4, 0, 32)                  \
	X(LAP_QPN, LAP, "remote_qpn", 12, 0, 24)                           \
	X(LAP_TIMEOUT, LAP, "remote_cm_response_timeout", 15, 0, 5)        \
	X(LAP_LOCAL_LID, LAP, "alternate_local_lid", 20, 0, 16)            \
	X(LAP_REMOTE_LID, LAP, "alternate_remote_lid", 22, 0, 16)          \
	X(LAP_LOCAL_GID, LAP, "alternate_local_gid", 24, 0, 128)           \
	X(LAP_REMOTE_GID, LAP, "alternate_remote_gid", 40, 0, 128)         \
	X(LAP_PRIVATE, LAP, "private_data", 64, 0, 1344)                   \
	X(APR_LOCAL_ID, APR, "local_comm_id", 0, 0, 32)                    \
	X(APR_REMOTE_ID, APR, "remote_comm_id", 4, 0, 32)                  \
	X(APR_INFO_LEN, APR, "additional_info_length", 8, 0, 8)            \
	X(APR_STATUS, APR, "ap_status", 9, 0, 8)                           \
	X(APR_INFO, APR, "additional_info", 12, 0, 576)                    \
	X(APR_PRIVATE, APR, "private_data", 84, 0, 1184)

enum cm_field {
#define X(id, message, name, byte, bit, width) CM_F_##id,
	CM_FIELDS(X)
#undef X
	CM_FIELD_END,
};

/** The result of mad_check() for a datagram (CM-04, CM-05). */
enum mad_fault {
	MAD_CM,	     /* a message of the communication manager */
	MAD_SHORT,   /* not 256 bytes */
	MAD_VERSION, /* BaseVersion is not 1, or wrong class version */
	MAD_CLASS,   /* a class that this port does not support (A17.6) */
	MAD_METHOD,  /* not Send */
	MAD_ATTR,    /* not a message of the communication manager */
	MAD_FAULTS,
};

/** Classifies the @p len bytes at @p mad; fields may be read only if the result is MAD_CM. */
enum mad_fault mad_check(const uint8_t *mad, size_t len);

/** @return the name of a fault, as in counters. */
const char *mad_fault_name(enum mad_fault fault);

/** @return "REQ" for CM_REQ; NULL if @p attr is unknown. */
const char *cm_attr_name(unsigned attr);

/** @return the message type of @p mad, for which mad_check() returned MAD_CM. */
enum cm_attr mad_attr(const uint8_t *mad);

uint64_t mad_tid(const uint8_t *mad);

/** Clears @p mad and writes the header of message @p attr (CM-02). */
void mad_begin(uint8_t mad[MAD_LEN], enum cm_attr attr, uint64_t tid);

/** @return the value of field @p f, which has at most 64 bits and belongs to @p mad's message. */
uint64_t cm_get(const uint8_t *mad, enum cm_field f);

/** @return the QPN of a REP; with XRC it takes the place of the EE context, as in Linux. */
uint32_t cm_rep_qpn(const uint8_t *mad, bool extended);

/** Writes the low bits of @p v to field @p f; other bits of shared bytes are unchanged. */
void cm_put(uint8_t *mad, enum cm_field f, uint64_t v);

/** @return the bytes of field @p f; @p len receives their number, unless NULL. */
const uint8_t *cm_bytes(const uint8_t *mad, enum cm_field f, size_t *len);

/** Copies @p len bytes into the field. @return false if they do not fit. */
bool cm_put_bytes(uint8_t *mad, enum cm_field f, const void *src, size_t len);

/** @return the field called @p name of message @p attr; CM_FIELD_END if there is none. */
enum cm_field cm_field_find(enum cm_attr attr, const char *name);

/** @return the private data field of message @p attr (CM-27). */
enum cm_field cm_private_field(enum cm_attr attr);

/** @return the width of field @p f in bits */
unsigned cm_width(enum cm_field f);

/* --- RDMA IP CM service (IBA annex A11) ------------------------------------------------------ */

#define CMA_HDR_LEN 36u

/** The header at the start of the private data (CM-29); IPv4 addresses are GIDs ::ffff:a.b.c.d. */
struct cma_hdr {
	uint8_t family; /* 4 or 6 */
	uint16_t src_port;
	uint8_t src[16];
	uint8_t dst[16];
};

/** @return whether @p service_id belongs to the RDMA IP CM service (CM-28). */
bool cma_is_ip(uint64_t service_id);

/** Reads the header at @p p. @return false if its version or family is invalid (CM-30). */
bool cma_read(struct cma_hdr *h, const uint8_t p[CMA_HDR_LEN]);

void cma_write(uint8_t p[CMA_HDR_LEN], const struct cma_hdr *h);

#endif
