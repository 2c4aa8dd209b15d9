/* SPDX-License-Identifier: BSD-3-Clause */
/** @file capture.h  rocictl capture FILE [WHAT...]: frames of a running rocid into a file. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdbool.h>

/**
 * @param fd    connected to rocid
 * @param file  "-": standard output
 * @param what  the words after it, separated by blanks @param json reports the end as JSON @return
 * an exit status; errors have been printed.
 */
int capture(int fd, const char *file, const char *what, bool json);

#endif
