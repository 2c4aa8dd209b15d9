/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file uaccess.h
 * The only code that touches application memory (decision 0000.5). The application maps the same
 * pages and may write them at any moment, so everything is loaded once; and it can make an access
 * fault (SIGBUS) although its memfds are sealed, so each access reports whether it did.
 *
 * Faults are survived as in Wayland's wl_shm: the signal handler, installed by the shell, maps a
 * zero page over the hole and increments `faults`; the access completes as if the page had been
 * there, and the caller sees that the count changed. doc/decisions/0003-sigbus.md.
 */
#ifndef UACCESS_H
#define UACCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bits.h"
#include "icrc.h"

struct uaccess {
	const struct icrc_ops *icrc;
	/** Faults of this thread so far; written by its SIGBUS handler only. */
	const volatile uint32_t *faults;
};

/* Loads and stores that the compiler may neither repeat nor merge nor turn into a call. */
typedef uint64_t uaccess_word __attribute__((may_alias, aligned(8)));
typedef uint64_t uaccess_word_unaligned __attribute__((may_alias, aligned(1)));

/** uaccess_place() for any length and address; the caller checks for faults. */
void uaccess_place_any(struct uaccess ua, void *dst, const void *src, size_t len);

/**
 * Places @p len received bytes in application memory (SEC-01: nothing else writes there),
 * ascending. Aligned 8-byte words never tear, and the last one is stored with release, because
 * programs poll the last byte.
 * @return false when the access faulted.
 */
static inline bool uaccess_place(struct uaccess ua, void *dst, const void *src, size_t len)
{
	uint32_t before = *ua.faults;

	if (likely(len && !(((uintptr_t)dst | len) & 7))) {
		/* The last word is kept for the release store. */
		size_t last = len - 8;

		ua.icrc->move_words(dst, src, last / 8);
		atomic_thread_fence(memory_order_release);
		*(volatile uaccess_word *)((uint8_t *)dst + last) =
			*(const uaccess_word_unaligned *)((const uint8_t *)src + last);
	} else {
		uaccess_place_any(ua, dst, src, len);
	}
	return *ua.faults == before;
}

/**
 * Copies @p len bytes of application memory into a frame and advances the CRC @p state over the
 * bytes copied, in one pass.
 * @return false when the access faulted.
 */
static inline bool uaccess_gather(
	struct uaccess ua, uint32_t *state, void *dst, const void *src, size_t len)
{
	uint32_t before = *ua.faults;

	*state = ua.icrc->copy(*state, dst, src, len);
	return *ua.faults == before;
}

/** The same for the first piece of a payload, with the CRC of the @p hdr_len header bytes at @p l3
 * before it (icrc_header()): sets @p state. */
static inline bool uaccess_gather_first(struct uaccess ua, uint32_t *state, const uint8_t *l3,
	unsigned net, size_t hdr_len, void *dst, const void *src, size_t len)
{
	uint32_t before = *ua.faults;

	*state = icrc_header_copy(ua.icrc, l3, net, hdr_len, dst, src, len);
	return *ua.faults == before;
}

/**
 * Sets the word at @p ptr, a multiple of 8, to @p swap if it equals @p compare: atomic with respect
 * to CPU operations of the application (RSP-35), in host byte order (RSP-33).
 * @param orig  receives the original value (RSP-34)
 * @return false when the access faulted.
 */
bool uaccess_cmp_swap(
	struct uaccess ua, void *ptr, uint64_t compare, uint64_t swap, uint64_t *orig);

/** Adds @p add, modulo 2^64 (RSP-34); otherwise as uaccess_cmp_swap(). */
bool uaccess_fetch_add(struct uaccess ua, void *ptr, uint64_t add, uint64_t *orig);

/** Copies a work queue entry of @p len bytes (a multiple of 64) out of a ring, once; both are
 *  aligned to 16. Rings are created by the daemon: a hole that the application punches there reads
 *  as zeroes.
 */
void uaccess_wqe(void *dst, const void *src, size_t len);

#endif
