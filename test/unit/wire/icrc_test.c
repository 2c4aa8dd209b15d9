/* SPDX-License-Identifier: BSD-3-Clause */
/* Every implementation that this CPU can run, at every length and alignment, against the
 * definition. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <isa-l/crc.h>
#include "bits.h"
#include "frame.h"
#include "guard.h"
#include "headers.h"
#include "icrc.h"
#include "icrc_const.h"
#include "random.h"

#define LEN_MAX	  4200u
#define ALIGN_MAX 64u
#define FENCE	  64u /* bytes before and after a copy, which must stay */
#define FENCE_PAT 0xA5

#define for_each_impl(ops) for (unsigned i_ = 0; ((ops) = icrc_nth(i_)); i_++)

/* The definition: IBA 7.8.1, one bit at a time. */
static uint32_t crc_bits(uint32_t state, const uint8_t *src, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		state ^= src[i];
		for (int bit = 0; bit < 8; bit++)
			state = state >> 1 ^ (state & 1 ? 0xEDB88320u : 0);
	}
	return state;
}

/* A message, and the register after each of its bytes. */
static uint8_t data[LEN_MAX];
static uint32_t after[LEN_MAX + 1];

static int setup(void **state)
{
	struct random r = {20240817};

	random_fill(&r, data, sizeof(data));
	after[0] = ICRC_SEED;
	for (size_t i = 0; i < sizeof(data); i++)
		after[i + 1] = crc_bits(after[i], data + i, 1);
	return 0;
}

/* --- the definition and the constants ------------------------------------------------------ */

/* proves ICRC-02 */
static void icrc_seed__is_the_register_after_eight_ff(void **state)
{
	static const uint8_t ff[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
	const struct icrc_ops *ops;

	assert_int_equal(crc_bits(0xFFFFFFFF, ff, sizeof(ff)), ICRC_SEED);
	for_each_impl(ops) assert_int_equal(ops->crc(0xFFFFFFFF, ff, sizeof(ff)), ICRC_SEED);
}

/* proves ICRC-01 */
static void crc__check_value_of_crc32(void **state)
{
	const struct icrc_ops *ops;

	for_each_impl(ops) assert_int_equal(~ops->crc(0xFFFFFFFF, "123456789", 9), 0xCBF43926);
}

static uint64_t reflect(uint64_t v, unsigned bits)
{
	uint64_t r = 0;

	for (unsigned i = 0; i < bits; i++)
		r |= (v >> i & 1) << (bits - 1 - i);
	return r;
}

/* x^n mod P as icrc_const.h keeps it. */
static uint64_t x_power(unsigned n)
{
	uint32_t v = 1;

	while (n--)
		v = v << 1 ^ (v >> 31 ? 0x04C11DB7u : 0);
	return reflect(v, 32) << 1;
}

/* proves ICRC-01 */
static void fold_constants__derive_from_the_polynomial(void **state)
{
	uint64_t quotient = 0;
	unsigned __int128 rest = (unsigned __int128)1 << 96;

#define X(d, first, second)                                     \
	assert_int_equal((uint64_t)(first), x_power((d) + 32)); \
	assert_int_equal((uint64_t)(second), x_power((d)-32));
	ICRC_FOLD_CONSTS(X)
#undef X
	assert_int_equal(ICRC_P, reflect(0x104C11DB7, 33));
	for (int i = 64; i > 0; i--)
		if (rest >> (i + 32) & 1) {
			rest ^= (unsigned __int128)0x104C11DB7 << i;
			quotient |= 1ull << (i - 1);
		}
	assert_int_equal(ICRC_MU, reflect(quotient, 64));
}

/* --- choosing ---------------------------------------------------------------------------- */

static void icrc_by_name__finds_what_runs_here(void **state)
{
	const struct icrc_ops *ops;

	for_each_impl(ops) assert_ptr_equal(icrc_by_name(ops->name), ops);
	assert_ptr_equal(icrc_best(), icrc_nth(0));
	assert_non_null(icrc_by_name("table"));
	assert_non_null(icrc_by_name("isal"));
	assert_null(icrc_by_name("crc32c"));
	assert_null(icrc_nth(1000));
}

/* --- crc and copy ------------------------------------------------------------------------ */

/* One length at one pair of alignments: crc, copy, and that copy wrote `len` bytes only. */
static void check_at(const struct icrc_ops *ops, uint8_t *src, uint8_t *dst, size_t len)
{
	uint8_t fence[FENCE];

	memset(fence, FENCE_PAT, sizeof(fence));
	memset(dst - FENCE, FENCE_PAT, len + 2 * FENCE);
	if (ops->crc(ICRC_SEED, src, len) != after[len])
		fail_msg("%s: crc of %zu bytes at %p", ops->name, len, (void *)src);
	if (ops->copy(ICRC_SEED, dst, src, len) != after[len])
		fail_msg("%s: copy of %zu bytes from %p", ops->name, len, (void *)src);
	if (memcmp(dst, src, len) || memcmp(dst - FENCE, fence, FENCE) ||
		memcmp(dst + len, fence, FENCE))
		fail_msg("%s: bytes of a copy of %zu to %p", ops->name, len, (void *)dst);
}

static uint8_t src_room[LEN_MAX + ALIGN_MAX] __attribute__((aligned(64)));
static uint8_t dst_room[LEN_MAX + ALIGN_MAX + 2 * FENCE] __attribute__((aligned(64)));

/* proves ICRC-13 */
static void crc_copy__every_length(void **state)
{
	static const struct {
		unsigned src, dst;
	} at[] = {{0, 0}, {1, 0}, {0, 6}, {16, 2}, {29, 63}, {32, 48}, {60, 33}};
	const struct icrc_ops *ops;

	for (size_t a = 0; a < ARRAY_SIZE(at); a++) {
		memcpy(src_room + at[a].src, data, LEN_MAX);
		for_each_impl(ops) for (size_t len = 0; len <= LEN_MAX; len++)
			check_at(ops, src_room + at[a].src, dst_room + FENCE + at[a].dst, len);
	}
}

static void crc_copy__every_alignment(void **state)
{
	static const size_t lens[] = {0, 3, 15, 16, 63, 64, 65, 200, 259, 512, 575, 1024, 4096};
	const struct icrc_ops *ops;

	for (unsigned s = 0; s < ALIGN_MAX; s++) {
		memcpy(src_room + s, data, LEN_MAX);
		for_each_impl(ops) for (size_t l = 0; l < ARRAY_SIZE(lens);
					l++) for (unsigned d = s % 3;
						  d<ALIGN_MAX; d += lens[l]> 300 ? 7 : 3)
			check_at(ops, src_room + s, dst_room + FENCE + d, lens[l]);
	}
}

static void crc__agrees_with_isal_itself(void **state)
{
	for (size_t len = 0; len <= LEN_MAX; len++)
		assert_int_equal(~crc32_gzip_refl(~ICRC_SEED, data, len), after[len]);
}

static void crc_copy__at_page_ends(void **state)
{
	struct guard src = guard_map(LEN_MAX);
	struct guard dst = guard_map(LEN_MAX);
	const struct icrc_ops *ops;

	for (size_t len = 0; len <= LEN_MAX; len += len < 600 ? 1 : 97) {
		uint8_t *from[] = {src.begin, src.end - len};
		uint8_t *to[] = {dst.begin, dst.end - len};

		for (unsigned i = 0; i < 4; i++) {
			uint8_t *s = from[i & 1];
			uint8_t *d = to[i >> 1];

			memcpy(s, data, len);
			for_each_impl(ops)
			{
				assert_int_equal(ops->crc(ICRC_SEED, s, len), after[len]);
				assert_int_equal(ops->copy(ICRC_SEED, d, s, len), after[len]);
				assert_memory_equal(d, s, len);
			}
		}
	}
	guard_unmap(&src);
	guard_unmap(&dst);
}

/* proves ICRC-13 */
static void crc_copy__in_pieces(void **state)
{
	struct random r = {4711};
	const struct icrc_ops *ops;

	for_each_impl(ops) for (unsigned round = 0; round < 2000; round++)
	{
		size_t len = random_below(&r, round % 2 ? 300 : LEN_MAX + 1);
		uint32_t reg = ICRC_SEED;
		size_t at = 0;

		while (at < len) {
			size_t n = 1 + random_below(&r, round % 3 ? len - at : 40);

			if (n > len - at)
				n = len - at;
			reg = round % 4 < 2 ? ops->crc(reg, data + at, n)
					    : ops->copy(reg, dst_room + at, data + at, n);
			at += n;
		}
		assert_int_equal(reg, after[len]);
	}
}

/* READ responses are copied out of memory that the application may be writing (decision 0000.5). */
struct writer {
	uint64_t words[512];
	_Atomic uint64_t written;
	atomic_bool stop;
};

static void *write_meanwhile(void *arg)
{
	struct writer *w = arg;
	volatile uint64_t *words = w->words;

	for (uint64_t n = 1; !atomic_load_explicit(&w->stop, memory_order_relaxed); n++) {
		words[n * 167 % ARRAY_SIZE(w->words)] = n * 0x9E3779B97F4A7C15ull;
		atomic_store_explicit(&w->written, n, memory_order_relaxed);
	}
	return NULL;
}

/* Copies until the writer was seen at work `changes` times; not forever, because on a single
 * CPU it is seen once a time slice. @return false when a CRC is not that of the bytes that
 * were copied. */
static bool copies_agree(const struct icrc_ops *ops, struct writer *w, unsigned changes)
{
	static const size_t lens[] = {4096, 1024, 251, 64, 60, 13};
	static uint8_t dst[sizeof(w->words)];
	uint64_t seen = 0;

	for (unsigned i = 0; changes && i < 30000; i++) {
		size_t len = lens[i % ARRAY_SIZE(lens)];
		uint64_t written = atomic_load(&w->written);

		if (ops->copy(ICRC_SEED, dst, w->words, len) !=
			~crc32_gzip_refl(~ICRC_SEED, dst, len))
			return false;
		changes -= written != seen;
		seen = written;
	}
	return true;
}

static void copy__source_changes_meanwhile(void **state)
{
	static struct writer w;
	const struct icrc_ops *wrong = NULL;
	const struct icrc_ops *ops;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, write_meanwhile, &w), 0);
	for_each_impl(ops) if (!copies_agree(ops, &w, 5000)) wrong = ops;
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	if (wrong)
		fail_msg("%s: the copy is not what was counted", wrong->name);
}

/* --- masking ----------------------------------------------------------------------------- */

/* CA17-22 (c), (d), IBA 7.8.1, as the text has it. */
static void mask_by_hand(uint8_t *l3, unsigned net)
{
	unsigned l4 = net == NET_IPV4 ? 20 : 40;
	unsigned bth = net == NET_ROCEV1 ? l4 : l4 + 8;

	if (net == NET_IPV4) {
		l3[1] = 0xFF;		  /* TOS */
		l3[8] = 0xFF;		  /* TTL */
		memset(l3 + 10, 0xFF, 2); /* Header Checksum */
	} else {
		l3[0] |= 0x0F; /* Traffic Class, Flow Label */
		memset(l3 + 1, 0xFF, 3);
		l3[7] = 0xFF; /* Hop Limit */
	}
	if (net != NET_ROCEV1)
		memset(l3 + l4 + 6, 0xFF, 2); /* UDP checksum */
	l3[bth + 4] = 0xFF;		      /* resv8a */
}

/* proves ICRC-04, ICRC-05, ICRC-06, ICRC-07, ICRC-08 */
static void icrc_header__masks_the_variant_fields(void **state)
{
	struct guard g = guard_map(LEN_MAX);
	struct random r = {99};
	const struct icrc_ops *ops;

	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++) {
		size_t shortest = (net == NET_IPV4 ? 28 : net == NET_IPV6 ? 48 : 40) + BTH_HLEN;

		for (size_t len = shortest; len <= 1200; len += len < 300 ? 1 : 33) {
			uint8_t masked[1200];
			uint8_t *at[] = {g.begin, g.end - len};

			random_fill(&r, masked, len);
			memcpy(at[0], masked, len);
			memmove(at[1], masked, len);
			if (at[0] + len > at[1])
				at[0] = at[1];
			mask_by_hand(masked, net);
			for_each_impl(ops) for (unsigned i = 0; i < 2; i++)
				assert_int_equal(icrc_header(ops, at[i], net, len),
					crc_bits(ICRC_SEED, masked, len));
		}
	}
	guard_unmap(&g);
}

/* In one go or in two, whole blocks after a short header or anything else. */
static void icrc_header_copy__is_header_then_copy(void **state)
{
	static const size_t payloads[] = {1, 63, 64, 65, 128, 256, 512, 576, 1024, 4096};
	struct random r = {.state = 11};
	const struct icrc_ops *ops, *table = icrc_by_name("table");
	uint8_t l3[80], src[4096], dst[4097];

	random_fill(&r, l3, sizeof(l3));
	random_fill(&r, src, sizeof(src));
	for (unsigned k = 0; (ops = icrc_nth(k)); k++)
		for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++)
			for (size_t hdr = 40; hdr <= sizeof(l3); hdr += 4)
				for (unsigned i = 0; i < ARRAY_SIZE(payloads); i++) {
					size_t len = payloads[i];
					uint32_t want = icrc_header(table, l3, net, hdr);

					memset(dst, 0xEE, sizeof(dst));
					want = table->crc(want, src, len);
					assert_int_equal(
						icrc_header_copy(ops, l3, net, hdr, dst, src, len),
						want);
					assert_memory_equal(dst, src, len);
					assert_int_equal(dst[len], 0xEE);
				}
}

/* proves ICRC-03 */
static void icrc_store__is_least_significant_byte_first(void **state)
{
	uint8_t wire[4];

	icrc_store(wire, ~0x11223344u);
	assert_memory_equal(wire, "\x44\x33\x22\x11", 4);
}

/* proves ICRC-04, ICRC-05, ICRC-06, ICRC-07, ICRC-08, ICRC-14: every single bit that is covered
 * counts, and no other does. */
static void icrc_check__each_bit(void **state)
{
	const struct icrc_ops *ops;
	struct random r = {7};

	for_each_impl(ops) for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++)
	{
		uint8_t l3[160];
		uint8_t variant[sizeof(l3)] = {0};
		struct pkt p = {.l3 = l3, .net = (uint8_t)net, .icrc_off = sizeof(l3) - ICRC_LEN};

		random_fill(&r, l3, sizeof(l3));
		icrc_store(l3 + p.icrc_off, icrc_header(ops, l3, net, p.icrc_off));
		mask_by_hand(variant, net);
		assert_true(icrc_check(ops, &p));
		for (unsigned bit = 0; bit < 8 * sizeof(l3); bit++) {
			bool masked = variant[bit / 8] >> bit % 8 & 1;

			l3[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(icrc_check(ops, &p), masked);
			l3[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icrc_seed__is_the_register_after_eight_ff),
		cmocka_unit_test(crc__check_value_of_crc32),
		cmocka_unit_test(fold_constants__derive_from_the_polynomial),
		cmocka_unit_test(icrc_by_name__finds_what_runs_here),
		cmocka_unit_test(crc_copy__every_length),
		cmocka_unit_test(crc_copy__every_alignment),
		cmocka_unit_test(crc__agrees_with_isal_itself),
		cmocka_unit_test(crc_copy__at_page_ends),
		cmocka_unit_test(crc_copy__in_pieces),
		cmocka_unit_test(copy__source_changes_meanwhile),
		cmocka_unit_test(icrc_header__masks_the_variant_fields),
		cmocka_unit_test(icrc_header_copy__is_header_then_copy),
		cmocka_unit_test(icrc_store__is_least_significant_byte_first),
		cmocka_unit_test(icrc_check__each_bit),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
