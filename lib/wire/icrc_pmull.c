/* SPDX-License-Identifier: BSD-3-Clause */
/* PMULL of ARMv8-A's optional cryptographic instructions. */
#include "icrc_fold16.h"

const struct icrc_ops icrc_pmull = {
	.name = "pmull",
	.crc = fold_crc,
	.copy = fold_copy,
	.crc_masked = fold_crc_masked,
	.masked_copy = fold_masked_copy,
	.move_words = icrc_move_words,
};
