/* SPDX-License-Identifier: BSD-3-Clause */
/* Each fault is made in a frame that fast_cnp_write() has written. */
#include "bits.h"
#include "fast.h"
#include "icrc.h"

#define UNIT	   8u
#define PADN	   1
#define OPTION_LEN (2u + FAST_CNP_DIP_LEN) /* of option 1 */
#define TYPE_OTHER 0x8Fu

/* A frame that is being changed. */
struct draft {
	uint8_t *b;
	size_t len;
	size_t l3;
	size_t opts;
};

static size_t opts_len(const struct draft *d)
{
	return ((size_t)d->b[d->opts + 1] + 1) * UNIT;
}

static uint8_t *udp_of(const struct draft *d)
{
	return d->b + d->opts + opts_len(d);
}

/* Makes room for @p n bytes of options, a multiple of 8, before the others.  @return the room */
static uint8_t *grow(struct draft *d, size_t n)
{
	uint8_t *at = d->b + d->opts + 2;

	memmove(at + n, at, d->len - d->opts - 2);
	memset(at, 0, n); /* Pad1 */
	d->len += n;
	d->b[d->opts + 1] = (uint8_t)(d->b[d->opts + 1] + n / UNIT);
	put_be16(d->b + d->l3 + IP6_PLEN, (uint16_t)(get_be16(d->b + d->l3 + IP6_PLEN) + n));
	return at;
}

/* The option, which ends the header. */
static uint8_t *option_of(const struct draft *d, const struct fast_cnp_spec *s)
{
	return udp_of(d) - FAST_CNP_DIP_LEN - 2 - (s->trace ? s->trace_len : 0);
}

static void pad_all(struct draft *d)
{
	while (d->b[d->opts + 1] < 127) { /* the frame fits into an MTU of 1500 */
		uint8_t *at = grow(d, UNIT);

		at[0] = PADN;
		at[1] = UNIT - 2;
	}
}

/* Option 1, @p len bytes long, between paddings. */
static void set_length(struct draft *d, const struct fast_cnp_spec *s, uint8_t len)
{
	uint8_t *at = grow(d, 3 * UNIT);
	uint8_t *end = udp_of(d);

	memset(at, 0, (size_t)(end - at));
	at[0] = s->type;
	at[1] = len;
	memcpy(at + 2, s->dip, FAST_CNP_DIP_LEN);
}

static void add_second(struct draft *d, const struct fast_cnp_spec *s)
{
	uint8_t *at = grow(d, 3 * UNIT);

	at[0] = PADN;
	at[1] = 3 * UNIT - OPTION_LEN - 2;
	at += 3 * UNIT - OPTION_LEN;
	at[0] = s->type;
	at[1] = FAST_CNP_DIP_LEN;
	memcpy(at + 2, s->dip, FAST_CNP_DIP_LEN);
}

static void seal(const struct draft *d)
{
	const struct icrc_ops *ops = icrc_by_name("table");
	const uint8_t *l3 = d->b + d->l3;

	icrc_store(d->b + d->len - ICRC_LEN,
		icrc_with_options(ops, l3, l3 + IP6_HLEN, opts_len(d), d->len - d->l3 - ICRC_LEN));
}

/* Swaps UDP and the header, which is what UDP carries then. */
static void put_after_udp(struct draft *d)
{
	uint8_t udp[UDP_HLEN], *at = d->b + d->opts;
	size_t n = opts_len(d);

	memcpy(udp, at + n, sizeof(udp));
	memmove(at + sizeof(udp), at, n);
	memcpy(at, udp, sizeof(udp));
	put_be16(at + UDP_LEN, (uint16_t)(d->len - d->opts));
	d->b[d->l3 + IP6_NXT] = IPPROTO_ROCEV2;
	icrc_store(d->b + d->len - ICRC_LEN, icrc_header(icrc_by_name("table"), d->b + d->l3,
						     NET_IPV6, d->len - d->l3 - ICRC_LEN));
}

/* The same after an IPv4 header: the low words of the addresses. */
static void put_over_ip4(struct draft *d)
{
	uint8_t *ip = d->b + d->l3, src[4], dst[4];
	uint32_t sum = 0;

	memcpy(src, ip + IP6_SRC + 12, 4);
	memcpy(dst, ip + IP6_DST + 12, 4);
	memmove(ip + IP4_HLEN, ip + IP6_HLEN, d->len - d->opts);
	d->len -= IP6_HLEN - IP4_HLEN;
	put_be16(ip - 2, ETHERTYPE_IPV4);
	memset(ip, 0, IP4_HLEN);
	ip[IP4_VIHL] = 0x45;
	put_be16(ip + IP4_TOTLEN, (uint16_t)(d->len - d->l3));
	put_be16(ip + IP4_FRAG, IP4_FLAG_DF);
	ip[IP4_TTL] = 64;
	ip[IP4_PROTO] = IP6_NXT_DSTOPTS;
	memcpy(ip + IP4_SRC, src, 4);
	memcpy(ip + IP4_DST, dst, 4);
	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(ip + i);
	sum = (sum & 0xFFFF) + (sum >> 16);
	put_be16(ip + IP4_CSUM, (uint16_t) ~((sum & 0xFFFF) + (sum >> 16)));
}

/* Faults that leave the header's stated length correct. */
static void spoil(struct draft *d, const struct fast_cnp_spec *s, enum fast_fault fault)
{
	switch (fault) {
	case FAST_PADDED:
		pad_all(d);
		break;
	case FAST_SHORT:
	case FAST_LONG:
		set_length(d, s, fault == FAST_SHORT ? FAST_CNP_DIP_LEN - 1 : FAST_CNP_DIP_LEN + 1);
		break;
	case FAST_TWICE:
		add_second(d, s);
		break;
	case FAST_UNKNOWN:
		*option_of(d, s) = s->type == TYPE_OTHER ? TYPE_OTHER - 1 : TYPE_OTHER;
		break;
	case FAST_NONE:
		memset(d->b + d->opts + 2, 0, opts_len(d) - 2);
		break;
	case FAST_OVERRUN:
		option_of(d, s)[1]++;
		break;
	case FAST_OPCODE:
		udp_of(d)[UDP_HLEN + BTH_OPCODE] = 0x04; /* RC SEND_ONLY */
		break;
	default:
		break;
	}
}

size_t fast_write(uint8_t *frame, const struct fast_cnp_spec *s, enum fast_fault fault)
{
	struct draft d = {.b = frame, .l3 = ETH_HLEN + (s->vid ? VLAN_HLEN : 0u)};

	d.opts = d.l3 + IP6_HLEN;
	d.len = fast_cnp_write(frame, s, icrc_by_name("table"));
	spoil(&d, s, fault);
	seal(&d);
	if (fault == FAST_ICRC)
		frame[d.len - 1] ^= 1;
	if (fault == FAST_BEYOND)
		frame[d.opts + 1] = 255;
	if (fault == FAST_IP4)
		put_over_ip4(&d);
	if (fault == FAST_AFTER_UDP)
		put_after_udp(&d);
	return d.len;
}

const char *fast_fault_name(unsigned fault)
{
	static const char *const name[FAST_FAULTS] = {[FAST_GOOD] = "good",
		[FAST_PADDED] = "padded",
		[FAST_SHORT] = "short",
		[FAST_LONG] = "long",
		[FAST_TWICE] = "twice",
		[FAST_UNKNOWN] = "unknown",
		[FAST_NONE] = "none",
		[FAST_OVERRUN] = "overrun",
		[FAST_BEYOND] = "beyond",
		[FAST_OPCODE] = "opcode",
		[FAST_ICRC] = "icrc",
		[FAST_IP4] = "ip4",
		[FAST_AFTER_UDP] = "after-udp"};

	return fault < FAST_FAULTS ? name[fault] : NULL;
}
