/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file editor.h
 * Line editing on a terminal: with DPDK its line editor (rdline of librte_cmdline, as in testpmd:
 * arrows, history, kill and yank, TAB, `?`), without DPDK the terminal's own.
 */
#ifndef EDITOR_H
#define EDITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** Callbacks of the editor. */
struct editor_calls {
	/** A line is complete. @return false to end. */
	bool (*line)(void *arg, const char *line);
	/**
	 * TAB after @p line, or with @p help `?`. @param text receives the text to insert @return
	 * false: nothing to insert; completions have been printed on separate lines.
	 */
	bool (*complete)(void *arg, const char *line, bool help, char *text, size_t size);
	void *arg;
};

struct editor;

/** @param out  the terminal  @return NULL if memory is short. */
struct editor *editor_open(
	int in, FILE *out, const char *prompt, bool signals, const struct editor_calls *calls);

/** Reads available input. @return false at its end, or if a callback returned false. */
bool editor_input(struct editor *e);

/** Prints lines above the one that is being typed. */
void editor_print(struct editor *e, const char *text, size_t len);

/** Restores the terminal. NULL is allowed. */
void editor_close(struct editor *e);

#endif
