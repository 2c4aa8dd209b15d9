/* SPDX-License-Identifier: BSD-3-Clause */
/* The Destination Options header of a Fast CNP (RFC 8200 4.2, 4.6), and frames that contain one. */
#include "bits.h"
#include "fast_cnp.h"
#include "headers.h"
#include "icrc.h"
#include "opcode.h"
#include "pkt.h"

/* Offsets in the header and in an option. */
enum {
	OPTS_NXT = 0,
	OPTS_LEN = 1, /* in units of 8 bytes, without the first unit */
	OPTS_FIRST = 2,
	OPTION_TYPE = 0,
	OPTION_LEN = 1, /* of the data */
	OPTION_DATA = 2,
};
#define OPTS_UNIT 8u
#define TYPE_PAD1 0
#define TYPE_PADN 1

static size_t header_len(const uint8_t *header)
{
	return ((size_t)header[OPTS_LEN] + 1) * OPTS_UNIT;
}

/* --- reading ---------------------------------------------------------------------------- */

/* FCN-05, FCN-06: the address is at the end. */
static enum drop take_option(
	struct fast_cnp *f, const uint8_t *option, const uint8_t types[FAST_CNP_OPTIONS])
{
	const uint8_t *data = option + OPTION_DATA;
	uint8_t len = option[OPTION_LEN];

	if (option[OPTION_TYPE] != types[FAST_CNP_PLAIN] &&
		option[OPTION_TYPE] != types[FAST_CNP_TRACE])
		return DROP_FAST_CNP_UNKNOWN; /* FCN-14 */
	if (f->dip)
		return DROP_FAST_CNP_TWICE; /* FCN-03 */
	if (option[OPTION_TYPE] == types[FAST_CNP_PLAIN]) {
		if (len != FAST_CNP_DIP_LEN)
			return DROP_FAST_CNP_LENGTH;
	} else {
		if (len < FAST_CNP_DIP_LEN + FAST_CNP_TRACE_MIN)
			return DROP_FAST_CNP_LENGTH;
		f->trace = data;
		f->trace_len = (uint8_t)(len - FAST_CNP_DIP_LEN);
	}
	f->dip = data + len - FAST_CNP_DIP_LEN;
	return DROP_NONE;
}

enum drop fast_cnp_options(struct fast_cnp *f, const uint8_t *header, size_t len,
	const uint8_t types[FAST_CNP_OPTIONS], size_t *used)
{
	size_t at = OPTS_FIRST;

	*f = (struct fast_cnp){0};
	if (len < OPTS_UNIT || header_len(header) > len)
		return DROP_FAST_CNP_HEADER; /* FCN-07 */
	if (header[OPTS_NXT] != IPPROTO_ROCEV2)
		return DROP_IP_NEXT_HEADER; /* CA17-16 */
	len = *used = header_len(header);
	while (at < len) {
		const uint8_t *option = header + at;
		enum drop d;

		if (option[OPTION_TYPE] == TYPE_PAD1) {
			at++;
			continue;
		}
		if (len - at < OPTION_DATA || len - at - OPTION_DATA < option[OPTION_LEN])
			return DROP_FAST_CNP_HEADER; /* FCN-07: it overruns */
		d = option[OPTION_TYPE] == TYPE_PADN ? DROP_NONE : take_option(f, option, types);
		if (d)
			return d;
		at += OPTION_DATA + (size_t)option[OPTION_LEN];
	}
	return f->dip ? DROP_NONE : DROP_FAST_CNP_UNKNOWN; /* FCN-12 */
}

static size_t options_len(const struct pkt *p)
{
	return (size_t)(p->bth - p->l3) - IP6_HLEN - UDP_HLEN;
}

bool fast_cnp_icrc_check(const struct icrc_ops *ops, const struct pkt *p)
{
	uint8_t icrc[ICRC_LEN];

	icrc_store(
		icrc, icrc_with_options(ops, p->l3, p->l3 + IP6_HLEN, options_len(p), p->icrc_off));
	return !memcmp(p->l3 + p->icrc_off, icrc, sizeof(icrc));
}

/* --- writing ---------------------------------------------------------------------------- */

void fast_cnp_answer(
	struct fast_cnp_spec *s, const struct pkt *pkt, const uint8_t source[16], uint8_t type)
{
	*s = (struct fast_cnp_spec){
		.vid = pkt->vid,
		.pcp = 6,
		.dest_qpn = pkt->dest_qp,
		.pkey = pkt->pkey,
		.tclass = 48 << 2,
		.hop_limit = 64,
		.flow_label = get_be32(pkt->l3 + IP6_VTCFL) & FLOW_LABEL_MASK,
		.sport = get_be16(pkt->bth - UDP_HLEN + UDP_SPORT),
		.becn = true,
		.type = type,
	};
	memcpy(s->dmac, pkt->dmac + ETH_SRC, sizeof(s->dmac));
	memcpy(s->smac, pkt->dmac + ETH_DST, sizeof(s->smac));
	memcpy(s->source, source, sizeof(s->source));
	memcpy(s->dest, pkt->l3 + IP6_SRC, sizeof(s->dest));
	memcpy(s->dip, pkt->l3 + IP6_DST, sizeof(s->dip));
}

static uint8_t *write_ethernet(uint8_t *at, const struct fast_cnp_spec *s)
{
	memcpy(at + ETH_DST, s->dmac, sizeof(s->dmac));
	memcpy(at + ETH_SRC, s->smac, sizeof(s->smac));
	at += ETH_TYPE;
	if (s->vid) {
		put_be16(at, ETHERTYPE_VLAN);
		put_be16(at + 2, (uint16_t)(s->pcp << 13 | s->vid));
		at += VLAN_HLEN;
	}
	put_be16(at, ETHERTYPE_IPV6);
	return at + 2;
}

static uint8_t *write_ip6(uint8_t *ip, const struct fast_cnp_spec *s, size_t payload)
{
	put_be32(ip, 6u << 28 | (uint32_t)s->tclass << 20 | (s->flow_label & FLOW_LABEL_MASK));
	put_be16(ip + IP6_PLEN, (uint16_t)payload);
	ip[IP6_NXT] = IP6_NXT_DSTOPTS;
	ip[IP6_HLIM] = s->hop_limit;
	memcpy(ip + IP6_SRC, s->source, sizeof(s->source));
	memcpy(ip + IP6_DST, s->dest, sizeof(s->dest));
	return ip + IP6_HLEN;
}

static size_t data_len(const struct fast_cnp_spec *s)
{
	return FAST_CNP_DIP_LEN + (s->trace ? s->trace_len : 0u);
}

/* @return the length of the header with the option of @p s; padding precedes the option. */
static size_t options_room(const struct fast_cnp_spec *s)
{
	size_t need = OPTS_FIRST + OPTION_DATA + data_len(s);

	return (need + OPTS_UNIT - 1) & ~(size_t)(OPTS_UNIT - 1);
}

static uint8_t *write_options(uint8_t *at, const struct fast_cnp_spec *s)
{
	size_t room = options_room(s);
	size_t pad = room - OPTS_FIRST - OPTION_DATA - data_len(s);

	at[OPTS_NXT] = IPPROTO_ROCEV2;
	at[OPTS_LEN] = (uint8_t)(room / OPTS_UNIT - 1);
	at += OPTS_FIRST;
	memset(at, 0, pad); /* each zero byte is a Pad1 */
	if (pad > 1) {
		at[OPTION_TYPE] = TYPE_PADN;
		at[OPTION_LEN] = (uint8_t)(pad - OPTION_DATA);
	}
	at += pad;
	at[OPTION_TYPE] = s->type;
	at[OPTION_LEN] = (uint8_t)data_len(s);
	at += OPTION_DATA;
	if (s->trace)
		memcpy(at, s->trace, s->trace_len);
	at += data_len(s);
	memcpy(at - FAST_CNP_DIP_LEN, s->dip, sizeof(s->dip));
	return at;
}

static uint8_t *write_udp(uint8_t *at, const struct fast_cnp_spec *s, size_t len)
{
	put_be16(at + UDP_SPORT, s->sport);
	put_be16(at + UDP_DPORT, UDP_PORT_ROCEV2);
	put_be16(at + UDP_LEN, (uint16_t)len);
	put_be16(at + UDP_CSUM, 0);
	return at + UDP_HLEN;
}

/* Fields without a meaning for a CNP are 0 (CNP-02, CNP-03). */
static uint8_t *write_bth(uint8_t *bth, const struct fast_cnp_spec *s)
{
	memset(bth, 0, BTH_HLEN + CNP_RESERVED);
	bth[BTH_OPCODE] = OPCODE_CNP;
	put_be16(bth + BTH_PKEY, s->pkey);
	put_be32(bth + BTH_RESV8A, (s->becn ? (uint32_t)BTH_BECN << 24 : 0) | s->dest_qpn);
	return bth + BTH_HLEN + CNP_RESERVED;
}

size_t fast_cnp_write(uint8_t *frame, const struct fast_cnp_spec *s, const struct icrc_ops *ops)
{
	const size_t udp_len = UDP_HLEN + BTH_HLEN + CNP_RESERVED + ICRC_LEN;
	size_t options = options_room(s);
	uint8_t *ip = write_ethernet(frame, s);
	uint8_t *at = write_ip6(ip, s, options + udp_len);

	at = write_udp(write_options(at, s), s, udp_len);
	at = write_bth(at, s);
	icrc_store(at, icrc_with_options(ops, ip, ip + IP6_HLEN, options, (size_t)(at - ip)));
	return (size_t)(at + ICRC_LEN - frame);
}
