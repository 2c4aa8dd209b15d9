/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/av.h
 * Address vectors of queue pairs and address handles: checks a program's attributes and turns them
 * into the specification of a path (A17.4.2, ETH-05, ETH-06, GID-05, GID-06). Control thread.
 */
#ifndef VERBS_AV_H
#define VERBS_AV_H

#include <stdbool.h>
#include "abi_ctl.h"
#include "path.h"

struct ctl;
struct dest_key;
struct neigh_query;
struct session;

/** Checks port, GRH and service level of @p ah.
 *  @return 0 or -EINVAL with a sentence. */
int av_check(const struct ctl *ctl, const struct abi_ah_attr *ah, char why[ABI_SENTENCE_MAX]);

/** @return whether @p gid addresses a single host. */
bool av_is_unicast(const uint8_t gid[16]);

/**
 * Fills @p key for dest_find(): the port, entry @p ah->sgid_index, the DGID, and the MAC if the
 * program gave one and may (ETH-11).
 * @return 0; or -EPERM if it may not, or -EINVAL, with a sentence.
 */
int av_dest_key(const struct ctl *ctl, const struct abi_ah_attr *ah, struct dest_key *key,
	char why[ABI_SENTENCE_MAX]);

/**
 * Resolves the MAC of destination @p key. The caller has set q->done.
 * @param local  receives whether it is this daemon
 * @return 0 and q->mac; DEFERRED: q->done will be called, and the lookup is charged to CTL_LOOKUPS
 * until then; or a negative errno with a sentence.
 */
int av_find(struct session *s, const struct dest_key *key, struct neigh_query *q, bool *local,
	char why[ABI_SENTENCE_MAX]);

/** @return whether packets that leave by port @p port (index) are ECN-capable now. */
bool av_ect(const struct ctl *ctl, uint32_t port);

/** Fills @p p from @p ah, which av_check() and gids_select() have accepted, and its port's
 * settings; the caller sets the SGID entry and the result of dest_find(). */
void av_path(const struct ctl *ctl, const struct abi_ah_attr *ah, struct path_spec *p);

#endif
