/* SPDX-License-Identifier: BSD-3-Clause */
/** @file pkt.h  A received packet, as frame_parse() makes it. */
#ifndef PKT_H
#define PKT_H

#include <stdbool.h>
#include <stdint.h>

struct opcode;

/**
 * One received packet. Multi-byte fields are in host order unless marked otherwise; all pointers
 * point into the frame, which must outlive the packet. A field of an extended header is valid only
 * when op has that header.
 */
struct pkt {
	const struct opcode *op;
	const uint8_t *dmac; /* Ethernet destination; the source follows */
	const uint8_t *l3;   /* first byte of the IP header or GRH: the ICRC starts here */
	const uint8_t *bth;
	const uint8_t *payload;
	uint32_t icrc_off;    /* bytes from l3 to the ICRC */
	uint16_t payload_len; /* without pad; 0 for a CNP, whose reserved bytes are not payload */
	uint8_t net;	      /* enum net_type */
	uint8_t port;	      /* set by the caller: index of the port it arrived at */
	uint8_t queue;	      /* set by the caller: worker whose queue it came in by, or PKT_* */
	uint8_t tclass;	      /* IPv4 TOS, IPv6 or GRH traffic class */
	uint8_t pcp;	      /* 802.1p priority, 0 when untagged */
	uint16_t vid;	      /* VLAN id; 0 when untagged or priority-tagged (ETH-04) */
	uint16_t pkey;
	bool se; /* bytes, because bit-fields are read, masked and written back one by one */
	bool migreq;
	bool ackreq;
	uint8_t pad;
	uint32_t dest_qp;
	uint32_t psn;
	uint32_t source_qp; /* set by the caller, with PKT_LOCAL: the sending QP */
	/* extended headers */
	uint64_t va;	      /* RETH, AtomicETH */
	uint32_t rkey;	      /* RETH, AtomicETH, IETH */
	uint32_t dma_len;     /* RETH */
	uint32_t imm;	      /* ImmDt, network order (BTH-26) */
	uint32_t msn;	      /* AETH */
	uint32_t qkey;	      /* DETH */
	uint32_t src_qp;      /* DETH */
	uint32_t srqn;	      /* XRCETH */
	uint32_t feth;	      /* FETH */
	uint64_t swap_add;    /* AtomicETH */
	uint64_t compare;     /* AtomicETH */
	uint64_t atomic_orig; /* AtomicAckETH */
	uint8_t syndrome;     /* AETH */
};

/** Values of struct pkt.queue: the packet came from a port whose choice of queue means nothing. */
#define PKT_NO_QUEUE 0xFFu
/** A QP of this daemon sent it to another one: pkt.source_qp is its number. */
#define PKT_LOCAL 0xFEu
/** Another worker received it for a multicast group and gave us a copy for our own QPs. */
#define PKT_COPY 0xFDu

#endif
