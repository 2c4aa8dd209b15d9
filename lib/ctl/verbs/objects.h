/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/objects.h
 * Shared by the objects of all sessions: numbers, tables, destinations, groups. Control thread.
 */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include <stdint.h>
#include "abi_ctl.h"
#include "limits.h"
#include "loop/loop.h"
#include "session/handles.h"
#include "session/ids.h"

struct core_event;
struct ctl;
struct dests;
struct event_source;
struct groups;
struct hash_seed;
struct huge;
struct migration;
struct mr_obj;
struct qp_obj;
struct session;

struct objects {
	struct ctl *ctl;
	struct dests *dests;
	struct groups *groups;
	struct handles pds;   /* of all sessions; the handles are the core's PD numbers */
	struct handles xrcds; /* likewise */
	struct handles ahs;   /* of all sessions; the handles are the ids in work requests */
	struct qpn_pool qpns;
	struct srqn_pool srqns;
	struct key_pool keys;
	uint32_t worker_qps[WORKER_MAX]; /* programs' QPs per worker, to place new ones */
	struct migration *migration;
	uint32_t ninjected; /* QPs with injected faults: verbs/fault.c */
	struct huge *huge;
	struct watch populated; /* eventfd: huge.h has finished with a region */
};

/** Prepares @p all, which starts as zeroes.  @return 0, or a negative errno with a sentence; call
 *  objects_destroy() in either case.
 *  @param dests  receives the seed of the destinations */
int objects_init(
	struct objects *all, struct ctl *ctl, struct hash_seed *dests, char why[ABI_SENTENCE_MAX]);

/** Frees @p all, once no object is left. */
void objects_destroy(struct objects *all);

/** Objects of any session, by the numbers that administrators and peers use. Objects of a session
 *  that is being closed are not found. */

/** @return the session with that number, or NULL. */
struct session *find_session(const struct ctl *ctl, uint64_t number);

/** @return the QP with that QPN, or NULL. */
struct qp_obj *find_qp(const struct ctl *ctl, uint64_t qpn);

/** @param owner receives its session  @return the region with that key, or NULL. */
struct mr_obj *find_mr(const struct ctl *ctl, uint64_t key, struct session **owner);

/** Finds the object of a worker's event for the notifier (notifier_find). */
struct event_source *objects_event_source(void *ctl, const struct core_event *ev);

#endif
