/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "headers.h"
#include "path.h"

#define VLAN_PCP_SHIFT 13

/* ENT-02; the product is the same from both ends (ENT-03). */
uint32_t flow_label_of_qpns(uint32_t src_qpn, uint32_t dst_qpn)
{
	uint64_t v = (uint64_t)src_qpn * dst_qpn; /* ENT-04: 48 bits */

	v ^= v >> 20;
	v ^= v >> 40;
	return (uint32_t)v & FLOW_LABEL_MASK;
}

/* ENT-01, UDP-10 */
uint16_t flow_label_to_sport(uint32_t flow_label)
{
	uint32_t fl = flow_label & FLOW_LABEL_MASK;

	return (uint16_t)(((fl & 0x3FFF) ^ (fl >> 14)) | SPORT_MIN);
}

uint32_t mtu_of_ethernet(uint32_t eth_mtu)
{
	const uint32_t allowance = 96; /* as Linux: GRH, BTH and the longest extended header */

	for (uint32_t mtu = PATH_MTU_MAX; mtu >= PATH_MTU_MIN; mtu /= 2)
		if (eth_mtu >= mtu + allowance)
			return mtu;
	return 0;
}

bool gid_is_ip4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	return !memcmp(gid, mapped, sizeof(mapped));
}

bool gid_is_local_only(const uint8_t gid[16])
{
	static const uint8_t zero[15];

	if (gid_is_ip4(gid))
		return gid[12] == 127 || !get_be32(gid + 12);	 /* RFC 1122 3.2.1.3 */
	return !memcmp(gid, zero, sizeof(zero)) && gid[15] <= 1; /* VAL-15: :: and ::1 */
}

/* VAL-08 */
bool pkey_match(uint16_t a, uint16_t b)
{
	return pkey_valid(a) && ((a ^ b) & 0x7FFF) == 0 && ((a | b) & 0x8000);
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

bool gid_is_own(const struct gid_table *t, const uint8_t gid[16], uint16_t vid)
{
	for (uint32_t i = 0; i < t->count; i++) {
		const struct gid_entry *e = &t->entry[i];

		if (e->valid && e->vid == vid && !memcmp(e->gid, gid, 16))
			return true;
	}
	return false;
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

bool gid_has_vlan(const struct gid_table *t, uint16_t vid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->entry[i].valid && t->entry[i].vid == vid)
			return true;
	return false;
}

void priority_init(struct priority_map *m)
{
	for (unsigned sl = 0; sl < SL_COUNT; sl++)
		m->of_sl[sl] = (uint8_t)sl; /* ETH-05 */
	memset(m->of_dscp, PCP_OF_SL, sizeof(m->of_dscp));
	m->tag = false;
}

uint8_t priority_of(const struct priority_map *m, uint8_t sl, uint8_t tclass)
{
	uint8_t pcp = m->of_dscp[tclass >> 2];

	return pcp == PCP_OF_SL ? m->of_sl[sl % SL_COUNT] : pcp;
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
	if (s->sgid->vid || s->priority_tag) {
		put_be16(h, ETHERTYPE_VLAN);
		put_be16(h + 2, (uint16_t)(s->pcp << VLAN_PCP_SHIFT | s->sgid->vid)); /* ETH-05 */
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

static uint8_t *write_ip4(struct path *p, const struct path_spec *s, uint8_t *ip)
{
	ip[IP4_VIHL] = 0x45;			    /* CA17-3, IP4-01, IP4-03 */
	ip[IP4_TOS] = s->traffic_class & 0xFC;	    /* CA17-4, CA17-5, IP4-04, IP4-05, IP4-06 */
	put_be16(ip + IP4_FRAG, IP4_FLAG_DF);	    /* CA17-7, CA17-8, IP4-09, IP4-11 */
	ip[IP4_TTL] = s->hop_limit;		    /* CA17-9, IP4-12 */
	ip[IP4_PROTO] = IPPROTO_ROCEV2;		    /* CA17-10, IP4-13 */
	memcpy(ip + IP4_SRC, s->sgid->gid + 12, 4); /* CA17-11, IP4-14 */
	memcpy(ip + IP4_DST, s->dgid + 12, 4);	    /* CA17-12, IP4-15 */
	p->csum_base = path_csum_fold(ip4_sum(ip));
	return ip + IP4_HLEN;
}

/* IPv6 header, or the GRH, which has the same layout. */
static uint8_t *write_ip6(const struct path_spec *s, uint8_t *ip, uint8_t traffic_class,
	uint32_t flow_label, uint8_t next)
{
	/* IP6-01, IP6-02, IP6-09 */
	put_be32(ip, 6u << 28 | (uint32_t)traffic_class << 20 | flow_label);
	ip[IP6_NXT] = next;			/* CA17-16, IP6-05 */
	ip[IP6_HLIM] = s->hop_limit;		/* CA17-17, IP6-07 */
	memcpy(ip + IP6_SRC, s->sgid->gid, 16); /* CA17-18, IP6-08 */
	memcpy(ip + IP6_DST, s->dgid, 16);	/* CA17-19, IP6-08 */
	return ip + IP6_HLEN;
}

/* Writes the UDP header at @p udp; its checksum is 0 (A17.3.2.4, UDP-05). */
static uint8_t *write_udp(const struct path_spec *s, uint8_t *udp, uint32_t label)
{
	put_be16(udp + UDP_SPORT, s->sport ? s->sport : flow_label_to_sport(label)); /* UDP-08 */
	put_be16(udp + UDP_DPORT, UDP_PORT_ROCEV2); /* CA17-20, UDP-01 */
	return udp + UDP_HLEN;
}

static uint8_t get_tclass(const struct path *p)
{
	const uint8_t *ip = p->hdr + p->l3_off;

	return p->net == NET_IPV4 ? ip[IP4_TOS] : (uint8_t)(get_be16(ip + IP6_VTCFL) >> 4);
}

static void set_tclass(struct path *p, unsigned tclass)
{
	uint8_t *ip = p->hdr + p->l3_off;

	if (p->net == NET_IPV4) {
		ip[IP4_TOS] = (uint8_t)tclass;
		p->csum_base = path_csum_fold(ip4_sum(ip));
		return;
	}
	put_be16(ip + IP6_VTCFL,
		(uint16_t)((get_be16(ip + IP6_VTCFL) & 0xF00F) | (tclass & 0xFF) << 4));
}

void path_init(struct path *p, const struct path_spec *s)
{
	uint32_t av = s->flow_label & FLOW_LABEL_MASK;
	uint32_t label = av ? av : flow_label_of_qpns(s->src_qpn, s->dst_qpn); /* ENT-05 */
	uint8_t *h;

	memset(p, 0, sizeof(*p));
	p->net = s->sgid->net; /* CA17-40, CA17-42, GID-05, V1-07: selected by the SGID entry */
	p->port = s->port;
	p->local = s->local;
	p->vid = s->sgid->vid;
	h = write_ethernet(p, s);
	p->l3_off = (uint8_t)(h - p->hdr);
	if (p->net == NET_ROCEV1)
		h = write_ip6(s, h, s->traffic_class, av, GRH_NXT_IBA); /* V1-01 */
	else if (p->net == NET_IPV4)
		h = write_udp(s, write_ip4(p, s, h), label);
	else
		h = write_udp(s,
			write_ip6(s, h, s->traffic_class & 0xFC, s->plain_label ? av : label,
				IPPROTO_ROCEV2), /* IP6-09 */
			label);
	p->hdr_len = (uint8_t)(h - p->hdr);
	p->ect = s->ect && p->net != NET_ROCEV1; /* IP4-05, IP6-02 */
	if (p->ect && !p->local)
		set_tclass(p, get_tclass(p) | ECN_ECT0);
}

void path_set_class(struct path *p, uint8_t tclass, uint8_t pcp)
{
	set_tclass(p, tclass);
	if (p->l3_off != ETH_HLEN)
		p->hdr[ETH_TYPE + 2] = (uint8_t)(p->hdr[ETH_TYPE + 2] & 0x1F) | (uint8_t)(pcp << 5);
}

void path_set_ect(struct path *p, bool ect)
{
	if (p->net == NET_ROCEV1)
		return;
	p->ect = ect; /* IP4-05, IP6-02 */
	set_tclass(p, (get_tclass(p) & ~ECN_MASK) | (ect && !p->local ? ECN_ECT0 : 0));
}

void path_set_label(struct path *p, uint32_t label, bool plain)
{
	uint8_t *ip = p->hdr + p->l3_off;

	if (p->net == NET_ROCEV1)
		return; /* V1-01: as in the address vector */
	if (p->net == NET_IPV6 && !plain)
		put_be32(ip, (get_be32(ip) & ~FLOW_LABEL_MASK) | (label & FLOW_LABEL_MASK));
	put_be16(p->hdr + p->hdr_len - UDP_HLEN + UDP_SPORT, flow_label_to_sport(label));
}

uint16_t path_sport(const struct path *p)
{
	return p->net == NET_ROCEV1 ? 0 : get_be16(p->hdr + p->hdr_len - UDP_HLEN + UDP_SPORT);
}

uint32_t path_flow_label(const struct path *p)
{
	return p->net == NET_IPV4 ? 0 : get_be32(p->hdr + p->l3_off + IP6_VTCFL) & FLOW_LABEL_MASK;
}

int path_tci(const struct path *p)
{
	return p->l3_off == ETH_HLEN ? -1 : get_be16(p->hdr + ETH_TYPE + 2);
}

void path_readdress(struct path *p, const uint8_t dmac[6], const uint8_t smac[6], bool local)
{
	memcpy(p->hdr + ETH_DST, dmac, 6);
	memcpy(p->hdr + ETH_SRC, smac, 6);
	p->local = local;
	if (p->ect)
		set_tclass(p, (get_tclass(p) & ~ECN_MASK) | (local ? 0 : ECN_ECT0));
}
