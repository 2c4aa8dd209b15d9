/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file inet.h
 * The parts of Ethernet, IP and TCP that netdevs need: offsets of fields, and the Internet checksum
 * (RFC 1071), which is computed in the machine's own byte order.
 */
#ifndef IPOIB_INET_H
#define IPOIB_INET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	ETHER_SRC = 6,
	ETHER_TYPE = 12,
	ETHER_HLEN = 14,
};

enum {
	IP4_LEN = 2,
	IP4_ID = 4,
	IP4_FRAGMENT = 6,
	IP4_TTL = 8,
	IP4_PROTOCOL = 9,
	IP4_SUM = 10,
	IP4_SRC = 12,
	IP4_DST = 16,
	IP4_HLEN = 20,
};

enum {
	IP6_PLEN = 4,
	IP6_NEXT = 6,
	IP6_HOPS = 7,
	IP6_SRC = 8,
	IP6_DST = 24,
	IP6_HLEN = 40,
};

enum {
	TCP_SEQ = 4,
	TCP_OFFSET = 12,
	TCP_FLAGS = 13,
	TCP_SUM = 16,
	TCP_HLEN = 20,
};

enum {
	TCP_FIN = 1,
	TCP_PSH = 8,
	TCP_ACK = 16,
	TCP_CWR = 128,
};

#define PROTOCOL_TCP  6u
#define IP4_DF	      0x4000u /* of the word at IP4_FRAGMENT */
#define IP4_OFFSET    0x1FFFu
#define IP4_MF	      0x2000u
#define IP_PACKET_MAX 65535u

/** @return whether the octets are all zero: no address. */
static inline bool inet_is_zero(const uint8_t *p, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/** @return whether @p ip, of 4 or 16 octets, is the address of one host. */
static inline bool inet_is_unicast(const uint8_t *ip, unsigned ip_len)
{
	return !inet_is_zero(ip, ip_len) && (ip_len == 4 ? ip[0] < 0xE0 : ip[0] != 0xFF);
}

/** @return whether the @p len octets at @p ip begin with a whole IP header of the version that is
 *  asked for. */
static inline bool inet_is_ip(const uint8_t *ip, uint32_t len, bool v4)
{
	return len >= (v4 ? IP4_HLEN : IP6_HLEN) && ip[0] >> 4 == (v4 ? 4 : 6);
}

#define INET_MANY 128u

/** inet_add() of many octets. */
uint64_t inet_add_many(uint64_t sum, const uint8_t *p, uint32_t len);

/** inet_add() of few. */
static inline uint64_t inet_add_words(uint64_t sum, const uint8_t *p, uint32_t len)
{
	uint64_t word;

	for (; len >= sizeof(word); p += sizeof(word), len -= (uint32_t)sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		sum += (word & UINT32_MAX) + (word >> 32);
	}
	word = 0;
	memcpy(&word, p, len);
	return sum + (word & UINT32_MAX) + (word >> 32);
}

/** Adds @p len octets to a sum of an even number of octets. */
static inline uint64_t inet_add(uint64_t sum, const void *data, uint32_t len)
{
	return len < INET_MANY ? inet_add_words(sum, data, len) : inet_add_many(sum, data, len);
}

/** @return the 16 bits of a sum in memory order. */
static inline uint16_t inet_fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)sum;
}

static inline void inet_put(uint8_t *to, uint16_t sum)
{
	memcpy(to, &sum, sizeof(sum));
}

/** The pseudo-header of @p l4_len octets of @p protocol (RFC 9293 3.1, RFC 8200 8.1). @param ip
 * with its IP version */
static inline uint64_t inet_pseudo(const uint8_t *ip, uint32_t l4_len, uint8_t protocol)
{
	const uint8_t tail[8] = {(uint8_t)(l4_len >> 24), (uint8_t)(l4_len >> 16),
		(uint8_t)(l4_len >> 8), (uint8_t)l4_len, 0, 0, 0, protocol};
	uint64_t sum = inet_add(0, tail, sizeof(tail));

	return ip[0] >> 4 == 4 ? inet_add(sum, ip + IP4_SRC, 8) : inet_add(sum, ip + IP6_SRC, 32);
}

/** Corrects the checksum of an IPv4 header. */
static inline void inet_seal_ip4(uint8_t *ip, uint32_t hlen)
{
	inet_put(ip + IP4_SUM, 0);
	inet_put(ip + IP4_SUM, (uint16_t)~inet_fold(inet_add(0, ip, hlen)));
}

#endif
