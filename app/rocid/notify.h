/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file notify.h
 * Reports the state to a service manager: sd_notify(3). The protocol is one datagram and guaranteed
 * to be stable; libsystemd would be a dependency for this alone, and is not available everywhere.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

/** Sends @p text, lines of NAME=VALUE, to $NOTIFY_SOCKET if it is set. Never blocks. */
void notify(const char *text);

#endif
