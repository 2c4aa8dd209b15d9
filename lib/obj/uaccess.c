/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include "bits.h"
#include "uaccess.h"

/* Loads and stores that the compiler may neither repeat nor merge nor turn into a call. */
typedef uint64_t word_unaligned __attribute__((may_alias, aligned(1)));
typedef uint64_t word_aligned __attribute__((may_alias, aligned(8)));
/* 32 bytes that are moved at once: only elements of 8 bytes matter, and they do not tear in a
 * vector store whose address is a multiple of 8. */
typedef uint64_t block __attribute__((vector_size(32), may_alias, aligned(8)));
typedef uint64_t block_unaligned __attribute__((vector_size(32), may_alias, aligned(1)));

static void store_byte(uint8_t *dst, uint8_t v)
{
	*(volatile uint8_t *)dst = v;
}

bool uaccess_place(const struct uaccess *ua, void *dst, const void *src, size_t len)
{
	uint32_t before = *ua->faults;
	uint8_t *d = dst;
	const uint8_t *s = src;
	size_t words;

	while (len && ((uintptr_t)d & 7)) {
		store_byte(d++, *s++);
		len--;
	}
	words = len / 8;
	len %= 8;
	/* The last word is kept back for the release store. */
	while (words > 4) {
		*(volatile block *)d = *(const block_unaligned *)s;
		d += 32;
		s += 32;
		words -= 4;
	}
	while (words > 1) {
		*(volatile word_aligned *)d = *(const word_unaligned *)s;
		d += 8;
		s += 8;
		words--;
	}
	atomic_thread_fence(memory_order_release);
	if (words) {
		*(volatile word_aligned *)d = *(const word_unaligned *)s;
		d += 8;
		s += 8;
	}
	while (len--)
		store_byte(d++, *s++);
	return *ua->faults == before;
}

bool uaccess_gather(
	const struct uaccess *ua, uint32_t *state, void *dst, const void *src, size_t len)
{
	uint32_t before = *ua->faults;

	*state = ua->icrc->copy(*state, dst, src, len);
	return *ua->faults == before;
}

void uaccess_wqe(void *dst, const void *src, size_t len)
{
	const volatile word_aligned *s = src;
	uint64_t *d = dst;

	for (size_t i = 0; i < len / 8; i++)
		d[i] = s[i];
}
