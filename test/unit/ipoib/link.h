/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts with netdevs of IP over InfiniBand on one link, in virtual time: what the kernel of each
 * has heard, ARP and neighbour discovery of its own, and datagrams that the link loses. */
#ifndef LINK_H
#define LINK_H

#include "ipoib.h"

#define HOSTS 6u
#define ROOM  8192u

struct host {
	struct ipoib *s;
	struct ipoib_config cfg;
	uint8_t ip[4], ip6[16];
	bool silent;	       /* no process there: nothing arrives */
	bool deaf;	       /* address handles to it cannot be made */
	uint8_t mac[HOSTS][6]; /* as its kernel has it, by host */
	bool knows[HOSTS];
	uint8_t mac6[HOSTS][6]; /* likewise, by neighbour discovery */
	bool knows6[HOSTS];
	uint64_t heard4[HOSTS], heard6[HOSTS]; /* when a packet came from that address */
	unsigned got;			       /* IP packets */
	uint8_t last[ROOM];		       /* the last frame of its kernel */
	uint32_t last_len;
};

struct link {
	struct host host[HOSTS];
	uint64_t now;
	uint16_t vid;  /* of frames that come by host_datagram() */
	unsigned lose; /* one datagram of this many; 0: none */
	unsigned sent;
	unsigned loss;	 /* per cent of the datagrams, at each receiver by chance */
	uint32_t random; /* from a seed */
	unsigned misled; /* packets that came to a host without the address that they were for */
	unsigned asked;	 /* address handles made */
};

void link_init(struct link *l);
void link_fini(struct link *l);

/* The host starts anew, with another QP; its kernel has forgotten nothing. */
void host_restart(struct link *l, unsigned i, uint32_t qpn);

/* A frame of the kernel of host i. @return whether a datagram left at once. */
bool host_frame(struct link *l, unsigned i, const uint8_t *frame, uint32_t len);

/* Its kernel asks for the address of host k. */
void host_arp(struct link *l, unsigned i, unsigned k);

/* An IPv4 packet to host k, whose MAC it knows. */
bool host_ip(struct link *l, unsigned i, unsigned k);

/* The same for IPv6. */
void host_solicit(struct link *l, unsigned i, unsigned k);
void host_ip6(struct link *l, unsigned i, unsigned k);

/* A datagram for host i, with a GRH area, its source as given. @return whether its kernel got a
 * frame. */
bool host_datagram(struct link *l, unsigned i, const struct ipoib_addr *from, bool group,
	const uint8_t *payload, uint32_t len);

/* Lets time pass, and whatever is due happen. */
void link_run(struct link *l, uint64_t ns);

/* A place of its table of neighbours, below NEIGH_MAX. */
struct neigh *host_neigh(const struct link *l, unsigned i, uint32_t place);

uint64_t host_count(const struct link *l, unsigned i, enum ipoib_count c);

#endif
