/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file prompt.h
 * `rocid --interactive` and `--cmdline-file`: the console (app/console) in a thread of its own. It
 * asks the administrators' socket as rocictl does, so nothing that is typed or printed slows the
 * control thread or a worker down, and both speak the same language.
 *
 * While a prompt stands on a terminal, what the process prints there goes through a pipe, and the
 * console prints it above the line that is being typed. The pipe never blocks: what does not fit,
 * because somebody holds the terminal up, is lost.
 */
#ifndef PROMPT_H
#define PROMPT_H

#include "options.h"

struct prompt;

/** Starts the thread if @p o wants one; *@p out is NULL if not. The socket is there, and is served
 *  from now on.  @return 0 or a negative errno. */
int prompt_start(struct prompt **out, const struct options *o);

/** Ends it; the socket is not served any more, so no question is under way. NULL is harmless. */
void prompt_stop(struct prompt *p);

#endif
