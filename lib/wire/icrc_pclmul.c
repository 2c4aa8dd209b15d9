/* SPDX-License-Identifier: BSD-3-Clause */
/* SSE4.2 and PCLMULQDQ. */
#include "icrc_fold16.h"

const struct icrc_ops icrc_pclmul = {
	.name = "pclmul",
	.crc = fold_crc,
	.copy = fold_copy,
	.crc_masked = fold_crc_masked,
	.masked_copy = fold_masked_copy,
	.move_words = icrc_move_words,
};
