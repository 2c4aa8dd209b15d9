/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file unstick.h
 * Frames that a shared netdev refuses.
 *
 * The kernel treats a frame that a netdev drops as one that may be sent later, and retries the
 * first frame of a packet socket's ring forever. A veth whose other end has a smaller MTU than the
 * frame drops it each time: later frames no longer leave, DPDK's driver counts frames in the ring
 * as sent, and no counter shows the loss.
 *
 * A veth whose other end is down also drops frames, until the kernel has noticed. Those are kept.
 *
 * The control thread reads the ring through the socket. A frame that stays at its head however
 * often the kernel is asked to send is made empty; the kernel then skips it, it is lost, as on a
 * wire, and its QP fails because the path MTU is too large.
 */
#ifndef UNSTICK_H
#define UNSTICK_H

#include <net/if.h>
#include <stdint.h>
#include "limits.h"

/** The frames that a shared netdev refuses. Zeroed: nothing is checked. */
struct unstick {
	char netdev[IF_NAMESIZE];
	unsigned queues; /* sockets */
	int fd[WORKER_MAX];
	struct unstick_head {
		unsigned slot; /* of the frame that was refused last */
		unsigned seen; /* how often in a row; 0: none is refused */
		uint32_t len;  /* of it, bytes; of unstick_tell() */
	} head[WORKER_MAX];
	uint32_t shortest; /* bytes of the shortest frame that was refused lately; 0: none */
	uint64_t last_ms;  /* when it was */
	uint64_t count;	   /* frames made empty */
};

/** Finds the sockets of the open port that share_create() made of @p netdev. Call it again after
 * the port was reopened; counters are kept. */
void unstick_watch(struct unstick *u, const char *netdev);

/** The sockets are about to be closed. */
void unstick_forget(struct unstick *u);

/**
 * Makes the kernel send the frames in the rings, and empties rings whose frames it refuses.
 * @return milliseconds after which to do so again.
 */
int unstick_poll(struct unstick *u, uint64_t now_ms);

/**
 * The same for a port that learns of a refusal at once and stores nothing (gso/gso.h).
 * @param count     frames that were refused since the last call
 * @param shortest  bytes of the shortest of them; 0: it is not known
 * @param passed    bytes of the longest that was not refused since then
 */
int unstick_tell(
	struct unstick *u, uint64_t count, uint32_t shortest, uint32_t passed, uint64_t now_ms);

/** How long a refusal is reported. */
#define UNSTICK_TOLD_MS 60000u

/** @return bytes of the shortest frame, from its Ethernet header, that was refused lately; 0: none
 *  was within the last @p within_ms. */
uint32_t unstick_refused(const struct unstick *u, uint64_t now_ms, uint64_t within_ms);

#endif
