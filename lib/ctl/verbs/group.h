/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/group.h
 * Multicast groups: the queue pairs attached per port, the copy that workers read, and the
 * memberships on the link (A17.5.6, MC-01..08). The kernel joins a RoCEv2 group on the port's
 * netdev and its VLAN netdevs, so that it speaks IGMP and MLD and the netdevs accept the group's
 * MAC; a port without a netdev has its own filter. Control thread.
 */
#ifndef VERBS_GROUP_H
#define VERBS_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "limits.h"
#include "list.h"

struct ctl;
struct mcast_group;
struct qp_obj;
struct session;

/** Maximum number of sockets per group: the kernel lets each join on 20 netdevs, unless
 *  net.ipv4.igmp_max_memberships says otherwise. */
#define GROUP_SOCKETS ((1 + PORT_VLAN_MAX + 19) / 20)

/** The sockets that have joined a group, each on as many netdevs as the kernel allows. */
struct group_joins {
	int fd[GROUP_SOCKETS];
	uint32_t n;
};

struct group {
	struct list node;  /* of groups.all */
	struct list again; /* on groups.again */
	struct list members;
	uint32_t nmembers;
	uint32_t port; /* index */
	uint8_t mgid[16];
	struct mcast_group *seen; /* the copy that workers read */
	struct group_joins joins;
	struct session *payer; /* the member session that is charged for it */
};

/** A QP in a group. */
struct member {
	struct list in_group; /* by session, then by serial */
	struct list in_qp;
	struct group *group;
	struct qp_obj *qp;
	uint32_t serial;
};

struct groups {
	struct list all;
	struct list again; /* groups to join again, in turn */
	uint32_t n;
	uint32_t serial; /* of the last attachment */
};

void groups_init(struct groups *g);

/**
 * Attaches @p o, whose port is @p port, to @p mgid. Repeating it has no effect (MC-05).
 * @return 0 or a negative errno with a sentence.
 */
int group_attach(struct ctl *ctl, struct qp_obj *o, uint32_t port, const uint8_t mgid[16],
	char why[ABI_SENTENCE_MAX]);

/** Detaches @p o from @p mgid.  @return 0, or -EINVAL: it was not attached (MC-05). */
int group_detach(struct ctl *ctl, struct qp_obj *o, const uint8_t mgid[16]);

/** Detaches @p o, whose session is being closed, from up to @p max of its groups.  @return how
 * many. */
uint32_t group_detach_some(struct ctl *ctl, struct qp_obj *o, uint32_t max);

/** @return the index of the port at which @p o is attached to its groups, or -1: it has none. */
int group_port(const struct qp_obj *o);

/** Schedules the groups of port @p port, whose netdev or VLANs have changed, to be joined again by
 *  groups_poll(). */
void groups_join_again(struct ctl *ctl, uint32_t port);

/** Joins some groups again: there may be a thousand, on dozens of VLANs, and other commands take
 *  their turn in between.  @return true while there are more. */
bool groups_poll(struct ctl *ctl);

#endif
