/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/virtio_net.h>
#include "bits.h"
#include "encap.h"
#include "inet.h"
#include "merge.h"

/* A frame that could be merged. */
struct segment {
	const uint8_t *frame;
	uint32_t l4, head, len;
};

static bool read_ip4(struct segment *s, const uint8_t *ip)
{
	s->l4 = ETHER_HLEN + IP4_HLEN;
	return ip[0] == 0x45 && ip[IP4_PROTOCOL] == PROTOCOL_TCP &&
	       get_be16(ip + IP4_FRAGMENT) == IP4_DF &&
	       get_be16(ip + IP4_LEN) == s->len - ETHER_HLEN &&
	       inet_fold(inet_add(0, ip, IP4_HLEN)) == UINT16_MAX;
}

static bool read_ip6(struct segment *s, const uint8_t *ip)
{
	s->l4 = ETHER_HLEN + IP6_HLEN;
	return ip[0] >> 4 == 6 && ip[IP6_NEXT] == PROTOCOL_TCP &&
	       get_be16(ip + IP6_PLEN) == s->len - s->l4;
}

/* TCP with payload, an ACK and perhaps PSH. */
static bool read_segment(struct segment *s, const uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + ETHER_HLEN, *tcp;
	uint32_t hlen;
	bool v6;

	*s = (struct segment){.frame = frame, .len = len};
	if (len < ETHER_HLEN + IP6_HLEN + TCP_HLEN) /* shorter IPv4 packets carry almost nothing */
		return false;
	v6 = get_be16(frame + ETHER_TYPE) == IPOIB_IP6;
	if (v6 ? !read_ip6(s, ip) : get_be16(frame + ETHER_TYPE) != IPOIB_IP4 || !read_ip4(s, ip))
		return false;
	tcp = frame + s->l4;
	hlen = (tcp[TCP_OFFSET] >> 4) * 4u;
	s->head = s->l4 + hlen;
	return hlen >= TCP_HLEN && s->head < len && !(tcp[TCP_OFFSET] & 0xF) &&
	       (tcp[TCP_FLAGS] & ~TCP_PSH) == TCP_ACK &&
	       inet_fold(inet_add(inet_pseudo(ip, len - s->l4, PROTOCOL_TCP), tcp, len - s->l4)) ==
		       UINT16_MAX;
}

/* Compares the headers except lengths, IDs, checksums, sequence numbers and PSH. */
static bool same_flow(const uint8_t *a, const uint8_t *b, uint32_t l4, uint32_t head)
{
	const uint32_t ip = ETHER_HLEN;

	if (l4 == ETHER_HLEN + IP6_HLEN
			? memcmp(a, b, ip + IP6_PLEN) ||
				  memcmp(a + ip + IP6_NEXT, b + ip + IP6_NEXT, IP6_HLEN - IP6_NEXT)
			: memcmp(a, b, ip + IP4_LEN) ||
				  memcmp(a + ip + IP4_FRAGMENT, b + ip + IP4_FRAGMENT,
					  IP4_SUM - IP4_FRAGMENT) ||
				  memcmp(a + ip + IP4_SRC, b + ip + IP4_SRC, 8))
		return false;
	a += l4;
	b += l4;
	return !memcmp(a, b, TCP_SEQ) &&
	       !memcmp(a + TCP_SEQ + 4, b + TCP_SEQ + 4, TCP_FLAGS - TCP_SEQ - 4) &&
	       !memcmp(a + TCP_FLAGS + 1, b + TCP_FLAGS + 1, TCP_SUM - TCP_FLAGS - 1) &&
	       !memcmp(a + TCP_SUM + 2, b + TCP_SUM + 2, head - l4 - TCP_SUM - 2);
}

static bool follows(const struct merge *m, const struct segment *s)
{
	return !m->closed && m->n < MERGE_MAX && s->l4 == m->l4 && s->head == m->head &&
	       s->len - s->head <= m->each &&
	       m->len + (s->len - s->head) - ETHER_HLEN <= IP_PACKET_MAX &&
	       get_be32(s->frame + s->l4 + TCP_SEQ) == m->next &&
	       same_flow(m->piece[0].at, s->frame, m->l4, m->head);
}

bool merge_take(struct merge *m, uint8_t *frame, uint32_t len)
{
	struct segment s;
	uint32_t payload;

	if (!read_segment(&s, frame, len) || (m->n && !follows(m, &s)))
		return false;
	payload = len - s.head;
	if (!m->n) {
		m->head = s.head;
		m->l4 = s.l4;
		m->each = payload;
		m->len = s.head;
		m->next = get_be32(frame + s.l4 + TCP_SEQ);
		m->piece[m->n++] = (struct merge_piece){frame, len};
	} else {
		m->piece[0].at[m->l4 + TCP_FLAGS] |= frame[m->l4 + TCP_FLAGS];
		m->piece[m->n++] = (struct merge_piece){frame + s.head, payload};
	}
	m->len += payload;
	m->next += payload;
	m->closed = payload < m->each || frame[m->l4 + TCP_FLAGS] & TCP_PSH;
	return true;
}

void merge_finish(struct merge *m, struct virtio_net_hdr *h)
{
	uint8_t *ip = m->piece[0].at + ETHER_HLEN;
	uint32_t l4_len = m->len - m->l4;
	bool v6 = m->l4 == ETHER_HLEN + IP6_HLEN;

	*h = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_DATA_VALID};
	if (m->n == 1)
		return;
	h->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM; /* to the kernel: the checksum is right */
	h->gso_type = v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
	h->hdr_len = (uint16_t)m->head;
	h->gso_size = (uint16_t)m->each;
	h->csum_start = (uint16_t)m->l4;
	h->csum_offset = TCP_SUM;
	if (v6) {
		put_be16(ip + IP6_PLEN, (uint16_t)l4_len);
	} else {
		put_be16(ip + IP4_LEN, (uint16_t)(m->len - ETHER_HLEN));
		inet_seal_ip4(ip, IP4_HLEN);
	}
	inet_put(
		m->piece[0].at + m->l4 + TCP_SUM, inet_fold(inet_pseudo(ip, l4_len, PROTOCOL_TCP)));
}
