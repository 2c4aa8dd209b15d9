/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file report.h
 * Sentences about what is wrong: the first is enough to refuse a start, --check-config wants all.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

/** Room for a sentence, as options.h has it. */
#define REPORT_MAX 512

struct report {
	char *why; /* NULL, or REPORT_MAX bytes: the first goes here ... */
	FILE *all; /* ... and each to a line here, unless NULL */
	unsigned count;
};

/** Adds a sentence. */
__attribute__((format(printf, 2, 3))) void report_add(struct report *r, const char *format, ...);

#endif
