/* SPDX-License-Identifier: BSD-3-Clause */
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#include "bits.h"
#include "headers.h"
#include "icrc_impl.h"
#include "pkt.h"

/* --- selection --------------------------------------------------------------------------- */

struct candidate {
	const struct icrc_ops *ops;
	bool (*runs_here)(void);
};

static bool always(void)
{
	return true;
}

#if defined(__x86_64__)
static bool has_pclmul(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

static bool has_vpclmul(void)
{
	return has_pclmul() && __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

static bool has_avx512(void)
{
	return has_pclmul() && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
	       __builtin_cpu_supports("vpclmulqdq");
}
#elif defined(__aarch64__)
static bool has_pmull(void)
{
	return getauxval(AT_HWCAP) & HWCAP_PMULL;
}
#endif

/* Fastest first. */
static const struct candidate candidates[] = {
#if defined(__x86_64__)
	{&icrc_avx512, has_avx512},
	{&icrc_vpclmul, has_vpclmul},
	{&icrc_pclmul, has_pclmul},
#elif defined(__aarch64__)
	{&icrc_pmull, has_pmull},
#endif
	{&icrc_isal, always},
	{&icrc_table, always},
};

const struct icrc_ops *icrc_nth(unsigned i)
{
	for (unsigned c = 0; c < ARRAY_SIZE(candidates); c++)
		if (candidates[c].runs_here() && i-- == 0)
			return candidates[c].ops;
	return NULL;
}

const struct icrc_ops *icrc_best(void)
{
	return icrc_nth(0);
}

/* Avoids strcmp(): this library needs nothing from libc but mem*(). */
static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

const struct icrc_ops *icrc_by_name(const char *name)
{
	const struct icrc_ops *ops;

	for (unsigned i = 0; (ops = icrc_nth(i)); i++)
		if (same_name(ops->name, name))
			return ops;
	return NULL;
}

/* --- masking (CA17-22, IBA 7.8.1) --------------------------------------------------------- */

#define IP6_MASK /* ICRC-05, ICRC-08: traffic class, flow label, hop limit; not the version */ \
	[IP6_VTCFL] = 0x0F, [IP6_VTCFL + 1] = 0xFF, [IP6_VTCFL + 2] = 0xFF,                    \
	[IP6_VTCFL + 3] = 0xFF, [IP6_HLIM] = 0xFF
#define UDP_MASK(udp) /* ICRC-06: the checksum, not the ports or the length */ \
	[(udp) + UDP_CSUM] = 0xFF, [(udp) + UDP_CSUM + 1] = 0xFF
#define BTH_MASK(bth) [(bth) + BTH_RESV8A] = 0xFF /* ICRC-07: FECN, BECN, reserved */

/* ORed into the headers, by enum net_type. All variant fields are in the first 64 bytes; with the
 * zeros after them, a block may start anywhere in the header. */
static const uint8_t masks[][ICRC_MASK_LEN] CACHE_ALIGNED = {
	[NET_IPV4] =
		{
			/* ICRC-04 */
			[IP4_TOS] = 0xFF,
			[IP4_TTL] = 0xFF,
			[IP4_CSUM] = 0xFF,
			[IP4_CSUM + 1] = 0xFF,
			UDP_MASK(IP4_HLEN),
			BTH_MASK(IP4_HLEN + UDP_HLEN),
		},
	[NET_IPV6] = {IP6_MASK, UDP_MASK(IP6_HLEN), BTH_MASK(IP6_HLEN + UDP_HLEN)},
	[NET_ROCEV1] = {IP6_MASK, BTH_MASK(GRH_HLEN)},
};

uint32_t icrc_masked_copy(uint32_t (*crc)(uint32_t, const void *, size_t), uint32_t state,
	const uint8_t *src, size_t len, const uint8_t *mask)
{
	uint64_t head[ICRC_MASK_LEN / 2 / sizeof(uint64_t)];
	size_t n = len < sizeof(head) ? len : sizeof(head);

	memcpy(head, src, n);
	memset((uint8_t *)head + n, 0, sizeof(head) - n);
	for (size_t i = 0; i < ARRAY_SIZE(head); i++) {
		uint64_t word;

		memcpy(&word, mask + i * sizeof(word), sizeof(word));
		head[i] |= word;
	}
	state = crc(state, head, n);
	return crc(state, src + n, len - n);
}

/* --- moving ------------------------------------------------------------------------------- */

/* Loads and stores that the compiler must neither repeat nor merge nor turn into a call. */
typedef uint64_t word_unaligned __attribute__((may_alias, aligned(1)));
typedef uint64_t word_aligned __attribute__((may_alias, aligned(8)));
/* 32 bytes at once: only its 8-byte elements matter, and these do not tear in a vector store to a
 * multiple of 8. */
typedef uint64_t block __attribute__((vector_size(32), may_alias, aligned(8)));
typedef uint64_t block_unaligned __attribute__((vector_size(32), may_alias, aligned(1)));

void icrc_move_words(void *dst, const void *src, size_t words)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	for (; words >= 4; words -= 4, d += 32, s += 32)
		*(volatile block *)d = *(const block_unaligned *)s;
	for (; words; words--, d += 8, s += 8)
		*(volatile word_aligned *)d = *(const word_unaligned *)s;
}

/* --- packets ----------------------------------------------------------------------- */

uint32_t icrc_header(const struct icrc_ops *ops, const uint8_t *l3, unsigned net, size_t len)
{
	return ops->crc_masked(ICRC_SEED, l3, len, masks[net]);
}

uint32_t icrc_header_copy(const struct icrc_ops *ops, const uint8_t *l3, unsigned net,
	size_t hdr_len, void *dst, const void *src, size_t len)
{
	if (ops->masked_copy && hdr_len < 64 && len % 64 == 0 && len)
		return ops->masked_copy(ICRC_SEED, l3, hdr_len, masks[net], dst, src, len);
	return ops->copy(icrc_header(ops, l3, net, hdr_len), dst, src, len);
}

uint32_t icrc_with_options(const struct icrc_ops *ops, const uint8_t *l3, const uint8_t *ext,
	size_t options, size_t len)
{
	const size_t rest = IP6_HLEN + options + UDP_HLEN + BTH_HLEN;
	uint8_t head[IP6_HLEN + UDP_HLEN + BTH_HLEN];
	uint32_t state;

	memcpy(head, l3, IP6_HLEN);
	memcpy(head + IP6_HLEN, l3 + IP6_HLEN + options, UDP_HLEN + BTH_HLEN);
	for (size_t i = 0; i < sizeof(head); i++)
		head[i] |= masks[NET_IPV6][i];
	state = ops->crc(ICRC_SEED, head, IP6_HLEN);
	state = ops->crc(state, ext, options); /* ICRC-10 */
	state = ops->crc(state, head + IP6_HLEN, UDP_HLEN + BTH_HLEN);
	return ops->crc(state, l3 + rest, len - rest);
}

/* ICRC-09, ICRC-14: from the L3 header to the last byte before the ICRC. */
bool icrc_check(const struct icrc_ops *ops, const struct pkt *p)
{
	uint32_t state = ops->crc_masked(ICRC_SEED, p->l3, p->icrc_off, masks[p->net]);
	uint32_t wire;

	memcpy(&wire, p->l3 + p->icrc_off, sizeof(wire)); /* ICRC-03: least significant first */
	return wire == ~state;
}
