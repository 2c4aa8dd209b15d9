/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file terminal.h
 * Puts a terminal into a mode that delivers each key as it is pressed, and restores it.
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

/** @param fd  of the terminal; has no effect if it is not one */
void terminal_init(struct terminal *t, int fd);

/**
 * Keys arrive at once and are not echoed. Output is unchanged. @param signals Ctrl-C remains
 * SIGINT; otherwise it is a key like others
 */
void terminal_raw(struct terminal *t, bool signals);

/** Restores the state before terminal_raw(). Safe in signal handlers. */
void terminal_restore(struct terminal *t);

#endif
