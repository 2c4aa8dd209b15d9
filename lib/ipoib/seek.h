/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seek.h
 * IP addresses to which somebody sends packets, but which no station is known to have: they are
 * looked for one after the other, one per IPOIB_LOOK_NS. Each sender has one place, so one that
 * floods delays another by one turn only. Of the addresses that a sender asks for in the meantime,
 * one is chosen at random, so that all have the same chance even if they always come in the same
 * order. The same holds for the senders if there are more than SEEK_MAX. Pure.
 */
#ifndef IPOIB_SEEK_H
#define IPOIB_SEEK_H

#include "hash.h"
#include "stations.h"

#define SEEK_MAX 32u

/** The place of a sender. */
struct seek_entry {
	uint32_t sender;
	uint32_t offers; /* of which one is here */
	struct station_ip at;
};

struct seek {
	uint64_t next;	/* earliest time of the next question */
	uint32_t n;	/* entries; entry[0] is the next */
	uint32_t drawn; /* random numbers so far */
	struct seek_entry entry[SEEK_MAX];
};

/** A sender has a packet for @p ip. @param sender  the hash of its address
 *  @param seed  for the random choice */
void seek_add(struct seek *s, const struct hash_seed *seed, uint32_t sender, const uint8_t *ip,
	unsigned ip_len);

/** Takes the address to ask for now. @param pause  until the next one  @return false: none is due
 */
bool seek_take(struct seek *s, uint64_t now, uint64_t pause, struct station_ip *at);

/** @return when there will be one; UINT64_MAX: never. */
uint64_t seek_deadline(const struct seek *s);

#endif
