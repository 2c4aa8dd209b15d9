/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>
#include "bits.h"
#include "inet.h"
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

/* Octets before the options, by type. */
static uint32_t fixed_len(uint8_t type)
{
	static const uint8_t len[] = {8, 16, NS_LEN, NS_LEN, 40};

	return type >= ND_ROUTER_SOLICIT && type <= ND_REDIRECT ? len[type - ND_ROUTER_SOLICIT] : 0;
}

bool nd_is(const uint8_t *ip6, uint32_t len)
{
	return len > IP6_HLEN && ip6[IP6_NEXT] == ICMP6 && fixed_len(ip6[IP6_HLEN]);
}

/* Length of an extension header in octets (RFC 8200 4, RFC 4302 2.2); 0: it is not an extension
 * header, or the next header is not in this fragment. */
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
	uint8_t type = ip6[IP6_NEXT];
	uint32_t at = IP6_HLEN, n;

	while (len - at >= UNIT && (n = extension_len(type, ip6 + at)) && n < len - at) {
		type = ip6[at];
		at += n;
	}
	return at > IP6_HLEN && type == ICMP6 && fixed_len(ip6[at]);
}

/* RFC 4443 2.3. The sum includes the checksum field: 0 if the checksum is correct. */
static uint16_t checksum(const uint8_t *ip6)
{
	uint32_t len = get_be16(ip6 + IP6_PLEN);

	return (uint16_t)~inet_fold(inet_add(inet_pseudo(ip6, len, ICMP6), ip6 + IP6_HLEN, len));
}

static bool is_lladdr(const uint8_t *opt)
{
	return opt[0] == OPT_SOURCE || opt[0] == OPT_TARGET;
}

static unsigned pad_of(unsigned units)
{
	return units == IPOIB_ND_UNITS ? PAD_IPOIB : 0;
}

/* Reads the options, whose lengths must not be 0 and must end with the packet. */
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
	uint32_t plen = get_be16(ip6 + IP6_PLEN), fixed = fixed_len(ip6[IP6_HLEN]);

	memset(nd, 0, sizeof(*nd));
	nd->type = (enum nd_type)ip6[IP6_HLEN];
	if (plen > len - IP6_HLEN || plen < fixed || ip6[IP6_HOPS] != HOPS || checksum(ip6))
		return false;
	if (nd->type == ND_NEIGHBOUR_SOLICIT || nd->type == ND_NEIGHBOUR_ADVERT)
		memcpy(nd->target, ip6 + IP6_HLEN + 8, 16);
	return read_options(nd, ip6 + IP6_HLEN + fixed, ip6 + IP6_HLEN + plen, units);
}

static void seal(uint8_t *ip6, uint32_t len)
{
	put_be16(ip6 + IP6_PLEN, (uint16_t)(len - IP6_HLEN));
	inet_put(ip6 + IP6_HLEN + ICMP_CSUM, 0);
	inet_put(ip6 + IP6_HLEN + ICMP_CSUM, checksum(ip6));
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
	uint32_t at = IP6_HLEN + fixed_len(ip6[IP6_HLEN]), n = at;
	uint32_t end = IP6_HLEN + get_be16(ip6 + IP6_PLEN);

	if (end + ND_GROWTH > room)
		return 0;
	memcpy(to, ip6, n);
	while (at < end) {
		const uint8_t *opt = ip6 + at;
		uint32_t len = opt[1] * UNIT;

		if (!is_lladdr(opt)) {
			memcpy(to + n, opt, len);
			n += len;
		} else if (ip6[IP6_HLEN] != ND_REDIRECT || opt[0] != OPT_TARGET) {
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
	const uint32_t len = IP6_HLEN + NS_LEN + IPOIB_ND_UNITS * UNIT;
	uint8_t addr[IPOIB_LLADDR_LEN];

	memset(to, 0, len);
	to[0] = 0x60;
	to[IP6_NEXT] = ICMP6;
	to[IP6_HOPS] = HOPS;
	memcpy(to + IP6_SRC, source, 16);
	nd_group_of(to + IP6_DST, target);
	to[IP6_HLEN] = ND_NEIGHBOUR_SOLICIT;
	memcpy(to + IP6_HLEN + 8, target, 16);
	ipoib_addr_put(addr, own);
	put_option(to + IP6_HLEN + NS_LEN, OPT_SOURCE, IPOIB_ND_UNITS, addr);
	seal(to, len);
	return len;
}
