/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file message.h
 * What the two ends tell each other beside RDMA: a kind and 64-bit words, big-endian, over TCP (or
 * a socket pair with --both). Functions end the program with a sentence when the other end left or
 * says something else than was expected.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

/* The course of a run. The version of all this is in message.c. */
enum message {
	MESSAGE_PLAN,	  /* client to server, first: enum param's values */
	MESSAGE_ACCEPT,	  /* the server's answer, */
	MESSAGE_REFUSE,	  /* or this, when it was told something else: a sentence */
	MESSAGE_ADDRESS,  /* client, then server: see end.c */
	MESSAGE_READY,	  /* both, before each size: receives are posted; the key, see end.c */
	MESSAGE_MEASURED, /* who measures: has what it wants */
	MESSAGE_DRAINED,  /* both: nothing of mine is under way; with a report, see run.c */
	MESSAGE_ARRIVED,  /* both, of what may be lost: so many messages arrived here */
};

void message_send(int fd, enum message kind, const uint64_t word[], uint32_t count);

/** Waits for a message of that kind and of exactly @p count words. */
void message_receive(int fd, enum message kind, uint64_t word[], uint32_t count);

/** @return the kind of the message that is to come next, without taking it. */
enum message message_next(int fd);

/** @return whether the other end has left, without waiting. */
bool message_over(int fd);

/** Sends MESSAGE_REFUSE with @p why. */
void message_refuse(int fd, const char *why);

#endif
