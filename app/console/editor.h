/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file editor.h
 * A line that is typed on a terminal: with DPDK its own line editor (rdline of librte_cmdline, as
 * in testpmd: arrows, history, kill and yank, TAB, `?`), without DPDK what the terminal itself can
 * do.
 */
#ifndef EDITOR_H
#define EDITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** What the editor asks for. */
struct editor_calls {
	/** A line is complete. @return false to end. */
	bool (*line)(void *arg, const char *line);
	/**
	 * TAB behind @p line, or with @p help `?`.
	 * @param text  receives what is to be inserted
	 * @return false: nothing is, and what there is to see has been printed on lines of its own.
	 */
	bool (*complete)(void *arg, const char *line, bool help, char *text, size_t size);
	void *arg;
};

struct editor;

/** @param out  the terminal  @return NULL when memory is short. */
struct editor *editor_open(
	int in, FILE *out, const char *prompt, bool signals, const struct editor_calls *calls);

/** Input is there: takes it.  @return false at its end, or when a call said so. */
bool editor_input(struct editor *e);

/** Prints lines above the one that is being typed. */
void editor_print(struct editor *e, const char *text, size_t len);

/** Leaves the terminal as it was. NULL is harmless. */
void editor_close(struct editor *e);

#endif
