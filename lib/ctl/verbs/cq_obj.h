/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/cq_obj.h
 * Completion channels and completion queues of a session. Control thread.
 */
#ifndef VERBS_CQ_OBJ_H
#define VERBS_CQ_OBJ_H

#include <stdint.h>
#include "cq.h"
#include "memory/shm.h"
#include "session/notifier.h"

struct session;

struct cq_obj {
	struct cq cq; /* the part that workers use */
	struct session *session;
	struct shm ring;	 /* the first one; the CQ keeps its head */
	struct shm resized;	 /* the one in use after RESIZE_CQ */
	uint32_t users;		 /* QP sides that complete here */
	struct channel *channel; /* NULL: none */
	struct event_source completion;
	struct event_source async;
};

/** @return the handle of @p cq, or -1 for NULL. */
static inline int64_t cq_handle(const struct cq_obj *cq)
{
	return cq ? (int64_t)cq->cq.handle : -1;
}

/** Frees @p o, after a grace period. */
void cq_release(struct cq_obj *o);

void channel_release(struct session *s, struct channel *ch);

#endif
