/* SPDX-License-Identifier: BSD-3-Clause */
/** @file target.h  The functions that libFuzzer calls or provides (llvm.org/docs/LibFuzzer). */
#ifndef TARGET_H
#define TARGET_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int LLVMFuzzerInitialize(int *argc, char ***argv);
EXPORT int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
EXPORT size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
EXPORT size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b,
	size_t b_size, uint8_t *out, size_t max, unsigned seed);

/** libFuzzer's own mutations. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

#endif
