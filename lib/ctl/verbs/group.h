/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/group.h
 * Multicast groups: which queue pairs have attached at which port, what workers see of that, and
 * what the link is to deliver for it (A17.5.6, MC-01..08). The kernel joins a RoCEv2 group on the
 * port's netdev and its VLANs', so that IGMP and MLD are spoken, and the netdevs let its MAC
 * through; a port without one has its own filter. Control thread.
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

/** Sockets that one group needs at most: the kernel lets each be in it on 20 netdevs, unless
 *  net.ipv4.igmp_max_memberships says otherwise. */
#define GROUP_SOCKETS ((1 + PORT_VLAN_MAX + 19) / 20)

/** The sockets that have joined a group, on as many netdevs each as the kernel lets it. */
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
	struct mcast_group *seen; /* what workers see */
	struct group_joins joins;
	struct session *payer; /* who is charged for it: one that is in it */
};

/** A QP in a group. */
struct member {
	struct list in_group; /* by session, and by serial within one */
	struct list in_qp;
	struct group *group;
	struct qp_obj *qp;
	uint32_t serial;
};

struct groups {
	struct list all;
	struct list again; /* those to be joined anew, in turn */
	uint32_t n;
	uint32_t serial; /* of the last attachment */
};

void groups_init(struct groups *g);

/**
 * Attaches @p o, whose port is @p port, to @p mgid. Once more is as once (MC-05).
 * @return 0 or a negative errno with a sentence.
 */
int group_attach(struct ctl *ctl, struct qp_obj *o, uint32_t port, const uint8_t mgid[16],
	char why[ABI_SENTENCE_MAX]);

/** Takes @p o out of @p mgid again.  @return 0, or -EINVAL: it was not in it (MC-05). */
int group_detach(struct ctl *ctl, struct qp_obj *o, const uint8_t mgid[16]);

/** Takes @p o, whose session ends, out of up to @p max of its groups.  @return of how many. */
uint32_t group_detach_some(struct ctl *ctl, struct qp_obj *o, uint32_t max);

/** @return the index of the port at which @p o is attached to all its groups, or -1: it has none.
 */
int group_port(const struct qp_obj *o);

/** Port @p port has another netdev now, one again, or another VLAN: has its groups joined there by
 *  groups_poll(). */
void groups_join_again(struct ctl *ctl, uint32_t port);

/** Joins some groups anew: there may be a thousand, on dozens of VLANs, and other commands come in
 *  between.  @return true while there are more. */
bool groups_poll(struct ctl *ctl);

#endif
