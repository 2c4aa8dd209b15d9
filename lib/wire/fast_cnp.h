/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fast_cnp.h
 * The Fast CNP (draft-xiao-rtgwg-rocev2-fast-cnp; FCN-01..16): a CNP over IPv6 by which a switch
 * notifies the sender of a packet that met congestion. A Destination Options header with one option
 * precedes UDP, and carries the packet's destination; the BTH has the packet's DestQP, which is not
 * a QPN of the receiver.
 *
 * frame_parse() does not know it: all other code treats such a frame as not RoCE (FCN-14).
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

/** The two options, by their index in `types`; the second also carries the packet's IOAM trace. */
enum fast_cnp_option {
	FAST_CNP_PLAIN,
	FAST_CNP_TRACE,
	FAST_CNP_OPTIONS,
};

/** IANA has assigned no types: these are RFC 4727's experimental one and the next (FCN-04). */
#define FAST_CNP_TYPE_PLAIN 0x9Eu
#define FAST_CNP_TYPE_TRACE 0x9Fu
/** The allowed types: nodes that do not know the option discard the packet (10), and it does not
 *  change en route (0). */
#define FAST_CNP_TYPE_MIN 0x80u
#define FAST_CNP_TYPE_MAX 0x9Fu

#define FAST_CNP_DIP_LEN 16u
/** Namespace, lengths and type of an IOAM trace (RFC 9197 4.4.1). */
#define FAST_CNP_TRACE_MIN 8u
/** The remaining bytes of the longest option. */
#define FAST_CNP_TRACE_MAX (255u - FAST_CNP_DIP_LEN)
/** Length of the longest frame that fast_cnp_write() writes. */
#define FAST_CNP_FRAME_MAX                                                                       \
	(ETH_HLEN + VLAN_HLEN + IP6_HLEN + 8u + 255u + 1u + UDP_HLEN + BTH_HLEN + CNP_RESERVED + \
		ICRC_LEN)

/** The contents of the option. All pointers point into the frame. */
struct fast_cnp {
	const uint8_t *dip;   /* destination GID of the packet that met congestion */
	const uint8_t *trace; /* IOAM trace data; NULL: none */
	uint8_t trace_len;
};

/** @return whether a Destination Options header over IPv6 precedes UDP to port 4791: with Fast CNP
 *  enabled, such a frame is ours, valid or not. Reads at most @p len bytes. */
bool frame_is_fast_cnp(const uint8_t *frame, size_t len);

/**
 * Like frame_parse(), for a Fast CNP: fills @p p as for a CNP over IPv6.
 * @param types  the option types, by enum fast_cnp_option
 */
enum drop fast_cnp_parse(struct pkt *p, struct fast_cnp *f, const uint8_t *frame, size_t len,
	const uint8_t types[FAST_CNP_OPTIONS]);

/** @return true when the ICRC of @p p, which fast_cnp_parse() has accepted, is correct. It covers
 *  the Destination Options header unmasked (ICRC-10). */
bool fast_cnp_icrc_check(const struct icrc_ops *ops, const struct pkt *p);

/** The fields of a Fast CNP to write. */
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

/** Fills @p s with the Fast CNP by which switch @p source answers packet @p pkt over IPv6:
 *  addressed to its source, with its P_Key, flow label and source port, and with option 1. */
void fast_cnp_answer(
	struct fast_cnp_spec *s, const struct pkt *pkt, const uint8_t source[16], uint8_t type);

/** Writes @p s with its ICRC to @p frame, which has room for FAST_CNP_FRAME_MAX bytes.
 *  @return the length of the frame */
size_t fast_cnp_write(uint8_t *frame, const struct fast_cnp_spec *s, const struct icrc_ops *ops);

/* --- for frame.c ------------------------------------------------------------------------ */

/**
 * Reads the Destination Options header in the @p len bytes at @p header.
 * @param used  receives its length
 * @return DROP_NONE and a filled @p f, or the reason for the drop.
 */
enum drop fast_cnp_options(struct fast_cnp *f, const uint8_t *header, size_t len,
	const uint8_t types[FAST_CNP_OPTIONS], size_t *used);

#endif
