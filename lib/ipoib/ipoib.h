/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ipoib.h
 * IP over InfiniBand (RFC 4391) for a netdev that is Ethernet to the kernel: frames of the kernel
 * in, datagrams for a UD queue pair out, and the other way. Pure: time is an argument, memory is
 * the caller's, address handles are the caller's by the number of a destination. One thread.
 *
 * The kernel resolves addresses as on any Ethernet. Its ARP and ND messages are translated; each
 * peer, a QP of a port, appears to it under a MAC of its own (neigh.h), which stays when the peer
 * restarts and has another QPN (IPB-16). Peers know the netdev by one address, whichever
 * hosts are on a bridge that it is a port of (stations.h).
 *
 * Timers, all from ipoib_deadline():
 * - a peer that was not heard for REACHABLE is asked again, if packets are sent to it: after DELAY,
 *   then each PROBE, PROBES times
 * - a destination without an address handle is not tried again before RETRY
 * - a group that nothing was sent to for GROUP leaves the table
 * - of the IP addresses of packets to MACs that no peer has, one is asked for per LOOK
 * - of those of packets for hosts of a bridge that were not heard, likewise
 * - an IP address that a peer looks for duplicates of is not asked for by ARP before PROBED
 */
#ifndef IPOIB_H
#define IPOIB_H

#include "encap.h"
#include "hash.h"
#include "neigh.h"

#define IPOIB_MS	   1000000ull
#define IPOIB_REACHABLE_NS (1000 * IPOIB_MS)
#define IPOIB_DELAY_NS	   (500 * IPOIB_MS)
#define IPOIB_PROBE_NS	   (1000 * IPOIB_MS)
#define IPOIB_RETRY_NS	   (1000 * IPOIB_MS)
#define IPOIB_LOOK_NS	   (100 * IPOIB_MS)
#define IPOIB_GROUP_NS	   (60000 * IPOIB_MS)
#define IPOIB_PROBED_NS	   (10000 * IPOIB_MS) /* RFC 5227 1.1: it is used after 4 to 7 s */
#define IPOIB_PROBES	   3u
#define IPOIB_WAIT_EACH	   16u	/* packets that wait for one destination */
#define IPOIB_WAIT_ALL	   128u /* and for all */
#define IPOIB_MTU_MAX	   4092u
/** Free octets that ipoib_from_kernel() needs after a frame. */
#define IPOIB_TAIL 64u
/** Octets that ipoib_next() may write. */
#define IPOIB_PACKET_MAX (IPOIB_HLEN + IPOIB_MTU_MAX)
/** Octets that ipoib_search() may write. */
#define IPOIB_SEARCH_MAX 136u

/** Why a packet was dropped, or what else was counted. */
enum ipoib_count {
	IPOIB_TX,	   /**< datagrams to peers */
	IPOIB_TX_GROUP,	   /**< datagrams to groups */
	IPOIB_RX,	   /**< packets to the kernel */
	IPOIB_SHORT,	   /**< shorter than their headers */
	IPOIB_TYPE,	   /**< a type that RFC 4391 does not carry (IPB-02) */
	IPOIB_LONG,	   /**< longer than the MTU */
	IPOIB_BAD_IP,	   /**< IP version that contradicts the type */
	IPOIB_BAD_ARP,	   /**< not ARP of this hardware (IPB-04) */
	IPOIB_BAD_ND,	   /**< lengths, options or checksum (IPB-05) */
	IPOIB_FORGED,	   /**< an ARP or ND message of another GID than its datagram's */
	IPOIB_OFF_LINK,	   /**< from beyond a router, of another VLAN, or to another GID */
	IPOIB_OWN,	   /**< a group's copy of what was sent from here, or in its name */
	IPOIB_NO_NEIGH,	   /**< to a MAC that no peer has */
	IPOIB_UNRESOLVED,  /**< nobody answers for the GID */
	IPOIB_QUEUE_FULL,  /**< too many packets wait for an address handle */
	IPOIB_PROBES_SENT, /**< peers asked again (IPB-16), or for the first time */
	IPOIB_RESTARTED,   /**< peers that came back with another QPN (IPB-16) */
	IPOIB_DUPLICATE,   /**< claims by peers of an IP address that was claimed here */
	IPOIB_EVICTED,	   /**< entries evicted from the full table */
	IPOIB_DISPLACED,   /**< IP addresses of this side that were evicted (stations.h) */
	IPOIB_LOOPED,	   /**< frames of the kernel that had come from the wire */
	IPOIB_CUT,	   /**< frames of the kernel that were split (cut.h) */
	IPOIB_MERGED,	   /**< frames to the kernel that were merged (merge.h) */
	IPOIB_BAD_OFFLOAD, /**< frames of the kernel that contradict their virtio_net_hdr */
	IPOIB_COUNTS,
};

/** Parameters that do not change while a netdev exists. */
struct ipoib_config {
	struct ipoib_addr own; /**< its QP */
	uint8_t mac[6];	       /**< of the netdev */
	uint16_t pkey;	       /**< of the link */
	uint8_t scope;	       /**< of the broadcast GID: IPOIB_SCOPE */
	uint16_t mtu;	       /**< of IP, at most IPOIB_MTU_MAX */
	uint16_t vid;	       /**< VLAN of its GID; 0: none */
	struct hash_seed seed;
};

/** A received datagram; its addresses are in the area before it. */
struct ipoib_rx {
	uint8_t *area;	 /**< 40 octets of GRH or IP header, the encapsulation header, the packet */
	uint32_t len;	 /**< of all of it */
	uint32_t src_qp; /**< of the sender */
	uint16_t vid;	 /**< of the frame; 0: untagged */
	bool ip4;	 /**< the area ends with an IPv4 header (A17.4.5.2) */
};

/** A datagram to send. */
struct ipoib_tx {
	uint8_t *at;   /**< the encapsulation header */
	uint32_t len;  /**< octets, the header included */
	uint32_t dest; /**< whose address handle */
	uint32_t qpn;  /**< DestQP, 0xFFFFFF for a group */
};

/** A frame for the kernel. */
struct ipoib_frame {
	uint8_t *at; /**< the Ethernet header */
	uint32_t len;
};

/** A request for an address handle. */
struct ipoib_ask {
	uint32_t dest;	 /**< below NEIGH_MAX; the previous handle of this slot is no longer used */
	uint32_t serial; /**< for ipoib_resolved() */
	uint8_t gid[16];
	bool group; /**< of a group, which needs no lookup */
};

struct ipoib;
struct station_table;

/** @return the octets that ipoib_init() needs, aligned to 8. */
size_t ipoib_size(void);

/** @return the state, in @p room. */
struct ipoib *ipoib_init(void *room, const struct ipoib_config *cfg);

/** Another MAC of the netdev. */
void ipoib_set_mac(struct ipoib *s, const uint8_t mac[6]);

/**
 * Takes a frame of the kernel, in place.
 * @param frame  @p len octets, and IPOIB_TAIL free ones
 * @param tx receives where it is now
 * @return whether to send it now; false: it was dropped, or waits for ipoib_next().
 */
bool ipoib_from_kernel(
	struct ipoib *s, uint8_t *frame, uint32_t len, uint64_t now, struct ipoib_tx *tx);

/** Takes a received datagram, in place (IPB-15). @return whether there is a frame for the kernel.
 */
bool ipoib_from_wire(
	struct ipoib *s, const struct ipoib_rx *rx, uint64_t now, struct ipoib_frame *frame);

/**
 * Searches the netdev's side for an unknown IP address to which a packet was sent.
 * @param room  where the frame is built
 * @return whether there is a frame for the kernel.
 */
bool ipoib_search(
	struct ipoib *s, uint8_t room[IPOIB_SEARCH_MAX], uint64_t now, struct ipoib_frame *frame);

/** @return whether an address handle is needed; ipoib_resolved() answers, at any time. */
bool ipoib_ask(struct ipoib *s, struct ipoib_ask *ask);

/** Reports whether there is a handle now. @return false: the entry is gone, and the handle unused.
 */
bool ipoib_resolved(struct ipoib *s, uint32_t dest, uint32_t serial, bool ok, uint64_t now);

/**
 * Takes the next packet that waited or is due.
 * @param room  IPOIB_PACKET_MAX octets
 * @return whether there is one.
 */
bool ipoib_next(struct ipoib *s, uint8_t *room, uint64_t now, struct ipoib_tx *tx);

/** @return when to call ipoib_next() and ipoib_search() at the latest; UINT64_MAX: not at all. */
uint64_t ipoib_deadline(const struct ipoib *s);

/** Counts an action or a drop of the caller. */
void ipoib_count(struct ipoib *s, enum ipoib_count c);

/** @return the counters, IPOIB_COUNTS of them. */
const uint64_t *ipoib_counts(const struct ipoib *s);

/** @return the name of a counter, as administrators see it. */
const char *ipoib_count_name(enum ipoib_count c);

/** @return the number of entries of the table, including groups. */
uint32_t ipoib_neighs(const struct ipoib *s);

/** @return how many IP addresses of this side belong to MACs other than the netdev's. */
uint32_t ipoib_bridged(const struct ipoib *s);

/** @return the IP addresses of this side. */
const struct station_table *ipoib_stations(const struct ipoib *s);

#endif
