/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file oob.h
 * How two programs communicate outside RDMA: over a TCP connection. All functions end the program
 * with a sentence if they fail.
 */
#ifndef OOB_H
#define OOB_H

#include <stddef.h>

/** @return a socket that listens on @p port, any address. */
int oob_listen(const char *port);

/** @return the first connection to the socket @p fd, which is then closed. */
int oob_accept(int fd);

/** @return a connection to @p host; retries for @p patience_s while nobody listens there. */
int oob_connect(const char *host, const char *port, int patience_s);

void oob_send(int fd, const void *data, size_t size);

/** Waits for exactly @p size bytes. */
void oob_receive(int fd, void *data, size_t size);

#endif
