/* SPDX-License-Identifier: BSD-3-Clause */
/* ISA-L, which has fast code for CPUs that the other implementations do not support. */
#include <string.h>
#include <isa-l/crc.h>
#include "icrc_impl.h"

static uint32_t isal_crc(uint32_t state, const void *src, size_t len)
{
	/* ISA-L takes and returns finished CRCs, not the register. */
	return ~crc32_gzip_refl(~state, src, len);
}

static uint32_t isal_copy(uint32_t state, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return isal_crc(state, dst, len);
}

static uint32_t isal_crc_masked(
	uint32_t state, const void *src, size_t len, const uint8_t mask[ICRC_MASK_LEN])
{
	return icrc_masked_copy(isal_crc, state, src, len, mask);
}

const struct icrc_ops icrc_isal = {
	.name = "isal",
	.crc = isal_crc,
	.copy = isal_copy,
	.crc_masked = isal_crc_masked,
	.move_words = icrc_move_words,
};
