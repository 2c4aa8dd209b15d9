/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame.h
 * Bytes of a received frame -> struct pkt. Checks everything that can be checked without
 * knowing a QP: Ethernet, VLAN, IP or GRH, UDP, BTH, lengths (CA17-1..21, CA17-24, VAL-01
 * first part). The ICRC is checked later, by the worker that owns the QP (design.md 3).
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drop.h"
#include "headers.h"
#include "opcode.h"

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

/**
 * Parses @p len bytes at @p frame, which begins with the Ethernet header and has no FCS. Does not
 * touch @p p->port, @p p->queue and @p p->source_qp. Never reads beyond @p len.
 * @return DROP_NONE and a filled @p p, or the reason for the drop. A reserved opcode of a class
 * that a QP may have (RC, UC, UD, XRC) is accepted, with op->name NULL and no extended header,
 * because a QP must answer it (VAL-05).
 */
enum drop frame_parse(struct pkt *p, const uint8_t *frame, size_t len);

/** @return true when the frame's EtherType, or UDP port, is that of RoCE: a cheap check for port
 *  filters that leave other frames to the kernel. Reads at most @p len bytes. */
bool frame_is_roce(const uint8_t *frame, size_t len);

/** Writes the source and destination GID of @p p (IPv4 as ::ffff:a.b.c.d, CA17 17.4.1.1). */
void frame_gids(const struct pkt *p, uint8_t sgid[16], uint8_t dgid[16]);

#endif
