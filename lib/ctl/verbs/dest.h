/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/dest.h
 * The destinations of QPs and AHs, kept up to date (A17.4.2, ETH-11): one entry per source GID and
 * destination, shared by all QPs and AHs with both. News of links, addresses, routes and neighbours
 * cause another lookup; if an entry changes, its QPs are readdressed some dozens at a time, each to
 * the destination that is valid at its turn. Lookups by the kernel are also repeated periodically,
 * so that it neither forgets a neighbour nor trusts a stale one for ever. Control thread.
 */
#ifndef VERBS_DEST_H
#define VERBS_DEST_H

#include <stdbool.h>
#include <stdint.h>
#include "list.h"
#include "net/neigh.h"
#include "wheel.h"

struct ah_obj;
struct core_cmd;
struct ctl;
struct hash_seed;
struct qp_obj;

#define DEST_BUCKETS 1024u

struct dest {
	struct list node; /* of dests.bucket[] */
	struct list hop;  /* of dests.hop[] */
	struct list qps;  /* qp_obj.dest_node of QPs whose paths are up to date */
	struct list late; /* and of those whose paths are not yet */
	struct list ahs;  /* the same for ah_obj.dest_node */
	struct list late_ahs;
	struct list turn; /* on dests.late while a late list has entries */
	struct ctl *ctl;
	struct dest_key key;
	struct neigh_query query;
	bool pending; /* the query waits for the kernel */
	/* the present destination, for the paths of the QPs and AHs */
	uint8_t dmac[6];
	uint8_t smac[6];
	bool local;
	struct wheel_timer timer; /* on dests.wheel */
	uint64_t due_ms;	  /* time of the next lookup, UINT64_MAX for never */
	uint64_t checked_ms;	  /* time of the last lookup */
	uint64_t probe_ms;	  /* earliest time of the next probe of the neighbour */
	uint64_t probed_ms;	  /* time of a probe whose answer is due; 0: none */
	uint8_t former[6];	  /* the previous MAC */
	uint64_t moved_ms;	  /* when it was replaced; 0: never */
};

struct dests {
	struct hash_seed *seed; /* programs choose most of a key */
	struct list bucket[DEST_BUCKETS];
	struct list hop[DEST_BUCKETS]; /* by the neighbour that the kernel named */
	struct wheel wheel;	       /* due times: programs create thousands of entries */
	struct list late;	       /* destinations with QPs or AHs to readdress, in turn */
	uint64_t probe_ms;	       /* earliest time of the next probe of any neighbour */
};

void dests_init(struct dests *d);

/**
 * Resolves the present destination of packets from GID entry @p key->sgid to @p key->dgid.
 * @param q      the caller has set done; receives the MAC
 * @param local  receives whether the destination is the port itself
 * @return 0; -EINPROGRESS: neigh_poll() will call q->done; another negative errno with a sentence.
 */
int dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q, bool *local,
	char why[ABI_SENTENCE_MAX]);

/** @return the entry of @p key, created if there is none, or NULL: out of memory. If no QP or AH
 *  joins it, dest_release() frees it. */
struct dest *dest_get(struct ctl *ctl, const struct dest_key *key);

/** Frees @p d if no QP or AH uses it. */
void dest_release(struct dest *d);

/** Adds @p o, whose path was just set by @p cmd, to @p d, and removes it from its former entry. */
void dest_join(struct dest *d, struct qp_obj *o, const struct core_cmd *cmd);

/** Adds @p o, whose path was just made from o->spec and o->query, to @p d. */
void dest_join_ah(struct dest *d, struct ah_obj *o, const uint8_t smac[6]);

/** @return another QP with the same peer QP as @p o, which can be connected with only one of them;
 *  NULL: none among the first few hundred QPs of the destination. */
const struct qp_obj *dest_rival(const struct qp_obj *o);

/** Removes @p o from its entry, if it has one. */
void dest_leave(struct qp_obj *o);
void dest_leave_ah(struct ah_obj *o);

/** QPs of @p d timed out: probes the neighbour and, if it does not answer, queries the whole link
 *  for the present owner of its address. Rate-limited, whatever applications do. */
void dest_probe(struct dest *d);

/** Schedules a lookup of all entries of port @p port. */
void dests_touch_port(struct ctl *ctl, uint32_t port);

/** Schedules a lookup of all entries. */
void dests_touch_all(struct ctl *ctl);

/** Schedules a lookup of the entries reached through neighbour @p nexthop of netdev @p ifindex. */
void dests_touch_neigh(struct ctl *ctl, uint32_t ifindex, const uint8_t nexthop[16]);

/** Looks up entries that are due, and readdresses some QPs: thousands may share a destination, and
 *  other commands take their turn in between.  @return milliseconds until the next call, -1 for
 *  never. */
int dests_poll(struct ctl *ctl, uint64_t now_ms);

#endif
