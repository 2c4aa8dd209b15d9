/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file prompt.h
 * `rocid --interactive` and `--cmdline-file`: the console (app/console) in a thread of its own. It
 * uses the administrators' socket as rocictl does, so typing and printing do not slow down the
 * control thread or a worker, and both have the same commands.
 *
 * While there is a prompt on a terminal, output of the process goes through a pipe, and the console
 * prints it above the line that is being typed. The pipe never blocks: output that does not fit,
 * because the terminal is stopped, is lost.
 */
#ifndef PROMPT_H
#define PROMPT_H

struct options;
struct prompt;

/** Starts the thread if @p o requests one; *@p out is NULL if not. The socket exists, and is served
 * from now on. @return 0 or a negative errno. */
int prompt_start(struct prompt **out, const struct options *o);

/** Ends the prompt. The socket is no longer served, so no command is in progress. NULL is allowed.
 */
void prompt_stop(struct prompt *p);

#endif
