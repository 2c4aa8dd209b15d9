/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutations by whole records, for fuzzers whose input is nothing but records. */
#include <string.h>
#include "bits.h"
#include "random.h"
#include "records.h"
#include "target.h"

#define AT(data, i) ((data) + (size_t)(i)*RECORD_LEN)

/* Mostly zeroes. */
static void make(uint8_t *rec, struct random *r)
{
	unsigned odd = (unsigned)random_below(r, 4);

	memset(rec, 0, RECORD_LEN);
	rec[0] = (uint8_t)random_next(r);
	rec[1] = (uint8_t)random_next(r);
	rec[2] = (uint8_t)random_next(r);
	while (odd--)
		rec[1 + random_below(r, RECORD_LEN - 1)] = (uint8_t)random_next(r);
}

static size_t insert(uint8_t *data, size_t n, size_t max, struct random *r)
{
	size_t at = 1 + random_below(r, n);

	if (n == max)
		return n;
	memmove(AT(data, at + 1), AT(data, at), (n - at) * RECORD_LEN);
	make(AT(data, at), r);
	return n + 1;
}

static size_t erase(uint8_t *data, size_t n, struct random *r)
{
	size_t at = 1 + random_below(r, n - 1);
	size_t some = 1 + random_below(r, random_below(r, 4) ? 1 : n - at);

	memmove(AT(data, at), AT(data, at + some), (n - at - some) * RECORD_LEN);
	return n - some;
}

/* A stretch of records once more, somewhere. */
static size_t repeat(uint8_t *data, size_t n, size_t max, struct random *r)
{
	uint8_t copy[8 * RECORD_LEN];
	size_t from = 1 + random_below(r, n - 1);
	size_t some = 1 + random_below(r, 8);
	size_t at = 1 + random_below(r, n);

	if (some > n - from)
		some = n - from;
	if (some > max - n)
		return n;
	memcpy(copy, AT(data, from), some * RECORD_LEN);
	memmove(AT(data, at + some), AT(data, at), (n - at) * RECORD_LEN);
	memcpy(AT(data, at), copy, some * RECORD_LEN);
	return n + some;
}

static void swap(uint8_t *data, size_t n, struct random *r)
{
	uint8_t *a = AT(data, 1 + random_below(r, n - 1));
	uint8_t *b = AT(data, 1 + random_below(r, n - 1));
	uint8_t copy[RECORD_LEN];

	memcpy(copy, a, RECORD_LEN);
	memmove(a, b, RECORD_LEN);
	memcpy(b, copy, RECORD_LEN);
}

/* One byte of one record: to zero, to something, or a little up or down. */
static void tweak(uint8_t *data, size_t n, struct random *r)
{
	uint8_t *rec = AT(data, random_below(r, n));
	uint8_t *byte = &rec[random_below(r, RECORD_LEN)];

	switch (random_below(r, 3)) {
	case 0:
		*byte = 0;
		break;
	case 1:
		*byte = (uint8_t)random_next(r);
		break;
	default:
		*byte = (uint8_t)(*byte + random_below(r, 7) - 3);
		break;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct random r = {(uint64_t)seed << 1 | 1};
	size_t n = size / RECORD_LEN;
	size_t most = max / RECORD_LEN;

	random_next(&r);
	if (most > RECORDS_MAX)
		most = RECORDS_MAX;
	if (n < 2 || n > most || random_below(&r, 12) == 0)
		return LLVMFuzzerMutate(data, size, max);
	switch (random_below(&r, 8)) {
	case 0:
	case 1:
		n = insert(data, n, most, &r);
		break;
	case 2:
		n = erase(data, n, &r);
		break;
	case 3:
		n = repeat(data, n, most, &r);
		break;
	case 4:
		swap(data, n, &r);
		break;
	case 5: /* with libFuzzer's dictionary of what was compared with what */
		LLVMFuzzerMutate(AT(data, random_below(&r, n)), RECORD_LEN, RECORD_LEN);
		break;
	default:
		tweak(data, n, &r);
		break;
	}
	return n * RECORD_LEN;
}

/* The beginning of one input and the end of another. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
	uint8_t *out, size_t max, unsigned seed)
{
	struct random r = {(uint64_t)seed << 1 | 1};
	size_t head = random_below(&r, a_size / RECORD_LEN + 1) * RECORD_LEN;
	size_t from = random_below(&r, b_size / RECORD_LEN + 1) * RECORD_LEN;
	size_t tail = b_size - from;

	if (head > max)
		head = max;
	if (tail > max - head)
		tail = max - head;
	memcpy(out, a, head);
	memcpy(out + head, b + from, tail);
	return head + tail;
}
