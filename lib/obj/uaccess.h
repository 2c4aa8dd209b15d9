/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file uaccess.h
 * The only code that touches application memory (design.md 5). The application maps the same
 * pages and may write them at any moment, so everything is loaded once; and it can make an
 * access fault (SIGBUS) although its memfds are sealed, so each access tells whether it did.
 *
 * A fault is survived as wl_shm of Wayland does it: the signal handler, installed by the shell,
 * maps a zero page over the hole and adds one to `faults`; the access ends as if the page had
 * been there, and the caller sees that the count moved. doc/decisions/0003-sigbus.md.
 */
#ifndef UACCESS_H
#define UACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "icrc.h"

struct uaccess {
	const struct icrc_ops *icrc;
	/** Faults of this thread so far; written by its SIGBUS handler only. */
	const volatile uint32_t *faults;
};

/**
 * Places @p len received bytes in application memory, ascending. Aligned 8-byte words never
 * tear and the last one is stored with release, because programs poll the last byte.
 * @return false when the access faulted.
 */
bool uaccess_place(const struct uaccess *ua, void *dst, const void *src, size_t len);

/**
 * Copies @p len bytes of application memory into a frame and advances the CRC @p state over
 * what was copied, in one pass.
 * @return false when the access faulted.
 */
bool uaccess_gather(
	const struct uaccess *ua, uint32_t *state, void *dst, const void *src, size_t len);

/** Copies a work queue entry of @p len bytes (a multiple of 64) out of a ring, once. Rings
 *  are daemon-made: a hole that the application punches there reads as zeroes. */
void uaccess_wqe(void *dst, const void *src, size_t len);

#endif
