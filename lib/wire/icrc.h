/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file icrc.h
 * The invariant CRC (CA17-22, IBA 7.8.1; ICRC-01..15): CRC-32 IEEE over eight 0xFF bytes,
 * the L3 header with its variant fields set to ones, and everything up to the ICRC itself.
 * Stored least significant byte first.
 *
 * `state` is the raw CRC register: start with ICRC_SEED, end with the complement.
 */
#ifndef ICRC_H
#define ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pkt;

/** The register after the eight 0xFF bytes (ICRC-02). */
#define ICRC_SEED 0xDEBB20E3u

/** Bytes in a mask of variant fields: these are in the first 64, zeros follow. */
#define ICRC_MASK_LEN 128

/** An implementation; all give the same results. */
struct icrc_ops {
	const char *name; /* "avx512", "vpclmul", "pclmul", "pmull", "isal", "table" */
	/** Advances @p state over @p len bytes. */
	uint32_t (*crc)(uint32_t state, const void *src, size_t len);
	/** Copies @p len bytes and advances @p state over the bytes copied. Each source byte is
	 *  loaded once, so the copy and the CRC agree even if the memory changes meanwhile
	 *  (decision 0000.5). The regions must not overlap. */
	uint32_t (*copy)(uint32_t state, void *dst, const void *src, size_t len);
	/** As crc, over @p src with its first 64 bytes ORed with those of @p mask; the second
	 *  half of @p mask is zero. For icrc_header() and icrc_check(). */
	uint32_t (*crc_masked)(
		uint32_t state, const void *src, size_t len, const uint8_t mask[ICRC_MASK_LEN]);
	/** crc_masked over @p hdr_len bytes at @p hdr, 16 to 63, then copy; @p len is a nonzero
	 *  multiple of 64. One pass for the most common packets. NULL: not worthwhile. */
	uint32_t (*masked_copy)(uint32_t state, const void *hdr, size_t hdr_len,
		const uint8_t mask[ICRC_MASK_LEN], void *dst, const void *src, size_t len);
	/** Moves @p words 8-byte words to @p dst, a multiple of 8, without tearing any: for
	 *  uaccess_place(). The fastest way depends on the CPU, too. */
	void (*move_words)(void *dst, const void *src, size_t words);
};

/** @return the fastest implementation that this CPU supports. */
const struct icrc_ops *icrc_best(void);

/** @return the implementation called @p name, or NULL when it is unknown or this CPU
 *  cannot run it. */
const struct icrc_ops *icrc_by_name(const char *name);

/** @return the i-th implementation that this CPU can run, NULL if there are fewer. */
const struct icrc_ops *icrc_nth(unsigned i);

/**
 * CRC state after the header part of a packet: @p len bytes from @p l3, with the variant fields of
 * @p net (enum net_type) masked. @p len covers at least the BTH, and may include payload. Only
 * @p len bytes at @p l3 need to be readable.
 */
uint32_t icrc_header(const struct icrc_ops *ops, const uint8_t *l3, unsigned net, size_t len);

/**
 * Like icrc_header() of @p hdr_len bytes, then copies @p len bytes from @p src to @p dst and
 * includes them, as icrc_ops.copy does.
 */
uint32_t icrc_header_copy(const struct icrc_ops *ops, const uint8_t *l3, unsigned net,
	size_t hdr_len, void *dst, const void *src, size_t len);

/**
 * Like icrc_header(), for RoCEv2 over IPv6 with @p options bytes of extension headers at @p ext,
 * which are covered unmasked (ICRC-10). @p len covers at least the BTH.
 */
uint32_t icrc_with_options(const struct icrc_ops *ops, const uint8_t *l3, const uint8_t *ext,
	size_t options, size_t len);

/** @return true when the ICRC of @p p is correct (ICRC-11). */
bool icrc_check(const struct icrc_ops *ops, const struct pkt *p);

/** Stores the finished ICRC for register @p state at @p dst, least significant byte first. */
static inline void icrc_store(uint8_t *dst, uint32_t state)
{
	uint32_t v = ~state;

	dst[0] = (uint8_t)v;
	dst[1] = (uint8_t)(v >> 8);
	dst[2] = (uint8_t)(v >> 16);
	dst[3] = (uint8_t)(v >> 24);
}

#endif
