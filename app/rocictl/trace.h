/* SPDX-License-Identifier: BSD-3-Clause */
/** @file trace.h  rocictl trace qp QPN: the events of a queue pair, one line each. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>

/** @return whether the command @p line starts a trace. */
bool is_trace(const char *line);

/**
 * @param fd    connected to rocid
 * @param line  the command
 * @param json  one object per line @return an exit status; errors have been printed.
 */
int trace(int fd, const char *line, bool json);

#endif
