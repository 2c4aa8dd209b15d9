/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "arp.h"
#include "bits.h"

#define ARPHRD_ETH 1u

/* RFC 826: hardware and protocol type, their lengths, operation; then hardware and protocol address
 * of the sender, and of the target. */
enum {
	HRD = 0,
	PRO = 2,
	HLN = 4,
	PLN = 5,
	OP = 6,
	SHA = 8
};

static bool is_of(const uint8_t *p, uint32_t len, uint16_t hrd, uint8_t hln)
{
	return len >= SHA + 2u * (hln + 4u) && get_be16(p + HRD) == hrd &&
	       get_be16(p + PRO) == IPOIB_IP4 && p[HLN] == hln && p[PLN] == 4;
}

static void read_common(struct arp *a, const uint8_t *p)
{
	uint8_t hln = p[HLN];

	a->op = get_be16(p + OP);
	memcpy(a->sender_ip, p + SHA + hln, 4);
	memcpy(a->target_ip, p + SHA + 2 * hln + 4, 4);
}

static void write_common(uint8_t *to, const struct arp *a, uint16_t hrd, uint8_t hln)
{
	put_be16(to + HRD, hrd);
	put_be16(to + PRO, IPOIB_IP4);
	to[HLN] = hln;
	to[PLN] = 4;
	put_be16(to + OP, a->op);
	memcpy(to + SHA + hln, a->sender_ip, 4);
	memcpy(to + SHA + 2 * hln + 4, a->target_ip, 4);
}

bool arp_read_eth(
	struct arp *a, const uint8_t *p, uint32_t len, uint8_t sender[6], uint8_t target[6])
{
	if (!is_of(p, len, ARPHRD_ETH, 6))
		return false;
	read_common(a, p);
	memcpy(sender, p + SHA, 6);
	memcpy(target, p + SHA + 6 + 4, 6);
	return true;
}

bool arp_read_ipoib(struct arp *a, const uint8_t *p, uint32_t len, struct ipoib_addr *sender,
	struct ipoib_addr *target)
{
	if (!is_of(p, len, IPOIB_ARPHRD, IPOIB_LLADDR_LEN))
		return false;
	read_common(a, p);
	ipoib_addr_get(sender, p + SHA);
	ipoib_addr_get(target, p + SHA + IPOIB_LLADDR_LEN + 4);
	return true;
}

void arp_write_eth(uint8_t to[ARP_ETH_LEN], const struct arp *a, const uint8_t sender[6],
	const uint8_t target[6])
{
	write_common(to, a, ARPHRD_ETH, 6);
	memcpy(to + SHA, sender, 6);
	memcpy(to + SHA + 6 + 4, target, 6);
}

void arp_write_ipoib(uint8_t to[ARP_IPOIB_LEN], const struct arp *a,
	const struct ipoib_addr *sender, const struct ipoib_addr *target)
{
	write_common(to, a, IPOIB_ARPHRD, IPOIB_LLADDR_LEN);
	ipoib_addr_put(to + SHA, sender);
	ipoib_addr_put(to + SHA + IPOIB_LLADDR_LEN + 4, target);
}
