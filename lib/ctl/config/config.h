/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file config/config.h
 * The configuration of rocid: ports, limits, sockets.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "limits.h"

#define CM_TIMEOUT_MAX 25u /* 131 s, the maximum of Linux */
#define CM_RETRIES_MAX 15u /* the field has four bits */

struct dataplane;
struct json_t;
struct priority_map;
struct congestion;

/** A GID of the static table: RoCEv2, and also RoCEv1 if enabled. */
struct ctl_gid {
	uint8_t gid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint16_t vid;	 /* 0: untagged */
};

/** A neighbour of the static table. */
struct ctl_neigh {
	uint8_t gid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t mac[6];
};

/** An entry of a port's P_Key table. */
struct ctl_pkey {
	uint32_t index; /* below PKEY_MAX */
	uint16_t pkey;	/* 0x8000: full member; 0: empty */
};

/** Port i of the dataplane; applications call it port i + 1. */
struct ctl_port {
	/** Kernel netdev that the port shares or accompanies. The port follows its MAC, MTU, link
	 *  state, addresses, routes and neighbours over rtnetlink. Empty: static only. */
	char netdev[16];
	/** Without a netdev: the port's own MAC. Ignored with one. */
	uint8_t mac[6];
	/** Ethernet MTU in bytes (IP packet size). With a netdev: an upper limit for the netdev's
	 *  MTU, 0 for none. */
	uint32_t eth_mtu;
	uint32_t speed_mbps; /* 0: unknown */
	/** Static entries; with a netdev, in addition to its own. */
	const struct ctl_gid *gids;
	uint32_t ngids;
	const struct ctl_neigh *neighs;
	uint32_t nneighs;
	const struct ctl_pkey *pkeys; /* besides 0xFFFF at index 0, unless that is here too */
	uint32_t npkeys;
	const struct priority_map *priority; /* NULL: as priority_init() says (ETH-05) */
	const struct congestion *congestion; /* NULL: off (CNP-14) */
};

/** The resources that rocid counts for each application and each user (session/quota.h). If you add
 * a kind, it needs a row in session/quota.c. */
enum ctl_kind {
	CTL_SESSIONS, /* the applications themselves */
	CTL_QPS,
	CTL_CQS,
	CTL_KEYS, /* memory regions and windows */
	CTL_PDS,
	CTL_SRQS,
	CTL_XRCDS,
	CTL_AHS,
	CTL_GROUPS,	 /* multicast groups, each counted for one of its members */
	CTL_ATTACHMENTS, /* of QPs to multicast groups */
	CTL_CHANNELS,
	CTL_DESCRIPTORS, /* that rocid keeps open for an application */
	CTL_MAPPINGS,	 /* of rocid's address space */
	CTL_MEMORY,	 /* bytes of mapped registered memory */
	CTL_QUEUES,	 /* bytes of queues, rocid's private copies included */
	CTL_LOOKUPS,	 /* destinations that the kernel is resolving */
	CTL_CM_IDS,	 /* of RDMA CM, requests that are unread included */
	CTL_CM_PORTS,	 /* that ids are bound to */
	CTL_LISTENERS,
	CTL_CONNECTIONS, /* of ids, until the id is destroyed */
	CTL_CM_REQUESTS, /* to its listeners, unanswered */
	CTL_CM_EVENTS,	 /* unread, of RESOLVE_ADDR and joins */
	CTL_KINDS
};

/** The limit for each kind, in objects, or in MB of memory and queues. 0: the default; UINT32_MAX:
 *  no limit. */
struct ctl_limits {
	uint32_t session[CTL_KINDS]; /* per application */
	uint32_t user[CTL_KINDS];    /* per user other than root, for all applications together */
};

/** Changes of a port's netdev. */
#define CTL_NETDEV_MAC	    (1u << 0) /* it has another MAC: MAC filters must change */
#define CTL_NETDEV_REPLACED (1u << 1) /* it is another netdev under the old name */
#define CTL_NETDEV_GONE	    (1u << 2) /* no netdev has that name now */
#define CTL_NETDEV_VLANS    (1u << 3) /* its VLAN netdevs changed */
/** The kernel refused to join a multicast group on it, or on a VLAN of it. */
#define CTL_NETDEV_UNJOINED (1u << 4)
/** The port now accepts Fast CNPs, or no longer does: see struct port. */
#define CTL_NETDEV_SWITCHES (1u << 5)

/** The current state of a port's netdev. */
struct ctl_netdev {
	uint8_t mac[6];
	uint32_t nvlans;
	uint32_t vlan[PORT_VLAN_MAX]; /* ifindex of each VLAN netdev on top of it that is up */
};

/** Called by the control thread, and by ctl_start() for existing VLAN netdevs. */
typedef void (*ctl_netdev_changed)(
	void *arg, uint32_t port, unsigned what, const struct ctl_netdev *netdev);

/** Access to the ports' devices for administrators, implemented by the creator of the ports. Ports
 *  count from 0. Called by the control thread; documents are jansson objects, NULL when memory is
 *  short. */
struct ctl_devices {
	void *arg;
	/** The port's device and its counters: an object. */
	struct json_t *(*port)(void *arg, uint32_t port);
	/** @return whether the port's device is open; false while a recreated netdev cannot be
	 *  opened. May change in netdev_changed() and look(). */
	bool (*open)(void *arg, uint32_t port);
	/** Its emulated link: an object, or null if it has none. */
	struct json_t *(*link)(void *arg, uint32_t port);
	/** The i-th rule that steers packets to a queue, of all ports.  @return false after the
	 * last. */
	bool (*flow)(void *arg, uint32_t i, struct json_t **flow);
	/** The i-th IP over InfiniBand netdev.  @return false after the last. */
	bool (*ipoib)(void *arg, uint32_t i, struct json_t **netdev);
	/** Configures the emulated link of a port according to @p text.
	 *  @return 0, or a negative errno with a sentence. */
	int (*impair)(void *arg, uint32_t port, const char *text, char why[ABI_SENTENCE_MAX]);
	/** Maintains the devices; called whenever the control thread wakes.
	 *  @return milliseconds until the next call is due; -1: never. */
	int (*look)(void *arg, uint64_t now_ms);
	/** @return bytes of the shortest frame that a port's netdev refused within the last
	 *  @p within_ms; 0: none. */
	uint32_t (*refused)(void *arg, uint32_t port, uint64_t now_ms, uint64_t within_ms);
};

/** Copied by ctl_start() together with what it points to, except dp and devices. */
struct ctl_config {
	/** ctl_start() fills *dp->ports: count, MACs, P_Keys, MTU, GID tables. All other members
	 *  are the caller's and outlive the struct ctl. */
	struct dataplane *dp;
	const char *socket_path;  /* NULL: ABI_SOCKET_DEFAULT */
	uint32_t socket_mode;	  /* 0: 0660 */
	const char *socket_group; /* name or number; NULL: unchanged */
	uint32_t admin_mode;	  /* of the administrators' socket; 0: 0600 */
	const char *admin_group;
	bool rocev1; /* RoCEv1 entries in addition to the RoCEv2 ones (GID-02) */
	/** IPv6 headers have the address vector's flow label even if it is 0, as in Linux;
	 * otherwise rocid replaces 0 by a label derived from the QPNs (IP6-09). */
	bool plain_label;
	struct ctl_limits limits;
	uint32_t window;	 /* packets in flight per QP; 0: WINDOW_DEFAULT */
	bool application_faults; /* programs may inject faults into their own QPs (doc/inject.md) */
	bool application_macs;	 /* programs may choose a destination MAC (doc/decisions/0033) */
	char device[16];	 /* its name; empty: roci0 */
	bool cm;		 /* QP1 belongs to the communication manager (doc/connections.md) */
	bool cm_rocev1;		 /* its outgoing connections use RoCEv1, which all ports have */
	uint8_t cm_timeout;	 /* 4.096 us * 2^n, 1..CM_TIMEOUT_MAX; 0: as Linux, 20 */
	uint8_t cm_retries;	 /* 1..CM_RETRIES_MAX; 0: as Linux, 15 */
	bool no_userfaultfd; /* programs get no descriptor of /dev/userfaultfd (doc/security.md) */
	/** With several workers: QPs move to the worker whose queue receives their packets. */
	bool migrate;
	/** With several workers, if not 0: at this interval in milliseconds up to 64 QPs move to
	 * the next worker, needed or not, to test rocid and programs. */
	uint32_t shake_ms;
	ctl_netdev_changed netdev_changed; /* may be NULL */
	void *netdev_arg;
	const struct ctl_devices *devices; /* outlives the struct ctl; may be NULL */
	uint32_t nports;
	struct ctl_port port[PORT_MAX];
};

#endif
