/* SPDX-License-Identifier: BSD-3-Clause */
/** @file stream.h  Commands that run until rocid or the user ends them. */
#ifndef STREAM_H
#define STREAM_H

#include <stddef.h>
#include <sys/types.h>

/**
 * Sends @p line to rocid, and passes a stream. @return the stream, or -1: the reason has been
 * printed.
 */
int stream_begin(int fd, const char *line);

/** Ctrl-C ends @p stream, so that the remaining data is still received; a second one ends the
 * program. */
void stream_end_by_signal(int stream);

/** @return as read(2), which no signal interrupts. */
ssize_t stream_read(int stream, void *buffer, size_t size);

#endif
