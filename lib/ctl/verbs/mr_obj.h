/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/mr_obj.h
 * Protection domains and memory regions of a session.
 *
 * Withdrawing an object from the workers and freeing it are two steps, here and for other kinds of
 * object, with a grace period between them: one per command, but a single one for all objects of a
 * session that ends. Control thread.
 */
#ifndef VERBS_MR_OBJ_H
#define VERBS_MR_OBJ_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "mr.h"
#include "memory/huge.h"

struct mapping;
struct watch;
struct session;

struct pd {
	uint32_t number; /* unique in the daemon: mr.pd, qp.pd */
	uint32_t users;	 /* MRs, MWs, SRQs, AHs, QPs */
	uint32_t handle;
};

struct mr_obj {
	struct mr mr;		 /* the part that workers use */
	struct mapping *mapping; /* NULL: it has no bytes */
	uint64_t charged;	 /* bytes of CTL_MEMORY */
	struct session *session;
	struct pd *pd;
	uint32_t handle;
	/* a REG_MR whose huge pages are being populated, or a region that is being mapped ahead */
	struct huge_job job;
	bool warming;
	struct abi_msg request;
};

/** Withdraws @p o from the MR table. */
void mr_unpublish(struct mr_obj *o);

/** Frees @p o, after a grace period. */
void mr_release(struct mr_obj *o);

/** objects.populated: memory/huge.h has finished with regions. */
void mrs_populated(struct watch *w);

/** Cancels an unfinished REG_MR of @p s, if there is one, without a reply. */
void mr_give_up(struct session *s);

/** session_ops.mr_faulted */
struct session *mr_faulted(void *mapping);

void pd_release(struct session *s, struct pd *pd);

#endif
