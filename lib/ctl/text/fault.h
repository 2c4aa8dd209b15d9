/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file text/fault.h
 * Faults injected into the packets of QPs (doc/inject.md): validation and text form.
 */
#ifndef TEXT_FAULT_H
#define TEXT_FAULT_H

#include <stdbool.h>
#include "abi_ctl.h"
#include "abi_fault.h"

/** The maximum delay of a packet by a fault, in ns. */
#define FAULT_TIME_MAX 10000000000ull

/** Validates @p f.  @return 0, or -EINVAL with a sentence. */
int fault_check(const struct abi_fault *f, char why[ABI_SENTENCE_MAX]);

/** Room for a fault as text. */
#define FAULT_TEXT_MAX 160

/** A word that may follow the name of a fault. */
struct fault_word {
	const char *word; /* ends in '=' when a value follows */
	const char *help;
};

/** Iterates over the words that a fault of kind @p kind accepts; *at is 0 at the start.
 *  @return false at the end. */
bool fault_word_next(unsigned kind, unsigned *at, struct fault_word *word);

/** Reads a fault of kind @p kind from the words of @p line.  @return 0 or -EINVAL with a
 *  sentence. The fault is valid (fault_check()). */
int fault_parse(struct abi_fault *f, unsigned kind, const char *line, char why[ABI_SENTENCE_MAX]);

/** Writes the action of @p f, such as "delay time=50us", as fault_parse() reads it.  @return @p
 * text. */
char *fault_what(const struct abi_fault *f, char text[FAULT_TEXT_MAX]);

/** Likewise writes which packets @p f affects, such as "tx send psn=5 count=2". */
char *fault_where(const struct abi_fault *f, char text[FAULT_TEXT_MAX]);

#endif
