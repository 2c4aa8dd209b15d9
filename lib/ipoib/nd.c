/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>
#include "bits.h"
#include "nd.h"

#define ICMP6	   58u
#define HOPS	   255u
#define OPT_SOURCE 1u
#define OPT_TARGET 2u
#define ICMP_CSUM  2u
#define UNIT	   8u
#define NS_LEN	   24u
#define PAD_IPOIB  2u /* zero octets before the address in an option of IPoIB: IPB-05 */

enum {
	EXT_HOP_BY_HOP = 0,
	EXT_ROUTING = 43,
	EXT_FRAGMENT = 44,
	EXT_AUTHENTICATION = 51,
	EXT_DESTINATION = 60,
	FRAGMENT_OFFSET = 0xFFF8
};

enum {
	PLEN = 4,
	NXT = 6,
	HLIM = 7,
	SRC = 8,
	DST = 24,
	HLEN = 40
};

/* Octets before the options, by type. */
static uint32_t fixed_len(uint8_t type)
{
	static const uint8_t len[] = {8, 16, NS_LEN, NS_LEN, 40};

	return type >= ND_ROUTER_SOLICIT && type <= ND_REDIRECT ? len[type - ND_ROUTER_SOLICIT] : 0;
}

bool nd_is(const uint8_t *ip6, uint32_t len)
{
	return len > HLEN && ip6[NXT] == ICMP6 && fixed_len(ip6[HLEN]);
}

/* Length of an extension header in octets (RFC 8200 4, RFC 4302 2.2); 0: it is none, or the next
 * header is not in this fragment. */
static uint32_t extension_len(uint8_t type, const uint8_t *h)
{
	switch (type) {
	case EXT_HOP_BY_HOP:
	case EXT_ROUTING:
	case EXT_DESTINATION:
		return (h[1] + 1u) * UNIT;
	case EXT_AUTHENTICATION:
		return (h[1] + 2u) * 4;
	case EXT_FRAGMENT:
		return get_be16(h + 2) & FRAGMENT_OFFSET ? 0 : UNIT;
	default:
		return 0;
	}
}

bool nd_after_headers(const uint8_t *ip6, uint32_t len)
{
	uint8_t type = ip6[NXT];
	uint32_t at = HLEN, n;

	while (len - at >= UNIT && (n = extension_len(type, ip6 + at)) && n < len - at) {
		type = ip6[at];
		at += n;
	}
	return at > HLEN && type == ICMP6 && fixed_len(ip6[at]);
}

/* RFC 4443 2.3. The sum includes the checksum field: 0 if the checksum is correct. */
static uint16_t checksum(const uint8_t *ip6)
{
	uint32_t len = get_be16(ip6 + PLEN);
	uint64_t sum = (uint64_t)len + ICMP6;

	for (unsigned i = SRC; i < HLEN; i += 2)
		sum += get_be16(ip6 + i);
	for (uint32_t i = 0; i + 1 < len; i += 2)
		sum += get_be16(ip6 + HLEN + i);
	if (len & 1)
		sum += (uint32_t)ip6[HLEN + len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)~sum;
}

static bool is_lladdr(const uint8_t *opt)
{
	return opt[0] == OPT_SOURCE || opt[0] == OPT_TARGET;
}

static unsigned pad_of(unsigned units)
{
	return units == IPOIB_ND_UNITS ? PAD_IPOIB : 0;
}

/* Options: their lengths are not 0 and end with the packet. */
static bool read_options(struct nd *nd, const uint8_t *at, const uint8_t *end, unsigned units)
{
	while (at < end) {
		if (end - at < 2 || !at[1] || end - at < (ptrdiff_t)(at[1] * UNIT))
			return false;
		if (is_lladdr(at)) {
			const uint8_t **to = at[0] == OPT_SOURCE ? &nd->source : &nd->dest;

			if (at[1] != units || *to)
				return false;
			*to = at + 2 + pad_of(units);
		}
		at += at[1] * UNIT;
	}
	return true;
}

bool nd_read(struct nd *nd, const uint8_t *ip6, uint32_t len, unsigned units)
{
	uint32_t plen = get_be16(ip6 + PLEN), fixed = fixed_len(ip6[HLEN]);

	memset(nd, 0, sizeof(*nd));
	nd->type = (enum nd_type)ip6[HLEN];
	if (plen > len - HLEN || plen < fixed || ip6[HLIM] != HOPS || checksum(ip6))
		return false;
	if (nd->type == ND_NEIGHBOUR_SOLICIT || nd->type == ND_NEIGHBOUR_ADVERT)
		memcpy(nd->target, ip6 + HLEN + 8, 16);
	return read_options(nd, ip6 + HLEN + fixed, ip6 + HLEN + plen, units);
}

static void seal(uint8_t *ip6, uint32_t len)
{
	put_be16(ip6 + PLEN, (uint16_t)(len - HLEN));
	put_be16(ip6 + HLEN + ICMP_CSUM, 0);
	put_be16(ip6 + HLEN + ICMP_CSUM, checksum(ip6));
}

static void put_option(uint8_t *to, uint8_t type, unsigned units, const uint8_t *addr)
{
	unsigned pad = pad_of(units);

	to[0] = type;
	to[1] = (uint8_t)units;
	memset(to + 2, 0, pad);
	memcpy(to + 2 + pad, addr, units * UNIT - 2 - pad);
}

uint32_t nd_write(
	uint8_t *to, uint32_t room, const uint8_t *ip6, unsigned units, const uint8_t *addr)
{
	uint32_t at = HLEN + fixed_len(ip6[HLEN]), n = at;
	uint32_t end = HLEN + get_be16(ip6 + PLEN);

	if (end + ND_GROWTH > room)
		return 0;
	memcpy(to, ip6, n);
	while (at < end) {
		const uint8_t *opt = ip6 + at;
		uint32_t len = opt[1] * UNIT;

		if (!is_lladdr(opt)) {
			memcpy(to + n, opt, len);
			n += len;
		} else if (ip6[HLEN] != ND_REDIRECT || opt[0] != OPT_TARGET) {
			put_option(to + n, opt[0], units, addr);
			n += units * UNIT;
		}
		at += len;
	}
	seal(to, n);
	return n;
}

void nd_group_of(uint8_t group[16], const uint8_t ip[16])
{
	static const uint8_t prefix[13] = {0xFF, 2, [11] = 1, [12] = 0xFF};

	memcpy(group, prefix, sizeof(prefix));
	memcpy(group + 13, ip + 13, 3);
}

uint32_t nd_solicit(uint8_t *to, const uint8_t source[16], const uint8_t target[16],
	const struct ipoib_addr *own)
{
	const uint32_t len = HLEN + NS_LEN + IPOIB_ND_UNITS * UNIT;
	uint8_t addr[IPOIB_LLADDR_LEN];

	memset(to, 0, len);
	to[0] = 0x60;
	to[NXT] = ICMP6;
	to[HLIM] = HOPS;
	memcpy(to + SRC, source, 16);
	nd_group_of(to + DST, target);
	to[HLEN] = ND_NEIGHBOUR_SOLICIT;
	memcpy(to + HLEN + 8, target, 16);
	ipoib_addr_put(addr, own);
	put_option(to + HLEN + NS_LEN, OPT_SOURCE, IPOIB_ND_UNITS, addr);
	seal(to, len);
	return len;
}
