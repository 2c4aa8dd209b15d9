/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cause.h
 * Why did a QP fail? The facts that the control thread cannot find out afterwards are noted here,
 * so that it can explain them in a sentence (ctl/diagnose): compact, without text, and only when
 * something went wrong.
 *
 * A QP has one note, of the first failure since RESET. It is complete once `known` reads true, and
 * does not change until the control thread itself resets the QP.
 */
#ifndef CAUSE_H
#define CAUSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct core;
struct mr_table;
struct pkt;
struct qp;

/* X(identifier, name, rule). The sentences are in ctl/diagnose/error.c, which needs a row for each.
 */
#define CAUSES(X)                                                                              \
	/* requester: a work request that cannot be executed */                                \
	X(POST_OPCODE, "post_opcode", "REQ-17")                                                \
	X(POST_SGES, "post_sges", "REQ-17")                                                    \
	X(POST_INLINE, "post_inline", "REQ-16")                                                \
	X(POST_LENGTH, "post_length", "REQ-07")                                                \
	X(POST_KEY, "post_key", "REQ-18")                                                      \
	X(POST_ATOMIC, "post_atomic", "REQ-17") /* not exactly one SGE of eight bytes */       \
	X(POST_WORD, "post_word", "FLU-08")	/* an ATOMIC WRITE that is not eight bytes */  \
	X(POST_BIND, "post_bind", "MW-11")                                                     \
	X(POST_INVALIDATE, "post_invalidate", "MW-10")                                         \
	X(POST_NO_READS, "post_no_reads", "REQ-09")                                            \
	X(POST_AH, "post_ah", "UD-15")		   /* unknown, destroyed, or of another PD */  \
	X(POST_AH_PORT, "post_ah_port", "UD-15")   /* of another port than the QP's */         \
	X(POST_DATAGRAM, "post_datagram", "UD-02") /* longer than the port's path MTU */       \
	X(POST_PKEY, "post_pkey", "BTH-11")	   /* QP1: no P_Key at that index */           \
	X(KEY_GONE, "key_gone", "REQ-18")	   /* its region was deregistered */           \
	X(SOURCE_FAULT, "source_fault", "EVT-03")  /* application memory faulted */            \
	/* completer */                                                                        \
	X(REFUSED_REQUEST, "refused_request", "REQ-33") /* NAK invalid request */              \
	X(REFUSED_ACCESS, "refused_access", "REQ-33")                                          \
	X(REFUSED_OPERATION, "refused_operation", "REQ-33")                                    \
	X(RETRIES, "retries", "REQ-26")                                                        \
	X(RNR_RETRIES, "rnr_retries", "REQ-30")                                                \
	X(READ_SEQUENCE, "read_sequence", "REQ-40")                                            \
	X(READ_LENGTH, "read_length", "REQ-42")                                                \
	X(READ_KEY, "read_key", "REQ-45")                                                      \
	X(READ_FAULT, "read_fault", "REQ-45")                                                  \
	/* responder */                                                                        \
	X(OP_SEQUENCE, "op_sequence", "RSP-05")                                                \
	X(OP_UNSUPPORTED, "op_unsupported", "VAL-05")                                          \
	X(NO_REMOTE_WRITE, "no_remote_write", "RSP-08")                                        \
	X(NO_REMOTE_READ, "no_remote_read", "RSP-08")                                          \
	X(NO_REMOTE_ATOMIC, "no_remote_atomic", "RSP-08")                                      \
	X(ATOMIC_ALIGNMENT, "atomic_alignment", "RSP-32")                                      \
	X(NO_FLUSH, "no_flush", "FLU-04")                                                      \
	X(FLUSH_TYPE, "flush_type", "FLU-01")                                                  \
	X(ATOMIC_WRITE_LENGTH, "atomic_write_length", "FLU-08")                                \
	X(INVALIDATE, "invalidate", "INV-03")                                                  \
	X(READS_EXCEEDED, "reads_exceeded", "RSP-30")                                          \
	X(PACKET_LENGTH, "packet_length", "RSP-09")                                            \
	X(MESSAGE_LENGTH, "message_length", "RSP-10")                                          \
	X(WRITE_LENGTH, "write_length", "RSP-11")                                              \
	X(RKEY, "rkey", "RSP-13")                                                              \
	X(RKEY_GONE, "rkey_gone", "RSP-15") /* in the middle of a WRITE */                     \
	X(READ_RKEY_GONE, "read_rkey_gone", "RSP-31")                                          \
	X(WRITE_FAULT, "write_fault", "EVT-03")                                                \
	X(RECV_SGES, "recv_sges", "RSP-21")                                                    \
	X(RECV_LENGTH, "recv_length", "RSP-20")                                                \
	X(RECV_KEY, "recv_key", "RSP-21")                                                      \
	X(RECV_FAULT, "recv_fault", "RSP-21")                                                  \
	X(XRC_SRQ, "xrc_srq", "XRC-04")                                                        \
	X(SRQ_BROKEN, "srq_broken", "SRQ-08")                                                  \
	/* not a failure: the control thread reports it for a live QP (ctl/diagnose/hint.c) */ \
	X(PEER_GAVE_UP, "peer_gave_up", "RSP-16")                                              \
	/* either side */                                                                      \
	X(CQ_OVERFLOW, "cq_overflow", "CQ-01")                                                 \
	X(COMMAND, "command", "QPS-01") /* its owner moved it to ERR */

enum cause {
	CAUSE_NONE,
#define X(id, name, rule) CAUSE_##id,
	CAUSES(X)
#undef X
	CAUSE_MAX
};

/** @return the machine-readable name of @p why, "none" for CAUSE_NONE, NULL beyond the table. */
const char *cause_name(enum cause why);

/** @return the rule that was broken, or that prescribes the consequence; "-" for CAUSE_NONE. */
const char *cause_rule(enum cause why);

/** The object that a refused key named, as far as it belongs to the QP's own session: a program
 * that guesses keys must not learn which ones exist. */
enum cause_named {
	NAMED_NOTHING,
	NAMED_REGION,
	NAMED_WINDOW,	 /* a memory window bound with this key */
	NAMED_UNBOUND,	 /* a memory window that is not bound */
	NAMED_BY_SWAP,	 /* nothing; byte-swapped, it names a region */
	NAMED_BY_FORMER, /* nothing; the region in its place has another key */
};

/** A copy, because the program may deregister the region before anyone asks. */
struct cause_found {
	uint8_t named;	/* enum cause_named; the rest describes the region or the binding */
	uint8_t status; /* enum mr_status: why the access was refused */
	bool owned;	/* NAMED_WINDOW: bound by a QP, which is `qpn` (type 2) */
	uint32_t key;
	uint32_t pd;
	uint32_t qpn;
	uint64_t iova;
	uint64_t length;
};

/** The first failure. Written by the QP's owner; members that a cause does not use are 0. */
struct cause_note {
	_Atomic bool known; /* set with release, after the rest */
	uint8_t cause;	    /* enum cause */
	uint8_t opcode;	    /* requester: enum abi_wr_opcode; responder: of BTH */
	uint8_t syndrome;
	bool heard;	 /* requester: the peer had acknowledged something before */
	uint32_t key;	 /* rkey or lkey, ... */
	uint64_t va;	 /* ... and the access asked of it: first byte, */
	uint32_t len;	 /* bytes, */
	uint32_t access; /* ABI_ACCESS_*, */
	uint32_t pd;	 /* protection domain */
	struct cause_found found;
	uint32_t psn;
	uint32_t value; /* the value found ... */
	uint32_t limit; /* ... and the limit, or the value expected */
	uint64_t wr_id; /* requester, and receives */
	uint64_t time;	/* of the core's clock, ns */
};

/** A QP's part: cold, touched only by commands and on failures. */
struct qp_why {
	struct cause_note error;
	/* qp_modify.c */
	uint32_t sq_psn; /* initial send PSN, as set by RTS */
	uint32_t first_wqe;
	/* ACKs from before sq_psn while nothing had been acknowledged: loss cannot explain them. */
	uint32_t old_acks;
	uint32_t old_ack_psn; /* of the latest */
	/* Until the first valid request: the lowest PSN ahead of rq_psn, and how often it came. A
	 * peer with a wrong PSN goes back to where it began; after a loss it would go back to
	 * rq_psn. */
	uint32_t ahead_psn;
	uint32_t ahead_times;
	/* RNR NAKs since the last valid request: their number, and the latest. */
	uint32_t rnr_times;
	uint32_t rnr_psn;
	uint8_t rnr_opcode; /* of BTH */
	uint64_t rnr_time;  /* ns; 0: none */
	/* The oldest WQE with a refused key, which may fail much later. */
	bool refused;
	uint32_t refused_wqe;
	struct cause_found refused_found;
};

/** Finds out what @p n->key names and why it was refused, for QP @p qpn of @p session. */
void cause_find(const struct mr_table *mrs, uint32_t session, uint32_t qpn, struct cause_note *n);

/** Notes why SGE @p culprit of work request @p idx is refused: it fails at its turn, and its region
 *  may be gone by then. */
void cause_refuse_sge(const struct core *c, struct qp *qp, uint32_t idx, uint32_t culprit);

/** Notes that the work request at comp.head fails because of @p why. */
void cause_wqe(const struct core *c, struct qp *qp, enum cause why, uint8_t syndrome);

/** Notes that its retries are exhausted: how much of it the peer never answered, and the size of
 *  the largest part answered before. */
void cause_retries(struct qp *qp);

/** Notes that a READ response did not match the request, with @p left bytes outstanding. */
void cause_response(struct qp *qp, const struct pkt *pkt, enum cause why, uint32_t left);

/** Notes that the request @p pkt is refused. */
void cause_request(const struct core *c, struct qp *qp, const struct pkt *pkt, enum cause why);

/** Notes that the SEND @p pkt cannot invalidate its key: @p why is an enum mw_result. */
void cause_refused_key(const struct core *c, struct qp *qp, const struct pkt *pkt, uint32_t why);

/** Notes that @p len bytes at @p va of region @p key, in the QP's protection domain, could not be
 *  accessed. */
void cause_key(const struct core *c, struct qp *qp, enum cause why, uint32_t key, uint64_t va,
	uint32_t len, uint32_t access);

/** The same for a key of resp.wqe, whose protection domain may be that of an SRQ. */
void cause_recv_key(
	const struct core *c, struct qp *qp, uint32_t lkey, uint64_t addr, uint32_t len);

/** Notes @p why, which needs nothing but @p value. */
void cause_plain(struct qp *qp, enum cause why, uint32_t value);

/** SQE -> RTS: clears the note of the failure. */
void cause_forget(struct qp *qp);

/** Notes a request ahead of the expected PSN. */
void cause_ahead(struct qp *qp, uint32_t psn);

/** Notes that @p pkt found no receive WQE. */
void cause_not_ready(struct qp *qp, const struct pkt *pkt, uint64_t now);

/** Notes the ACK @p pkt, which acknowledges nothing new. */
void cause_old_ack(struct qp *qp, const struct pkt *pkt);

/** The QP fails now, so publishes what was noted as the cause. Called by qp_error(), and before a
 * completion that reports the failure: a program that sees it may ask why. */
void cause_publish(struct qp *qp, uint64_t now);

#endif
