/* SPDX-License-Identifier: BSD-3-Clause */
/** @file stream.h  Commands that go on until rocid or the user ends them. */
#ifndef STREAM_H
#define STREAM_H

#include <stddef.h>
#include <sys/types.h>

/**
 * Says @p line to rocid, passing a stream along.
 * @return the stream, or -1: why has been said.
 */
int stream_begin(int fd, const char *line);

/** Ctrl-C ends @p stream, so that what is still to come comes to its end; a second one ends the
 *  program. */
void stream_end_by_signal(int stream);

/** @return as read(2), which no signal interrupts. */
ssize_t stream_read(int stream, void *buffer, size_t size);

#endif
