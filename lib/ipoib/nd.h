/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file nd.h
 * IPv6 neighbour discovery (RFC 4861) between Ethernet and RFC 4391 9.3: the link-layer address
 * options differ, and with them the lengths and the checksum. All other options are kept.
 */
#ifndef IPOIB_ND_H
#define IPOIB_ND_H

#include "encap.h"

#define ND_ETH_UNITS 1u
/** A message may grow by this much: two options, 16 octets each. */
#define ND_GROWTH 32u

enum nd_type {
	ND_ROUTER_SOLICIT = 133,
	ND_ROUTER_ADVERT = 134,
	ND_NEIGHBOUR_SOLICIT = 135,
	ND_NEIGHBOUR_ADVERT = 136,
	ND_REDIRECT = 137,
};

/** The contents of a message. */
struct nd {
	enum nd_type type;
	uint8_t target[16];    /* of NS and NA */
	const uint8_t *source; /* address of the source link-layer address option; NULL: none */
	const uint8_t *dest;   /* of the target link-layer address option; NULL: none */
};

/** @return whether the IPv6 packet is neighbour discovery, which nd_read() must accept then. */
bool nd_is(const uint8_t *ip6, uint32_t len);

/** @return whether extension headers of the IPv6 packet precede neighbour discovery. No host sends
 * such a packet, but a kernel would accept the link-layer addresses in it. */
bool nd_after_headers(const uint8_t *ip6, uint32_t len);

/**
 * Checks a message: lengths, the hop limit of 255, the checksum, and that link-layer address
 * options have @p units of 8 octets.
 * @param ip6  an IPv6 packet of which nd_is() is true
 */
bool nd_read(struct nd *nd, const uint8_t *ip6, uint32_t len, unsigned units);

/**
 * Writes the message with link-layer address options of @p units, each with the address @p addr: 6
 * octets for Ethernet, IPOIB_LLADDR_LEN for IPoIB. The target link-layer address of a redirect
 * belongs to another node and is omitted: the kernel resolves it.
 * @param ip6   a message that nd_read() accepted; not @p to
 * @param room  at @p to
 * @return the length written; 0: no room.
 */
uint32_t nd_write(
	uint8_t *to, uint32_t room, const uint8_t *ip6, unsigned units, const uint8_t *addr);

/** Writes a neighbour solicitation for @p target to its solicited-node group. @return its length.
 */
uint32_t nd_solicit(uint8_t *to, const uint8_t source[16], const uint8_t target[16],
	const struct ipoib_addr *own);

/** The solicited-node group of @p ip (RFC 4291 2.7.1). */
void nd_group_of(uint8_t group[16], const uint8_t ip[16]);

#endif
