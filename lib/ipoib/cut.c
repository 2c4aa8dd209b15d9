/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/virtio_net.h>
#include "bits.h"
#include "cut.h"
#include "encap.h"
#include "inet.h"

/* The partial sum from the kernel covers the pseudo-header; in UDP 0 means no checksum. */
static bool complete_sum(const struct virtio_net_hdr *h, uint8_t *frame, uint32_t len)
{
	uint32_t start = h->csum_start, at = start + h->csum_offset;
	uint16_t sum;

	if (start < ETHER_HLEN || at + sizeof(sum) > len)
		return false;
	sum = (uint16_t)~inet_fold(inet_add(0, frame + start, len - start));
	inet_put(frame + at, sum ? sum : UINT16_MAX);
	return true;
}

static bool is_ip4(const uint8_t *ip)
{
	return ip[0] >> 4 == 4;
}

/* Whether there is TCP at @p l4 of an IP packet whose version matches the header. */
static bool is_tcp(const uint8_t *frame, uint32_t len, uint32_t l4, bool v6)
{
	const uint8_t *ip = frame + ETHER_HLEN;

	if (l4 < ETHER_HLEN + (v6 ? IP6_HLEN : IP4_HLEN) || l4 + TCP_HLEN > len ||
		get_be16(frame + ETHER_TYPE) != (v6 ? IPOIB_IP6 : IPOIB_IP4) || is_ip4(ip) == v6)
		return false;
	return v6 || (l4 == ETHER_HLEN + (ip[0] & 0xFu) * 4 && ip[IP4_PROTOCOL] == PROTOCOL_TCP &&
			     !(get_be16(ip + IP4_FRAGMENT) & (IP4_MF | IP4_OFFSET)));
}

/* The sum of a length, as the pseudo-header has it. */
static uint64_t sum_of_len(uint32_t len)
{
	uint8_t octets[4];

	put_be32(octets, len);
	return inet_add(0, octets, sizeof(octets));
}

/* The kernel has put the sum of the pseudo-header into the checksum, for the final destination,
 * which the IP header does not name if there is a source route (RFC 8200 8.1). Adding the
 * complement of the length removes the length from that sum. */
static uint32_t pseudo_of_frame(const struct cut *c)
{
	uint16_t sum;

	memcpy(&sum, c->frame + c->l4 + TCP_SUM, sizeof(sum));
	return (uint32_t)sum + (uint16_t)~inet_fold(sum_of_len(c->len - c->l4));
}

static bool begin_segments(struct cut *c, const struct virtio_net_hdr *h, uint32_t mtu)
{
	uint8_t type = h->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	uint32_t hlen, l4 = h->csum_start;

	if ((type != VIRTIO_NET_HDR_GSO_TCPV4 && type != VIRTIO_NET_HDR_GSO_TCPV6) ||
		!is_tcp(c->frame, c->len, l4, type == VIRTIO_NET_HDR_GSO_TCPV6))
		return false;
	hlen = (c->frame[l4 + TCP_OFFSET] >> 4) * 4u;
	c->l4 = l4;
	c->head = l4 + hlen;
	c->pseudo = pseudo_of_frame(c);
	if (hlen < TCP_HLEN || c->head >= c->len || !h->gso_size || c->head >= ETHER_HLEN + mtu)
		return false;
	c->each = ETHER_HLEN + mtu - c->head;
	if (h->gso_size < c->each)
		c->each = h->gso_size;
	return true;
}

bool cut_begin(
	struct cut *c, const struct virtio_net_hdr *h, uint8_t *frame, uint32_t len, uint32_t mtu)
{
	*c = (struct cut){.frame = frame, .len = len, .head = len};
	if (len < ETHER_HLEN)
		return false;
	if (h->gso_type != VIRTIO_NET_HDR_GSO_NONE)
		return begin_segments(c, h, mtu);
	return !(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || complete_sum(h, frame, len);
}

/* RFC 6864: IDs of one flow differ. */
static void put_ip(uint8_t *ip, uint32_t len, uint32_t hlen, uint32_t index)
{
	if (!is_ip4(ip)) {
		put_be16(ip + IP6_PLEN, (uint16_t)(len - IP6_HLEN));
		return;
	}
	put_be16(ip + IP4_LEN, (uint16_t)len);
	put_be16(ip + IP4_ID, (uint16_t)(get_be16(ip + IP4_ID) + index));
	inet_seal_ip4(ip, hlen);
}

/* Only the first segment has CWR (RFC 3168 6.1.2), only the last FIN and PSH.
 * @param payload  the original, not the copy: loads from the copy would wait for recent stores */
static void put_tcp(const struct cut *c, uint8_t *tcp, const uint8_t *payload, uint32_t n)
{
	uint32_t hlen = c->head - c->l4;
	uint64_t sum;

	put_be32(tcp + TCP_SEQ, get_be32(tcp + TCP_SEQ) + c->at);
	if (c->at)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
	if (!c->done)
		tcp[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	inet_put(tcp + TCP_SUM, 0);
	sum = inet_add(c->pseudo + sum_of_len(hlen + n), tcp, hlen);
	sum = inet_add(sum, payload, n);
	inet_put(tcp + TCP_SUM, (uint16_t)~inet_fold(sum));
}

uint32_t cut_next(struct cut *c, uint8_t *to, uint32_t room)
{
	uint32_t left = c->len - c->head - c->at, n = left < c->each ? left : c->each;
	uint32_t len = c->head + n;
	const uint8_t *payload = c->frame + c->head + c->at;

	if (c->done || len > room)
		return 0;
	memcpy(to, c->frame, c->head);
	c->done = n == left;
	if (!c->each)
		return len;
	memcpy(to + c->head, payload, n);
	put_ip(to + ETHER_HLEN, len - ETHER_HLEN, c->l4 - ETHER_HLEN, c->sent++);
	put_tcp(c, to + c->l4, payload, n);
	c->at += n;
	return len;
}
