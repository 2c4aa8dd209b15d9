/* SPDX-License-Identifier: BSD-3-Clause */
/** @file trace.h  rocictl trace qp QPN: what happens to a queue pair, a line an event. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>

/** @return whether the command @p line begins a trace. */
bool is_trace(const char *line);

/**
 * @param fd    connected to rocid
 * @param line  the command
 * @param json  an object a line
 * @return an exit status; what went wrong has been said.
 */
int trace(int fd, const char *line, bool json);

#endif
