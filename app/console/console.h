/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file console.h
 * Commands to rocid from a terminal or a file, for both `rocictl` and `rocid -i`. Each command is
 * sent to the administrators' socket and its answer is printed as tables, so that only rocid knows
 * the commands (lib/ctl/admin/command.c). The few commands of the console itself are in
 * console_command.c.
 */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdbool.h>
#include <stdio.h>
#include "limits.h"

/** Room for a command. */
#define CONSOLE_LINE ADMIN_LINE_MAX

struct console {
	const char *socket; /* the applications'; the administrators' is next to it */
	const char *prompt;
	int in;	   /* a terminal, or a file */
	FILE *out; /* answers and errors: one stream, in order */
	bool json; /* answers as JSON, one line each */
	/** Ctrl-C is for the process; without it, it is for the line that is being typed. */
	bool signals;
	int stop; /* readable: end; -1: none */
	int says; /* output of the process, printed above the prompt; -1: none */
	/* what happened */
	bool quit;   /* the end was requested */
	bool failed; /* a command was refused, or not answered */
};

/** Runs the commands that come from `in` until its end, `quit` or `stop`: with a prompt, history
 * and completion if it is a terminal. */
void console_run(struct console *c);

/** Runs the commands of @p path, likewise.  @return 0, or a negative errno: it cannot be read. */
int console_file(struct console *c, const char *path);

/** Runs one command, @p line, without its newline; it may be blank or a comment. @return 0, or -1
 * if it failed. */
int console_execute(struct console *c, const char *line);

/** @return the name of the i-th command of the console itself, NULL after the last. */
const char *console_command(unsigned i, const char **help);

#endif
