/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/server.h
 * The socket for administrators (rocictl), at the applications' path + ABI_ADMIN_SUFFIX. A
 * request is one line of words, its reply one line of JSON: the answer, or {"error": "a sentence"}.
 * A connection may send any number of requests; lines received during a reply wait.
 *
 * Clients cannot delay other work: each turn of the event loop reads one buffer, or generates and
 * sends one part of a reply (text/document.h), and a reply that is not read waits. A new connection
 * replaces the one that was silent longest if all slots are taken.
 */
#ifndef ADMIN_SERVER_H
#define ADMIN_SERVER_H

#include "config/config.h"

struct ctl;

struct admin;

/** Initialises @p a, which must be zero. */
void admin_init(struct admin *a, struct ctl *ctl);

/** Listens on the socket that @p cfg names.  @return 0, or a negative errno with a sentence. */
int admin_open(struct ctl *ctl, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX]);

/** Ends all connections, stops listening and removes the socket file. */
void admin_close(struct ctl *ctl);

#endif
