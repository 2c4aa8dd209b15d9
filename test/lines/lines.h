/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lines.h
 * Counts which cache lines each of two workers reads and writes. Both run on one thread, so that no
 * line really moves: the addresses count. Accesses of other threads do not.
 */
#ifndef LINES_H
#define LINES_H

#include <stdint.h>

#define LINES_WORKERS 2u

/** Sets whose accesses follow on this thread: those of worker @p i, or of nobody (LINES_WORKERS),
 *  which are not counted. */
void lines_by(unsigned i);

/** Forgets all accesses. */
void lines_clear(void);

/** Lines that one worker writes and the other one uses. */
struct shared_lines {
	uint64_t times; /* all lines: as often as both did so, the line may move */
	/* the line that did so most often */
	uint64_t address;
	uint64_t reads[LINES_WORKERS];
	uint64_t writes[LINES_WORKERS];
	void *writer; /* an instruction that wrote */
	void *user;   /* an instruction of the other worker that used it */
};

struct shared_lines lines_shared(void);

/** @return accesses that were counted. */
uint64_t lines_accesses(void);

#endif
