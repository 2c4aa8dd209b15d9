/* SPDX-License-Identifier: BSD-3-Clause */
/** @file peer.h  The peer of a stage's QP: packets that fit the QP's state, but for what is odd. */
#ifndef PEER_H
#define PEER_H

#include "stage.h"

/**
 * One or more messages to the QP, in one burst, or the next packets of the open one.
 *
 *   b[0]     kind: SEND, WRITE, READ, a READ again, any opcode, ATOMIC; 0x80: does not continue a
 * message b[1]     PEER_*; with any opcode: the opcode; ATOMIC: 1 CmpSwap, 2 no AckReq b[2] added
 * to the PSN b[3..4]  length b[5..7]  key and address b[8]     added to DMALen b[9]     packets, at
 * most; 0: up to the last b[10]    added to the payload of one packet b[11]    messages b[12..14]
 * one packet's damage, which packet, how
 */
void peer_request(struct stage *s, const struct record *rec);

#define PEER_NO_ACKREQ	0x01u
#define PEER_SOLICITED	0x02u
#define PEER_IMM	0x04u
#define PEER_INVALIDATE 0x08u

/**
 * An answer to what the QP sent.
 *
 *   b[0]     kind: what comes next, ACK, NAK, RNR NAK, READ response, any opcode
 *   b[1]     syndrome or opcode
 *   b[2]     added to the PSN
 *   b[3]     packets that are not acknowledged yet
 *   b[4]     added to the MSN
 *   b[5]     READ responses, at most; 0: all
 *   b[6..7]  added to the payload of one READ response, its opcode
 *   b[12..14] as above
 */
void peer_response(struct stage *s, const struct record *rec);

#endif
