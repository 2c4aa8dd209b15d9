/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seq24.h
 * 24-bit sequence numbers: PSN, MSN and SSN. They are compared only here (IBA 9.7.1, BTH-15): the
 * difference is taken modulo 2^24 and read as signed, so the later of two numbers less than 2^23
 * apart is known, even across the wrap.
 */
#ifndef SEQ24_H
#define SEQ24_H

#include <stdbool.h>
#include <stdint.h>

#define SEQ24_MASK 0xFFFFFFu

/** @return @p a advanced by @p n, wrapping at 2^24. */
static inline uint32_t seq24_add(uint32_t a, uint32_t n)
{
	return (a + n) & SEQ24_MASK;
}

/** @return @p a - @p b as a signed distance in [-2^23, 2^23). */
static inline int32_t seq24_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/** @return true when @p a is before @p b. */
static inline bool seq24_lt(uint32_t a, uint32_t b)
{
	return seq24_diff(a, b) < 0;
}

/** @return true when @p a is @p b or before it. */
static inline bool seq24_le(uint32_t a, uint32_t b)
{
	return seq24_diff(a, b) <= 0;
}

/** @return true when first <= @p a <= last. */
static inline bool seq24_between(uint32_t a, uint32_t first, uint32_t last)
{
	return seq24_le(first, a) && seq24_le(a, last);
}

#endif
