/* SPDX-License-Identifier: BSD-3-Clause */
/** @file pkt.h  A received packet as filled in by frame_parse() or frame_expected(). */
#ifndef PKT_H
#define PKT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct opcode;

/** Bytes of a frame that are compared: from the EtherType to the DestQP and a little further. */
#define EXPECT_AT  12u
#define EXPECT_LEN 48u

/** The shortest frame that can be compared. */
#define EXPECT_MIN (EXPECT_AT + EXPECT_LEN)

typedef uint64_t expect_piece __attribute__((vector_size(16), may_alias));

/** The headers that a QP expects of its peer's packets (expect.h): RoCEv2 over IPv4 without a VLAN
 *  tag. One cache line, since of thousands of QPs none is in a cache. */
struct expect {
	union {
		uint8_t byte[EXPECT_LEN];
		expect_piece piece[EXPECT_LEN / sizeof(expect_piece)];
	};
	const _Atomic uint64_t *mac; /* the port's: mac_word() */
	uint32_t sum; /* of the 16-bit words of the IPv4 header that are equal, in memory order */
	uint16_t pkey;
	uint8_t port; /* index of the ingress port; EXPECT_NOTHING */
};
_Static_assert(sizeof(struct expect) == 64, "one line");

/** For struct expect.port: no frame is like that. The bytes could not say so, since a frame may
 *  have any. */
#define EXPECT_NOTHING 0xFFu

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
	/** The headers are equal to these: core_expected(). NULL: they were read one by one, and
	 * are not known to be those of the QP's peer. */
	const struct expect *expected;
	uint32_t icrc_off;    /* bytes from l3 to the ICRC */
	uint16_t payload_len; /* without pad; 0 for a CNP, whose reserved bytes are not payload */
	uint8_t port;	      /* set by the caller: index of the ingress port */
	uint8_t queue;	      /* set by the caller: worker whose queue received it, or PKT_* */
	uint8_t net;	      /* enum net_type */
	uint8_t pcp;	      /* 802.1p priority, 0 when untagged */
	uint16_t vid;	      /* VLAN id; 0 when untagged or priority-tagged (ETH-04) */
	uint8_t tclass;	      /* IPv4 TOS, IPv6 or GRH traffic class */
	uint16_t pkey;
	/* Bytes, because bit-fields would be read, masked and written back one by one; in this
	 * order, because bth_flags() writes all four at once. */
	bool se;
	bool migreq;
	uint8_t pad;
	bool ackreq;
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
	uint8_t named;	      /* enum pkt_named: PKT_WHOLE, until core_named() */
	uint32_t source_key;  /* of the region with the payload, if it is not in the frame */
};

/** Values of struct pkt.named. */
enum pkt_named {
	PKT_WHOLE,    /* the frame has payload and ICRC */
	PKT_NAMED,    /* `payload` points to memory of the sending QP: core_named() */
	PKT_NAMELESS, /* that memory is not readable any more: `payload` is invalid */
};

/** Values of struct pkt.queue. From a port whose choice of queue is meaningless. */
#define PKT_NO_QUEUE 0xFFu
/** From a QP of this daemon, with number pkt.source_qp. */
#define PKT_LOCAL 0xFEu
/** Received by another worker for a multicast group, and copied for our own QPs. */
#define PKT_COPY 0xFDu
/** Used by shells for a frame only: like PKT_LOCAL, with a named payload (core_named()). */
#define PKT_LOCAL_NAMED 0xFCu

/** @return whether a packet with @p queue came from the wire. */
static inline bool pkt_is_from_wire(uint8_t queue)
{
	return queue < PKT_LOCAL_NAMED || queue == PKT_NO_QUEUE;
}

#endif
