/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file loop/recv_fds.h
 * Receives from unix sockets. A peer that can write to one can pass descriptors, expected or not,
 * and closing a descriptor can take as long as its owner likes. So this thread must not close any,
 * and neither may the kernel inside recvmsg(), which closes those that do not fit in the control
 * buffer or in the descriptor table.
 *
 * A message is therefore peeked at first (MSG_PEEK): the kernel duplicates its descriptors, and the
 * socket keeps the originals. It is consumed only once its only descriptor has been received, which
 * closes nothing, because that one is then in our table. A message that is not consumed is freed
 * with the socket. Control thread.
 */
#ifndef LOOP_RECV_FDS_H
#define LOOP_RECV_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/** Everything received besides the bytes. */
struct recv_fds {
	int fd;	      /* the descriptor, now the caller's; -1: none */
	bool excess;  /* more than one descriptor: the message stays queued; fd is the first */
	bool no_room; /* the descriptor table is full: the message stays queued */
	bool cut;     /* the message is longer than the buffers */
};

/** @return whether the next message carries descriptors. */
bool recv_fds_waits(int sock);

/** Receives a message and its descriptor, made close-on-exec, without blocking.
 *  @return as recvmsg(2), errno included. */
ssize_t recv_fds(int sock, const struct iovec iov[], size_t niov, struct recv_fds *p);

#endif
