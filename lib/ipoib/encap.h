/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file encap.h
 * The wire format of RFC 4391: the encapsulation header (6), link-layer addresses (9.1.1) and
 * the GIDs of multicast groups (4). Fields are big-endian on the wire.
 */
#ifndef IPOIB_ENCAP_H
#define IPOIB_ENCAP_H

#include <stdbool.h>
#include <stdint.h>

#define IPOIB_HLEN	 4u	     /* encapsulation header: type, reserved */
#define IPOIB_LLADDR_LEN 20u	     /* reserved, QPN, GID */
#define IPOIB_ARPHRD	 32u	     /* hardware type of ARP (9.2) */
#define IPOIB_ND_UNITS	 3u	     /* of 8 octets: length of a link-layer address option (9.3) */
#define IPOIB_GRH_AREA	 40u	     /* before the header of a received datagram */
#define IPOIB_QKEY	 0x80000B1Bu /* Q_Key of all groups and QPs, bit 31 set (4.1, IPB-12) */
#define IPOIB_SCOPE	 2u	     /* link-local (4) */
#define IPOIB_PKEY_FULL	 0x8000u     /* full member (4.1) */

/** EtherTypes of the payload (6, table 1). */
enum ipoib_type {
	IPOIB_IP4 = 0x0800,
	IPOIB_ARP = 0x0806,
	IPOIB_RARP = 0x8035,
	IPOIB_IP6 = 0x86DD,
};

/** A link-layer address, decoded. */
struct ipoib_addr {
	uint8_t gid[16];
	uint32_t qpn; /* 24 bits */
};

/** @return whether RFC 4391 carries @p type (IPB-02). */
bool ipoib_type_known(uint16_t type);

/** Writes the encapsulation header, reserved bits 0 (IPB-01). */
void ipoib_header_put(uint8_t to[IPOIB_HLEN], uint16_t type);

/** Writes an address, reserved octet 0 (IPB-03). */
void ipoib_addr_put(uint8_t to[IPOIB_LLADDR_LEN], const struct ipoib_addr *a);

/** Reads an address; the reserved octet is ignored (IPB-03). */
void ipoib_addr_get(struct ipoib_addr *a, const uint8_t from[IPOIB_LLADDR_LEN]);

/** @return whether both are the same QP of the same port. */
bool ipoib_addr_same(const struct ipoib_addr *a, const struct ipoib_addr *b);

/**
 * The MGID of an IPv4 group, or the broadcast GID of 255.255.255.255 (IPB-07, IPB-09).
 * @param pkey   of the link; the bit of full members is set in any case (IPB-10)
 * @param scope  of the broadcast GID (IPB-08)
 */
void ipoib_mgid_of_ip4(uint8_t mgid[16], uint16_t pkey, uint8_t scope, const uint8_t ip[4]);

/** The MGID of an IPv6 group (IPB-07). */
void ipoib_mgid_of_ip6(uint8_t mgid[16], uint16_t pkey, uint8_t scope, const uint8_t ip[16]);

#endif
