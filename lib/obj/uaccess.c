/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include "bits.h"
#include "uaccess.h"

/* After all stores before it, because it may be the last byte, which programs poll. */
static void store_byte(uint8_t *dst, uint8_t v)
{
	atomic_store_explicit((_Atomic uint8_t *)dst, v, memory_order_release);
}

void uaccess_place_any(struct uaccess ua, void *dst, const void *src, size_t len)
{
	uint8_t *d = dst;
	const uint8_t *s = src;
	size_t words;

	while (unlikely((uintptr_t)d & 7) && len) {
		store_byte(d++, *s++);
		len--;
	}
	words = len / 8;
	len %= 8;
	if (words) {
		/* The last word is kept for the release store. */
		ua.icrc->move_words(d, s, words - 1);
		d += (words - 1) * 8;
		s += (words - 1) * 8;
	}
	atomic_thread_fence(memory_order_release);
	if (words) {
		*(volatile uaccess_word *)d = *(const uaccess_word_unaligned *)s;
		d += 8;
		s += 8;
	}
	while (len--)
		store_byte(d++, *s++);
}

/* Sixteen bytes at once, because the fields of the copy are read soon after: a load that spans two
 * stores must wait for both. Both ends are aligned. */
typedef uint64_t quarter __attribute__((vector_size(16), may_alias));

bool uaccess_cmp_swap(struct uaccess ua, void *ptr, uint64_t compare, uint64_t swap, uint64_t *orig)
{
	uint32_t before = *ua.faults;

	atomic_compare_exchange_strong((_Atomic uint64_t *)ptr, &compare, swap);
	*orig = compare;
	return *ua.faults == before;
}

bool uaccess_fetch_add(struct uaccess ua, void *ptr, uint64_t add, uint64_t *orig)
{
	uint32_t before = *ua.faults;

	*orig = atomic_fetch_add((_Atomic uint64_t *)ptr, add);
	return *ua.faults == before;
}

void uaccess_wqe(void *dst, const void *src, size_t len)
{
	const volatile quarter *s = src;
	quarter *d = dst;
	quarter *end = (quarter *)((uint8_t *)dst + len);

	do {
		quarter a = s[0], b = s[1], c = s[2], e = s[3];

		d[0] = a;
		d[1] = b;
		d[2] = c;
		d[3] = e;
		s += 4;
		d += 4;
	} while (d != end);
}
