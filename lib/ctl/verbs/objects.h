/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/objects.h
 * What the objects of all sessions share: numbers, tables, destinations, groups. Control thread.
 */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include <stdint.h>
#include "abi_ctl.h"
#include "limits.h"
#include "loop/loop.h"
#include "session/handles.h"
#include "session/ids.h"
#include "verbs/dest.h"
#include "verbs/group.h"
#include "verbs/migrate.h"

struct core_event;
struct ctl;
struct huge;
struct mr_obj;
struct qp_obj;
struct session;

struct objects {
	struct ctl *ctl;
	struct dests dests;
	struct groups groups;
	struct handles pds;   /* of all sessions: their handles are core's PD numbers */
	struct handles xrcds; /* likewise */
	struct handles ahs;   /* of all sessions: their handles are the ids of work requests */
	struct qpn_pool qpns;
	struct srqn_pool srqns;
	struct key_pool keys;
	uint32_t worker_qps[WORKER_MAX]; /* for placing new ones */
	struct migration migration;
	uint32_t ninjected; /* QPs that have faults: verbs/fault.c */
	struct huge *huge;
	struct watch populated; /* eventfd: huge.h is done with a region */
};

/** Prepares @p all, which starts as zeroes.  @return 0, or a negative errno with a sentence;
 *  objects_destroy() then, too. */
int objects_init(struct objects *all, struct ctl *ctl, char why[ABI_SENTENCE_MAX]);

/** No object is left. */
void objects_destroy(struct objects *all);

/** Objects of whatever session, by the numbers under which administrators and peers know them. What
 *  belongs to a session that is ending is not found. */

/** @return the session of that number, or NULL. */
struct session *find_session(const struct ctl *ctl, uint64_t number);

/** @return the QP of that QPN, or NULL. */
struct qp_obj *find_qp(const struct ctl *ctl, uint64_t qpn);

/** @param owner receives its session  @return the region of that key, or NULL. */
struct mr_obj *find_mr(const struct ctl *ctl, uint64_t key, struct session **owner);

/** The notifier's way from an event of a worker to its object (notifier_find). */
struct event_source *objects_event_source(void *ctl, const struct core_event *ev);

#endif
