/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file refuse.h
 * Errors: a negative errno, and a sentence that tells the user what to do (decision 0000.6).
 */
#ifndef REFUSE_H
#define REFUSE_H

#include <stddef.h>

/** Room for a sentence and its NUL; the ABI's messages carry as much. */
#define SENTENCE_MAX 256

/** Writes the sentence into @p why, truncated to fit.  @return @p err, for the caller to return. */
int refuse(char why[SENTENCE_MAX], int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** The same for a @p why of another @p size. */
int refuse_in(char *why, size_t size, int err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** Says that memory is short, and what to do.  @return -ENOMEM */
int refuse_memory(char why[SENTENCE_MAX]);

#endif
