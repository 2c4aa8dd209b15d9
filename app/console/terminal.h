/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file terminal.h
 * A terminal that gives each key as it is pressed, and its return to what it was.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <termios.h>

struct terminal {
	int fd;
	bool raw;
	struct termios before;
};

/** @param fd  of the terminal; harmless when it is none */
void terminal_init(struct terminal *t, int fd);

/**
 * Keys come at once and are not shown. Output stays as it is.
 * @param signals  Ctrl-C stays SIGINT; without it, it is a key as others
 */
void terminal_raw(struct terminal *t, bool signals);

/** As it was before terminal_raw(). Safe in signal handlers. */
void terminal_restore(struct terminal *t);

#endif
