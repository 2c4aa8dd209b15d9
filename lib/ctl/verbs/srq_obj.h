/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/srq_obj.h
 * Shared receive queues of a session. Control thread.
 */
#ifndef VERBS_SRQ_OBJ_H
#define VERBS_SRQ_OBJ_H

#include <stdint.h>
#include "memory/shm.h"
#include "session/notifier.h"
#include "srq.h"

struct session;

struct cq_obj;
struct pd;
struct xrcd_ref;

struct srq_obj {
	struct srq srq;	     /* the part that workers use */
	struct shm region;   /* the first one; the SRQ keeps its head */
	struct shm resized;  /* holds the entries after a resize */
	struct srq_ring *at; /* the ring that srq.ring points to */
	struct session *session;
	struct pd *pd;
	struct cq_obj *cq;     /* of an XRC SRQ; NULL: not XRC */
	struct xrcd_ref *xrcd; /* likewise */
	uint32_t users;	       /* QPs */
	struct event_source async;
};

/** Withdraws @p o from the SRQ table. */
void srq_unpublish(struct srq_obj *o);

/** Frees @p o, which no QP uses, after a grace period. */
void srq_release(struct srq_obj *o);

#endif
