/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame_faults.h
 * What a lossy bridge does to the RoCE frames of one direction: a choice by seed and by the
 * frame's number alone, so that a run can be had again. No sockets and no clock in here.
 */
#ifndef FRAME_FAULTS_H
#define FRAME_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_fault {
	FAULT_NONE,
	FAULT_DROP,
	FAULT_CORRUPT,	 /* one bit, where the ICRC tells */
	FAULT_DUPLICATE, /* sent twice */
	FAULT_REORDER,	 /* held until some frames have overtaken it */
	FAULT_DELAY,	 /* held for a time */
	FAULT_MARK,	 /* ECN says "congestion experienced", whatever it said before */
	FAULTS
};

#define FAULT_WHOLE 1000000 /* rates are parts per million */

struct fault_plan {
	uint64_t seed;
	uint32_t rate[FAULTS]; /* of FAULT_NONE unused; their sum is at most FAULT_WHOLE */
};

struct fault_choice {
	enum frame_fault fault;
	uint64_t random; /* which bit, how many frames */
};

/** The impairment of RoCE frame number @p index, from 0, of a direction. */
struct fault_choice fault_choose(const struct fault_plan *plan, uint64_t index);

/** Reads "drop=1000,duplicate=500": parts per million by the names of fault_name().
 *  @return false when it is no such list. */
bool fault_parse(const char *list, struct fault_plan *plan);
const char *fault_name(enum frame_fault fault);

/** @return where the BTH of a RoCE frame (v1, v2, at most two VLAN tags) begins, 0 when the
 *  frame is none. */
size_t roce_bth_offset(const uint8_t *frame, size_t len);

/** Marks a RoCE frame with "congestion experienced"; RoCEv1 has no ECN. */
void fault_mark(uint8_t *frame, size_t len);

/** Flips one bit between the BTH at @p bth and the frame's end, never one that the ICRC masks. */
void fault_corrupt(uint8_t *frame, size_t len, size_t bth, uint64_t random);

#endif
