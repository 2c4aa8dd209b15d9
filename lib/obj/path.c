/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "path.h"

#define FLOW_LABEL_MASK 0xFFFFFu
#define VLAN_PCP_SHIFT	13

uint32_t flow_label_of_qpns(uint32_t src_qpn, uint32_t dst_qpn)
{
	uint64_t v = (uint64_t)src_qpn * dst_qpn; /* ENT-04: 48 bits */

	v ^= v >> 20;
	v ^= v >> 40;
	return (uint32_t)v & FLOW_LABEL_MASK;
}

uint16_t flow_label_to_sport(uint32_t flow_label)
{
	uint32_t fl = flow_label & FLOW_LABEL_MASK;

	return (uint16_t)(((fl & 0x3FFF) ^ (fl >> 14)) | 0xC000);
}

uint32_t mtu_of_ethernet(uint32_t eth_mtu)
{
	const uint32_t allowance = 96; /* as Linux: GRH, BTH and the longest extended header */

	for (uint32_t mtu = PATH_MTU_MAX; mtu >= PATH_MTU_MIN; mtu /= 2)
		if (eth_mtu >= mtu + allowance)
			return mtu;
	return 0;
}

bool gid_is_local_only(const uint8_t gid[16])
{
	static const uint8_t v4_mapped[12] = {[10] = 0xFF, [11] = 0xFF};
	static const uint8_t zero[15];

	if (!memcmp(gid, v4_mapped, sizeof(v4_mapped)))
		return gid[12] == 127 || !get_be32(gid + 12);	 /* RFC 1122 3.2.1.3 */
	return !memcmp(gid, zero, sizeof(zero)) && gid[15] <= 1; /* VAL-15: :: and ::1 */
}

/* VAL-08 */
bool pkey_match(uint16_t a, uint16_t b)
{
	return (a & 0x7FFF) && ((a ^ b) & 0x7FFF) == 0 && ((a | b) & 0x8000);
}

int gid_find(const struct gid_table *t, const uint8_t gid[16], unsigned net, uint16_t vid)
{
	for (uint32_t i = 0; i < t->count; i++) {
		const struct gid_entry *e = &t->entry[i];

		if (e->valid && e->net == net && e->vid == vid && !memcmp(e->gid, gid, 16))
			return (int)i;
	}
	return -1;
}

bool gid_has_mac(const struct gid_table *t, uint16_t vid, const uint8_t mac[6])
{
	for (uint32_t i = 0; i < t->count; i++) {
		const struct gid_entry *e = &t->entry[i];

		if (e->valid && e->vid == vid && !memcmp(e->mac, mac, 6))
			return true;
	}
	return false;
}

static uint8_t *write_ethernet(struct path *p, const struct path_spec *s)
{
	static const uint16_t ethertype[] = {
		[NET_IPV4] = ETHERTYPE_IPV4,
		[NET_IPV6] = ETHERTYPE_IPV6,
		[NET_ROCEV1] = ETHERTYPE_ROCEV1,
	};
	uint8_t *h = p->hdr;

	memcpy(h + ETH_DST, s->dmac, 6);
	memcpy(h + ETH_SRC, s->sgid->mac, 6); /* ETH-11 */
	h += ETH_TYPE;
	if (s->sgid->vid) {
		put_be16(h, ETHERTYPE_VLAN);
		put_be16(h + 2, (uint16_t)(s->sl << VLAN_PCP_SHIFT | s->sgid->vid)); /* ETH-05 */
		h += VLAN_HLEN;
	}
	put_be16(h, ethertype[p->net]);
	return h + 2;
}

/* Sum of the 16-bit words of an IPv4 header, in memory order, not complemented. */
static uint32_t ip4_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(ip + i);
	return sum;
}

static uint16_t csum_fold(uint32_t sum)
{
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

static uint8_t *write_ip4(struct path *p, const struct path_spec *s, uint8_t *ip)
{
	ip[IP4_VIHL] = 0x45;			    /* CA17-3 */
	ip[IP4_TOS] = s->traffic_class & 0xFC;	    /* CA17-4, CA17-5 */
	put_be16(ip + IP4_FRAG, IP4_FLAG_DF);	    /* CA17-7, CA17-8 */
	ip[IP4_TTL] = s->hop_limit;		    /* CA17-9 */
	ip[IP4_PROTO] = IPPROTO_ROCEV2;		    /* CA17-10 */
	memcpy(ip + IP4_SRC, s->sgid->gid + 12, 4); /* CA17-11 */
	memcpy(ip + IP4_DST, s->dgid + 12, 4);	    /* CA17-12 */
	p->csum_base = csum_fold(ip4_sum(ip));
	return ip + IP4_HLEN;
}

/* IPv6 header, or the GRH, which has the same layout. */
static uint8_t *write_ip6(const struct path_spec *s, uint8_t *ip, uint8_t traffic_class,
	uint32_t flow_label, uint8_t next)
{
	put_be32(ip, 6u << 28 | (uint32_t)traffic_class << 20 | flow_label);
	ip[IP6_NXT] = next;
	ip[IP6_HLIM] = s->hop_limit;		/* CA17-17 */
	memcpy(ip + IP6_SRC, s->sgid->gid, 16); /* CA17-18 */
	memcpy(ip + IP6_DST, s->dgid, 16);	/* CA17-19 */
	return ip + IP6_HLEN;
}

void path_init(struct path *p, const struct path_spec *s)
{
	uint32_t label = s->flow_label & FLOW_LABEL_MASK;
	uint8_t *h;

	memset(p, 0, sizeof(*p));
	p->net = s->sgid->net; /* CA17-40, CA17-42: the SGID entry selects the protocol */
	p->port = s->port;
	p->local = s->local;
	p->vid = s->sgid->vid;
	h = write_ethernet(p, s);
	p->l3_off = (uint8_t)(h - p->hdr);
	if (p->net == NET_ROCEV1) {
		h = write_ip6(s, h, s->traffic_class, label, GRH_NXT_IBA); /* V1-01 */
	} else {
		if (!label)
			label = flow_label_of_qpns(s->src_qpn, s->dst_qpn);
		if (p->net == NET_IPV4)
			h = write_ip4(p, s, h);
		else
			h = write_ip6(s, h, s->traffic_class & 0xFC, label, IPPROTO_ROCEV2);
		put_be16(h + UDP_SPORT, flow_label_to_sport(label)); /* UDP-08, UDP-10 */
		put_be16(h + UDP_DPORT, UDP_PORT_ROCEV2);	     /* CA17-20 */
		h += UDP_HLEN;					     /* checksum 0: A17.3.2.4 */
	}
	p->hdr_len = (uint8_t)(h - p->hdr);
}

void path_readdress(struct path *p, const uint8_t dmac[6], const uint8_t smac[6], bool local)
{
	memcpy(p->hdr + ETH_DST, dmac, 6);
	memcpy(p->hdr + ETH_SRC, smac, 6);
	p->local = local;
}

uint8_t *path_write(const struct path *p, uint8_t *frame, uint16_t rest, uint16_t id)
{
	uint8_t *ip = frame + p->l3_off;
	uint8_t *bth = frame + p->hdr_len;
	uint16_t len;

	memcpy(frame, p->hdr, sizeof(p->hdr)); /* whole template: a fixed number of moves */
	switch (p->net) {
	case NET_IPV4:
		len = (uint16_t)(IP4_HLEN + UDP_HLEN + rest);
		put_be16(ip + IP4_TOTLEN, len); /* CA17-6 */
		put_be16(ip + IP4_ID, id);
		put_be16(ip + IP4_CSUM, (uint16_t)~csum_fold(p->csum_base + (uint32_t)len + id));
		put_be16(bth - UDP_HLEN + UDP_LEN, (uint16_t)(UDP_HLEN + rest)); /* CA17-21 */
		break;
	case NET_IPV6:
		len = (uint16_t)(UDP_HLEN + rest);
		put_be16(ip + IP6_PLEN, len); /* CA17-15 */
		put_be16(bth - UDP_HLEN + UDP_LEN, len);
		break;
	default:
		put_be16(ip + IP6_PLEN, rest); /* V1-01 */
		break;
	}
	return bth;
}

/* VAL-12, and VAL-13 by the protocol, which is the GID's type. */
bool path_matches(const struct path *p, const struct pkt *pkt)
{
	const uint8_t *ours = p->hdr + p->l3_off;

	if (pkt->net != p->net || pkt->vid != p->vid || pkt->port != p->port)
		return false;
	if (p->net == NET_IPV4)
		return !memcmp(pkt->l3 + IP4_SRC, ours + IP4_DST, 4) &&
		       !memcmp(pkt->l3 + IP4_DST, ours + IP4_SRC, 4);
	return !memcmp(pkt->l3 + IP6_SRC, ours + IP6_DST, 16) &&
	       !memcmp(pkt->l3 + IP6_DST, ours + IP6_SRC, 16);
}
