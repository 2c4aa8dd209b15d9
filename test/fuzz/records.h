/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file records.h
 * The input of a stateful fuzzer: records of sixteen bytes, each an action and what it is done
 * with. The first is the set-up. Byte values are chosen so that zeroes are what a good program or
 * peer would do: most of an input then leads somewhere, and each other byte is one thing odd.
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

/** @return false when there are no more; an incomplete last one is filled up with zeroes. */
bool records_take(struct records *in, struct record *r);

/** With FUZZ_PRINT set in the environment: what happens, as text. */
void trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
