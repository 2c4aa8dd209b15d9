/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file headers.h
 * Wire layouts and constants: Ethernet, 802.1Q, IPv4, IPv6, GRH, UDP, BTH and the extended headers
 * (IBA 9.2, 9.3; A17.3). Multi-byte fields are big-endian on the wire and are read with get_be*();
 * headers are byte arrays so that they may have any alignment.
 */
#ifndef HEADERS_H
#define HEADERS_H

#include <stdint.h>

/** The layers below the BTH: the type of the SGID entry (CA17-26, CA17-40). */
enum net_type {
	NET_IPV4,   /* RoCEv2 over IPv4 */
	NET_IPV6,   /* RoCEv2 over IPv6 */
	NET_ROCEV1, /* RoCEv1: EtherType 0x8915 and a GRH */
};

#define ETHERTYPE_IPV4	 0x0800
#define ETHERTYPE_VLAN	 0x8100
#define ETHERTYPE_QINQ	 0x88A8
#define ETHERTYPE_IPV6	 0x86DD
#define ETHERTYPE_ROCEV1 0x8915
#define IPPROTO_ROCEV2	 17   /* UDP, CA17-10, CA17-16 */
#define IP6_NXT_HOPOPTS	 0    /* telemetry */
#define IP6_NXT_DSTOPTS	 60   /* Fast CNP, telemetry */
#define GRH_NXT_IBA	 0x1B /* C9-44 */
#define UDP_PORT_ROCEV2	 4791 /* CA17-20 */

#define ETH_HLEN      14
#define VLAN_HLEN     4
#define IP4_HLEN      20
#define IP6_HLEN      40
#define GRH_HLEN      40
#define UDP_HLEN      8
#define BTH_HLEN      12
#define XRCETH_LEN    4
#define DETH_LEN      8
#define FETH_LEN      4
#define RETH_LEN      16
#define ATOMICETH_LEN 28
#define AETH_LEN      4
#define ATOMICACK_LEN 8
#define ATOMIC_LEN    8 /* word size of CmpSwap, FetchAdd, ATOMIC WRITE (RSP-33) */
#define IMMDT_LEN     4
#define IETH_LEN      4
#define ICRC_LEN      4
#define CNP_RESERVED  16 /* bytes between BTH and ICRC of a CNP (A17 Figure 6) */

#define FLOW_LABEL_MASK 0xFFFFFu /* of the word at IP6_VTCFL */

/* Byte offsets inside the Ethernet and L3 headers. */
enum {
	ETH_DST = 0,
	ETH_SRC = 6,
	ETH_TYPE = 12,
	IP4_VIHL = 0,
	IP4_TOS = 1,
	IP4_TOTLEN = 2,
	IP4_ID = 4,
	IP4_FRAG = 6,
	IP4_TTL = 8,
	IP4_PROTO = 9,
	IP4_CSUM = 10,
	IP4_SRC = 12,
	IP4_DST = 16,
	IP6_VTCFL = 0,
	IP6_PLEN = 4,
	IP6_NXT = 6,
	IP6_HLIM = 7,
	IP6_SRC = 8,
	IP6_DST = 24,
	UDP_SPORT = 0,
	UDP_DPORT = 2,
	UDP_LEN = 4,
	UDP_CSUM = 6,
};
/* The ECN field, the two low bits of IPv4's TOS and IPv6's traffic class (RFC 3168). */
#define ECN_MASK	0x03
#define ECN_ECT0	0x02
#define ECN_CE		0x03
#define IP4_FLAG_DF	0x4000
#define IP4_FLAG_MF	0x2000
#define IP4_FLAG_RSVD	0x8000
#define IP4_OFFSET_MASK 0x1FFF

/* Byte offsets inside BTH (BTH-01). */
enum {
	BTH_OPCODE = 0,
	BTH_FLAGS = 1, /* SE 7, MigReq 6, PadCnt 5:4, TVer 3:0 */
	BTH_PKEY = 2,
	BTH_RESV8A = 4, /* FECN 7, BECN 6, reserved: masked in the ICRC */
	BTH_DESTQP = 5,
	BTH_ACKREQ = 8, /* AckReq 7, reserved */
	BTH_PSN = 9,
};
#define BTH_SE	      0x80
#define BTH_MIGREQ    0x40
#define BTH_PAD_SHIFT 4
#define BTH_PAD_MASK  0x30
#define BTH_TVER_MASK 0x0F
#define BTH_FECN      0x80
#define BTH_BECN      0x40
#define BTH_A	      0x80

#define QPN_SMI	      0u
#define QPN_GSI	      1u
#define QPN_MULTICAST 0xFFFFFFu

/* FETH (FLU-01): placement type and selectivity level */
#define FETH_PLT_MASK	 0x0Fu
#define FETH_PLT_GLOBAL	 0x01u
#define FETH_PLT_PERSIST 0x02u
#define FETH_SEL_MASK	 0x30u
#define FETH_SEL_RANGE	 0x00u
#define FETH_SEL_MR	 0x10u

/* AETH syndromes (IBA 9.3.5.1). Bit 7 is reserved and ignored (REQ-46). */
#define AETH_TYPE_MASK	   0x60
#define AETH_ACK	   0x00
#define AETH_RNR_NAK	   0x20
#define AETH_NAK	   0x60
#define AETH_CODE_MASK	   0x1F
#define AETH_CREDIT_NONE   0x1F /* ACK without credit information (CRD-02) */
#define NAK_PSN_SEQUENCE   0x60
#define NAK_INVALID_REQ	   0x61
#define NAK_REMOTE_ACCESS  0x62
#define NAK_REMOTE_OP	   0x63
#define NAK_INVALID_RD_REQ 0x64

#endif
