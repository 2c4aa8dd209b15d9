/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file link.h
 * One direction of a cable in virtual time: a queue of real frames with a rate, a delay and
 * impairments. All randomness comes from the link's own seed, so runs are reproducible.
 */
#ifndef LINK_H
#define LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine.h"
#include "impair.h"
#include "limits.h"

/** Impairments of a link. Probabilities are in millionths. */
struct link_impair {
	uint64_t loss_mask;  /* bit i: frame i since link_set_impair() is lost, i < 64 */
	uint64_t reorder_ns; /* a reordered frame is delayed by up to this */
	uint32_t loss;
	uint32_t duplicate;
	uint32_t reorder;
	uint32_t corrupt;  /* one bit is flipped */
	uint32_t truncate; /* cut short at the end */
	uint32_t mark;	   /* "congestion experienced" is set, if the frame allows it */
	uint32_t pause;	   /* the link stalls before a frame, for up to pause_ns */
	uint64_t pause_ns;
};

struct link_config {
	uint64_t delay_ns; /* propagation */
	uint64_t rate_bps; /* 0: infinitely fast */
	uint64_t queue_ns; /* a frame that would wait longer is lost; 0: no limit */
	struct link_impair impair;
};

struct link_counters {
	uint64_t frames; /* accepted from the sender */
	uint64_t delivered;
	uint64_t lost; /* including those lost to a full queue */
	uint64_t duplicated;
	uint64_t reordered;
	uint64_t corrupted;
	uint64_t truncated;
	uint64_t marked;
	uint64_t paused;
};

/** A frame in transit. */
struct sim_frame {
	uint64_t due;
	uint64_t seq;	    /* order among frames due at the same time */
	uint32_t source_qp; /* pkt.source_qp, on a host's loopback */
	bool named;	    /* core_named() */
	uint16_t len;
	uint8_t bytes[FRAME_MAX];
};

/** Sees each frame that a sender passes to the link, before any impairment. */
struct link_tap {
	void (*see)(void *arg, const uint8_t *frame, size_t len, uint64_t now);
	void *arg;
};

/** Impairments chosen for a particular frame, besides random ones. */
enum link_fate {
	LINK_PASS = 0,
	LINK_LOSE = 1u << IMPAIR_LOSE,
	LINK_DUPLICATE = 1u << IMPAIR_DUPLICATE, /* with LINK_REORDER: the copy is late */
	LINK_CORRUPT = 1u << IMPAIR_CORRUPT,
	LINK_TRUNCATE = 1u << IMPAIR_TRUNCATE,
	LINK_REORDER = 1u << IMPAIR_REORDER, /* late by reorder_ns */
	LINK_MARK = 1u << IMPAIR_MARK,
	LINK_STALL = 1u << IMPAIR_DELAY,
};

/** Decides a frame's fate, a set of enum link_fate: "lose the second READ request". */
struct link_pick {
	unsigned (*fate)(void *arg, const uint8_t *frame, size_t len);
	void *arg;
};

struct sim_link {
	struct link_config cfg;
	struct link_counters count;
	struct link_tap tap;
	struct link_pick pick;
	struct impair impair; /* cfg.impair as probabilities */
	uint64_t seed;
	uint32_t source_qp; /* of frames sent from now on; set by the sender */
	bool named;	    /* of the next frame, likewise */
	uint64_t index;	    /* frames since the impairments were set */
	uint64_t idle_at;   /* when the sender's last bit has left */
	uint64_t resume_at; /* no frame starts to leave before this */
	uint64_t seq;
	/* [0, used): heap by (due, seq); [used, room): free */
	struct sim_frame **frame;
	uint32_t used;
	uint32_t room;
};

/**
 * @param frames  @p room pointers to frames, provided by the caller
 * @param room    most frames in transit; a sender waits for room
 */
void link_init(struct sim_link *l, struct sim_frame **frames, uint32_t room,
	const struct link_config *cfg, uint64_t seed);

/** Replaces the impairments; the loss mask counts from the next frame. */
void link_set_impair(struct sim_link *l, const struct link_impair *f);

/** No frame may start to leave before @p until (pause frames, a stalled peer). */
void link_pause(struct sim_link *l, uint64_t until);

/** @return how many frames may be sent now; a duplicated one takes two places. */
uint32_t link_room(const struct sim_link *l);

/** Takes @p len (at most FRAME_MAX) bytes; there must be room. */
void link_send(struct sim_link *l, const uint8_t *frame, size_t len, uint64_t now);

/** @return when the next frame arrives, or SIM_NEVER. */
uint64_t link_due(const struct sim_link *l);

/** Takes the next frame that has arrived by @p now, or NULL. It is valid until the next link_send()
 *  on this link. */
const struct sim_frame *link_receive(struct sim_link *l, uint64_t now);

#endif
