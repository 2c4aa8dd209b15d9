/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "headers.h"
#include "icrc.h"
#include "ioam.h"

#define OPTION_TRACE   0x31	 /* RFC 9486: may be skipped if unknown, changes en route */
#define OPTION_ECHO    0x1E	 /* RFC 4727: experimental, does not change */
#define NAMESPACE      0x8000	 /* RFC 9197: from here on, operator-assigned */
#define TRACE_TYPE     0x002000u /* bit 10 alone */
#define NODE_WORDS     (IOAM_NODE / 4)
#define FLAG_OVERFLOW  0x0400u
#define NODE_LEN_SHIFT 11
#define REMAINING_MASK 0x7Fu
#define TIME_MASK      0xFFFFFFu
#define SENT_MASK      0xFFFFFu

/* The extension header: its length is a multiple of 8, the option is at a multiple of 4. */
enum {
	EXT_NXT = 0,
	EXT_LEN = 1, /* 8-octet units after the first */
	EXT_PADN = 2,
	EXT_OPTION = 4,
	EXT_OPTION_LEN = 5,
	EXT_DATA = 6, /* a reserved byte; the IOAM option type, 0 */
	EXT_NAMESPACE = 8,
	EXT_NODE_LEN = 10, /* 5 bits; 4 flags, Overflow first; 7 bits of remaining words */
	EXT_TYPE = 12,	   /* 24 bits; a reserved byte */
	EXT_NODES = 16,
};

#define DATA_LEN (IOAM_LEN - EXT_DATA)

/* bit/s by the 4 bits of a record. */
static const uint64_t rates[16] = {
	0,
	1000000000,
	2500000000,
	5000000000,
	10000000000,
	25000000000,
	40000000000,
	50000000000,
	56000000000,
	80000000000,
	100000000000,
	160000000000,
	200000000000,
	400000000000,
	800000000000,
	1600000000000,
};

/* --- finding the header ------------------------------------------------------------------- */

/* @return the IPv6 header of an IPv6 frame, with @p left bytes from there, or NULL. */
static uint8_t *ip6_of(const uint8_t *frame, size_t len, size_t *left)
{
	size_t l3 = ETH_HLEN;

	if (len < ETH_HLEN + VLAN_HLEN)
		return NULL;
	if (get_be16(frame + ETH_TYPE) == ETHERTYPE_VLAN)
		l3 += VLAN_HLEN;
	if (get_be16(frame + l3 - 2) != ETHERTYPE_IPV6 ||
		len < l3 + IP6_HLEN + UDP_HLEN + BTH_HLEN + ICRC_LEN)
		return NULL;
	*left = len - l3;
	return (uint8_t *)frame + l3;
}

static bool is_ours(const uint8_t *ext, uint8_t option)
{
	return ext[EXT_NXT] == IPPROTO_ROCEV2 && ext[EXT_LEN] == IOAM_LEN / 8 - 1 &&
	       ext[EXT_OPTION] == option && ext[EXT_OPTION_LEN] == DATA_LEN &&
	       get_be16(ext + EXT_DATA) == 0 && get_be16(ext + EXT_NAMESPACE) == NAMESPACE &&
	       get_be16(ext + EXT_NODE_LEN) >> NODE_LEN_SHIFT == NODE_WORDS &&
	       get_be32(ext + EXT_TYPE) >> 8 == TRACE_TYPE;
}

/* @return the kind of the extension header that follows the IPv6 header @p ip. */
static enum ioam_kind kind_of(const uint8_t *ip, size_t len)
{
	const uint8_t *ext = ip + IP6_HLEN;

	if (len < IP6_HLEN + IOAM_LEN + UDP_HLEN + BTH_HLEN + ICRC_LEN)
		return IOAM_NONE;
	if (get_be16(ext + IOAM_LEN + UDP_DPORT) != UDP_PORT_ROCEV2)
		return IOAM_NONE; /* the kernel's */
	if (ip[IP6_NXT] == IP6_NXT_HOPOPTS && is_ours(ext, OPTION_TRACE))
		return IOAM_TRACE;
	if (ip[IP6_NXT] == IP6_NXT_DSTOPTS && is_ours(ext, OPTION_ECHO))
		return IOAM_ECHO;
	return IOAM_NONE;
}

const uint8_t *ioam_bth(const uint8_t *frame, size_t len)
{
	size_t left;
	const uint8_t *ip = ip6_of(frame, len, &left);

	return ip && kind_of(ip, left) ? ip + IP6_HLEN + IOAM_LEN + UDP_HLEN : NULL;
}

uint32_t ioam_dest_qp(const uint8_t *frame, size_t len)
{
	const uint8_t *bth = ioam_bth(frame, len);

	return bth ? get_be32(bth + BTH_RESV8A) & 0xFFFFFF : 0;
}

/* --- the ICRC ----------------------------------------------------------------------------- */

/* @return the CRC of the packet at @p ip, of @p len bytes without the ICRC. */
static uint32_t crc_of(const struct icrc_ops *ops, const uint8_t *ip, size_t len, bool trace)
{
	uint8_t ext[IOAM_LEN];

	memcpy(ext, ip + IP6_HLEN, IOAM_LEN);
	if (trace)
		memset(ext + EXT_DATA, 0xFF, DATA_LEN);
	return icrc_with_options(ops, ip, ext, IOAM_LEN, len);
}

/* --- end stations ------------------------------------------------------------------------- */

static unsigned remaining(const uint8_t *ext)
{
	return get_be16(ext + EXT_NODE_LEN) & REMAINING_MASK;
}

static void write_header(uint8_t *ext, const struct ioam *echo)
{
	unsigned nodes = echo ? echo->nodes : 0;
	unsigned words = (IOAM_NODES - nodes) * NODE_WORDS;

	memset(ext, 0, IOAM_LEN);
	ext[EXT_NXT] = IPPROTO_ROCEV2;
	ext[EXT_LEN] = IOAM_LEN / 8 - 1;
	ext[EXT_PADN] = 1;
	ext[EXT_OPTION] = echo ? OPTION_ECHO : OPTION_TRACE;
	ext[EXT_OPTION_LEN] = DATA_LEN;
	put_be16(ext + EXT_NAMESPACE, NAMESPACE);
	put_be16(ext + EXT_NODE_LEN, (uint16_t)(NODE_WORDS << NODE_LEN_SHIFT | words));
	put_be32(ext + EXT_TYPE, TRACE_TYPE << 8);
	for (unsigned i = 0; i < nodes; i++) /* the first record is the last in the frame */
		memcpy(ext + IOAM_LEN - (i + 1) * IOAM_NODE, echo->node + i * IOAM_NODE, IOAM_NODE);
}

uint8_t *ioam_push(const struct icrc_ops *ops, uint8_t *frame, size_t len, const struct ioam *echo)
{
	size_t left;
	uint8_t *ip = ip6_of(frame, len, &left), *at = frame - IOAM_LEN;

	if (!ip || ip[IP6_NXT] != IPPROTO_ROCEV2)
		return NULL;
	memmove(at, frame, (size_t)(ip - frame) + IP6_HLEN);
	ip -= IOAM_LEN;
	left += IOAM_LEN;
	ip[IP6_NXT] = echo ? IP6_NXT_DSTOPTS : IP6_NXT_HOPOPTS;
	put_be16(ip + IP6_PLEN, (uint16_t)(get_be16(ip + IP6_PLEN) + IOAM_LEN));
	write_header(ip + IP6_HLEN, echo);
	icrc_store(ip + left - ICRC_LEN, crc_of(ops, ip, left - ICRC_LEN, !echo));
	return at;
}

static void read_nodes(struct ioam *out, const uint8_t *ext)
{
	unsigned left = remaining(ext);

	out->nodes = 0;
	if ((get_be16(ext + EXT_NODE_LEN) & FLAG_OVERFLOW) || left % NODE_WORDS ||
		left > IOAM_NODES * NODE_WORDS)
		return;
	out->nodes = (uint8_t)(IOAM_NODES - left / NODE_WORDS);
	for (unsigned i = 0; i < out->nodes; i++)
		memcpy(out->node + i * IOAM_NODE, ext + IOAM_LEN - (i + 1) * IOAM_NODE, IOAM_NODE);
}

/* @return the IPv6 header of a frame that passes ioam_check(), with @p left bytes from there
 * without Ethernet padding, or NULL. */
static uint8_t *checked(const struct icrc_ops *ops, const uint8_t *frame, size_t len, size_t *left)
{
	uint8_t *ip = ip6_of(frame, len, left);
	enum ioam_kind kind = ip ? kind_of(ip, *left) : IOAM_NONE;
	uint8_t wire[ICRC_LEN];
	size_t payload;

	if (!kind)
		return NULL;
	payload = get_be16(ip + IP6_PLEN);
	if (payload + IP6_HLEN > *left || payload < IOAM_LEN + UDP_HLEN + BTH_HLEN + ICRC_LEN)
		return NULL;
	*left = payload + IP6_HLEN;
	icrc_store(wire, crc_of(ops, ip, *left - ICRC_LEN, kind == IOAM_TRACE));
	return memcmp(wire, ip + *left - ICRC_LEN, ICRC_LEN) ? NULL : ip;
}

bool ioam_check(const struct icrc_ops *ops, const uint8_t *frame, size_t len)
{
	size_t left;

	return checked(ops, frame, len, &left);
}

uint8_t *ioam_pop(const struct icrc_ops *ops, uint8_t *frame, size_t len, struct ioam *out)
{
	size_t left;
	uint8_t *ip = checked(ops, frame, len, &left), *at = frame + IOAM_LEN;

	if (!ip)
		return NULL;
	out->kind = kind_of(ip, left);
	read_nodes(out, ip + IP6_HLEN);
	memmove(at, frame, (size_t)(ip - frame) + IP6_HLEN);
	ip += IOAM_LEN;
	left -= IOAM_LEN;
	ip[IP6_NXT] = IPPROTO_ROCEV2;
	put_be16(ip + IP6_PLEN, (uint16_t)(get_be16(ip + IP6_PLEN) - IOAM_LEN));
	icrc_store(ip + left - ICRC_LEN, icrc_header(ops, ip, NET_IPV6, left - ICRC_LEN));
	return at;
}

/* --- switches ----------------------------------------------------------------------------- */

static unsigned code_of(uint64_t rate)
{
	for (unsigned i = 1; i < ARRAY_SIZE(rates); i++)
		if (rates[i] == rate)
			return i;
	return 0;
}

void ioam_add(uint8_t *frame, size_t len, const struct ioam_node *node)
{
	size_t left;
	uint8_t *ip = ip6_of(frame, len, &left), *ext;
	uint32_t queue = node->queue < IOAM_QUEUE_MAX ? node->queue : IOAM_QUEUE_MAX;
	unsigned words;

	if (!ip || kind_of(ip, left) != IOAM_TRACE)
		return;
	ext = ip + IP6_HLEN;
	words = remaining(ext);
	if (words < NODE_WORDS || words > IOAM_NODES * NODE_WORDS) {
		ext[EXT_NODE_LEN] |= FLAG_OVERFLOW >> 8;
		return;
	}
	put_be64(ext + EXT_NODES + (words - NODE_WORDS) * 4,
		(uint64_t)code_of(node->rate) << 60 | (uint64_t)(node->time & TIME_MASK) << 36 |
			(uint64_t)(node->sent & SENT_MASK) << 16 | queue / IOAM_QUEUE_UNIT);
	put_be16(ext + EXT_NODE_LEN,
		(uint16_t)(NODE_WORDS << NODE_LEN_SHIFT | (words - NODE_WORDS)));
}

struct ioam_node ioam_node(const struct ioam *t, unsigned i)
{
	uint64_t word = get_be64(t->node + i * IOAM_NODE);

	return (struct ioam_node){
		.rate = rates[word >> 60],
		.time = word >> 36 & TIME_MASK,
		.sent = word >> 16 & SENT_MASK,
		.queue = (uint32_t)(word & 0xFFFF) * IOAM_QUEUE_UNIT,
	};
}
