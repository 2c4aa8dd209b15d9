/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file text/fault.h
 * Faults that are injected into the packets of QPs (doc/inject.md): whether one makes sense, and
 * how people write it.
 */
#ifndef TEXT_FAULT_H
#define TEXT_FAULT_H

#include <stdbool.h>
#include "abi_ctl.h"
#include "abi_fault.h"

/** Longest time that a fault holds a packet back. */
#define FAULT_TIME_MAX 10000000000ull

/** @return whether @p f makes sense: 0, or -EINVAL with a sentence. */
int fault_check(const struct abi_fault *f, char why[ABI_SENTENCE_MAX]);

/** Room for a fault as text. */
#define FAULT_TEXT_MAX 160

/** A word that may stand behind a fault. */
struct fault_word {
	const char *word; /* ends in '=' when a value follows */
	const char *help;
};

/** Tells the next of those that a fault of kind @p kind knows; *at starts as 0.
 *  @return false behind the last. */
bool fault_word_next(unsigned kind, unsigned *at, struct fault_word *word);

/** Reads a fault of kind @p kind from the words of @p line.  @return 0 or -EINVAL with a
 *  sentence; fault_check() has approved of what is read. */
int fault_parse(struct abi_fault *f, unsigned kind, const char *line, char why[ABI_SENTENCE_MAX]);

/** Writes what @p f does, "delay time=50us", as fault_parse() reads it.  @return @p text. */
char *fault_what(const struct abi_fault *f, char text[FAULT_TEXT_MAX]);

/** Writes to which packets, "tx send psn=5 count=2", likewise. */
char *fault_where(const struct abi_fault *f, char text[FAULT_TEXT_MAX]);

#endif
