/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/recv_fds.h
 * Receives from unix sockets. Whoever may write to one may pass descriptors along, wanted or not,
 * and closing one can take as long as its owner likes; so none may be closed on this thread, nor
 * by the kernel inside recvmsg(), which closes what finds no room in the control buffer or in the
 * table of descriptors.
 *
 * So a message is looked at first (MSG_PEEK): the kernel then duplicates its descriptors, and the
 * socket keeps its own. It is consumed only if its one descriptor has been had. Nothing is closed
 * by that, because that one is in our table by then. What is not consumed goes with the socket.
 * Control thread.
 */
#ifndef SESSION_RECV_FDS_H
#define SESSION_RECV_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/** What came beside the bytes. */
struct recv_fds {
	int fd;	      /* the descriptor, now the caller's; -1: none */
	bool excess;  /* more than one came: the message is still there; fd is the first of them */
	bool no_room; /* one came that the table has no room for: the message is still there */
	bool cut;     /* the message is longer than the buffers */
};

/** @return whether the next message carries descriptors. */
bool recv_fds_waits(int sock);

/** Receives without waiting a message and its descriptor, which becomes close-on-exec.
 *  @return as recvmsg(2), errno included. */
ssize_t recv_fds(int sock, const struct iovec iov[], size_t niov, struct recv_fds *p);

#endif
