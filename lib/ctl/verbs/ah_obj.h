/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/ah_obj.h
 * Address handles of a session. Control thread.
 */
#ifndef VERBS_AH_OBJ_H
#define VERBS_AH_OBJ_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "list.h"
#include "net/gids.h"
#include "net/neigh.h"
#include "path.h"

struct ctl;
struct session;

struct ah;
struct dest;
struct pd;

struct ah_obj {
	struct ah *ah; /* the part that workers use; NULL: not published yet */
	struct session *session;
	struct pd *pd;
	uint32_t id;	  /* handle in objects.ahs; 0: none yet */
	struct list node; /* on session.ahs or session.ahs_gone */
	struct gid_hold hold;
	struct dest *dest;
	struct list dest_node;
	struct path_spec spec; /* without its GID entry */
	struct dest_key key;
	struct neigh_query query;
	bool resolving; /* CREATE_AH waits for the destination */
	struct abi_msg request;
};

/** Withdraws @p o from the AH table and its destination; cancels an unfinished CREATE_AH without a
 *  reply. */
void ah_unpublish(struct ah_obj *o);

/** Frees @p o, after a grace period. */
void ah_release(struct ah_obj *o);

/** Readdresses the @p n AHs @p o to @p dmac from @p smac, or to this daemon if @p local.
 *  @return how many, from the first one: memory may run short. */
uint32_t ahs_readdress(struct ctl *ctl, struct ah_obj *const o[], uint32_t n, const uint8_t dmac[6],
	const uint8_t smac[6], bool local);

#endif
