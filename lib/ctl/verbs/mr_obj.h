/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/mr_obj.h
 * Protection domains and memory regions of a session.
 *
 * Objects of every kind are taken from the workers (unpublish, detach) and freed (release) in two
 * steps, because a grace period lies between: one per command, but a single one for all objects of
 * a session that ends. Control thread.
 */
#ifndef VERBS_MR_OBJ_H
#define VERBS_MR_OBJ_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "mr.h"
#include "session/huge.h"
#include "session/shm.h"

struct watch;
struct ctl;
struct session;

struct pd {
	uint32_t number; /* unique in the daemon: mr.pd, qp.pd */
	uint32_t users;	 /* MRs, MWs, SRQs, AHs, QPs */
	uint32_t handle;
};

struct mr_obj {
	struct mr mr; /* what workers see */
	struct shm map;
	struct session *session;
	struct pd *pd;
	uint32_t handle;
	bool faulted; /* and counts as such */
	/* a REG_MR whose huge pages are being touched */
	struct huge_job job;
	struct abi_msg request;
};

/** Takes @p o from the MR table. */
void mr_unpublish(struct mr_obj *o);

/** After a grace period. */
void mr_release(struct mr_obj *o);

/** objects.populated: session/huge.h is done with regions. */
void mrs_populated(struct watch *w);

/** Gives an unfinished REG_MR of @p s up, if there is one, without a reply. */
void mr_give_up(struct session *s);

/** session_ops.mr_faulted */
struct session *mr_faulted(void *mr);

void pd_release(struct session *s, struct pd *pd);

#endif
