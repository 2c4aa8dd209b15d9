/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cm/connections.h
 * The communication manager of rocid: lib/cm between QP1 of each port and the ids of programs
 * (abi_cm.h, doc/connections.md). Control thread.
 */
#ifndef CM_CONNECTIONS_H
#define CM_CONNECTIONS_H

#include <stdint.h>
#include "abi_cm.h"
#include "cm/gsi.h"
#include "cm.h"
#include "list.h"
#include "session/handles.h"
#include "wheel.h"

struct cm_id;
struct ctl;

/** The backlog of a program that specifies none, and the maximum: a peer and a user may have as
 *  many requests unanswered, see cm_half_room() and CM_REQUEST_MAX. */
#define CM_BACKLOG_DEFAULT 10240u
/** So many REQs may arrive before a program can run: a shorter backlog would refuse some of them.
 */
#define CM_BACKLOG_MIN GSI_ROUND
#define CM_UNREAD_MAX  64u /* unread events of an id; more commands are refused */
#define BIND_BUCKETS   4096u

struct connections {
	struct ctl *ctl;
	struct gsi gsi;
	struct cm *cm; /* NULL: closed */
	void *room;
	struct handles ids;	 /* of all sessions */
	struct handles channels; /* likewise */
	struct list bound[BIND_BUCKETS];
	struct list lookups[SESSION_MAX]; /* lookup.c, by session slot */
	struct list answered;		  /* those whose ids have not all heard the answer */
	struct wheel resolving;		  /* the timeouts of RESOLVE_ADDR */
	/* Ports whose GID table has changed since their ids were last checked, as a bit mask. */
	uint32_t changed;
	uint32_t checking; /* those that are being checked, ... */
	uint32_t checked;  /* ... up to this cursor of `ids` */
	/* Of the MAD that lib/cm processes: */
	struct cm_id *fresh;	 /* the new connection */
	struct cm_id *withdrawn; /* the connection whose request is taken back before it was read */
};

#endif
