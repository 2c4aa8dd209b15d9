/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lone.h
 * One real host whose peer is the test: packets from the peer are written by hand, and the packets
 * and completions of the host are logged as text. Both use the field offsets of the specification
 * and the table ICRC, not the code under test.
 *
 * A packet reads  NAME@psn[+payload][!][*][(va,len)][syndrome/msn][#imm]  with the PSN in hex, `!`
 * for AckReq, `*` for SE, and va as the offset from the peer's region. An XRC request has [srqn]
 * after its PSN. An atomic has (va,swap or add,compare), all in hex, and its response has
 * syndrome/msn=original. A FLUSH has {feth} before its range. The key that a SEND invalidates
 * appears in place of an imm. A completion reads
 * S<wr_id>:STATUS or R<wr_id>:STATUS[+byte_len][#imm][~invalidated key][*].
 */
#ifndef LONE_H
#define LONE_H

#include "abi_ctl.h"
#include "app.h"

#define PEER_QPN 0x21u
#define PEER_ID	 2 /* last byte of its address */
#define PEER_VA	 0x500000000000ull
#define PEER_KEY 0xABCD01u
#define RQ_PSN	 0x100u
#define SQ_PSN	 0x200u
#define LONE_MEM (1u << 20)

struct lone {
	struct sim_host *host;
	struct core *core; /* lone_rx() gives packets to it; NULL: to the host's */
	struct app app;
	struct app_cq *send_cq, *recv_cq;
	struct app_qp *qp;
	struct app_mr *mr; /* LONE_MEM bytes with all access rights */
	struct abi_qp_attr attr;
	struct app_qp_spec spec;
	uint32_t cq_depth;
	uint64_t now;
	struct abi_cqe last; /* the last CQE that lone_cqes() took */
	char log[8192];
	uint8_t frame[FRAME_MAX]; /* the last one that was sent */
	uint16_t frame_len;
	unsigned packets; /* sent so far */
	uint16_t verdict; /* of the last packet received */
	bool expected;	  /* and whether its headers were the expected ones */
	bool no_grace;	  /* another worker has not finished its round */
	bool ect;	  /* the path that lone_climb() sets is ECN-capable */
	uint8_t tos;	  /* required in each packet except CNPs */
	uint8_t cnp_tos;  /* required in each CNP */
	/** Ethernet header that each packet must have. */
	uint8_t eth[14];
};

/** Sets usable attributes and sizes; change them before lone_start(). */
void lone_init(struct lone *l);
/** Starts with the QP in RTS. */
void lone_start(struct lone *l);
/** Starts with the QP in @p state, RESET to RTS. */
void lone_start_in(struct lone *l, unsigned state);
/** Moves the QP from RESET to @p state, RESET to RTS, with the attributes in l->attr. */
void lone_climb(struct lone *l, unsigned state);
void lone_fini(struct lone *l);

/** A packet from the peer. */
struct shot {
	uint8_t opcode;
	uint32_t psn;
	bool ackreq;
	bool se;
	uint32_t imm; /* host order here */
	uint64_t va;
	uint32_t rkey; /* of IETH too */
	uint32_t dma_len;
	uint32_t feth;
	uint8_t syndrome;
	uint32_t msn;
	uint64_t swap_add; /* AtomicETH */
	uint64_t compare;
	uint64_t orig;	     /* AtomicAckETH */
	uint32_t srqn;	     /* XRCETH */
	const void *payload; /* NULL: bytes 0, 1, 2, ... */
	uint32_t len;
	/* not 0: replaces the correct value */
	uint16_t pkey;
	uint32_t dest_qp;
	uint8_t tos;
	uint8_t src_ip; /* last byte of the sender's address */
	const uint8_t *dmac;
	bool bad_icrc;
	uint8_t queue; /* the worker on whose queue it arrives, plus 1; 0: PKT_NO_QUEUE */
	uint8_t port;  /* index of the port that it arrives at */
};

/** Writes the packet to @p f. @return the length of the frame. */
size_t lone_frame(const struct lone *l, uint8_t *f, const struct shot *s);
/** Has the host receive the packet. @return its verdict. */
uint16_t lone_rx(struct lone *l, const struct shot *s);
/** The same for several, as one burst. */
void lone_rx_burst(struct lone *l, const struct shot *s, unsigned n);

/** Has the host send. @return its packets as text; valid until the next call. */
const char *lone_tx(struct lone *l);
/** The same, but at most @p max packets. */
const char *lone_tx_max(struct lone *l, unsigned max);
/** Advances the clock and runs the timers. */
void lone_wait(struct lone *l, uint64_t ns);
/** Takes all CQEs, send queue first. @return them as text. */
const char *lone_cqes(struct lone *l);

/** Posts a work request over one SGE at offset 0 (READ: the same) to PEER_VA. */
void lone_post(struct lone *l, uint8_t opcode, uint64_t wr_id, uint32_t len, uint32_t flags);
/** Posts a receive of one SGE at offset @p off. */
void lone_recv(struct lone *l, uint64_t wr_id, uint64_t off, uint32_t len);

/* Shorthands for the peer's packets: a request that asks for an ACK, of l->mr; a READ response; an
 * answer. */
void lone_request(
	struct lone *l, uint8_t opcode, uint32_t psn, uint64_t off, uint32_t dma_len, uint32_t len);
void lone_response(struct lone *l, uint8_t opcode, uint32_t psn, uint32_t len);
void lone_ack(struct lone *l, uint32_t psn, uint32_t msn);
void lone_nak(struct lone *l, uint8_t syndrome, uint32_t psn, uint32_t msn);

#endif
