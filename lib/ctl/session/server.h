/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/server.h
 * The listening socket of rocid.
 */
#ifndef SESSION_SERVER_H
#define SESSION_SERVER_H

#include <stdbool.h>
#include "config/config.h"

struct ctl;

/**
 * Listens where @p cfg says. A socket file that nobody serves is replaced.
 * @return 0, or a negative errno with a sentence.
 */
int server_open(struct ctl *ctl, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX]);

/** Stops listening and removes the socket file. */
void server_close(struct ctl *ctl);

/** Accepts a connection at @p listener; turns it away when descriptors run out.
 *  @return a descriptor that does not block, or a negative errno. */
int server_accept(struct ctl *ctl, int listener);

/** Gives up the place in the table of descriptors that is kept for refusing what finds none.
 *  @return false when there is no such place. */
bool server_use_reserve(struct ctl *ctl);

/** Takes it again, if it can be had. */
void server_make_reserve(struct ctl *ctl);

/** Listens again after a pause that a failure made necessary.
 *  @return milliseconds until there is something to do; -1: nothing. */
int server_poll(struct ctl *ctl, uint64_t now_ms);

#endif
