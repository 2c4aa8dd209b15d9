/* SPDX-License-Identifier: BSD-3-Clause */
/** @file capture.h  rocictl capture FILE [WHAT...]: frames of a running rocid into a file. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdbool.h>

/**
 * @param fd    connected to rocid
 * @param file  "-": standard output
 * @param what  the words behind it, blanks between them
 * @param json  tells how it ended as JSON
 * @return an exit status; what went wrong has been said.
 */
int capture(int fd, const char *file, const char *what, bool json);

#endif
