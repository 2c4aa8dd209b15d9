/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file icrc_impl.h
 * Shared by the implementations of icrc.h.
 */
#ifndef ICRC_IMPL_H
#define ICRC_IMPL_H

#include "icrc.h"

/* Fastest first; icrc.c decides which of them a CPU can run. */
extern const struct icrc_ops icrc_avx512;
extern const struct icrc_ops icrc_vpclmul;
extern const struct icrc_ops icrc_pclmul;
extern const struct icrc_ops icrc_pmull;
extern const struct icrc_ops icrc_isal;
extern const struct icrc_ops icrc_table;

/** crc_masked for implementations that cannot mask on the fly: masks a copy. */
uint32_t icrc_masked_copy(uint32_t (*crc)(uint32_t, const void *, size_t), uint32_t state,
	const uint8_t *src, size_t len, const uint8_t *mask);

/** move_words for implementations without suitable wide registers. */
void icrc_move_words(void *dst, const void *src, size_t words);

#endif
