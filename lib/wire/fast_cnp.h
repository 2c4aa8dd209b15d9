/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fast_cnp.h
 * The Fast CNP (draft-xiao-rtgwg-rocev2-fast-cnp; FCN-01..16): a CNP over IPv6 by which a switch
 * tells the sender of a packet that it met congestion. A Destination Options header with one option
 * comes before UDP, and names the packet's destination; the BTH has the packet's DestQP, which is
 * not a QPN of the receiver.
 *
 * frame_parse() does not know it: to all other code such a frame is none of RoCE's (FCN-14).
 */
#ifndef FAST_CNP_H
#define FAST_CNP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drop.h"
#include "headers.h"

struct icrc_ops;
struct pkt;

/** The two options, by their index in `types`: the second one carries the IOAM trace of the packet
 *  as well. */
enum fast_cnp_option {
	FAST_CNP_PLAIN,
	FAST_CNP_TRACE,
	FAST_CNP_OPTIONS,
};

/** IANA has allocated no types: RFC 4727's experimental one, and the next (FCN-04). */
#define FAST_CNP_TYPE_PLAIN 0x9Eu
#define FAST_CNP_TYPE_TRACE 0x9Fu
/** The types that are possible: others are to discard the packet (10), and the option does not
 *  change on its way (0). */
#define FAST_CNP_TYPE_MIN 0x80u
#define FAST_CNP_TYPE_MAX 0x9Fu

#define FAST_CNP_DIP_LEN 16u
/** Namespace, lengths and type of an IOAM trace (RFC 9197 4.4.1). */
#define FAST_CNP_TRACE_MIN 8u
/** The rest of the longest option. */
#define FAST_CNP_TRACE_MAX (255u - FAST_CNP_DIP_LEN)
/** Bytes of the longest frame that fast_cnp_write() makes. */
#define FAST_CNP_FRAME_MAX                                                                       \
	(ETH_HLEN + VLAN_HLEN + IP6_HLEN + 8u + 255u + 1u + UDP_HLEN + BTH_HLEN + CNP_RESERVED + \
		ICRC_LEN)

/** The contents of the option. All pointers point into the frame. */
struct fast_cnp {
	const uint8_t *dip;   /* destination GID of the packet that met congestion */
	const uint8_t *trace; /* IOAM trace data; NULL: none */
	uint8_t trace_len;
};

/** @return whether UDP to port 4791 follows a Destination Options header over IPv6: with Fast CNP,
 *  such a frame is ours, good or bad. Reads at most @p len bytes. */
bool frame_is_fast_cnp(const uint8_t *frame, size_t len);

/**
 * As frame_parse(), for a Fast CNP: @p p is that of a CNP over IPv6.
 * @param types  the options' types, by enum fast_cnp_option
 */
enum drop fast_cnp_parse(struct pkt *p, struct fast_cnp *f, const uint8_t *frame, size_t len,
	const uint8_t types[FAST_CNP_OPTIONS]);

/** @return true when the ICRC of @p p, which fast_cnp_parse() has accepted, is correct. It covers
 *  the Destination Options header unmasked (ICRC-10). */
bool fast_cnp_icrc_check(const struct icrc_ops *ops, const struct pkt *p);

/** A Fast CNP to be written. */
struct fast_cnp_spec {
	uint8_t dmac[6], smac[6];
	uint16_t vid; /* 0: untagged */
	uint8_t pcp;
	uint8_t source[16]; /* of the switch */
	uint8_t dest[16];   /* the source of the packet that met congestion, */
	uint8_t dip[16];    /* its destination, */
	uint32_t dest_qpn;  /* its DestQP, */
	uint16_t pkey;	    /* and its P_Key */
	uint8_t tclass;
	uint8_t hop_limit;
	uint32_t flow_label;
	uint16_t sport;
	bool becn;
	uint8_t type;	      /* of the option */
	const uint8_t *trace; /* IOAM trace data; NULL: none */
	uint8_t trace_len;    /* FAST_CNP_TRACE_MAX at most */
};

/** Fills @p s with the Fast CNP that switch @p source sends because of the packet @p pkt over IPv6:
 *  back to where it came from, with its P_Key, flow label and source port, and with option 1. */
void fast_cnp_answer(
	struct fast_cnp_spec *s, const struct pkt *pkt, const uint8_t source[16], uint8_t type);

/** Writes @p s, with its ICRC, to @p frame, which has room for FAST_CNP_FRAME_MAX bytes.
 *  @return the length of the frame */
size_t fast_cnp_write(uint8_t *frame, const struct fast_cnp_spec *s, const struct icrc_ops *ops);

/* --- for frame.c ------------------------------------------------------------------------ */

/**
 * Reads the Destination Options header in the @p len bytes at @p header.
 * @param used  receives its length
 * @return DROP_NONE and @p f, or the reason for the drop.
 */
enum drop fast_cnp_options(struct fast_cnp *f, const uint8_t *header, size_t len,
	const uint8_t types[FAST_CNP_OPTIONS], size_t *used);

#endif
