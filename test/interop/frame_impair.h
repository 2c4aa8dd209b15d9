/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame_impair.h
 * Applies the impairments of a lossy bridge, chosen by impair.h, to the RoCE frames of one
 * direction. No sockets and no clock in here.
 */
#ifndef FRAME_IMPAIR_H
#define FRAME_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "impair.h"

/** Reads "drop=1000,duplicate=500": parts per million by the names of impair_word(), at most a
 *  million in total.  @return false when it is not such a list. */
bool impair_list(const char *list, struct impair *plan);

/** @return the name of a kind of impairment that the bridge has, or NULL. */
const char *impair_word(enum impair_kind kind);

/** @return the offset of the BTH in a RoCE frame (v1, v2, at most two VLAN tags); 0: it is not a
 *  RoCE frame. */
size_t roce_bth_offset(const uint8_t *frame, size_t len);

/** Marks a RoCE frame with "congestion experienced"; RoCEv1 has no ECN. */
void frame_mark(uint8_t *frame, size_t len);

/** Flips one bit between the BTH at @p bth and the frame's end, never one that the ICRC masks. */
void frame_corrupt(uint8_t *frame, size_t len, size_t bth, uint64_t random);

#endif
