/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file gso/peers.h
 * The peers of a queue that take super-frames (run.h): those that answered a trial (trial.h) a
 * moment ago. State only: no clock, socket or DPDK.
 *
 * A peer is a destination MAC with a destination IP address: hosts that one router leads to, and
 * those that share a MAC (ipvlan), need not be alike. Only the addresses of frames that we send
 * make entries, so no peer can fill the table.
 */
#ifndef GSO_PEERS_H
#define GSO_PEERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GSO_PEER_WAYS	 4u
#define GSO_PEER_SETS	 32u
#define GSO_ANSWER_SLOTS 64u

/** How long a peer is known after a trial that it answered was sent. This limits how long runs are
 * sent to a host that has replaced the peer and does not take them; rocid cannot restart as fast.
 */
#define GSO_KNOWN_MS 250u
/** While runs are sent to a known peer, it is asked again after this time. */
#define GSO_AGAIN_MS 60u
/** A peer that does not answer is asked again after this time, then after twice the time, ... */
#define GSO_WAIT_MIN_MS 10u
/** ... up to this. */
#define GSO_WAIT_MAX_MS 10000u
/** The time between two trials of a queue, to any peers: limits the cost of a table that is too
 * small. */
#define GSO_PACE_MS 1u

struct gso_peer {
	uint8_t mac[6];
	uint8_t ip4; /* the address has 4 bytes, the other 12 are 0 */
	bool used;
	uint8_t ip[16];
	uint64_t seen;	 /* when a run for it was last sent or attempted */
	uint64_t known;	 /* until when it is known */
	uint64_t due;	 /* when to ask again */
	uint64_t wait;	 /* the pause after that, if it does not answer */
	uint64_t cookie; /* of the last trial; 0: answered, or none */
	uint64_t asked;	 /* when the last trial was sent */
};

/** All times are from one clock of any unit. */
struct gso_peers {
	uint64_t ms;	/* a millisecond */
	uint64_t paced; /* no trial before */
	struct gso_peer peer[GSO_PEER_SETS][GSO_PEER_WAYS];
};

void gso_peers_init(struct gso_peers *p, uint64_t ticks_per_ms);

/**
 * @param frame  an untagged frame that gso_begin() accepted
 * @return the peer that it is sent to; a new one replaces the least recently used. NULL: several
 * receive it, and they are unknown.
 */
struct gso_peer *gso_peers_find(struct gso_peers *p, const uint8_t *frame, uint64_t now);

/** @return whether @p peer takes runs. */
static inline bool gso_peer_known(const struct gso_peer *peer, uint64_t now)
{
	return now < peer->known;
}

/** @return whether an answer to the last trial would still be of use. */
bool gso_peer_waits(const struct gso_peers *p, const struct gso_peer *peer, uint64_t now);

/** The last trial was answered. */
void gso_peer_answered(const struct gso_peers *p, struct gso_peer *peer);

/** @return whether @p peer is to be asked now. */
bool gso_peer_due(const struct gso_peers *p, const struct gso_peer *peer, uint64_t now);

/** A trial with @p cookie, not 0, is sent to @p peer. */
void gso_peer_ask(struct gso_peers *p, struct gso_peer *peer, uint64_t cookie, uint64_t now);

/** Cookies that came back, by their last bits. One writer, the worker that received them; all
 * workers of the port read. */
struct gso_answers {
	_Atomic uint64_t cookie[GSO_ANSWER_SLOTS];
};

static inline void gso_answers_put(struct gso_answers *a, uint64_t cookie)
{
	atomic_store_explicit(&a->cookie[cookie % GSO_ANSWER_SLOTS], cookie, memory_order_relaxed);
}

static inline bool gso_answers_has(const struct gso_answers *a, uint64_t cookie)
{
	return atomic_load_explicit(&a->cookie[cookie % GSO_ANSWER_SLOTS], memory_order_relaxed) ==
	       cookie;
}

#endif
