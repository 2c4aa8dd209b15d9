/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file gso/trial.h
 * The frames with which two gsoports find out that super-frames (run.h) reach the other. A trial is
 * a super-frame of two short parts, with PSN 0 and 1; the answer repeats its cookie in a single
 * frame. Only the second part is answered: its ICRC is wrong if a device that does not increment
 * the IPv4 identification cut it off. Bytes only.
 *
 * Each is a RoCEv2 frame with a correct ICRC, a manufacturer specific opcode (IBA 9.2.1, table 35:
 * 11xxxxxx) and destination QP 0, which no RoCE port has: a receiver that does not know these
 * frames drops them, whole or in parts.
 */
#ifndef GSO_TRIAL_H
#define GSO_TRIAL_H

#include <stdbool.h>
#include <stdint.h>
#include "gso/run.h"

/** Bytes of a part: BTH, 8 bytes that identify trials, the cookie, zeros, ICRC. A part must be long
 * enough for the NIC to cut it: NICs leave shorter ones to the kernel (i40e and ice below 64 bytes,
 * gve and idpf 88, ibmveth 224), which would prove nothing about the NIC. Not longer than in frames
 * of the smallest path MTU. */
#define GSO_TRIAL_PART 256u
#define GSO_TRIAL_MAX  (GSO_HEAD_MAX + 2u * GSO_TRIAL_PART)

enum gso_trial_kind {
	GSO_TRIAL_NOT,
	GSO_TRIAL_BEGIN, /* the first part of a trial, which proves nothing */
	GSO_TRIAL,	 /* the second: the whole trial arrived, correctly cut or uncut */
	GSO_TRIAL_ANSWER
};

/** Whether a frame of @p len bytes can be a trial, a part of one or an answer; frames of other
 * lengths need no further check. */
static inline bool gso_trial_long(uint32_t len)
{
	uint32_t l4 = len - (ETH_HLEN + UDP_HLEN + IP4_HLEN);

	return l4 == GSO_TRIAL_PART || l4 == 2 * GSO_TRIAL_PART ||
	       l4 == GSO_TRIAL_PART + IP6_HLEN - IP4_HLEN ||
	       l4 == 2 * GSO_TRIAL_PART + IP6_HLEN - IP4_HLEN;
}

/**
 * Writes a trial to the destination of the frame @p like, which gso_begin() accepted.
 * @return its bytes. The kernel cuts it into parts of GSO_TRIAL_PART after @p head bytes.
 */
uint32_t gso_trial_write(
	uint8_t out[GSO_TRIAL_MAX], const uint8_t *like, uint64_t cookie, uint16_t *head);

/** Writes the answer to the single frame @p trial, which gso_trial_read() accepted. @return its
 * bytes. */
uint32_t gso_trial_answer(uint8_t out[GSO_TRIAL_MAX], const uint8_t *trial);

/** Reads the single frame of @p len bytes at @p frame. Nothing of it is trusted. @param cookie
 *  receives its cookie unless it is GSO_TRIAL_NOT */
enum gso_trial_kind gso_trial_read(const uint8_t *frame, uint32_t len, uint64_t *cookie);

#endif
