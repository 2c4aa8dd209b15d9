/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "frame_impair.h"
#include "number.h"

#define ETH_ADDRS	12
#define ETYPE_IP4	0x0800
#define ETYPE_VLAN	0x8100
#define ETYPE_ROCEV1	0x8915
#define ETYPE_IP6	0x86DD
#define ETYPE_QINQ	0x88A8
#define PROTO_UDP	17
#define IP4_MIN		20
#define IP6_LEN		40
#define UDP_LEN		8
#define ECN_CE		3
#define UDP_PORT_ROCEV2 4791
#define BTH_LEN		12
#define BTH_RESV8A	4 /* FECN, BECN and six more bits that routers may change */

#define MILLION 1000000u

static const char *const names[IMPAIR_KINDS] = {
	[IMPAIR_LOSE] = "drop",
	[IMPAIR_CORRUPT] = "corrupt",
	[IMPAIR_DUPLICATE] = "duplicate",
	[IMPAIR_REORDER] = "reorder",
	[IMPAIR_DELAY] = "delay",
	[IMPAIR_MARK] = "mark",
};

const char *impair_word(enum impair_kind kind)
{
	return names[kind];
}

static enum impair_kind find(const char *name, size_t len)
{
	unsigned k = 0;

	while (k < IMPAIR_KINDS &&
		(!names[k] || strlen(names[k]) != len || strncmp(name, names[k], len) != 0))
		k++;
	return k;
}

bool impair_list(const char *list, struct impair *plan)
{
	double sum = 0;

	while (*list) {
		size_t len = strcspn(list, "=");
		enum impair_kind k = find(list, len);
		uint64_t rate;

		list += len + (list[len] == '=');
		if (k == IMPAIR_KINDS || !take_number(&list, 10, MILLION, &rate) ||
			(*list && *list != ','))
			return false;
		plan->rate[k] = (double)rate / MILLION;
		list += *list == ',';
	}
	for (unsigned k = 0; k < IMPAIR_KINDS; k++)
		sum += plan->rate[k];
	return sum <= 1;
}

static unsigned be16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Where the UDP header after an IP header is; 0 when there is none, as in later fragments. */
static size_t udp_offset(const uint8_t *f, size_t ip, unsigned etype)
{
	if (etype == ETYPE_IP6)
		return f[ip + 6] == PROTO_UDP ? ip + IP6_LEN : 0;
	if (f[ip + 9] != PROTO_UDP || be16(f + ip + 6) & 0x1FFF)
		return 0;
	return ip + (f[ip] & 15) * 4u;
}

/* Where the header after Ethernet's and at most two tags is, 0 when there is none. */
static size_t l3_offset(const uint8_t *f, size_t len, unsigned *etype)
{
	size_t o = ETH_ADDRS;
	unsigned tags = 0;

	if (len < o + 2)
		return 0;
	while ((*etype = be16(f + o)) == ETYPE_VLAN || *etype == ETYPE_QINQ) {
		o += 4;
		if (++tags > 2 || len < o + 2)
			return 0;
	}
	return o + 2;
}

size_t roce_bth_offset(const uint8_t *f, size_t len)
{
	unsigned etype = 0;
	size_t o = l3_offset(f, len, &etype), udp;

	if (!o)
		return 0;
	if (etype == ETYPE_ROCEV1)
		return len >= o + IP6_LEN + BTH_LEN ? o + IP6_LEN : 0;
	if ((etype != ETYPE_IP4 || len < o + IP4_MIN) && (etype != ETYPE_IP6 || len < o + IP6_LEN))
		return 0;
	udp = udp_offset(f, o, etype);
	if (!udp || len < udp + UDP_LEN + BTH_LEN || be16(f + udp + 2) != UDP_PORT_ROCEV2)
		return 0;
	return udp + UDP_LEN;
}

static void put_ip4_checksum(uint8_t *ip)
{
	size_t len = (ip[0] & 15) * 4u;
	uint32_t sum = 0;

	ip[10] = ip[11] = 0;
	for (size_t i = 0; i < len; i += 2)
		sum += be16(ip + i);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = ~(sum + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

void frame_mark(uint8_t *f, size_t len)
{
	unsigned etype = 0;
	size_t o = l3_offset(f, len, &etype);

	if (etype == ETYPE_IP6) {
		f[o + 1] |= ECN_CE << 4; /* the traffic class begins in the first byte */
	} else if (etype == ETYPE_IP4) {
		f[o + 1] |= ECN_CE;
		put_ip4_checksum(f + o);
	}
}

/* Bytes after the ICRC pad a short frame: a wrong bit there has no effect. */
void frame_corrupt(uint8_t *frame, size_t len, size_t bth, uint64_t random)
{
	size_t at = bth + random % (len - bth);

	if (at == bth + BTH_RESV8A)
		at++;
	frame[at] ^= (uint8_t)(1u << (random >> 32) % 8);
}
