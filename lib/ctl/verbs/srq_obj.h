/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/srq_obj.h
 * Shared receive queues of a session. Control thread.
 */
#ifndef VERBS_SRQ_OBJ_H
#define VERBS_SRQ_OBJ_H

#include <stdint.h>
#include "session/notifier.h"
#include "session/shm.h"
#include "srq.h"

struct ctl;
struct session;

struct cq_obj;
struct pd;
struct xrcd_ref;

struct srq_obj {
	struct srq srq;	     /* what workers see */
	struct shm region;   /* the first one; its head is the SRQ's for ever */
	struct shm resized;  /* where the entries are, after a resize */
	struct srq_ring *at; /* what srq.ring points to */
	struct session *session;
	struct pd *pd;
	struct cq_obj *cq;     /* XRC; NULL: it is none */
	struct xrcd_ref *xrcd; /* likewise */
	uint32_t users;	       /* QPs */
	struct event_source async;
};

/** Takes @p o from the SRQ table. */
void srq_unpublish(struct srq_obj *o);

/** After a grace period, when no QP uses it. */
void srq_release(struct srq_obj *o);

#endif
