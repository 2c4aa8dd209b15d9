/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file records.h
 * The input of a stateful fuzzer: records of sixteen bytes, each an action with its operands. The
 * first record is the set-up. A zero byte stands for the behaviour of a correct program or peer, so
 * most inputs get far, and each nonzero byte changes one thing.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_LEN  16u
#define RECORDS_MAX 160u

struct record {
	uint8_t act;
	uint8_t b[RECORD_LEN - 1];
};

static inline uint32_t record_u16(const struct record *r, unsigned at)
{
	return (uint32_t)r->b[at] | (uint32_t)r->b[at + 1] << 8;
}

/** The rest of an input. */
struct records {
	const uint8_t *at;
	size_t left;
	unsigned taken;
};

/** @return false when no record is left; an incomplete last record is padded with zeroes. */
bool records_take(struct records *in, struct record *r);

/** Prints what happens, if FUZZ_PRINT is set in the environment. */
void trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
