/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ctl.h
 * The control thread of rocid: the unix socket server, sessions and their objects, the GID
 * tables and neighbours of the ports, events to applications (decision 0000.1, 4, 5).
 *
 *     ctl_start()     before or after the workers start; does not serve yet
 *     ctl_run()       serves until ctl_stop(); workers run meanwhile
 *     ctl_destroy()   ends all sessions; workers must still run, because QPs are removed from them
 *
 * All functions except ctl_stop() must be called by the same thread, the control thread. It is not
 * an EAL thread, needs no lcore and sleeps in epoll.
 */
#ifndef CTL_H
#define CTL_H

#include "config/config.h"

struct ctl;

/**
 * Opens the socket, reads the ports' addresses and publishes their tables.
 * @param why  on failure receives a sentence that says what to do
 * @return 0, or a negative errno: -EADDRINUSE if another rocid serves the socket, -ENODEV if a
 * netdev does not exist, -EACCES, -ENOMEM, -EINVAL.
 */
int ctl_start(struct ctl **out, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX]);

/** Serves until ctl_stop().  @return 0, or a negative errno when epoll itself fails. */
int ctl_run(struct ctl *ctl);

/** Makes ctl_run() return. Any thread; safe in signal handlers. */
void ctl_stop(struct ctl *ctl);

/** Ends all sessions, removes the socket and frees @p ctl. Ignores NULL. */
void ctl_destroy(struct ctl *ctl);

#endif
