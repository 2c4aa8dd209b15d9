/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/neigh.h
 * Destination MACs (A17.4.2, ETH-11, ETH-12): the static table, or the kernel's routes and
 * neighbours. The kernel may have to ask the link first; nobody else waits meanwhile.
 * Control thread.
 */
#ifndef NET_NEIGH_H
#define NET_NEIGH_H

#include <stdint.h>
#include "abi_ctl.h"
#include "list.h"

/** How long the kernel may ask, as Linux's own resolver for RoCE does. */
#define NEIGH_TIMEOUT_MS 3000

struct neigh_query;
struct netport;
struct rtnl;

/** @param err  0 and a MAC, or -EHOSTUNREACH or -ETIMEDOUT and a sentence. */
typedef void (*neigh_done)(struct neigh_query *q, int err, const char *why);

/** One unfinished resolution; its memory is the caller's. */
struct neigh_query {
	struct list node;
	const struct netport *port;
	uint32_t netdev; /* ifindex of the one that has the source GID: the port's or a VLAN's */
	uint8_t dgid[16];
	uint8_t nexthop[16];
	uint8_t mac[6];	  /* the result */
	uint32_t ifindex; /* the netdev that was asked; 0: none was */
	uint64_t next_ms; /* when to look again, */
	uint64_t deadline_ms;
	unsigned pause; /* which of the pauses ends then */
	int last_err;
	neigh_done done;
};

/** Pauses between two looks: of 1 ms, and then twice as long each time. */
#define NEIGH_PAUSES 8u

struct neigh_queue {
	struct rtnl *nl;
	struct list pending[NEIGH_PAUSES]; /* by pause, and so by the time of the next look */
	unsigned first;			   /* pause that the next round begins with */
};

void neigh_queue_init(struct neigh_queue *nq, struct rtnl *nl);

/**
 * Looks for the MAC that packets from @p sgid, NULL: any, to @p q->dgid go to. The caller has set
 * port, netdev, dgid and done.
 * @return 0 and q->mac; -EINPROGRESS: q->done will be called by neigh_poll(); another negative
 * errno with a sentence in @p why.
 */
int neigh_resolve(struct neigh_queue *nq, struct neigh_query *q, const uint8_t *sgid,
	uint64_t now_ms, char why[ABI_SENTENCE_MAX]);

/** Gives @p q up; harmless when it is not pending. */
void neigh_cancel(struct neigh_query *q);

/** Looks again where it is time to.  @return milliseconds until the next look, -1 for never. */
int neigh_poll(struct neigh_queue *nq, uint64_t now_ms);

#endif
