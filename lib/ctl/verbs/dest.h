/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/dest.h
 * Where the packets of QPs and AHs go, kept right while these live (A17.4.2, ETH-11): one entry a
 * source GID and destination, shared by all that have both. News of links, addresses, routes and
 * neighbours have an entry looked up again; the QPs of one that changed are readdressed, some
 * dozens at a time, to what holds when their turn comes. What the
 * kernel resolved is also asked for again now and then, so that it neither forgets the neighbour
 * nor believes in it for ever. Control thread.
 */
#ifndef VERBS_DEST_H
#define VERBS_DEST_H

#include <stdbool.h>
#include <stdint.h>
#include "hash.h"
#include "list.h"
#include "net/neigh.h"
#include "path.h"
#include "wheel.h"

struct ah_obj;
struct core_cmd;
struct ctl;
struct qp_obj;

#define DEST_BUCKETS 1024u

/** What tells one entry from another; no padding. */
struct dest_key {
	uint32_t port; /* index */
	uint32_t sgid; /* index into its GID table */
	uint8_t dgid[16];
	uint8_t given[6]; /* a group's, or the one that the application gave; zeroes: it is looked
			     up */
	uint8_t zero[2];
};

struct dest {
	struct list node; /* of dests.bucket[] */
	struct list hop;  /* of dests.hop[] */
	struct list qps;  /* of qp_obj.dest_node: their paths say what is below, */
	struct list late; /* and those of these QPs do not yet */
	struct list ahs;  /* the same of ah_obj.dest_node */
	struct list late_ahs;
	struct list turn; /* on dests.late while there are such */
	struct ctl *ctl;
	struct dest_key key;
	struct neigh_query query;
	bool pending; /* query waits for the kernel */
	/* what the paths of the QPs and AHs are to say */
	uint8_t dmac[6];
	uint8_t smac[6];
	bool local;
	struct wheel_timer timer; /* on dests.wheel */
	uint64_t due_ms;	  /* when to look again, UINT64_MAX for never */
	uint64_t checked_ms;	  /* when that was done last */
	uint64_t probe_ms;	  /* when the neighbour may be probed again */
	uint64_t probed_ms;	  /* when it was, and its answer is due; 0: it was not */
	uint8_t former[6];	  /* the MAC that it had */
	uint64_t moved_ms;	  /* until then; 0: it has had one only */
};

struct dests {
	struct hash_seed seed; /* programs choose most of a key */
	struct list bucket[DEST_BUCKETS];
	struct list hop[DEST_BUCKETS]; /* by the neighbour that the kernel named */
	struct wheel wheel;	       /* when they are due: programs make them by the thousand */
	struct list late;	       /* destinations with QPs or AHs to readdress, in turns */
	uint64_t probe_ms;	       /* when some neighbour may be probed again */
};

void dests_init(struct dests *d);

/**
 * Finds where packets from GID entry @p key->sgid to @p key->dgid go now.
 * @param q      the caller has set done; receives the MAC
 * @param local  receives whether the destination is the port itself
 * @return 0; -EINPROGRESS: q->done will be called by neigh_poll(); another negative errno with a
 * sentence.
 */
int dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q, bool *local,
	char why[ABI_SENTENCE_MAX]);

/** @return the entry of @p key, made when there is none, or NULL: no memory. Until a QP or AH
 *  joins it, it goes with dest_release(). */
struct dest *dest_get(struct ctl *ctl, const struct dest_key *key);

/** Frees @p d if nobody is in it. */
void dest_release(struct dest *d);

/** Puts @p o, whose path was just made as @p cmd says, into @p d and takes it from another. */
void dest_join(struct dest *d, struct qp_obj *o, const struct core_cmd *cmd);

/** Puts @p o, whose path was just made as o->spec and o->query say, into @p d. */
void dest_join_ah(struct dest *d, struct ah_obj *o, const uint8_t smac[6]);

/** @return another QP with the peer of @p o, which can be connected with one of them only; NULL:
 *  there is none among the first some hundred of that destination. */
const struct qp_obj *dest_rival(const struct qp_obj *o);

/** Takes @p o from its entry, if it is in one. */
void dest_leave(struct qp_obj *o);
void dest_leave_ah(struct ah_obj *o);

/** QPs of @p d were not answered in time: asks the neighbour whether it is still there, and if it
 *  does not answer, everybody who has its address now. Seldom, whatever applications do. */
void dest_probe(struct dest *d);

/** Has all entries of port @p port looked up soon. */
void dests_touch_port(struct ctl *ctl, uint32_t port);

/** Has all entries looked up soon. */
void dests_touch_all(struct ctl *ctl);

/** Has those looked up soon that are reached by neighbour @p nexthop of netdev @p ifindex. */
void dests_touch_neigh(struct ctl *ctl, uint32_t ifindex, const uint8_t nexthop[16]);

/** Looks up what is due, and readdresses some QPs: thousands may share a destination, and other
 *  commands come in between.  @return milliseconds until the next is, -1 for never. */
int dests_poll(struct ctl *ctl, uint64_t now_ms);

#endif
