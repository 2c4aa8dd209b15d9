/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file passed.h
 * Receives from unix sockets. Whoever may write to one may pass descriptors along, wanted or not,
 * and closing one can take as long as its owner likes; so none may be closed on this thread, nor
 * by the kernel inside recvmsg(). Control thread.
 */
#ifndef PASSED_H
#define PASSED_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct disposer;

/** What came beside the bytes. */
struct passed {
	int fd;		/* the first descriptor, now the caller's; -1: none */
	unsigned count; /* descriptors that came; the others are @p closer's */
	int flags;	/* MSG_TRUNC, MSG_CTRUNC: see recvmsg(2) */
};

/** Receives without waiting, descriptors close-on-exec.
 *  @return as recvmsg(2), errno included. */
ssize_t passed_receive(
	int sock, struct iovec iov[], size_t niov, struct disposer *closer, struct passed *p);

#endif
