/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file options.h
 * The values of rocid's own arguments, those after "--" (arguments.h), and of the entries of its
 * configuration file (config.h): the same names, the same values, one table (option_table.h).
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>
#include <rte_ethdev.h>
#include "config/config.h"
#include "limits.h"
#include "path.h"
#include "worker.h"

struct icrc_ops;
struct option_links;

/** Longest value of an option, in bytes with the NUL. */
#define VALUE_MAX 256
/** Configuration files per command line. */
#define CONFIG_MAX 8u
/** Maximum of each: static GIDs, neighbours and P_Keys. */
#define STATIC_MAX 256u
/** EAL arguments that a configuration file can hold, with values. */
#define EAL_ENTRIES_MAX 64u
/** No port number: --share creates a new port. */
#define PORT_NEW UINT32_MAX
/** A port as an argument names it: below PORT_MAX its number, above that its name,
 *  options.name[slot - PORT_MAX], until options_resolve() knows the number. */
#define PORT_SLOTS (2 * PORT_MAX)

struct option_share {
	uint32_t port; /* slot, or PORT_NEW */
	char netdev[IFNAMSIZ];
};

struct option_tap {
	uint32_t port;
	char netdev[IFNAMSIZ]; /* empty: the port's default */
};

/** --ipoib: netdevs of IP over InfiniBand. */
struct option_ipoib {
	uint32_t port;
	char netdev[IFNAMSIZ];
	uint16_t pkey;
	uint16_t mtu;
};

#define IPOIB_NETDEVS_MAX 16u

struct option_gid {
	uint32_t port;
	struct ctl_gid gid;
};

struct option_neigh {
	uint32_t port;
	struct ctl_neigh neigh;
};

struct option_pkey {
	uint32_t port;
	struct ctl_pkey pkey;
};

/** How packet sockets of --share send runs of frames. */
enum gso {
	GSO_NO,	  /* singly, by DPDK's driver */
	GSO_YES,  /* as one, to all peers (gso/gso.h) */
	GSO_AUTO, /* as one, to the peers that are seen to take it */
};

enum stats_format {
	STATS_NONE,
	STATS_TEXT,
	STATS_JSON,
};

struct options {
	char socket[VALUE_MAX];
	char socket_group[VALUE_MAX]; /* empty: unchanged */
	uint32_t socket_mode;	      /* 0: ctl's default */
	char admin_group[VALUE_MAX];
	uint32_t admin_mode;
	struct ctl_limits limits;
	bool application_faults;
	bool application_macs;
	bool no_cm;
	uint32_t cm_timeout, cm_retries; /* 0: those of Linux */
	bool no_userfaultfd;
	char device[16]; /* empty: ctl's default */
	uint32_t workers;
	uint32_t window;	/* 0: the core's default */
	bool rocev1, cm_rocev1; /* programs connect by it */
	enum gso gso;
	enum idle idle;
	bool migrate;
	uint32_t shake_ms;	     /* --migrate MS; 0: off */
	const struct icrc_ops *icrc; /* NULL: the best */
	uint32_t nshares;
	struct option_share share[PORT_MAX];
	uint32_t ntaps;
	struct option_tap tap[PORT_MAX];
	uint32_t nipoibs;
	struct option_ipoib ipoib[IPOIB_NETDEVS_MAX];
	uint32_t ngids;
	struct option_gid gid[STATIC_MAX];
	uint32_t nneighs;
	struct option_neigh neigh[STATIC_MAX];
	uint32_t npkeys;
	struct option_pkey pkey[STATIC_MAX];
	bool plain_label;	     /* --flow-label av */
	uint16_t mtu[PORT_SLOTS];    /* 0: unchanged */
	uint16_t queues[PORT_SLOTS]; /* of the peer; 0: unknown */
	bool prioritized[PORT_SLOTS];
	struct priority_map priority[PORT_SLOTS];
	bool congested[PORT_SLOTS]; /* --cc was said of it */
	bool impaired[PORT_SLOTS];
	uint32_t npairs;
	struct option_links *links;
	int ready_fd; /* -1: none */
	enum stats_format stats;
	bool interactive;
	char cmdline_file[VALUE_MAX]; /* empty: none */
	bool help;
	bool version;
	bool check; /* check everything, start nothing */
	/** Highest port number in an argument, -1 for none, and that argument. */
	int highest_port;
	char highest_by[32];
	/** Ports that arguments refer to by name, and the first such argument. */
	uint32_t nnames;
	char name[PORT_MAX][RTE_ETH_NAME_MAX_LEN];
	char named_by[PORT_MAX][32];
	/** Configuration files that were read, in this order. */
	uint32_t nconfigs;
	const char *config[CONFIG_MAX];
	/** Entries of the files' [eal] sections, as EAL takes them: "--vdev=net_ring0". */
	uint32_t neal;
	char eal[EAL_ENTRIES_MAX][VALUE_MAX + 32];
	unsigned faults; /* --check-config: how many sentences were printed */
};

#endif
