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

struct ctl;
struct session;
struct session_ops;

/** The backlog of a program that specifies none, and the maximum: a peer and a user may have that
 * many unanswered requests, see cm_half_room() and CM_REQUEST_MAX. */
#define CM_BACKLOG_DEFAULT 10240u
/** Minimum backlog: a batch of REQs can arrive before the program is scheduled. */
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
	struct list answered;	/* lookups whose result has not reached all of their ids */
	struct wheel resolving; /* the timeouts of RESOLVE_ADDR */
	/* Ports whose GID table has changed since their ids were last checked, as a bit mask. */
	uint32_t changed;
	uint32_t checking; /* those that are being checked, ... */
	uint32_t checked;  /* ... up to this cursor of `ids` */
	/* Of the MAD that lib/cm processes: */
	struct cm_id *fresh;	 /* the new connection */
	struct cm_id *withdrawn; /* the connection whose request is taken back before it was read */
};

/** @return a struct without connections, or NULL. */
struct connections *connections_create(struct ctl *ctl);

/** Takes QP1 of all ports.  @return 0 or a negative errno with a sentence. */
int connections_open(struct connections *all, char why[ABI_SENTENCE_MAX]);

/** Releases QP1; call it before the sessions end. NULL is harmless. */
void connections_close(struct connections *all);

/** Frees @p all; call it after the sessions have ended. NULL is harmless. */
void connections_destroy(struct connections *all);

/** @return milliseconds until it must be called again, -1: never. */
int connections_poll(struct ctl *ctl);

/** Gives some ids the answers of the kernel to their RESOLVE_ADDR; call it after neigh_poll().
 *  @return whether there are more. */
bool lookups_poll(struct ctl *ctl);

/** The GID table of port @p port has changed: connections_poll() notifies ids whose address no
 *  longer exists. */
void connections_addresses_changed(struct ctl *ctl, uint32_t port);

/** For sessions_init(): the commands of verbs and of the communication manager. */
extern const struct session_ops connection_ops;

#endif
