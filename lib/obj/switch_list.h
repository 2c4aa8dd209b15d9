/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch_list.h
 * From which switches a port accepts Fast CNPs, and how many (FCN-10, FCN-11). The control thread
 * publishes a list as a whole (struct port); workers take from its buckets.
 */
#ifndef SWITCH_LIST_H
#define SWITCH_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "fast_cnp.h"
#include "limits.h"

/** A token bucket: `step` ns a token, full after `depth` ns. Any worker takes from it. */
struct bucket {
	uint64_t step;
	uint64_t depth;
	/** When it will be full again; a time that has passed: it is full. Advanced by
	 *  compare-and-swap. */
	_Atomic uint64_t full_at;
};

/** Makes @p b full, for @p rate tokens a second, 1 to 1,000,000,000, and @p burst at once. */
void bucket_init(struct bucket *b, uint64_t rate, uint64_t burst);

/** Takes a token. @return false: there is none. */
bool bucket_take(struct bucket *b, uint64_t now);

/** One switch, or those of a prefix, which share a bucket. */
struct switch_entry {
	uint8_t addr[16];
	uint8_t prefix; /* bits of it that count, 1..128 */
	struct bucket bucket;
};

struct switch_list {
	uint8_t type[FAST_CNP_OPTIONS]; /* of the options */
	uint32_t n;
	bool detour; /* QPs that accept one take another path when they may (FCN-15) */
	struct bucket all;
	struct switch_entry entry[FAST_CNP_SWITCHES];
};

/** @return the first entry of @p l that address @p addr belongs to, or NULL. */
struct switch_entry *switch_find(struct switch_list *l, const uint8_t addr[16]);

#endif
