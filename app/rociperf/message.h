/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file message.h
 * The messages between the two ends outside RDMA: a kind and 64-bit words, big-endian, over TCP (or
 * a socket pair with --both). Functions end the program with a sentence if the other end has
 * disconnected or sends an unexpected message.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

/* The protocol of a run. Its version is in message.c. */
enum message {
	MESSAGE_PLAN,	  /* client to server, first: enum param's values */
	MESSAGE_ACCEPT,	  /* the server's answer, */
	MESSAGE_REFUSE,	  /* or this, if its own options differ: a sentence */
	MESSAGE_ADDRESS,  /* client, then server: see end.c */
	MESSAGE_READY,	  /* both, before each size: receives are posted; the key, see end.c */
	MESSAGE_MEASURED, /* from the end that measures: it has finished */
	MESSAGE_DRAINED,  /* both: nothing of mine is in flight; with a report, see run.c */
	MESSAGE_ARRIVED,  /* both, if messages may be lost: the number that arrived here */
};

void message_send(int fd, enum message kind, const uint64_t word[], uint32_t count);

/** Waits for a message of that kind and of exactly @p count words. */
void message_receive(int fd, enum message kind, uint64_t word[], uint32_t count);

/** @return the kind of the next message, without consuming it. */
enum message message_next(int fd);

/** @return whether the other end has disconnected, without waiting. */
bool message_over(int fd);

/** Sends MESSAGE_REFUSE with @p why. */
void message_refuse(int fd, const char *why);

#endif
