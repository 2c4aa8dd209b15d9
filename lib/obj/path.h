/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file path.h
 * Ports, their GID and P_Key tables, and the conversion of an address vector to header bytes
 * (A17.4.1-A17.4.3; GID-*, IP4-*, IP6-*, UDP-*, ENT-*). The control thread writes tables and
 * publishes them as whole new copies.
 */
#ifndef PATH_H
#define PATH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "limits.h"

/** One Port GID Table entry (CA17-26). */
struct gid_entry {
	uint8_t gid[16];
	uint8_t net; /* enum net_type: the "GID type" attribute */
	bool valid;
	uint16_t vid; /* of the VLAN netdev that has the address; 0: untagged (ETH-07) */
	uint32_t ifindex;
	uint8_t mac[6];
};

struct cc_config;

struct gid_table {
	uint32_t count; /* entries in use, valid or not; an index never changes (GID-03) */
	struct gid_entry entry[GID_MAX];
};

struct switch_list;

/** Properties of a port that workers read. The control thread writes them; MAC, MTU and P_Keys may
 *  change while workers run.
 */
struct port {
	_Atomic(const struct gid_table *) gids;
	_Atomic uint64_t mac;		 /* mac_word(): all six bytes change at once */
	_Atomic uint16_t pkey[PKEY_MAX]; /* 0: empty */
	uint16_t pkeys;			 /* length of the table */
	_Atomic uint32_t active_mtu;	 /* bytes, GID-09 */
	_Atomic uint32_t rcm;		 /* congestion management: rcm_word(); 0: off (CNP-14) */
	_Atomic uint32_t cnp_interval;	 /* ns between two CNPs for a QP */
	_Atomic bool priority_tag;	 /* priority_map.tag, for a CNP to an unknown source */
	/** Algorithm and parameters that limit the rates of its QPs, NULL: none. Replaced as a
	 *  whole; the old one is freed after a grace period. */
	_Atomic(const struct cc_config *) cc;
	/** Packets of a limited QP that leave together, PACING_RUN at most; 0: QUANTUM. */
	_Atomic uint32_t burst;
	/** Fast CNPs are accepted from these; NULL: they are not ours (FCN-01). Workers only take
	 *  from its buckets. */
	_Atomic(struct switch_list *) switches;
};

/** @return the six bytes of @p mac in one word, in memory order. */
static inline uint64_t mac_word(const uint8_t mac[6])
{
	uint32_t low;
	uint16_t high;

	/* Joined in a register, not in memory: store forwarding fails for a load that spans two
	 * stores. */
	memcpy(&low, mac, sizeof(low));
	memcpy(&high, mac + sizeof(low), sizeof(high));
	return low | (uint64_t)high << 32;
}

static inline void port_set_mac(struct port *p, const uint8_t mac[6])
{
	atomic_store_explicit(&p->mac, mac_word(mac), memory_order_relaxed);
}

static inline void port_get_mac(const struct port *p, uint8_t mac[6])
{
	uint64_t word = atomic_load_explicit(&p->mac, memory_order_relaxed);

	memcpy(mac, &word, 6);
}

/** RoCEv2 Congestion Management of a port, and what its CNPs look like. */
#define RCM_ON	   (1u << 31)
#define RCM_BECN   (1u << 11)
#define RCM_PCP(w) ((w) >> 8 & 7)

/** @return the word for CNPs with traffic class @p tclass, ECN included, and priority @p pcp. */
static inline uint32_t rcm_word(uint8_t tclass, uint8_t pcp, bool becn)
{
	return RCM_ON | (becn ? RCM_BECN : 0) | (pcp & 7u) << 8 | tclass;
}

/** All ports of the daemon; packets and QPs name them by index. */
struct port_table {
	uint32_t count;
	_Atomic bool telemetry; /* a port's algorithm needs the queues on the way (cc.h) */
	struct port port[PORT_MAX];
};

/** Ethernet to UDP (or GRH) of every packet of a QP or address handle, except the fields that
 *  differ from packet to packet: lengths, IPv4 identification and checksum. */
struct path {
	uint8_t hdr_len; /* up to the BTH */
	uint8_t l3_off;
	uint8_t net;  /* enum net_type */
	uint8_t port; /* index of the port it leaves by */
	bool local;   /* the destination is in this daemon: loop back (decision 0000.1) */
	bool ect;     /* ECT(0) unless `local` */
	uint16_t vid;
	uint16_t csum_base; /* IPv4: folded sum of the fixed header words */
	/* Where a path begins with a cache line, that line has all that IPv4 uses. */
	uint8_t hdr[80];
};

/** Parameters of a path. */
struct path_spec {
	const struct gid_entry *sgid;
	uint8_t dgid[16];
	uint8_t dmac[6];
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t pcp;  /* priority_of(), 0..7; for the tag, if there is one (ETH-05) */
	uint8_t port; /* index */
	bool local;
	bool priority_tag;   /* tag with VID 0 if the SGID entry has no VLAN */
	bool ect;	     /* the port manages congestion: ECT(0) on all but RoCEv1 */
	bool plain_label;    /* use the AV's flow label even if it is 0, as Linux does */
	uint16_t sport;	     /* UDP source port; 0: derived from the flow label (ENT-01) */
	uint32_t flow_label; /* 20 bits; not 0: overrides the hash (ENT-05) */
	uint32_t src_qpn;    /* for the hash (ENT-02) */
	uint32_t dst_qpn;
};

/** Service levels and DSCPs. */
#define SL_COUNT   8u
#define DSCP_COUNT 64u
/** For priority_map.of_dscp: the service level decides, not this DSCP. */
#define PCP_OF_SL 0xFFu

/** The 802.1p priority of a port's packets. Control thread; paths hold the result. */
struct priority_map {
	uint8_t of_sl[SL_COUNT];
	uint8_t of_dscp[DSCP_COUNT]; /* PCP_OF_SL unless configured */
	bool tag;		     /* packets without a VLAN get a priority tag (VID 0) */
};

/** A17.4.2: SL 0-7 are priorities 0-7; DSCPs have no effect; no tag without a VLAN. */
void priority_init(struct priority_map *m);

/** @return the 802.1p priority of service level @p sl, 0..7, and traffic class @p tclass. */
uint8_t priority_of(const struct priority_map *m, uint8_t sl, uint8_t tclass);

/** @return the UDP source port of @p p, 0 for RoCEv1. */
uint16_t path_sport(const struct path *p);

/** @return the flow label in @p p's header, 0 over IPv4. */
uint32_t path_flow_label(const struct path *p);

/** @return the TCI of @p p's VLAN or priority tag, or -1. */
int path_tci(const struct path *p);

/** Builds @p p. The ECN field is 0, or ECT(0) if the port manages congestion (CA17-5, CA17-14). */
void path_init(struct path *p, const struct path_spec *s);

/**
 * Gives @p p the source port of @p label and, unless @p plain, the label itself: for a datagram
 * whose address vector has none, once its QPNs are known (ENT-10).
 */
void path_set_label(struct path *p, uint32_t label, bool plain);

/** Changes the destination of @p p to @p dmac, from @p smac, or to this daemon when @p local. All
 * else stays as path_init() made it. */
void path_readdress(struct path *p, const uint8_t dmac[6], const uint8_t smac[6], bool local);

/** Gives @p p's header the traffic class @p tclass, ECN included, and its tag, if there is one, the
 *  priority @p pcp: a CNP's. */
void path_set_class(struct path *p, uint8_t tclass, uint8_t pcp);

/** Packets along @p p are ECN-capable, or not, from now on; never over RoCEv1 or within this
 * daemon. */
void path_set_ect(struct path *p, bool ect);

/** @return the index of the valid entry with @p gid, @p net and @p vid, or -1. */
int gid_find(const struct gid_table *t, const uint8_t gid[16], unsigned net, uint16_t vid);

/** @return whether @p gid is in a valid entry of VLAN @p vid, of any type. */
bool gid_is_own(const struct gid_table *t, const uint8_t gid[16], uint16_t vid);

/** @return whether a valid entry of VLAN @p vid has the MAC @p mac. */
bool gid_has_mac(const struct gid_table *t, uint16_t vid, const uint8_t mac[6]);

/** @return whether a valid entry is of VLAN @p vid. */
bool gid_has_vlan(const struct gid_table *t, uint16_t vid);

/** @return true when @p gid is an IPv4 address, ::ffff:a.b.c.d (A17.4.1.1). */
bool gid_is_ip4(const uint8_t gid[16]);

/** @return true for the unspecified and the loopback addresses, which are never a destination on
 *  the wire (VAL-15). */
bool gid_is_local_only(const uint8_t gid[16]);

/** @return false for an empty entry of a P_Key table (IBA 10.9.1.2). */
static inline bool pkey_valid(uint16_t pkey)
{
	return pkey & 0x7FFF;
}

/** @return true when both keys name the same partition and one is a full member (VAL-08). */
bool pkey_match(uint16_t a, uint16_t b);

/** @return the 20-bit flow label of a connection whose AV has 0 (ENT-02..04). */
uint32_t flow_label_of_qpns(uint32_t src_qpn, uint32_t dst_qpn);

/** The lowest UDP source port derived from a flow label (UDP-10). */
#define SPORT_MIN 0xC000u

/** @return the UDP source port for @p flow_label, SPORT_MIN..0xFFFF (ENT-01). */
uint16_t flow_label_to_sport(uint32_t flow_label);

/** @return the largest IB MTU that fits Ethernet MTU @p eth_mtu (GID-09), 0 if none does. */
uint32_t mtu_of_ethernet(uint32_t eth_mtu);

/** @return @p sum folded to 16 bits, as in the IPv4 checksum. */
static inline uint16_t path_csum_fold(uint32_t sum)
{
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

#endif
