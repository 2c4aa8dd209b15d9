/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file console.h
 * Commands to rocid that somebody types, or that a file has: `rocictl` and `rocid -i` are both
 * this. Each command goes to the administrators' socket and its answer is printed as tables, so
 * that what there is to say is rocid's affair alone (lib/ctl/admin/command.c). The few commands of
 * the console itself are in console_command.c.
 */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdbool.h>
#include <stdio.h>
#include "limits.h"

/** Room for a command. */
#define CONSOLE_LINE ADMIN_LINE_MAX

struct console {
	const char *socket; /* the applications'; the administrators' is beside it */
	const char *prompt;
	int in;	   /* what is typed, or a file */
	FILE *out; /* answers, and what was wrong: one place, in order */
	bool json; /* answers as rocid gives them, one line each */
	/** Ctrl-C is for the process; without it, it is for the line that is being typed. */
	bool signals;
	int stop; /* readable: end; -1: nothing tells */
	int says; /* what the process says meanwhile: printed above the prompt; -1: nothing */
	/* what happened */
	bool quit;   /* somebody asked for the end */
	bool failed; /* a command was refused, or nobody answered */
};

/** Runs the commands that come from `in` until its end, `quit` or `stop`: with a prompt, history
 *  and completion when it is a terminal. */
void console_run(struct console *c);

/** Runs the commands of @p path, likewise.  @return 0, or a negative errno: it cannot be read. */
int console_file(struct console *c, const char *path);

/** Runs one command, @p line, which is blank, a comment or has no newline.
 *  @return 0, or -1 when it failed. */
int console_execute(struct console *c, const char *line);

/** @return the name of the i-th command of the console itself, NULL behind the last. */
const char *console_command(unsigned i, const char **help);

#endif
