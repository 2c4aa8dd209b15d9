/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file linkemu.h
 * The emulated link: the effects of a bad cable, a full switch or a long path on RoCE packets, on
 * the receive side of any port. Other frames pass unchanged, so that ARP and the kernel's traffic
 * neither suffer nor disturb a repeatable run. The same seed and the same packets give the same
 * impairments.
 */
#ifndef LINKEMU_H
#define LINKEMU_H

#include <stdbool.h>
#include <stdint.h>
#include "aqm.h"
#include "impair.h"

/** The receive queue on which a packet leaves the link, if the port has several. */
enum linkemu_spread {
	LINKEMU_STAY,	/* the one on which it arrived */
	LINKEMU_HASH,	/* like RSS: all packets of a flow on the same queue, but not on its QP's */
	LINKEMU_RANDOM, /* any */
};

/** Packets that can wait and be in flight in one direction; more are lost. */
#define LINKEMU_HELD 1024u

/** All zeroes: a perfect link. A reordered packet is swapped with its successor. */
struct linkemu_config {
	struct impair impair; /* each link of a port has a seed of its own, made from this one */
	uint64_t delay_ns;
	uint64_t rate;	       /* bit/s; 0: infinitely fast */
	struct aqm_config aqm; /* of the queue in front of a link with a rate */
	enum linkemu_spread spread;
};

/** @return whether a link of @p cfg delays packets, or moves them to another queue, so that it must
 * be polled. */
static inline bool linkemu_holds(const struct linkemu_config *cfg)
{
	return cfg->delay_ns || cfg->rate || cfg->impair.rate[IMPAIR_REORDER] > 0 ||
	       cfg->spread != LINKEMU_STAY;
}

/** @return whether a link of @p cfg does nothing to any packet. */
static inline bool linkemu_is_perfect(const struct linkemu_config *cfg)
{
	for (unsigned k = 0; k < IMPAIR_KINDS; k++)
		if (cfg->impair.rate[k] > 0)
			return false;
	return !cfg->impair.nth && !cfg->impair.mask && !cfg->delay_ns && !cfg->rate &&
	       cfg->spread == LINKEMU_STAY;
}

/** The effects on packets; each packet counts once for each effect. */
struct linkemu_counters {
	uint64_t packets;
	uint64_t lost;
	uint64_t duplicated;
	uint64_t reordered;
	uint64_t corrupted;
	uint64_t truncated;
	uint64_t overflow; /* lost because LINKEMU_HELD were in flight */
	uint64_t spread;   /* left on a queue other than the one on which they arrived */
	uint64_t dropped;  /* lost because the queue in front of the link was full */
	uint64_t marked;   /* got the mark "congestion experienced" there */
};

/** @return the name of the i-th counter in declaration order, NULL beyond the last. */
const char *linkemu_counter_name(unsigned i);

struct linkemu;

/**
 * Reads "loss=0.01,dup=P,reorder=P,corrupt=P,truncate=P,nth=N,mask=HEX,delay=50us,seed=N,
 * spread=hash" (or random), "rate=1G,queue=400K,red=KMIN:KMAX:PMAX,mark=egress" (or ingress). A
 * time is a number with ns, us, ms or s; a rate is in bit/s and a queue in bytes, with K, M or G
 * for powers of 1000. Empty text is a perfect link.
 * @param why  receives a sentence that says what is wrong @return 0 or -EINVAL.
 */
int linkemu_parse(struct linkemu_config *cfg, const char *text, char *why, unsigned why_size);

/** Writes @p cfg as linkemu_parse() reads it, "none" for a perfect link.  @return @p text. */
char *linkemu_text(const struct linkemu_config *cfg, char *text, unsigned size);

/** @return whether a port with @p queues receive queues can have a link of @p cfg; else a sentence
 * in
 *  @p why: a rate needs one queue, which all packets pass. */
bool linkemu_fits(const struct linkemu_config *cfg, uint16_t queues, char *why, unsigned why_size);

/**
 * Puts the link in front of receive queue @p queue of ethdev @p ethdev. The port is configured
 * and no thread polls it yet.
 * @return NULL when memory is short.
 */
struct linkemu *linkemu_attach(uint16_t ethdev, uint16_t queue, const struct linkemu_config *cfg);

/**
 * Connects the links of all @p n queues of a port, whose configuration says how they spread.
 * Before any thread polls; @p links outlives them.
 * @return 0 or -ENOMEM.
 */
int linkemu_join(struct linkemu *const links[], uint16_t n);

/** @return the last configuration of @p l. The thread that calls linkemu_change(). */
const struct linkemu_config *linkemu_config(const struct linkemu *l);

/**
 * Applies @p cfg to @p l from its next burst on, except for `spread`. Any single thread, which
 * waits until all earlier bursts have ended (worker_grace()) before it calls again.
 */
void linkemu_change(struct linkemu *l, const struct linkemu_config *cfg);

/** Removes the link and frees it with the packets in flight; no thread polls the queue. NULL is
 * allowed. */
void linkemu_detach(struct linkemu *l);

/** Adds the counters of @p l to @p sum. Any thread. */
void linkemu_count(const struct linkemu *l, struct linkemu_counters *sum);

#endif
