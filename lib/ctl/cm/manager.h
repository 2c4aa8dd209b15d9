/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cm/manager.h
 * The communication manager's set-up, time and shutdown. Control thread.
 */
#ifndef CM_MANAGER_H
#define CM_MANAGER_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"

struct connections;
struct ctl;
struct session_ops;

/** @return a struct without connections, or NULL. */
struct connections *connections_create(struct ctl *ctl);

/** Takes QP1 of all ports.  @return 0 or a negative errno with a sentence. */
int connections_open(struct connections *all, char why[ABI_SENTENCE_MAX]);

/** Releases QP1; call it before the sessions end. NULL is harmless. */
void connections_close(struct connections *all);

/** Frees @p all; call it after the sessions have ended. NULL is harmless. */
void connections_destroy(struct connections *all);

/** @return milliseconds until it must be called again, -1: never. */
int connections_poll(struct ctl *ctl);

/** Gives some ids the answers of the kernel to their RESOLVE_ADDR; call it after neigh_poll().
 *  @return whether there are more. */
bool lookups_poll(struct ctl *ctl);

/** The GID table of port @p port has changed: connections_poll() notifies ids whose address no
 *  longer exists. */
void connections_addresses_changed(struct ctl *ctl, uint32_t port);

/** For sessions_init(): the commands of verbs and of the communication manager. */
extern const struct session_ops connection_ops;

#endif
