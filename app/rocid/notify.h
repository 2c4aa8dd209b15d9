/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file notify.h
 * Tells a service manager how it goes: sd_notify(3). The protocol is one datagram and promised to
 * stay; libsystemd would be a dependency for that alone, and is not everywhere.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

/** Sends @p text, lines of NAME=VALUE, to $NOTIFY_SOCKET if there is one. Who does not listen
 *  misses it. */
void notify(const char *text);

#endif
