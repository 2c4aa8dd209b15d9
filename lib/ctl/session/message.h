/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/message.h
 * Requests and replies (abi_ctl.h), as command handlers see them.
 */
#ifndef SESSION_MESSAGE_H
#define SESSION_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi_ctl.h"

struct session;

/** A request, copied out of the socket once; bytes that the application did not send are 0. */
struct request {
	struct abi_msg msg;
	uint8_t body[ABI_MSG_MAX - sizeof(struct abi_msg)] __attribute__((aligned(8)));
	size_t body_len;
	int fd; /* received with the request, -1: none; closed after the handler returns */
};

#define REPLY_FDS 2

struct reply {
	uint8_t body[ABI_MSG_MAX - sizeof(struct abi_msg)] __attribute__((aligned(8)));
	size_t body_len;
	int fd[REPLY_FDS]; /* closed once sent */
	unsigned nfds;
	char why[ABI_SENTENCE_MAX]; /* sentence of a failure */
};

/** The result of a handler whose reply is sent later (session_reply()). */
#define DEFERRED 1

/** @return 0, DEFERRED, or a negative errno with a sentence in @p r->why. */
typedef int (*command_handler)(struct session *s, const struct request *q, struct reply *r);

/** Copies @p len bytes into the reply's body. */
void reply_body(struct reply *r, const void *body, size_t len);

/** Sends @p fd with the reply and then closes it. */
void reply_fd(struct reply *r, int fd);

/** Sends @p msg with the body and the descriptors of @p r to socket @p fd.
 *  @return false if the kernel did not accept the message. */
bool message_send(int fd, const struct abi_msg *msg, const struct reply *r);

#endif
