/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arp.h
 * ARP and RARP between Ethernet, as the kernel speaks it on the netdev, and RFC 4391 9.2. Bytes
 * after the packet in a frame are padding.
 */
#ifndef IPOIB_ARP_H
#define IPOIB_ARP_H

#include "encap.h"

#define ARP_ETH_LEN	  28u
#define ARP_ETH_SENDER_IP 14u /* their places */
#define ARP_ETH_TARGET_IP 24u
#define ARP_IPOIB_LEN	  56u
#define ARP_REQUEST	  1u
#define ARP_RARP_REQUEST  3u /* its IP addresses mean nothing: RFC 903 */

/** The fields that both forms have. */
struct arp {
	uint16_t op;
	uint8_t sender_ip[4];
	uint8_t target_ip[4];
};

/** @return whether the @p len bytes at @p p are ARP of Ethernet; @p sender and @p target are its
 * MACs. */
bool arp_read_eth(
	struct arp *a, const uint8_t *p, uint32_t len, uint8_t sender[6], uint8_t target[6]);

/** @return whether they are ARP of RFC 4391 (IPB-04). @p target is all zero when unknown. */
bool arp_read_ipoib(struct arp *a, const uint8_t *p, uint32_t len, struct ipoib_addr *sender,
	struct ipoib_addr *target);

void arp_write_eth(uint8_t to[ARP_ETH_LEN], const struct arp *a, const uint8_t sender[6],
	const uint8_t target[6]);

void arp_write_ipoib(uint8_t to[ARP_IPOIB_LEN], const struct arp *a,
	const struct ipoib_addr *sender, const struct ipoib_addr *target);

#endif
