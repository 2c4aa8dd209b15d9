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
 * Listens on the socket of @p cfg. Replaces a socket file that nobody serves.
 * @return 0, or a negative errno with a sentence.
 */
int server_open(struct ctl *ctl, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX]);

/** Stops listening and removes the socket file. */
void server_close(struct ctl *ctl);

/** Accepts a connection on @p listener; turns it away when descriptors run out.
 *  @return a non-blocking descriptor, or a negative errno. */
int server_accept(struct ctl *ctl, int listener);

/** Frees the reserved place in the descriptor table, which is kept for refusing requests and
 *  connections when the table is full.  @return false if no place is reserved. */
bool server_use_reserve(struct ctl *ctl);

/** Reserves a place again, if there is one. */
void server_make_reserve(struct ctl *ctl);

/** Listens again after the pause that follows a failure of accept().
 *  @return milliseconds until the pause ends, -1 for no pause. */
int server_poll(struct ctl *ctl, uint64_t now_ms);

#endif
