/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file suggest.h
 * "Did you mean ...?": the known name that is nearest to an unknown one.
 */
#ifndef SUGGEST_H
#define SUGGEST_H

struct suggestion {
	const char *wrong;
	const char *best; /* NULL: nothing is near */
	unsigned distance;
};

/** Starts a search for @p wrong. */
void suggest_begin(struct suggestion *s, const char *wrong);

/** Considers @p known, which must outlive @p s. */
void suggest_try(struct suggestion *s, const char *known);

#endif
