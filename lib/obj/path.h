/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file path.h
 * Ports, their GID and P_Key tables, and the way from an address vector to header bytes
 * (A17.4.1-A17.4.3; GID-*, IP4-*, IP6-*, UDP-*, ENT-*). Tables are written by the control
 * thread and published as whole new copies.
 */
#ifndef PATH_H
#define PATH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "abi_ctl.h"
#include "frame.h"
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

struct gid_table {
	uint32_t count; /* entries in use, valid or not; an index never changes (GID-03) */
	struct gid_entry entry[GID_MAX];
};

/** What workers read of a port. The control thread writes it, MAC and MTU while they run. */
struct port {
	_Atomic(const struct gid_table *) gids;
	_Atomic uint64_t mac; /* mac_word(): all six bytes change at once */
	uint16_t pkey[PKEY_MAX];
	uint16_t pkeys;
	_Atomic uint32_t active_mtu; /* bytes, GID-09 */
};

/** @return the six bytes of @p mac in one word, in memory order. */
static inline uint64_t mac_word(const uint8_t mac[6])
{
	uint64_t word = 0;

	memcpy(&word, mac, 6);
	return word;
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

/** All ports of the daemon; packets and QPs name them by index. */
struct port_table {
	uint32_t count;
	struct port port[PORT_MAX];
};

/** Ethernet to UDP (or GRH) of every packet of a QP or address handle, except what changes
 *  from packet to packet: lengths, IPv4 identification and checksum. */
struct path {
	uint8_t hdr[80];
	uint8_t hdr_len; /* up to the BTH */
	uint8_t l3_off;
	uint8_t net;  /* enum net_type */
	uint8_t port; /* index of the port it leaves by */
	bool local;   /* the destination is this daemon: loop it back (design.md 1) */
	uint16_t vid;
	uint16_t csum_base; /* IPv4: folded sum of the fixed header words */
};

/** What a path is made of. */
struct path_spec {
	const struct gid_entry *sgid;
	uint8_t dgid[16];
	uint8_t dmac[6];
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;   /* 0..7 -> PCP (ETH-05) */
	uint8_t port; /* index */
	bool local;
	uint32_t flow_label; /* 20 bits; not 0: overrides the hash (ENT-05) */
	uint32_t src_qpn;    /* for the hash (ENT-02) */
	uint32_t dst_qpn;
};

/** Builds @p p. The ECN bits are 0: congestion management is off (CA17-5, CA17-14). */
void path_init(struct path *p, const struct path_spec *s);

/** Has @p p lead to @p dmac, from @p smac, or by way of this daemon when @p local. All else stays
 * as path_init() made it. */
void path_readdress(struct path *p, const uint8_t dmac[6], const uint8_t smac[6], bool local);

/**
 * Writes @p p's header and its per-packet fields at @p frame.
 * @param rest  bytes from BTH to ICRC, both included
 * @param id    IPv4 identification (IP4-17)
 * @return where the BTH goes
 */
uint8_t *path_write(const struct path *p, uint8_t *frame, uint16_t rest, uint16_t id);

/** @return true when @p pkt comes from where @p p leads to and was sent to where @p p starts:
 *  protocol, both addresses and VLAN (VAL-12, VAL-13, ETH-07). */
bool path_matches(const struct path *p, const struct pkt *pkt);

/** @return the index of the valid entry with @p gid, @p net and @p vid, or -1. */
int gid_find(const struct gid_table *t, const uint8_t gid[16], unsigned net, uint16_t vid);

/** @return whether a valid entry of VLAN @p vid has the MAC @p mac. */
bool gid_has_mac(const struct gid_table *t, uint16_t vid, const uint8_t mac[6]);

/** @return true for the unspecified and the loopback addresses: no frame on a wire has one as its
 *  destination (VAL-15). */
bool gid_is_local_only(const uint8_t gid[16]);

/** @return true when both keys name the same partition and one is a full member (VAL-08). */
bool pkey_match(uint16_t a, uint16_t b);

/** @return 20-bit flow label of a connection whose AV says 0 (ENT-02..04). */
uint32_t flow_label_of_qpns(uint32_t src_qpn, uint32_t dst_qpn);

/** @return UDP source port for @p flow_label, 0xC000..0xFFFF (ENT-01). */
uint16_t flow_label_to_sport(uint32_t flow_label);

/** @return the largest IB MTU that fits Ethernet MTU @p eth_mtu (GID-09), 0 if none does. */
uint32_t mtu_of_ethernet(uint32_t eth_mtu);

#endif
