/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/neigh.h
 * Resolves destination MACs (A17.4.2, ETH-11, ETH-12) by the static table, or by the kernel's
 * routes and neighbours. The kernel may have to query the link first; nobody else waits for that.
 * Control thread.
 */
#ifndef NET_NEIGH_H
#define NET_NEIGH_H

#include <stdint.h>
#include "abi_ctl.h"
#include "list.h"

/** Time for the kernel to resolve a neighbour, as in Linux's own resolver for RoCE. */
#define NEIGH_TIMEOUT_MS 3000

struct neigh_query;
struct netport;
struct rtnl;

/** @param err  0 and a MAC, or -EHOSTUNREACH or -ETIMEDOUT and a sentence. */
typedef void (*neigh_done)(struct neigh_query *q, int err, const char *why);

/** The key of a destination (verbs/dest.h); no padding. */
struct dest_key {
	uint32_t port; /* index */
	uint32_t sgid; /* index into its GID table */
	uint8_t dgid[16];
	uint8_t given[6]; /* MAC of a group or from the application; zeroes: look it up */
	uint8_t zero[2];
};

/** One unfinished resolution; its memory is the caller's. */
struct neigh_query {
	struct list node;
	const struct netport *port;
	uint32_t netdev; /* ifindex of the netdev with the source GID: the port's or a VLAN's */
	uint8_t dgid[16];
	uint8_t nexthop[16];
	uint8_t mac[6];	  /* the result */
	uint32_t ifindex; /* the netdev of the neighbour; 0: no kernel lookup */
	uint64_t next_ms; /* when to look again */
	uint64_t deadline_ms;
	unsigned pause; /* index of the pause that ends at next_ms */
	int last_err;
	neigh_done done;
};

/** Number of pauses between lookups: 1 ms, then twice as long each time. */
#define NEIGH_PAUSES 8u

struct neigh_queue {
	struct rtnl *nl;
	struct list pending[NEIGH_PAUSES]; /* by pause, each in order of next_ms */
	unsigned first;			   /* pause with which the next round starts */
};

void neigh_queue_init(struct neigh_queue *nq, struct rtnl *nl);

/**
 * Resolves the MAC for packets from @p sgid (NULL: any) to @p q->dgid. The caller has set port,
 * netdev, dgid and done.
 * @return 0 and q->mac; -EINPROGRESS: neigh_poll() will call q->done; another negative errno with a
 * sentence in @p why.
 */
int neigh_resolve(struct neigh_queue *nq, struct neigh_query *q, const uint8_t *sgid,
	uint64_t now_ms, char why[ABI_SENTENCE_MAX]);

/** Cancels @p q; harmless if it is not pending. */
void neigh_cancel(struct neigh_query *q);

/** Looks up the queries that are due.  @return milliseconds until the next one, -1 for never. */
int neigh_poll(struct neigh_queue *nq, uint64_t now_ms);

#endif
