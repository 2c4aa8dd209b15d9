/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "gso/run.h"
#include "path.h"
#include "path_write.h"

static bool is_ip4(const uint8_t *frame)
{
	return get_be16(frame + ETH_TYPE) == ETHERTYPE_IPV4;
}

/* Sum of @p n bytes as 16-bit words, an even number, not folded. */
static uint32_t sum(const uint8_t *from, unsigned n)
{
	uint32_t s = 0;

	for (unsigned i = 0; i < n; i += 2)
		s += get_be16(from + i);
	return s;
}

uint16_t gso_head(const uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + ETH_HLEN;
	const uint8_t *udp;

	if (len < ETH_HLEN + IP4_HLEN + UDP_HLEN || len > GSO_FRAME_MAX)
		return 0;
	if (is_ip4(frame)) {
		udp = ip + IP4_HLEN;
		if (ip[IP4_VIHL] != 0x45 || ip[IP4_PROTO] != IPPROTO_ROCEV2 ||
			get_be16(ip + IP4_FRAG) != IP4_FLAG_DF ||
			get_be16(ip + IP4_TOTLEN) != len - ETH_HLEN ||
			path_csum_fold(sum(ip, IP4_HLEN)) != 0xFFFF)
			return 0;
	} else {
		udp = ip + IP6_HLEN;
		if (get_be16(frame + ETH_TYPE) != ETHERTYPE_IPV6 ||
			len < ETH_HLEN + IP6_HLEN + UDP_HLEN || ip[IP6_VTCFL] >> 4 != 6 ||
			ip[IP6_NXT] != IPPROTO_ROCEV2 ||
			get_be16(ip + IP6_PLEN) != len - ETH_HLEN - IP6_HLEN)
			return 0;
	}
	if (get_be16(udp + UDP_DPORT) != UDP_PORT_ROCEV2 ||
		get_be16(udp + UDP_LEN) != len - (uint32_t)(udp - frame))
		return 0;
	return (uint16_t)(udp + UDP_HLEN - frame);
}

/* --- runs ------------------------------------------------------------------------------- */

/* Bytes of headers of a frame that can be part of a run, or 0. */
static uint16_t head_of_part(const uint8_t *frame, uint32_t len)
{
	uint16_t head = gso_head(frame, len);

	if (!head || len < head + (uint32_t)(BTH_HLEN + ICRC_LEN) ||
		get_be16(frame + head - UDP_HLEN + UDP_CSUM))
		return 0;
	return head;
}

bool gso_begin(struct gso_run *r, const uint8_t *frame, uint32_t len)
{
	uint16_t head = head_of_part(frame, len);

	if (!head)
		return false;
	*r = (struct gso_run){
		.first = frame, .bytes = len, .first_len = len, .head = head, .count = 1};
	return true;
}

static bool same(const uint8_t *a, const uint8_t *b, unsigned from, unsigned to)
{
	return !memcmp(a + from, b + from, to - from);
}

/* Whether everything but lengths, identification and checksums is the same. */
static bool same_flow(const struct gso_run *r, const uint8_t *frame)
{
	const unsigned ip = ETH_HLEN;
	const unsigned ports = r->head - UDP_HLEN;
	const uint8_t *first = r->first;

	if (is_ip4(first))
		return same(first, frame, 0, ip + IP4_TOTLEN) &&
		       same(first, frame, ip + IP4_FRAG, ip + IP4_CSUM) &&
		       same(first, frame, ip + IP4_SRC, ports + UDP_LEN) &&
		       get_be16(frame + ip + IP4_ID) ==
			       (uint16_t)(get_be16(first + ip + IP4_ID) + r->count);
	return same(first, frame, 0, ip + IP6_PLEN) &&
	       same(first, frame, ip + IP6_NXT, ports + UDP_LEN);
}

bool gso_add(struct gso_run *r, const uint8_t *frame, uint32_t len)
{
	if (r->closed || r->count == GSO_RUN_MAX || len > r->first_len ||
		r->bytes + len - r->head > GSO_RUN_BYTES || head_of_part(frame, len) != r->head ||
		!same_flow(r, frame))
		return false;
	r->bytes += len - r->head;
	r->count++;
	r->closed = len < r->first_len;
	return true;
}

uint16_t gso_size(const struct gso_run *r)
{
	return (uint16_t)(r->first_len - r->head);
}

void gso_write_head(const struct gso_run *r, uint8_t head[GSO_HEAD_MAX])
{
	uint8_t *ip = head + ETH_HLEN;
	uint8_t *udp = head + r->head - UDP_HLEN;
	uint16_t udp_len = (uint16_t)(r->bytes - (uint32_t)(udp - head));
	uint32_t pseudo = IPPROTO_ROCEV2 + (uint32_t)udp_len;

	memcpy(head, r->first, r->head);
	put_be16(udp + UDP_LEN, udp_len);
	if (is_ip4(head)) {
		put_be16(ip + IP4_TOTLEN, (uint16_t)(r->bytes - ETH_HLEN));
		put_be16(ip + IP4_CSUM, 0);
		put_be16(ip + IP4_CSUM, (uint16_t)~path_csum_fold(sum(ip, IP4_HLEN)));
		pseudo += sum(ip + IP4_SRC, IP4_HLEN - IP4_SRC);
	} else {
		put_be16(ip + IP6_PLEN, udp_len);
		pseudo += sum(ip + IP6_SRC, IP6_HLEN - IP6_SRC);
	}
	put_be16(udp + UDP_CSUM, path_csum_fold(pseudo));
}

/* --- cutting ---------------------------------------------------------------------------- */

bool gso_split_begin(
	struct gso_split *s, const uint8_t *frame, uint32_t len, uint16_t size, uint32_t room)
{
	uint16_t head = gso_head(frame, len);
	const uint8_t *ip = frame + ETH_HLEN;

	/* No valid frame is shorter. */
	if (!head || size < BTH_HLEN + ICRC_LEN || len == head || (uint32_t)head + size > room)
		return false;
	*s = (struct gso_split){
		.frame = frame, .at = head, .left = len - head, .head = head, .size = size};
	if (is_ip4(frame)) {
		s->id = get_be16(ip + IP4_ID);
		s->csum_base = path_csum_fold(sum(ip, IP4_TOTLEN) + sum(ip + IP4_FRAG, 4) +
					      sum(ip + IP4_SRC, IP4_HLEN - IP4_SRC));
	}
	return gso_split_count(s) <= GSO_SEGMENTS_MAX;
}

uint32_t gso_split_head(struct gso_split *s, uint8_t *out)
{
	uint32_t payload = gso_split_payload(s);
	uint8_t *ip = out + ETH_HLEN;
	uint8_t *udp = out + s->head - UDP_HLEN;
	uint16_t ip_len = (uint16_t)(s->head - ETH_HLEN + payload);

	memcpy(out, s->frame, s->head);
	s->at += payload;
	s->left -= payload;
	if (is_ip4(out)) {
		put_be16(ip + IP4_TOTLEN, ip_len);
		put_be16(ip + IP4_ID, s->id);
		put_be16(ip + IP4_CSUM,
			(uint16_t)~path_csum_fold(s->csum_base + (uint32_t)ip_len + s->id));
		s->id++;
	} else {
		put_be16(ip + IP6_PLEN, (uint16_t)(ip_len - IP6_HLEN));
	}
	put_be16(udp + UDP_LEN, (uint16_t)(UDP_HLEN + payload));
	put_be16(udp + UDP_CSUM, 0); /* never computed on this path (decisions/0070) */
	return s->head + payload;
}

uint32_t gso_split_next(struct gso_split *s, uint8_t *out)
{
	memcpy(out + s->head, s->frame + s->at, gso_split_payload(s));
	return gso_split_head(s, out);
}
