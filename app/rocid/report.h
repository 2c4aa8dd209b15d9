/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file report.h
 * Sentences about errors: the first is enough to refuse a start, --check-config reports all.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

/** Room for a sentence, as in options.h. */
#define REPORT_MAX 512

struct report {
	char *why; /* NULL, or REPORT_MAX bytes for the first sentence */
	FILE *all; /* each sentence goes to a line here, unless NULL */
	unsigned count;
};

/** Adds a sentence. */
__attribute__((format(printf, 2, 3))) void report_add(struct report *r, const char *format, ...);

#endif
