/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file network.h
 * Hosts, switches and the cables between them. Hosts are numbered from 0, and each has one cable;
 * switches are sw0, sw1 and so on, and their ports are numbered in the order of the cables.
 */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdbool.h>
#include <stdint.h>

struct switch_way;

#define HOSTS_MAX    4096u
#define SWITCHES_MAX 1024u
#define LINKS_MAX    16384u

/** A cable. Its ends are nodes: hosts first, then switches. */
struct net_link {
	uint32_t a, b;
	uint64_t rate;	/* bit/s */
	uint64_t delay; /* ns */
};

struct network {
	uint32_t hosts, switches;
	uint32_t links;
	struct net_link link[LINKS_MAX];
};

/** Parameters of the known topologies. */
struct net_shape {
	uint64_t hosts; /* or senders; of leaf-spine: per leaf */
	uint64_t hops;	/* of the parking lot */
	uint64_t leaves, spines;
	uint64_t k;	   /* of the fat tree: an even number of ports per switch */
	uint64_t rate;	   /* of each cable, bit/s */
	uint64_t receiver; /* of the star's receiver; 0: `rate` */
	uint64_t uplink;   /* between switches; 0: `rate` */
	uint64_t delay;	   /* ns, of each cable */
};

/* Each builds @p n. @return false: it would be larger than a network can be */
bool net_star(struct network *n, const struct net_shape *s);
bool net_dumbbell(struct network *n, const struct net_shape *s);
bool net_parking_lot(struct network *n, const struct net_shape *s);
bool net_victim(struct network *n, const struct net_shape *s);
bool net_leaf_spine(struct network *n, const struct net_shape *s);
bool net_fat_tree(struct network *n, const struct net_shape *s);

/** Adds a cable. @return false: no room */
bool net_join(struct network *n, uint32_t a, uint32_t b, uint64_t rate, uint64_t delay);

/** @return how many ports switch @p sw has. */
uint32_t net_ports(const struct network *n, uint32_t sw);

/** @return whether @p name is a port such as "sw0.8": @p port of switch @p sw. */
bool net_port_named(const struct network *n, const char *name, uint32_t *sw, uint32_t *port);

/** @return the node at the other end of port @p port of switch @p sw; UINT32_MAX: none. */
uint32_t net_peer(const struct network *n, uint32_t sw, uint32_t port);

/** @return the cable of host @p host, or NULL. */
const struct net_link *net_cable(const struct network *n, uint32_t host);

/** The shortest paths from one switch to all hosts. */
struct net_routes {
	struct switch_way *way; /* by the host's id, which is its number + 1 */
	uint16_t *next;
	uint32_t nexts;
};

/** Finds all shortest paths; @p r has one element per switch. @return false: no memory */
bool net_route(const struct network *n, struct net_routes *r);
void net_routes_free(struct net_routes *r, uint32_t switches);

#endif
