/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ctl.h
 * The control thread of rocid: the unix socket server, sessions and their objects, the GID
 * tables and neighbours of the ports, events to applications (design.md 1, 4, 5).
 *
 *     ctl_start()     before or after the workers start; nobody is served yet
 *     ctl_run()       serves until ctl_stop(); workers run meanwhile
 *     ctl_destroy()   ends all sessions; workers still run, because QPs are taken from them
 *
 * Except ctl_stop() and ctl_stats_json(), all calls are made by one thread: the control
 * thread. It is no EAL thread, needs no lcore and sleeps in epoll.
 */
#ifndef CTL_H
#define CTL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "abi_ctl.h"
#include "limits.h"

struct ctl;
struct dataplane;
struct json_t;
struct priority_map;
struct congestion;

/** A GID of the static table: RoCEv2, and RoCEv1 too when asked for. */
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
	/** Kernel netdev that the port shares or stands beside: MAC, MTU, link state, addresses,
	 *  routes and neighbours are its own, live over rtnetlink. Empty: static only. */
	char netdev[16];
	/** Without a netdev: the port's own MAC. Ignored with one. */
	uint8_t mac[6];
	/** Ethernet MTU in bytes (IP packet size). With a netdev: an upper limit of what the
	 *  netdev says, 0 for none. */
	uint32_t eth_mtu;
	uint32_t speed_mbps; /* 0: unknown */
	/** Static entries; with a netdev they come in addition to its own. */
	const struct ctl_gid *gids;
	uint32_t ngids;
	const struct ctl_neigh *neighs;
	uint32_t nneighs;
	const struct ctl_pkey *pkeys; /* besides 0xFFFF at index 0, unless that is here too */
	uint32_t npkeys;
	const struct priority_map *priority; /* NULL: as priority_init() says (ETH-05) */
	const struct congestion *congestion; /* NULL: off (CNP-14) */
};

/** What rocid counts of each application and of each user (session/quota.h). If you add a kind, it
 * needs a row in session/quota.c. */
enum ctl_kind {
	CTL_SESSIONS, /* the applications themselves */
	CTL_QPS,
	CTL_CQS,
	CTL_KEYS, /* memory regions and windows */
	CTL_PDS,
	CTL_SRQS,
	CTL_XRCDS,
	CTL_AHS,
	CTL_GROUPS,	 /* multicast groups: of one of those that are in it */
	CTL_ATTACHMENTS, /* of QPs to them */
	CTL_CHANNELS,
	CTL_DESCRIPTORS, /* that rocid has open for them */
	CTL_MAPPINGS,	 /* of rocid's address space */
	CTL_MEMORY,	 /* bytes of registered memory that are mapped */
	CTL_QUEUES,	 /* bytes of queues, rocid's private copies included */
	CTL_LOOKUPS,	 /* destinations that the kernel is looking for */
	CTL_KINDS
};

/** The most of each kind: objects, or MB of memory and queues. 0: the default; UINT32_MAX: there is
 *  no limit. */
struct ctl_limits {
	uint32_t session[CTL_KINDS]; /* of an application */
	uint32_t user[CTL_KINDS];    /* of all applications of a user other than root */
};

/** What happened to a port's netdev. */
#define CTL_NETDEV_MAC	    (1u << 0) /* it has another MAC: what filters by it must change */
#define CTL_NETDEV_REPLACED (1u << 1) /* it is another netdev under the old name */
#define CTL_NETDEV_GONE	    (1u << 2) /* there is none of that name now */
#define CTL_NETDEV_VLANS    (1u << 3) /* there are other VLAN netdevs on top of it */
/** The kernel refused to join a multicast group on it, or on a VLAN of it. */
#define CTL_NETDEV_UNJOINED (1u << 4)

/** What a port's netdev is like now. */
struct ctl_netdev {
	uint8_t mac[6];
	uint32_t nvlans;
	uint32_t vlan[PORT_VLAN_MAX]; /* ifindex of each VLAN netdev on top of it that is up */
};

/** Told by the control thread, and by ctl_start() of VLAN netdevs that are there already. */
typedef void (*ctl_netdev_changed)(
	void *arg, uint32_t port, unsigned what, const struct ctl_netdev *netdev);

/** What only those who made the ports know of them and can do to them, for administrators. Ports
 *  count from 0. Called by the control thread; documents are jansson's, NULL when memory is short.
 */
struct ctl_devices {
	void *arg;
	/** What device a port is, and what it counts: an object. */
	struct json_t *(*port)(void *arg, uint32_t port);
	/** @return whether its device is there; not while a netdev that was made again could not be
	 *  opened. It may change with netdev_changed() and look(). */
	bool (*open)(void *arg, uint32_t port);
	/** Its emulated link: an object, or null when it has none. */
	struct json_t *(*link)(void *arg, uint32_t port);
	/** The i-th way that packets take to a queue, of all ports.  @return false behind the
	 * last. */
	bool (*flow)(void *arg, uint32_t i, struct json_t **flow);
	/** Has the emulated link of a port be as @p text says.
	 *  @return 0, or a negative errno with a sentence. */
	int (*impair)(void *arg, uint32_t port, const char *text, char why[ABI_SENTENCE_MAX]);
	/** Looks after the devices, each time that the control thread wakes.
	 *  @return milliseconds until it must be called again; -1: never. */
	int (*look)(void *arg, uint64_t now_ms);
	/** @return bytes of the shortest frame that a port's netdev refused lately; 0: none within
	 *  the last @p within_ms. */
	uint32_t (*refused)(void *arg, uint32_t port, uint64_t now_ms, uint64_t within_ms);
};

/** Copied by ctl_start(), what it points to included, except dp and devices. */
struct ctl_config {
	/** ctl_start() fills *dp->ports: count, MACs, P_Keys, MTU, GID tables. All other members
	 *  are the caller's and outlive the struct ctl. */
	struct dataplane *dp;
	const char *socket_path;  /* NULL: ABI_SOCKET_DEFAULT */
	uint32_t socket_mode;	  /* 0: 0660 */
	const char *socket_group; /* name or number; NULL: unchanged */
	uint32_t admin_mode;	  /* of the administrators' socket; 0: 0600 */
	const char *admin_group;
	bool rocev1; /* RoCEv1 entries beside the RoCEv2 ones (GID-02) */
	/** IPv6 headers have the address vector's flow label, be it 0, as those of Linux; else that
	 *  of the QPNs where it is 0 (IP6-09). */
	bool plain_label;
	struct ctl_limits limits;
	uint32_t window;	 /* packets in flight of a QP; 0: WINDOW_DEFAULT */
	bool application_faults; /* programs may inject faults into their own QPs (doc/inject.md) */
	bool application_macs;	 /* programs may choose a destination MAC (doc/decisions/0033) */
	/** With several workers: QPs move to the worker on whose queue their packets come in. */
	bool migrate;
	/** With several workers, not 0: so many milliseconds after one another up to 64 QPs move to
	 *  the next worker, wanted or not, to test rocid and programs. */
	uint32_t shake_ms;
	ctl_netdev_changed netdev_changed; /* NULL: nobody wants to know */
	void *netdev_arg;
	const struct ctl_devices *devices; /* outlives the struct ctl; NULL: none are known */
	uint32_t nports;
	struct ctl_port port[PORT_MAX];
};

/**
 * Opens the socket, reads the ports' addresses and publishes their tables.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0, or a negative errno: -EADDRINUSE another rocid serves the socket, -ENODEV no such
 * netdev, -EACCES, -ENOMEM, -EINVAL.
 */
int ctl_start(struct ctl **out, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX]);

/** Serves until ctl_stop().  @return 0, or a negative errno when epoll itself fails. */
int ctl_run(struct ctl *ctl);

/** Has ctl_run() return. Any thread; safe in signal handlers. */
void ctl_stop(struct ctl *ctl);

/** Ends all sessions, removes the socket and frees @p ctl. NULL is harmless. */
void ctl_destroy(struct ctl *ctl);

/**
 * Writes the sum of all workers' counters as one JSON object: the names of
 * core_counter_name(), and "drops" with those of drop_name(). Any thread.
 */
void ctl_stats_json(const struct dataplane *dp, FILE *f);

#endif
