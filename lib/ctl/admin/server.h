/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/server.h
 * The socket for administrators (rocictl), at the applications' path + ABI_ADMIN_SUFFIX. A
 * request is one line of words, its reply one line of JSON: what was asked for, or
 * {"error": "a sentence"}. A connection may ask again and again; lines that come meanwhile wait.
 *
 * Who connects can slow nothing down: each turn of the event loop reads one buffer or makes and
 * sends one part of a reply (text/document.h), and a reply that nobody reads stays where it is. Who
 * comes when all places are taken gets that of the connection that was silent for longest.
 */
#ifndef ADMIN_SERVER_H
#define ADMIN_SERVER_H

#include "config/config.h"

struct ctl;

struct admin;

/** Prepares @p a, which starts as zeroes. */
void admin_init(struct admin *a, struct ctl *ctl);

/** Listens where @p cfg says.  @return 0, or a negative errno with a sentence. */
int admin_open(struct ctl *ctl, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX]);

/** Ends all connections, stops listening and removes the socket file. */
void admin_close(struct ctl *ctl);

#endif
