/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file inbox.h
 * Frames that other workers, or this one, have for a worker. Each source and each kind of frame has
 * separate room, so that none can take the room of another: one ring per pair of workers and kind,
 * filled by the one and emptied by the other.
 */
#ifndef INBOX_H
#define INBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <rte_ring.h>
#include "limits.h"

struct rte_mbuf;

enum inbox_kind {
	INBOX_HANDED, /* arrived at the wrong worker; lost if there is no room */
	INBOX_LOCAL,  /* from one QP of this daemon to another; a full ring closes an egress */
	INBOX_KINDS,
};

/** The rings are made before workers run; the rest is the owner's, rx.c. */
struct inbox {
	uint32_t nworkers;
	/* by source; a worker hands nothing to itself: NULL */
	struct rte_ring *ring[INBOX_KINDS][WORKER_MAX];
	void *memory;
	uint32_t kind;		    /* whose turn it is */
	uint32_t turn[INBOX_KINDS]; /* and of which source */
};

/** @return how many frames of one of @p nworkers workers can wait in the inboxes of all. */
uint32_t inbox_frames(uint32_t nworkers);

/** @return whether there was memory for the inbox of worker @p self of @p nworkers. */
bool inbox_create(struct inbox *in, uint32_t self, uint32_t nworkers, int socket);

/** Frames in it are lost with their pools. */
void inbox_destroy(struct inbox *in);

/** @return whether it is empty. */
bool inbox_empty(const struct inbox *in);

/**
 * Takes up to BURST frames of one kind, from its sources in turn.  Kinds take turns too.
 * @return their number; 0: nothing waits
 */
unsigned inbox_take(struct inbox *in, struct rte_mbuf *m[]);

#endif
